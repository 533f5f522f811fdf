"""A rule about pods that no nodes can take, even if nothing else runs (rules/08)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kueuecore._json import JsonValue, int_at, list_at, text_at, texts_at
from kueuecore.decisions import Outcome
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.labels import nodes_with, pairs
from kueuecore.findings.topology import field_of_level, topologies_asked, waiting_by_topology
from kueuecore.findings.topology_sentences import (
    NO_PLACE_EVER,
    PODS,
    AskedTopology,
    excluded_by,
    reasons_of,
    why_not_placed,
)
from kueuecore.manifests import Manifest
from kueuecore.states import WorkloadState
from kueuecore.world import key_of

__all__ = ["domains_too_small"]


@rule(
    "KC506",
    "domain-too-small",
    Severity.ERROR,
    "a workload whose pods its nodes cannot take, even if nothing else runs",
)
def domains_too_small(facts: Facts) -> Iterator[Hit]:
    """Kueue has tried it in an empty cluster too (rules/08 §11.5), or it is asked what would happen in one."""
    for manifest, state, flavors in waiting_by_topology(facts):
        known = {level for name in flavors for level in facts.topology_objects.levels_of(name)}
        message = _message_ever(facts, manifest, state)
        for index, asked in enumerate(topologies_asked(manifest)):
            reasons = reasons_of(message, asked.pod_set)
            levels = facts.topology_objects.levels
            why = why_not_placed(reasons, asked, levels=levels, looks_at_nodes=facts.looks_at_nodes)
            if why and (not flavors or known.issuperset(asked.levels)):
                yield _hit(facts, manifest, index, asked, reasons, why, flavors)


def _message_ever(facts: Facts, manifest: Manifest, state: WorkloadState) -> str:
    """Why a workload would wait in an empty cluster too, in Kueue's words; empty if it would not."""
    alone = facts.alone.get(key_of(manifest.object))
    if alone is not None and alone.outcome is Outcome.WAITS and not alone.undecided:
        message = alone.message  # in a busy cluster its own message may be about quota
    elif state.reason == NO_PLACE_EVER:
        message = state.message
    else:
        return ""
    # Without Nodes nothing can be placed, and that is another finding.
    return message if facts.nodes or "TopologyAwareScheduling" in message else ""


def _hit(
    facts: Facts, manifest: Manifest, index: int, asked: AskedTopology, reasons: str, why: str, flavors: Sequence[str]
) -> Hit:
    pod_set = list_at(manifest.object, "spec", "podSets")[index]
    what, _, nodes = why.partition("; ")
    then = f"{what}, even if nothing else runs"
    if asked.required and what.startswith("no single"):
        count = int_at(pod_set, "count", default=1)
        pods = "this pod" if count == 1 else f"these {count} pods"
        then = f"no single {asked.required} could hold {pods} even if no other workload ran"
    field = f"spec.podSets[{index}]"
    level = next(iter(asked.levels), "")
    return hit(
        manifest,
        f"{then}; {nodes}" if nodes else then,
        field=f"{field}.topologyRequest.{field_of_level(asked, level)}" if level else field,
        remedy=_remedy(
            facts, pod_set, asked, reasons, [flavor for flavor in flavors if facts.topology_objects.levels_of(flavor)]
        ),
    )


def _remedy(facts: Facts, pod_set: JsonValue, asked: AskedTopology, reasons: str, placing: Sequence[str]) -> str:
    """What lets the pods onto the nodes that were left out; else what takes less room."""
    excluded = excluded_by(reasons)
    steps = []
    if "taint" in excluded:
        taints = " and ".join(dict.fromkeys(excluded["taint"]))
        steps.append(f"tolerate {taints} in the pods, or add the toleration to flavor {' or '.join(placing)}")
    if "nodeSelector" in excluded:
        missing = _labels_of_no_node(facts, pod_set, placing)
        labels = f"label nodes with {missing}, or correct" if missing else "correct"
        steps.append(f"{labels} the nodeSelector")
    if "affinity" in excluded:
        steps.append("correct the node affinity")
    short = dict.fromkeys(excluded.get("resource", ()))
    if PODS in short:
        del short[PODS]
        steps.append("raise status.allocatable.pods of the nodes: one without it takes no pods")
    if short:
        steps.append(f"ask for less {' and '.join(short)} in each pod")
    if steps:
        return "; ".join(steps)
    if "no topology domains" in reasons:
        return f"label nodes with what flavor {' or '.join(placing)} and its Topology name, and see that they are ready"
    if "does not support TopologyAwareScheduling" in reasons:
        return "ask for no topology, or use another queue"
    if "supports only TopologyAwareScheduling" in reasons:
        return "ask for a topology, for example any: podset-unconstrained-topology: 'true'"
    if asked.required:
        return "ask for a wider level, for preferred instead of required, or for fewer pods"
    return (
        "ask for smaller slices, or for fewer pods" if asked.slices else "ask for fewer or smaller pods, or add nodes"
    )


def _labels_of_no_node(facts: Facts, pod_set: JsonValue, placing: Sequence[str]) -> str:
    """The labels of a nodeSelector that no Node of these flavors has; all if each is on some."""
    selector = texts_at(pod_set, "template", "spec", "nodeSelector")
    flavors = (facts.topology_objects.flavors[name] for name in placing)
    nodes = {
        text_at(node.object, "metadata", "name"): node
        for flavor in flavors
        for node in nodes_with(texts_at(flavor.object, "spec", "nodeLabels"), facts.nodes)
    }
    nowhere = {key: value for key, value in selector.items() if not nodes_with({key: value}, nodes)}
    return pairs(nowhere or selector)
