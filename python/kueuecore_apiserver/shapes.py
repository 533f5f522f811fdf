"""How lists and maps of a kind merge: as a whole, by keys, or as a set; for apply, ownership and strategic merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at

__all__ = ["ANY", "ATOMIC", "Merging", "Shape", "built_in_shape", "shape_of_schema"]


class Merging(StrEnum):
    """How a value merges with another."""

    GRANULAR = "granular"
    """By its fields, for a map; as a whole, for a list of unknown shape."""
    ATOMIC = "atomic"
    """As a whole."""
    SET = "set"
    """As a list of unique values."""
    KEYED = "keyed"
    """As a list of objects with keys."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a value merges, and the shapes of its parts.

    Args:
        merging: How apply and ownership treat it.
        keys: The keys of a keyed list, with a default where the field may be missing.
        patch_key: The key by which a strategic merge patch merges a list; `""` if it replaces the list.
        patches_set: Whether a strategic merge patch adds to a list of plain values.
        fields: The fields of a map.
        others: The other fields of a map, or the items of a list.
        retains_keys: Whether a strategic merge patch lists the keys to keep.
    """

    merging: Merging = Merging.GRANULAR
    keys: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType({}))
    patch_key: str = ""
    patches_set: bool = False
    fields: Mapping[str, Shape] = field(default_factory=lambda: MappingProxyType({}))
    others: Shape | None = None
    retains_keys: bool = False

    def at(self, name: str) -> Shape:
        """Return the shape of a field of a map."""
        return self.fields.get(name) or self.others or ANY

    @property
    def items(self) -> Shape:
        """The shape of the items of a list."""
        return self.others or ANY


ANY = Shape()
"""An unknown shape: maps merge by their fields, lists as a whole."""
ATOMIC = Shape(Merging.ATOMIC)
"""The shape of what merges as a whole."""


def _keyed(*keys: str, items: Shape = ANY, patch_key: str | None = None, **defaults: str) -> Shape:
    """Return the shape of a list with keys; a strategic merge patch uses the first by default."""
    own = {key: defaults.get(key) for key in keys}
    return Shape(Merging.KEYED, keys=own, patch_key=keys[0] if patch_key is None else patch_key, others=items)


def _of(fields: Mapping[str, Shape]) -> Shape:
    return Shape(fields=fields)


_SET = Shape(Merging.SET, patches_set=True)
_METADATA = _of({"finalizers": _SET, "ownerReferences": _keyed("uid"), "managedFields": ATOMIC})
_CONDITIONS = _keyed("type")
# For example in Jobs: atomic for apply, but merged by strategic merge patches.
_ATOMIC_CONDITIONS = Shape(Merging.ATOMIC, patch_key="type")
_CONTAINER = _of(
    {
        "env": _keyed("name"),
        "ports": _keyed("containerPort", "protocol", protocol="TCP"),
        "volumeMounts": _keyed("mountPath"),
        "volumeDevices": _keyed("devicePath"),
        "resources": _of({"claims": _keyed("name", patch_key="")}),
    }
)
_CONTAINERS = _keyed("name", items=_CONTAINER)
_NAMED = _keyed("name")
_POD_SPEC = _of(
    {
        "containers": _CONTAINERS,
        "initContainers": _CONTAINERS,
        "ephemeralContainers": _CONTAINERS,
        "volumes": Shape(Merging.KEYED, keys={"name": None}, patch_key="name", others=Shape(retains_keys=True)),
        "imagePullSecrets": _NAMED,
        "hostAliases": _keyed("ip"),
        "nodeSelector": ATOMIC,
        "schedulingGates": _NAMED,
        "resourceClaims": Shape(Merging.KEYED, keys={"name": None}, patch_key="name", others=Shape(retains_keys=True)),
        "topologySpreadConstraints": _keyed("topologyKey", "whenUnsatisfiable"),
    }
)
_TEMPLATE = _of({"metadata": _METADATA, "spec": _POD_SPEC})
_WORKLOAD_STATUS = _of({"conditions": _CONDITIONS})
_POD_STATUS = _of(
    {
        "conditions": _CONDITIONS,
        "podIPs": _keyed("ip"),
        "hostIPs": Shape(Merging.ATOMIC, patch_key="ip"),
        "resourceClaimStatuses": _NAMED,
    }
)
_NODE = {
    "spec": _of({"podCIDRs": _SET}),
    "status": _of({"conditions": _CONDITIONS, "addresses": _keyed("type")}),
}
_REPLICATED = {
    "spec": _of({"selector": ATOMIC, "template": _TEMPLATE, "strategy": Shape(retains_keys=True)}),
    "status": _WORKLOAD_STATUS,
}
_SERVICE_PORTS = _keyed("port", "protocol", protocol="TCP")
_BUILT_IN: Mapping[tuple[str, str], Mapping[str, Shape]] = {
    ("", "Pod"): {"spec": _POD_SPEC, "status": _POD_STATUS},
    ("", "PodTemplate"): {"template": _TEMPLATE},
    ("", "Node"): _NODE,
    ("", "Namespace"): {"status": _WORKLOAD_STATUS},
    ("", "ServiceAccount"): {"secrets": _NAMED, "imagePullSecrets": ATOMIC},
    ("", "Service"): {
        "spec": _of({"ports": _SERVICE_PORTS, "selector": ATOMIC}),
        "status": _WORKLOAD_STATUS,
    },
    ("apps", "Deployment"): _REPLICATED,
    ("apps", "ReplicaSet"): _REPLICATED,
    ("apps", "StatefulSet"): _REPLICATED,
    ("batch", "Job"): {
        "spec": _of({"selector": ATOMIC, "template": _TEMPLATE}),
        "status": _of({"conditions": _ATOMIC_CONDITIONS}),
    },
    ("apiextensions.k8s.io", "CustomResourceDefinition"): {"status": _WORKLOAD_STATUS},
    ("resource.k8s.io", "ResourceClaim"): {"status": _of({"reservedFor": _keyed("uid")})},
}


def built_in_shape(group: str, kind: str) -> Shape:
    """Return the shape of a built-in kind."""
    return Shape(fields={"metadata": _METADATA, **_BUILT_IN.get((group, kind), {})})


def shape_of_schema(schema: JsonObject) -> Shape:
    """Return the shape that the schema of a CustomResourceDefinition sets by `x-kubernetes-list-type` and similar.

    Example:
        >>> schema = {"properties": {"spec": {"properties": {"podSets": {
        ...     "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}}}}}
        >>> shape_of_schema(schema).at("spec").at("podSets").merging
        <Merging.KEYED: 'keyed'>
    """
    shape = _schema_shape(schema)
    return Shape(fields={**shape.fields, "metadata": _METADATA}, others=shape.others)


def _schema_shape(schema: JsonObject) -> Shape:
    if not schema:
        return ANY
    if "items" in schema or schema.get("type") == "array":
        return _list_shape(schema)
    if text_at(schema, "x-kubernetes-map-type") == "atomic":
        return ATOMIC
    fields = {name: _schema_shape(object_at(other)) for name, other in object_at(schema, "properties").items()}
    interesting = {name: shape for name, shape in fields.items() if shape is not ANY}
    others = _schema_shape(object_at(schema, "additionalProperties"))
    if not interesting and others is ANY:
        return ANY
    return Shape(fields=interesting, others=None if others is ANY else others)


def _list_shape(schema: JsonObject) -> Shape:
    items = object_at(schema, "items")
    match text_at(schema, "x-kubernetes-list-type"):
        case "map":
            properties = object_at(items, "properties")
            keys = {key: object_at(properties, key).get("default") for key in map(str, list_at(schema, _KEYS))}
            return Shape(Merging.KEYED, keys=keys, others=_schema_shape(items))
        case "set":
            return Shape(Merging.SET)
        case _:
            return ATOMIC


_KEYS = "x-kubernetes-list-map-keys"
