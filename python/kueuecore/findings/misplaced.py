"""A rule about pods that kube-scheduler will not start where Kueue places them (rules/08)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kueuecore._json import JsonValue, list_at, text_at, texts_at
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.labels import names_of, nodes_with, pairs
from kueuecore.manifests import Manifest
from kueuecore.topology import Placement
from kueuecore.world import DEFAULT_NAMESPACE

__all__ = ["misplaced_pods"]


@rule("KC507", "misplaced-pods", Severity.WARNING, "pods placed where no Node has what their nodeSelector asks for")
def misplaced_pods(facts: Facts) -> Iterator[Hit]:
    """Before 0.20.0, Kueue does not look at the selector of a leader, nor where a topology ends above single nodes.

    What it placed then stays there, and labels of nodes change.
    """
    for placement in facts.settled_engine.placements() if facts.nodes else ():
        manifest = facts.workloads.get((placement.namespace or DEFAULT_NAMESPACE, placement.name))
        for index, pod_set in enumerate(list_at(manifest.object, "spec", "podSets") if manifest else ()):
            if manifest and (text_at(pod_set, "name") or "main") == placement.pod_set:
                yield from _in(facts, manifest, index, pod_set, placement)


def _in(facts: Facts, manifest: Manifest, index: int, pod_set: JsonValue, placement: Placement) -> Iterator[Hit]:
    selector = texts_at(pod_set, "template", "spec", "nodeSelector")
    flavor = facts.flavors.get(placement.flavor)
    if not selector or flavor is None or not placement.levels:
        return
    nodes = nodes_with(texts_at(flavor.object, "spec", "nodeLabels"), facts.nodes)
    wrong = []
    for domain in placement.domains:
        there = dict(zip(placement.levels, domain.path, strict=False)) if domain.path else {}
        here = {text_at(node.object, "metadata", "name"): node for node in nodes if _is_in(node, there)}
        if here and not nodes_with(selector, here):
            wrong.append(",".join(domain.path))
    if wrong:
        elsewhere = nodes_with(selector, facts.nodes)
        yield hit(
            manifest,
            f"pod set {placement.pod_set} selects {pairs(selector)}, but is placed on {names_of(wrong)}, where no Node "
            f"has that: {_why(facts, pod_set)}",
            field=f"spec.podSets[{index}].template.spec.nodeSelector",
            remedy=_remedy(facts, pod_set)
            if elsewhere
            else f"label a Node with {pairs(selector)}, or correct the selector",
        )


def _is_in(node: Manifest, there: Mapping[str, str]) -> bool:
    return there.items() <= texts_at(node.object, "metadata", "labels").items()


def _is_grouped(pod_set: JsonValue) -> bool:
    request = pod_set.get("topologyRequest") if isinstance(pod_set, dict) else None
    return bool(text_at(request, "podSetGroupName"))


def _looks_at_selectors(facts: Facts, pod_set: JsonValue) -> bool:
    """Whether Kueue would place these pods by their own selector now."""
    is_by_leader = facts.engine.configuration.is_enabled("TASLeaderPodSetFeasibility")
    return facts.looks_at_nodes and (is_by_leader or not _is_grouped(pod_set))


def _why(facts: Facts, pod_set: JsonValue) -> str:
    if _looks_at_selectors(facts, pod_set):
        return "Kueue placed it there while it did not look at selectors, or before labels changed"
    if _is_grouped(pod_set):
        return "Kueue places its group by the selector of the workers alone"
    return "Kueue does not look at selectors where a topology ends above single nodes"


def _remedy(facts: Facts, pod_set: JsonValue) -> str:
    if _looks_at_selectors(facts, pod_set):
        return "have the Workload placed again: set its spec.active to false, and back once it is evicted"
    if _is_grouped(pod_set):
        return "give the workers the same selector, or take the pod set out of the group"
    return "end the topology with kubernetes.io/hostname, or use a flavor with these labels"
