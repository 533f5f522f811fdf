"""Shapes parts of a pod's spec as an API server returns them: fields in order, without those that are left out.

A server drops unknown fields, and most that are empty: `values: []`, `key: ""`, `hostPort: 0`. It keeps empty optional
objects such as `namespaceSelector: {}`, and always prints some fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from kueuecore._json import JsonObject, JsonValue

__all__ = ["AFFINITY", "PORT", "RESOURCE_CLAIM", "SPREAD_CONSTRAINT", "TOLERATION", "StoredField", "as_stored"]


class _Kept(Enum):
    """When a field is printed."""

    FILLED = auto()
    GIVEN = auto()
    ALWAYS = auto()


@dataclass(frozen=True, slots=True)
class StoredField:
    """A field of an object.

    Args:
        kept: If it is not empty, if it is given, or always.
        shape: Its own fields, or those of a list's items; empty for a text map.
        zero: What is printed for a field that is not given.
    """

    kept: _Kept
    shape: Shape | None = None
    zero: JsonValue = None


Shape = Mapping[str, "StoredField"] | Sequence[Mapping[str, "StoredField"]]


def as_stored(value: JsonValue, shape: Shape | None) -> JsonValue:
    """Return a value as a server returns it; None for null.

    Args:
        value: The value as written.
        shape: The fields of an object in order, or those of a list's items.
    """
    if isinstance(value, list):
        items = shape[0] if isinstance(shape, Sequence) and shape else None
        return [as_stored(row, items) for row in value]
    if not isinstance(value, dict) or not isinstance(shape, Mapping):
        return dict(sorted(value.items())) if isinstance(value, dict) else value
    stored: JsonObject = {}
    for name, field in shape.items():
        found = as_stored(value.get(name), field.shape)
        if found or (field.kept is _Kept.GIVEN and found is not None):
            stored[name] = found
        elif field.kept is _Kept.ALWAYS:
            stored[name] = field.zero
    return stored


def _filled(*names: str) -> dict[str, StoredField]:
    return {name: StoredField(_Kept.FILLED) for name in names}


def _given(*names: str) -> dict[str, StoredField]:
    return {name: StoredField(_Kept.GIVEN) for name in names}


def _always(zero: JsonValue, *names: str) -> dict[str, StoredField]:
    return {name: StoredField(_Kept.ALWAYS, zero=zero) for name in names}


_REQUIREMENT = {**_always("", "key", "operator"), **_filled("values")}
_SELECTOR = {**_filled("matchLabels"), "matchExpressions": StoredField(_Kept.FILLED, [_REQUIREMENT])}
_TERM = {
    "matchExpressions": StoredField(_Kept.FILLED, [_REQUIREMENT]),
    "matchFields": StoredField(_Kept.FILLED, [_REQUIREMENT]),
}
_REQUIRED, _PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
_POD_TERM = {
    "labelSelector": StoredField(_Kept.GIVEN, _SELECTOR),
    **_filled("namespaces"),
    **_always("", "topologyKey"),
    "namespaceSelector": StoredField(_Kept.GIVEN, _SELECTOR),
    **_filled("matchLabelKeys", "mismatchLabelKeys"),
}
_NO_POD_TERM: JsonObject = {"topologyKey": ""}
_POD_AFFINITY = {
    _REQUIRED: StoredField(_Kept.FILLED, [_POD_TERM]),
    _PREFERRED: StoredField(
        _Kept.FILLED,
        [{**_always(0, "weight"), "podAffinityTerm": StoredField(_Kept.ALWAYS, _POD_TERM, zero=_NO_POD_TERM)}],
    ),
}
_NODE_SELECTOR = {"nodeSelectorTerms": StoredField(_Kept.ALWAYS, [_TERM])}
AFFINITY: Shape = {
    "nodeAffinity": StoredField(
        _Kept.GIVEN,
        {
            _REQUIRED: StoredField(_Kept.GIVEN, _NODE_SELECTOR),
            _PREFERRED: StoredField(
                _Kept.FILLED, [{**_always(0, "weight"), "preference": StoredField(_Kept.ALWAYS, _TERM, zero={})}]
            ),
        },
    ),
    "podAffinity": StoredField(_Kept.GIVEN, _POD_AFFINITY),
    "podAntiAffinity": StoredField(_Kept.GIVEN, _POD_AFFINITY),
}
"""`spec.affinity`."""
TOLERATION: Mapping[str, StoredField] = {
    **_filled("key", "operator", "value", "effect"),
    **_given("tolerationSeconds"),
}
"""An item of `spec.tolerations`."""
SPREAD_CONSTRAINT: Mapping[str, StoredField] = {
    **_always(0, "maxSkew"),
    **_always("", "topologyKey", "whenUnsatisfiable"),
    "labelSelector": StoredField(_Kept.GIVEN, _SELECTOR),
    **_given("minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy"),
    **_filled("matchLabelKeys"),
}
"""An item of `spec.topologySpreadConstraints`."""
PORT: Mapping[str, StoredField] = {
    **_filled("name", "hostPort"),
    **_always(0, "containerPort"),
    **_filled("protocol", "hostIP"),
}
"""An item of `ports` of a container."""
RESOURCE_CLAIM: Mapping[str, StoredField] = {
    **_always("", "name"),
    **_given("resourceClaimName", "resourceClaimTemplateName"),
}
"""An item of `spec.resourceClaims`."""
