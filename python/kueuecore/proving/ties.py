"""Ties that Kueue decides by chance, and the engine by name (docs/differences-from-kueue.md): decided the other way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kueuecore._json import JsonObject, JsonValue, object_at, text_at
from kueuecore.findings.facts import Facts
from kueuecore.findings.manifest_fields import parent_field
from kueuecore.findings.smallest_world import with_objects
from kueuecore.manifests import Manifest
from kueuecore.proving.shapes import Shape

__all__ = ["in_opposite_order"]

_KINDS = ("ClusterQueue", "Cohort")


def in_opposite_order(
    facts: Facts, shapes: Sequence[Shape], queues: Sequence[str]
) -> tuple[Facts, tuple[Shape, ...], tuple[str, ...]] | None:
    """Return objects, shapes and ClusterQueues with names that sort in the opposite order, and else the same.

    Heads, shares and siblings that are equal in all else go by the names of ClusterQueues and Cohorts.

    Args:
        facts: The objects.
        shapes: What may arrive.
        queues: The ClusterQueues of the shapes.

    Returns:
        None if the objects are not valid with other names.
    """
    there = {text_at(it.object, "metadata", "name") for it in facts.given if text_at(it.object, "kind") in _KINDS}
    there |= {text_at(it.object, *parent_field(it).split(".")) for it in facts.given if _is_node(it)} - {""}
    names = {name: f"node-{len(there) - n:06}" for n, name in enumerate(sorted(there))}
    found = with_objects(facts, [_renamed(manifest, names) for manifest in facts.given])
    if found is None:
        return None
    renamed = tuple(replace(it, cluster_queue=names.get(it.cluster_queue, it.cluster_queue)) for it in shapes)
    return found, renamed, tuple(names.get(name, name) for name in queues)


def _is_node(manifest: Manifest) -> bool:
    return text_at(manifest.object, "kind") in _KINDS


def _renamed(manifest: Manifest, names: Mapping[str, str]) -> Manifest:
    if text_at(manifest.object, "kind") == "LocalQueue":
        paths = ["spec.clusterQueue"]
    elif _is_node(manifest):
        paths = ["metadata.name", parent_field(manifest)]
    else:
        return manifest
    found = manifest.object
    for path in paths:
        found = _with_name(found, path, names)
    return replace(manifest, object=found)


def _with_name(plain: JsonObject, path: str, names: Mapping[str, str]) -> JsonObject:
    part, _, field = path.partition(".")
    inner = object_at(plain, part)
    name: JsonValue = inner.get(field)
    return {**plain, part: {**inner, field: names[name]}} if isinstance(name, str) and name in names else plain
