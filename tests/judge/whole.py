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
    objects = [*case["objects"], *(it["object"] for it in events if "object" in it)]
    there = {(text_at(it, "kind"), key_of(it)) for it in case["objects"]}
    has_pods = all(list_at(it, "spec", "podSets") for it in objects if it["kind"] == "Workload")
    return has_pods and all(name in there for it in objects for name in _named(it)) and _are_valid(objects)


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
                yield from (("ResourceFlavor", text_at(it, "name")) for it in list_at(group, "flavors"))
            for it in list_at(spec, "admissionChecksStrategy", "admissionChecks"):
                yield "AdmissionCheck", text_at(it, "name")
        case "ResourceFlavor" if "topologyName" in spec:
            yield "Topology", text_at(spec, "topologyName")


def _are_valid(objects: Sequence[JsonObject]) -> bool:
    return all(_is_valid(json.dumps(it)) for it in objects)


@lru_cache(maxsize=2048)
def _is_valid(manifest: str) -> bool:
    try:
        Engine().apply(manifest.encode(), now=START)
    except KueuecoreError:
        return False
    return True
