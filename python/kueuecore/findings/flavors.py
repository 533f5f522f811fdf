"""Rules about ResourceFlavors that nobody can use, or whose pods find no node."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore._json import JsonValue, list_at, object_at, text_at, texts_at
from kueuecore._text import quoted
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.labels import correction, nodes_with, pairs
from kueuecore.findings.manifest_fields import quota_fields
from kueuecore.findings.topology_objects import TOPOLOGY_NAME
from kueuecore.findings.topology_sentences import HOSTNAME
from kueuecore.manifests import Manifest

__all__ = ["missing_flavors", "taints_of_no_node", "unmatched_labels", "untolerated_taints", "unused_flavors"]

_KEEPS_OUT = ("NoSchedule", "NoExecute")


@rule("KC101", "unused-flavor", Severity.WARNING, "a ResourceFlavor in which no ClusterQueue has quota")
def unused_flavors(facts: Facts) -> Iterator[Hit]:
    """Without any ClusterQueue, they are assumed to be elsewhere."""
    if not facts.cluster_queues:
        return
    used = {field.flavor for queue in facts.cluster_queues.values() for field in quota_fields(queue)}
    for name, flavor in facts.flavors.items():
        if name not in used:
            yield hit(
                flavor,
                "no ClusterQueue has quota in it, so no workload gets it",
                field="metadata.name",
                remedy="add it to the resourceGroups of a ClusterQueue, or delete it",
            )


@rule("KC102", "missing-flavor", Severity.ERROR, "a ClusterQueue or Cohort with quota in a flavor that does not exist")
def missing_flavors(facts: Facts) -> Iterator[Hit]:
    """It makes a ClusterQueue inactive (rules/02 §5)."""
    for owner in (*facts.cluster_queues.values(), *facts.cohorts.values()):
        seen = set()
        for quota in quota_fields(owner):
            if quota.flavor in facts.flavors or quota.flavor_path in seen:
                continue
            seen.add(quota.flavor_path)
            is_queue = text_at(owner.object, "kind") == "ClusterQueue"
            then = "the ClusterQueue admits nothing" if is_queue else "nobody can use this quota"
            yield hit(
                owner,
                f"Not found: {quoted(quota.flavor)}: there is no such ResourceFlavor, so {then}",
                field=f"{quota.flavor_path}.name",
                remedy=correction(quota.flavor, facts.flavors, kind="ResourceFlavor"),
            )


@rule("KC103", "unmatched-node-labels", Severity.WARNING, "a ResourceFlavor whose nodeLabels no Node has")
def unmatched_labels(facts: Facts) -> Iterator[Hit]:
    """Looks only if Nodes are given."""
    for flavor in facts.flavors.values() if facts.nodes else ():
        labels = texts_at(flavor.object, "spec", "nodeLabels")
        has_topology = text_at(flavor.object, *TOPOLOGY_NAME) in facts.topology_objects.topologies
        if not nodes_with(labels, facts.nodes):
            then = "no pod can be placed" if has_topology else "admitted pods find no node"
            yield hit(
                flavor,
                f"no Node has the labels {pairs(labels)}, so {then}",
                field="spec.nodeLabels",
                remedy="label the nodes, or correct nodeLabels",
            )


@rule("KC104", "unmatched-node-taint", Severity.WARNING, "a nodeTaint of a ResourceFlavor that none of its Nodes has")
def taints_of_no_node(facts: Facts) -> Iterator[Hit]:
    """Workloads must tolerate a taint that no node has."""
    for flavor in _flavors_on_nodes(facts):
        nodes = nodes_with(texts_at(flavor.object, "spec", "nodeLabels"), facts.nodes)
        for index, taint in enumerate(list_at(flavor.object, "spec", "nodeTaints")):
            if nodes and not any(_key(taint) in map(_key, list_at(node.object, "spec", "taints")) for node in nodes):
                yield hit(
                    flavor,
                    f"none of its Nodes has the taint {_written(taint)}, yet workloads must tolerate it",
                    field=f"spec.nodeTaints[{index}]",
                    remedy="taint the nodes, or remove it here",
                )


@rule(
    "KC105",
    "untolerated-taint",
    Severity.WARNING,
    "a taint on all Nodes of a ResourceFlavor that the flavor does not list",
)
def untolerated_taints(facts: Facts) -> Iterator[Hit]:
    """Kueue then admits workloads whose pods stay pending."""
    for flavor in _flavors_on_nodes(facts):
        if facts.looks_at_nodes and text_at(flavor.object, *TOPOLOGY_NAME):
            continue
        nodes = nodes_with(texts_at(flavor.object, "spec", "nodeLabels"), facts.nodes)
        known = {_key(node_taint) for node_taint in list_at(flavor.object, "spec", "nodeTaints")}
        tolerations = list_at(flavor.object, "spec", "tolerations")
        for taint in list_at(nodes[0].object, "spec", "taints") if nodes else ():
            on_all = all(_key(taint) in map(_key, list_at(node.object, "spec", "taints")) for node in nodes)
            is_met = _key(taint) in known or any(_tolerates(toleration, taint) for toleration in tolerations)
            if on_all and text_at(taint, "effect") in _KEEPS_OUT and not is_met:
                yield hit(
                    flavor,
                    f"all its Nodes have the taint {_written(taint)}, so pods that do not tolerate it are admitted "
                    "but never start",
                    field="spec",
                    remedy="add it to nodeTaints, so that Kueue keeps other workloads away, or to tolerations",
                )


def _flavors_on_nodes(facts: Facts) -> Iterator[Manifest]:
    """The flavors for which Kueue does not look at the taints of Nodes, if Nodes are given.

    It does where a topology ends in single nodes; since 0.20.0 wherever there is one, of which `untolerated_taints`
    takes care (rules/08 §4).
    """
    if facts.nodes:
        for name, flavor in facts.flavors.items():
            levels = facts.topology_objects.levels_of(name)
            if levels[-1] != HOSTNAME if levels else not text_at(flavor.object, *TOPOLOGY_NAME):
                yield flavor


def _key(taint: JsonValue) -> tuple[str, str, str]:
    return text_at(taint, "key"), text_at(taint, "value"), text_at(taint, "effect")


def _tolerates(toleration: JsonValue, taint: JsonValue) -> bool:
    key, value, effect = _key(taint)
    if text_at(toleration, "effect") not in ("", effect):
        return False
    if text_at(toleration, "operator") == "Exists":
        return text_at(toleration, "key") in ("", key)
    return text_at(toleration, "key") == key and object_at(toleration).get("value", "") == value


def _written(taint: JsonValue) -> str:
    key, value, effect = _key(taint)
    return f"{key}{f'={value}' if value else ''}:{effect}"
