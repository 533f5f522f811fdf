"""Which pods of a group are alike: a hash of what matters to their admission names their pod set (rules/10 §5.4)."""

from __future__ import annotations

import hashlib
import json

from kueuecore._json import JsonObject, JsonValue, list_at, object_at
from kueuecore.errors import Problem
from kueuecore.jobs.context import PREFIX, annotations_of
from kueuecore.jobs.quantities import canonical_amounts
from kueuecore.jobs.rejections import immutable

__all__ = ["ROLE_HASH", "role_hash", "spec_changes"]

ROLE_HASH = f"{PREFIX}role-hash"

# The hash is over Go's JSON: fields in the order in which Kubernetes declares them, maps by their keys.
_FIELDS = (
    *("key", "operator", "value", "values", "effect", "tolerationSeconds"),
    *("name", "hostPort", "containerPort", "protocol", "hostIP", "resourceClaimName", "resourceClaimTemplateName"),
    *("nodeAffinity", "podAffinity", "podAntiAffinity"),
    *("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"),
    *("weight", "preference", "podAffinityTerm", "nodeSelectorTerms"),
    *("matchLabels", "matchExpressions", "matchFields"),
)
_TERM = ("labelSelector", "namespaces", "topologyKey", "namespaceSelector", "matchLabelKeys", "mismatchLabelKeys")
_SPREAD = (
    *("maxSkew", "topologyKey", "whenUnsatisfiable", "labelSelector"),
    *("minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy", "matchLabelKeys"),
)


def role_hash(pod: JsonObject) -> str:
    """The role of a pod: its annotation, else a hash of its spec with the defaults of the API server.

    Example:
        >>> role_hash({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1000m"}}}]}})
        'dc85db45'
    """
    if ROLE_HASH in annotations_of(pod):
        return annotations_of(pod)[ROLE_HASH]
    text = json.dumps({"spec": spec_shape(object_at(pod, "spec"))}, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8]


def spec_shape(spec: JsonObject) -> JsonObject:
    """What of a pod's spec matters to its admission."""
    shape: JsonObject = {
        "affinity": _ordered(spec.get("affinity"), _TERM),
        "containers": _containers(spec, "containers"),
        "initContainers": _containers(spec, "initContainers"),
        "nodeSelector": _sorted(spec.get("nodeSelector")),
        "overhead": _sorted(canonical_amounts(spec.get("overhead"))),
        "priority": spec.get("priority"),
        "resourceClaims": _ordered(spec.get("resourceClaims"), ()),
        "runtimeClassName": spec.get("runtimeClassName"),
        "tolerations": _ordered(spec.get("tolerations"), ()),
        "topologySpreadConstraints": _ordered(spec.get("topologySpreadConstraints"), _SPREAD),
    }
    if isinstance(spec.get("resources"), dict):
        requests = object_at(spec, "resources").get("requests")
        shape = dict(sorted({**shape, "resources": _sorted(canonical_amounts(requests))}.items()))
    return shape


def spec_changes(new: JsonObject, old: JsonObject, field: str) -> list[Problem]:
    """Where the spec of a pod has changed in what matters to its admission, though it may not."""
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
        ports = _ordered(object_at(container).get("ports"), ())
        shapes.append({"ports": ports, "resources": {"requests": _sorted(canonical_amounts(requests))}})
    return shapes or None


def _sorted(value: JsonValue) -> JsonValue:
    return dict(sorted(value.items())) if isinstance(value, dict) else value


def _ordered(value: JsonValue, fields: tuple[str, ...]) -> JsonValue:
    """The value with the fields of all objects in it in the order of Kubernetes' declarations."""
    if isinstance(value, list):
        return [_ordered(item, fields) for item in value]
    if not isinstance(value, dict):
        return value
    order = {name: index for index, name in enumerate((*fields, *_FIELDS))}
    return {
        name: _sorted(value[name]) if name == "matchLabels" else _ordered(value[name], fields)
        for name in sorted(value, key=lambda name: (order.get(name, len(order)), name))
    }
