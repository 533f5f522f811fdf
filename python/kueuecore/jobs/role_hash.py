"""Tells which pods of a group are alike: a hash of what matters for admission names their pod set (rules/10 §5.4)."""

from __future__ import annotations

import hashlib
import json

from kueuecore._json import JsonObject, JsonValue, list_at, object_at
from kueuecore.errors import Problem
from kueuecore.jobs.context import PREFIX, annotations_of
from kueuecore.jobs.quantities import printed_amounts
from kueuecore.jobs.rejections import immutable
from kueuecore.jobs.stored_shapes import (
    AFFINITY,
    PORT,
    RESOURCE_CLAIM,
    SPREAD_CONSTRAINT,
    TOLERATION,
    as_stored,
)

__all__ = ["ROLE_HASH", "role_hash", "shape_hash", "spec_changes"]

ROLE_HASH = f"{PREFIX}role-hash"


def role_hash(pod: JsonObject) -> str:
    """Return the role of a pod: its annotation, or else a hash of its spec with the API server's defaults.

    Example:
        >>> role_hash({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1000m"}}}]}})
        'dc85db45'
    """
    return annotations_of(pod)[ROLE_HASH] if ROLE_HASH in annotations_of(pod) else shape_hash(pod)


def shape_hash(pod: JsonObject) -> str:
    """Return the hash of a pod's spec, whatever its annotation says."""
    text = json.dumps({"spec": spec_shape(object_at(pod, "spec"))}, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8]


def spec_shape(spec: JsonObject) -> JsonObject:
    """Return what matters for admission in a pod's spec, as an API server stores it and Go's JSON prints it."""
    shape: JsonObject = {
        "affinity": as_stored(spec.get("affinity"), AFFINITY),
        "containers": _containers(spec, "containers"),
        "initContainers": _containers(spec, "initContainers"),
        "nodeSelector": _texts(spec.get("nodeSelector")),
        "overhead": _texts(printed_amounts(spec.get("overhead"))),
        "priority": spec.get("priority"),
        "resourceClaims": as_stored(spec.get("resourceClaims"), [RESOURCE_CLAIM]) or None,
        "runtimeClassName": spec.get("runtimeClassName"),
        "tolerations": as_stored(spec.get("tolerations"), [TOLERATION]) or None,
        "topologySpreadConstraints": as_stored(spec.get("topologySpreadConstraints"), [SPREAD_CONSTRAINT]) or None,
    }
    if isinstance(spec.get("resources"), dict):
        requests = object_at(spec, "resources").get("requests")
        shape = dict(sorted({**shape, "resources": _texts(printed_amounts(requests))}.items()))
    return shape


def spec_changes(new: JsonObject, old: JsonObject, field: str) -> list[Problem]:
    """Return where a pod's spec has changed in what matters for admission, which is not allowed."""
    return _changes(spec_shape(new), spec_shape(old), field)


def _changes(new: JsonObject, old: JsonObject, field: str) -> list[Problem]:
    problems = []
    for name in sorted({*new, *old}):
        value, before, path = new.get(name), old.get(name), f"{field}.{name}"
        if name in ("containers", "initContainers") and isinstance(value, list) and isinstance(before, list):
            if len(value) == len(before):
                for index, pair in enumerate(zip(value, before, strict=True)):
                    problems += _changes(object_at(pair[0]), object_at(pair[1]), f"{path}[{index}]")
                continue
        elif name == "resources" and "requests" in object_at(value):
            problems += _changes(object_at(value), object_at(before), path)
            continue
        problems += immutable(path, value, before)
    return problems


def _containers(spec: JsonObject, key: str) -> JsonValue:
    shapes: list[JsonValue] = []
    for container in list_at(spec, key):
        requests = object_at(container, "resources").get("requests")
        ports = as_stored(object_at(container).get("ports"), [PORT]) or None
        shapes.append({"ports": ports, "resources": {"requests": _texts(printed_amounts(requests))}})
    return shapes or None


def _texts(value: JsonValue) -> JsonValue:
    """Return a map sorted by key; a server drops an empty one."""
    return dict(sorted(value.items())) if isinstance(value, dict) and value else None
