"""What is odd about the topologies, flavors, nodes and workloads of a run: it is allowed, and hardly what is wanted.

Each finding names the object, the field and what to do. None of them is an error for Kueue, which says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at, texts_at
from kueuecore._text import quoted
from kueuecore.cli.outcome import Row, RunOutcome
from kueuecore.cli.topology_objects import KUEUE_GROUP, TOPOLOGY_NAME, TopologyObjects, levels_of_topology
from kueuecore.cli.topology_sentences import AskedTopology
from kueuecore.errors import Problem
from kueuecore.manifests import Manifest
from kueuecore.states import Stage
from kueuecore.world import World, is_workload

__all__ = ["topology_findings"]

_MOST_NAMES = 3


def topology_findings(outcome: RunOutcome) -> Iterator[Problem]:
    """What is odd, first about flavors, then about workloads.

    Args:
        outcome: What a run came to.
    """
    if not outcome.engine.configuration.is_enabled("TopologyAwareScheduling"):
        return
    found = outcome.topology_objects
    for _, flavor in sorted(found.flavors.items()):
        yield from _about_flavor(flavor, found)
    manifests = {_key(it.object): it for it in outcome.world.manifests if is_workload(it.object)}
    flavors = _flavors_of_queues(outcome.world)
    for row in outcome.workloads:
        manifest = manifests.get((row.state.namespace, row.state.name))
        if manifest is not None and row.state.stage is Stage.PENDING:
            names = flavors.get(row.state.cluster_queue or "", ())
            yield from _about_workload(row, manifest, found, names)


def _about_flavor(flavor: Manifest, found: TopologyObjects) -> Iterator[Problem]:
    name = text_at(flavor.object, *TOPOLOGY_NAME)
    topology = found.topologies.get(name)
    if topology is None:
        yield flavor.problem(
            f"there is no Topology {quoted(name)}, so nothing gets a place by this flavor",
            field="spec.topologyName",
            remedy="create it, or name one that exists",
        )
        return
    labels = texts_at(flavor.object, "spec", "nodeLabels")
    nodes = [it for _, it in sorted(found.nodes.items()) if labels.items() <= _labels(it).items()]
    if not nodes:
        there = (
            "there are no Nodes among the objects" if not found.nodes else f"no Node has the labels {_pairs(labels)}"
        )
        remedy = "give the Nodes, too" if not found.nodes else "label the nodes, or correct nodeLabels"
        yield flavor.problem(f"{there}, so no pod gets a place", field="spec.nodeLabels", remedy=remedy)
        return
    yield from _about_levels(topology, text_at(flavor.object, "metadata", "name"), nodes)
    placed = [it for it in nodes if all(level in _labels(it) for level in levels_of_topology(topology))]
    bad = [it for it in placed if _trouble(it)]
    if placed and len(bad) == len(placed):
        names = _names([f"{text_at(it.object, 'metadata', 'name')} ({_trouble(it)})" for it in bad])
        yield flavor.problem(
            f"no Node with these labels takes pods: {names}",
            field="spec.nodeLabels",
            remedy="kubectl uncordon those that are cordoned, and see why the others are not ready",
        )


def _about_levels(topology: Manifest, flavor: str, nodes: Sequence[Manifest]) -> Iterator[Problem]:
    for index, level in enumerate(levels_of_topology(topology)):
        without = [it for it in nodes if level not in _labels(it)]
        if not without:
            continue
        if len(without) == len(nodes):
            whose, names = "no Node", ""
        else:
            whose = "not every Node"
            names = f": {_names([text_at(it.object, 'metadata', 'name') for it in without])}"
        yield topology.problem(
            f"{whose} of flavor {flavor} has the label {level}, and Nodes without it get no pods{names}",
            field=f"spec.levels[{index}].nodeLabel",
            remedy=f"kubectl label node NODE {level}=VALUE, or correct the level",
        )


def _about_workload(row: Row, manifest: Manifest, found: TopologyObjects, flavors: Sequence[str]) -> Iterator[Problem]:
    with_topology = [name for name in flavors if name in found.flavors]
    if not all(map(found.levels_of, with_topology)):
        return  # that the Topology does not exist has been said
    for index, pod_set in enumerate(list_at(manifest.object, "spec", "podSets")):
        asked = AskedTopology.of(pod_set)
        missing = next(
            (it for it in asked.levels if not any(it in found.levels_of(name) for name in with_topology)), ""
        )
        field = f"spec.podSets[{index}].topologyRequest"
        if missing and flavors:
            known = "; ".join(f"{name} has {', '.join(found.levels_of(name))}" for name in with_topology)
            yield manifest.problem(
                f"no flavor of ClusterQueue {row.state.cluster_queue} has the level {missing}"
                + (f": {known}" if known else ", none has a topologyName"),
                field=f"{field}.{_field_of(asked, missing)}",
                remedy="ask for a level that one of them has" if known else "ask for no topology, or use another queue",
            )
        elif asked.required and row.has_never_a_place and any(it.asked == asked for it in row.not_placed):
            count = int_at(pod_set, "count", default=1)
            yield manifest.problem(
                f"no single {asked.required} could hold these {count} pods even if no other workload ran",
                field=f"{field}.required",
                remedy="ask for a wider level, for preferred in place of required, or for fewer pods",
            )


def _field_of(asked: AskedTopology, level: str) -> str:
    if level == asked.required:
        return "required"
    return "preferred" if level == asked.preferred else "podSetSliceRequiredTopology"


def _flavors_of_queues(world: World) -> dict[str, tuple[str, ...]]:
    """The flavors of each ClusterQueue, in their order."""
    found = {}
    for manifest in world.manifests:
        plain = manifest.object
        if text_at(plain, "kind") == "ClusterQueue" and text_at(plain, "apiVersion").startswith(KUEUE_GROUP):
            groups = list_at(plain, "spec", "resourceGroups")
            names = [text_at(flavor, "name") for group in groups for flavor in list_at(group, "flavors")]
            found[text_at(plain, "metadata", "name")] = tuple(names)
    return found


def _labels(node: Manifest) -> dict[str, str]:
    return texts_at(node.object, "metadata", "labels")


def _trouble(node: Manifest) -> str:
    """Why a node takes no pods, in a word or two; empty if it does."""
    if object_at(node.object, "spec").get("unschedulable") is True:
        return "unschedulable"
    conditions = list_at(node.object, "status", "conditions")
    ready = next((it for it in conditions if text_at(it, "type") == "Ready"), None)
    return "" if text_at(ready, "status") == "True" else "not ready"


def _pairs(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())


def _names(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def _key(plain: JsonObject) -> tuple[str, str]:
    return text_at(plain, "metadata", "namespace") or "default", text_at(plain, "metadata", "name")
