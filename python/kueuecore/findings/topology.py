"""Rules about topologies, their flavors and nodes, and workloads that ask for them (rules/08).

Kueue accepts all of this without a word. `kueuecore run` warns of it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kueuecore._json import list_at, text_at, texts_at
from kueuecore._text import quoted
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.labels import names_of, nodes_with
from kueuecore.findings.manifest_fields import quota_fields
from kueuecore.findings.topology_objects import TOPOLOGY_NAME, levels_of_topology, trouble_of
from kueuecore.findings.topology_sentences import AskedTopology
from kueuecore.manifests import Manifest
from kueuecore.states import Stage, WorkloadState

__all__ = [
    "field_of_level",
    "levels_of_no_node",
    "missing_nodes",
    "missing_topologies",
    "topologies_asked",
    "unavailable_nodes",
    "unknown_levels",
    "waiting_by_topology",
]


class _Placing(NamedTuple):
    """A flavor that places pods, with its Topology, if that exists, and its Nodes."""

    name: str
    flavor: Manifest
    topology: Manifest | None
    nodes: Sequence[Manifest]


def _placing(facts: Facts) -> Iterator[_Placing]:
    """The flavors with a topology, by name, if topology-aware scheduling is on."""
    if not facts.engine.configuration.is_enabled("TopologyAwareScheduling"):
        return
    found = facts.topology_objects
    for name, flavor in sorted(found.flavors.items()):
        # A Topology without levels counts as missing (rules/08 §1.1).
        topology = found.topologies.get(text_at(flavor.object, *TOPOLOGY_NAME)) if found.levels_of(name) else None
        nodes = nodes_with(texts_at(flavor.object, "spec", "nodeLabels"), dict(sorted(found.nodes.items())))
        yield _Placing(name, flavor, topology, nodes)


@rule("KC501", "missing-topology", Severity.ERROR, "a ResourceFlavor whose Topology does not exist, or has no levels")
def missing_topologies(facts: Facts) -> Iterator[Hit]:
    """It makes its ClusterQueues inactive (rules/02 §5)."""
    for placing in _placing(facts):
        if placing.topology is None:
            name = text_at(placing.flavor.object, *TOPOLOGY_NAME)
            is_empty = name in facts.topology_objects.topologies
            what = f"Topology {quoted(name)} has no levels" if is_empty else f"there is no Topology {quoted(name)}"
            yield hit(
                placing.flavor,
                f"{what}, so this flavor cannot place any pods",
                field="spec.topologyName",
                remedy="list its levels, or name another" if is_empty else "create it, or name one that exists",
            )


@rule("KC502", "nodes-not-given", Severity.NOTE, "a ResourceFlavor with a topology, but no Nodes among the objects")
def missing_nodes(facts: Facts) -> Iterator[Hit]:
    """Without Nodes, nothing can be placed."""
    for placing in _placing(facts):
        if placing.topology is not None and not facts.nodes:
            yield hit(
                placing.flavor,
                "there are no Nodes among the objects, so no pod can be placed",
                field="spec.nodeLabels",
                remedy="add the Nodes",
            )


@rule(
    "KC503", "level-without-nodes", Severity.WARNING, "a level of a Topology that is missing from Nodes of its flavor"
)
def levels_of_no_node(facts: Facts) -> Iterator[Hit]:
    """Nodes without a label for every level are not used (rules/08 §4)."""
    for placing in _placing(facts):
        if placing.topology is None or not placing.nodes:
            continue
        for index, level in enumerate(levels_of_topology(placing.topology)):
            without = [node for node in placing.nodes if level not in _labels(node)]
            if not without:
                continue
            if len(without) == len(placing.nodes):
                whose, names = "no Node", ""
            else:
                whose, names = "not every Node", f": {names_of(map(_name, without))}"
            yield hit(
                placing.topology,
                f"{whose} of flavor {placing.name} has the label {level}, and Nodes without it get no pods{names}",
                field=f"spec.levels[{index}].nodeLabel",
                remedy=f"kubectl label node NODE {level}=VALUE, or correct the level",
            )


@rule(
    "KC504", "unavailable-nodes", Severity.WARNING, "a ResourceFlavor with a topology, none of whose Nodes takes pods"
)
def unavailable_nodes(facts: Facts) -> Iterator[Hit]:
    """All are cordoned or not ready."""
    for placing in _placing(facts):
        if placing.topology is None:
            continue
        levels = levels_of_topology(placing.topology)
        placed = [node for node in placing.nodes if all(level in _labels(node) for level in levels)]
        if placed and all(map(trouble_of, placed)):
            names = names_of(f"{_name(node)} ({trouble_of(node)})" for node in placed)
            yield hit(
                placing.flavor,
                f"no Node with these labels takes pods: {names}",
                field="spec.nodeLabels",
                remedy="uncordon those that are cordoned, and find out why the others are not ready",
            )


@rule("KC505", "unknown-level", Severity.ERROR, "a workload that asks for a level that none of its queue's flavors has")
def unknown_levels(facts: Facts) -> Iterator[Hit]:
    """It waits forever."""
    for manifest, state, flavors in waiting_by_topology(facts):
        levels = {name: facts.topology_objects.levels_of(name) for name in flavors}
        known = "; ".join(f"{name} has {', '.join(level)}" for name, level in levels.items() if level)
        for index, asked in enumerate(topologies_asked(manifest)):
            missing = next(
                (level for level in asked.levels if not any(level in known for known in levels.values())), ""
            )
            if missing and flavors:
                yield hit(
                    manifest,
                    f"no flavor of ClusterQueue {state.cluster_queue} has the level {missing}"
                    + (f": {known}" if known else ", none has a topologyName"),
                    field=f"spec.podSets[{index}].topologyRequest.{field_of_level(asked, missing)}",
                    remedy="ask for a level that one of them has"
                    if known
                    else "ask for no topology, or use another queue",
                )


def waiting_by_topology(facts: Facts) -> Iterator[tuple[Manifest, WorkloadState, Sequence[str]]]:
    """Pending workloads with the flavors of their ClusterQueue, unless the Topology of one of these is missing."""
    if not facts.engine.configuration.is_enabled("TopologyAwareScheduling"):
        return
    flavors = {
        name: tuple(dict.fromkeys(field.flavor for field in quota_fields(queue)))
        for name, queue in facts.cluster_queues.items()
    }
    for key, state in facts.states.items():
        if state.stage is not Stage.PENDING or key not in facts.workloads:
            continue
        names = flavors.get(state.cluster_queue or "", ())
        found = facts.topology_objects
        if all(found.levels_of(name) for name in names if name in found.flavors):
            yield facts.workloads[key], state, names


def topologies_asked(manifest: Manifest) -> list[AskedTopology]:
    """What each pod set of a Workload asks for."""
    return [AskedTopology.of(pod_set) for pod_set in list_at(manifest.object, "spec", "podSets")]


def field_of_level(asked: AskedTopology, level: str) -> str:
    """The field of a pod set's topologyRequest that names a level."""
    if level == asked.required:
        return "required"
    return "preferred" if level == asked.preferred else "podSetSliceRequiredTopology"


def _labels(node: Manifest) -> Mapping[str, str]:
    return texts_at(node.object, "metadata", "labels")


def _name(node: Manifest) -> str:
    return text_at(node.object, "metadata", "name")
