"""Which smaller cases are still cases: objects that an API server takes, and that name only what is there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from kueuecore import Engine
from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.errors import KueuecoreError
from kueuecore.testing.history import START, key_of

__all__ = ["is_whole"]


def is_whole(case: dict[str, Any]) -> bool:
    """Whether every object is valid, and what it names is there; a drawn world is so, and a smaller one has to be."""
    events = case["input"]["events"]
    objects = [*case["objects"], *(event["object"] for event in events if "object" in event)]
    there = {(text_at(object_, "kind"), key_of(object_)) for object_ in case["objects"]}
    has_pods = all(list_at(object_, "spec", "podSets") for object_ in objects if object_["kind"] == "Workload")
    return has_pods and all(name in there for object_ in objects for name in _named(object_)) and _are_valid(objects)


def _named(thing: JsonObject) -> Iterator[tuple[str, str]]:
    spec, namespace = object_at(thing, "spec"), text_at(thing, "metadata", "namespace")
    match thing["kind"]:
        case "Workload":
            yield "Namespace", namespace
            yield "LocalQueue", f"{namespace}/{text_at(spec, 'queueName')}"
        case "LocalQueue":
            yield "ClusterQueue", text_at(spec, "clusterQueue")
        case "ClusterQueue" | "Cohort":
            for group in list_at(spec, "resourceGroups"):
                yield from (("ResourceFlavor", text_at(flavor, "name")) for flavor in list_at(group, "flavors"))
            for check in list_at(spec, "admissionChecksStrategy", "admissionChecks"):
                yield "AdmissionCheck", text_at(check, "name")
        case "ResourceFlavor" if "topologyName" in spec:
            yield "Topology", text_at(spec, "topologyName")


def _are_valid(objects: Sequence[JsonObject]) -> bool:
    return all(_is_valid(json.dumps(object_)) for object_ in objects)


@lru_cache(maxsize=2048)
def _is_valid(manifest: str) -> bool:
    try:
        Engine().apply(manifest.encode(), now=START)
    except KueuecoreError:
        return False
    return True
