"""The nodes on which a ClusterQueue's flavors with a topology place pods, and what keeps pods off them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at, texts_at
from kueuecore.answers.amounts import requests_of
from kueuecore.engine import Engine
from kueuecore.errors import UnknownObjectError

__all__ = [
    "FlavorNodes",
    "flavor_names",
    "flavors_with_nodes",
    "found_object",
    "missing_taints",
    "taint_sets",
    "toleration_of",
]

_KEEPS_OFF = ("NoSchedule", "NoExecute")
_MAX_SETS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorNodes:
    """A flavor with a topology.

    Args:
        name: Its name.
        flavor: The flavor.
        levels: The levels of its Topology, the widest first.
        nodes: The nodes with all its nodeLabels, by name.
        others: Nodes that lack some of them, but have no other value for any, by name.
    """

    name: str
    flavor: JsonObject
    levels: tuple[str, ...]
    nodes: tuple[JsonObject, ...]
    others: tuple[JsonObject, ...]


def found_object(engine: Engine, kind: str, name: str, namespace: str = "") -> JsonObject | None:
    """An object of an engine; `None` if it does not exist."""
    try:
        return engine.object(kind, name, namespace=namespace)
    except UnknownObjectError:
        return None


def flavor_names(engine: Engine, workload: JsonObject, queue: str) -> tuple[str, ...]:
    """The flavors of a ClusterQueue for resources that a Workload requests, in order."""
    asked = requests_of(workload)
    names: dict[str, None] = {}
    for group in list_at(found_object(engine, "ClusterQueue", queue), "spec", "resourceGroups"):
        if set(asked) & {str(resource) for resource in list_at(group, "coveredResources")}:
            names |= dict.fromkeys(text_at(flavor, "name") for flavor in list_at(group, "flavors"))
    return tuple(names)


def flavors_with_nodes(engine: Engine, workload: JsonObject, queue: str) -> tuple[FlavorNodes, ...]:
    """Those of these flavors that have a topology, with their nodes."""
    found: list[FlavorNodes] = []
    nodes: tuple[JsonObject, ...] | None = None
    for name in flavor_names(engine, workload, queue):
        flavor = found_object(engine, "ResourceFlavor", name)
        topology = found_object(engine, "Topology", text_at(flavor, "spec", "topologyName"))
        if flavor is None or topology is None:
            continue
        nodes = engine.objects("Node") if nodes is None else nodes
        labels = texts_at(flavor, "spec", "nodeLabels")
        inside, others = [], []
        for node in nodes:
            of = texts_at(node, "metadata", "labels")
            if all(of.get(key) == value for key, value in labels.items()):
                inside.append(node)
            elif all(of.get(key, value) == value for key, value in labels.items()):
                others.append(node)
        levels = tuple(text_at(level, "nodeLabel") for level in list_at(topology, "spec", "levels"))
        found.append(FlavorNodes(name=name, flavor=flavor, levels=levels, nodes=tuple(inside), others=tuple(others)))
    return tuple(found)


def missing_taints(taints: Iterable[JsonValue], tolerations: Iterable[JsonValue]) -> list[JsonObject]:
    """The taints that keep pods with some tolerations off."""
    known = list(tolerations)
    off = (object_at(taint) for taint in taints if text_at(taint, "effect") in _KEEPS_OFF)
    return [taint for taint in off if not any(_tolerates(by, taint) for by in known)]


def toleration_of(taint: JsonObject) -> JsonObject:
    """The toleration of exactly this taint."""
    return {"operator": "Equal", **{name: text for name, text in taint.items() if name in ("key", "value", "effect")}}


def taint_sets(
    flavor: JsonObject, nodes: Sequence[JsonObject], tolerations: Sequence[JsonValue]
) -> list[list[JsonObject]]:
    """The sets of taints to tolerate for a place on some node; those of most nodes first, those of all nodes last."""
    own = list_at(flavor, "spec", "nodeTaints")
    if not nodes:
        return [missing_taints(own, tolerations)]
    of_nodes = (_distinct([*own, *list_at(node, "spec", "taints")]) for node in nodes)
    sets = [missing_taints(of_node, tolerations) for of_node in of_nodes]
    counts = Counter(tuple(map(_written, set_)) for set_ in sets)
    by_text = {tuple(map(_written, set_)): set_ for set_ in sets}
    ordered = sorted(by_text, key=lambda entry: (-counts[entry], len(entry), entry))[:_MAX_SETS]
    union = _distinct([taint for set_ in sets for taint in set_])
    every = [by_text[entry] for entry in ordered]
    return every if len(by_text) == 1 else [*every, union]


def _written(taint: JsonValue) -> str:
    return f"{text_at(taint, 'key')}={text_at(taint, 'value')}:{text_at(taint, 'effect')}"


def _distinct(taints: Iterable[JsonValue]) -> list[JsonObject]:
    return list({_written(taint): object_at(taint) for taint in taints}.values())


def _tolerates(toleration: JsonValue, taint: JsonValue) -> bool:
    effect, key = text_at(toleration, "effect"), text_at(toleration, "key")
    is_about_it = effect in ("", text_at(taint, "effect")) and key in ("", text_at(taint, "key"))
    exists = text_at(toleration, "operator") == "Exists"
    return is_about_it and (exists or text_at(toleration, "value") == text_at(taint, "value"))
