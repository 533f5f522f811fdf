"""Which nodes a flavor has, which pods use them, and which nodes pods may go to (rules/08 §4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kueuecore.reference import conditions, quantity
from kueuecore.reference.pods import pod_requests
from kueuecore.reference.selectors import matches_term, untolerated_taint
from kueuecore.reference.settings import Json

_TOPOLOGY_ANNOTATIONS = (
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-preferred-topology",
    "kueue.x-k8s.io/podset-unconstrained-topology",
    "kueue.x-k8s.io/podset-slice-required-topology",
    "kueue.x-k8s.io/podset-slice-required-topology-constraints",
)


def is_ready(node: Json) -> bool:
    """Is its condition Ready True?"""
    return conditions.is_true(node, "Ready")


def is_schedulable(node: Json) -> bool:
    """May pods come to it, but for taints? (rules/08 §4.1)."""
    return is_ready(node) and not node["spec"].get("unschedulable")


def is_of_flavor(node: Json, flavor: Json, levels: Sequence[str]) -> bool:
    """Do its labels say that it is of a flavor, and where it stands? (rules/08 §4.1)."""
    labels: Mapping[str, str] = node["metadata"]["labels"]
    wanted = flavor["spec"].get("nodeLabels") or {}
    # Kueue asks a map of Go: a label that is missing is as good as an empty one.
    return all(labels.get(name, "") == value for name, value in wanted.items()) and all(
        level in labels for level in levels
    )


def single_pod(pod: Json) -> dict[str, int]:
    """What one pod asks for, by its spec (rules/08 §4.5)."""
    return {name: quantity.value(name, asked) for name, asked in pod_requests(pod).items()}


def allocatable(node: Json) -> dict[str, int]:
    """What a node has."""
    return {name: quantity.value(name, written) for name, written in (node["status"].get("allocatable") or {}).items()}


def is_over(pod: Json) -> bool:
    """Has a pod ended?"""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_foreign(pod: Json) -> bool:
    """Does a pod use a node without being placed by Kueue? (rules/08 §4.4)."""
    return bool(pod["spec"].get("nodeName")) and not is_over(pod) and not is_placed(pod)


def is_placed(pod: Json) -> bool:
    """Has Kueue placed a pod, or is it to do so?"""
    return any(name in pod["metadata"]["annotations"] for name in _TOPOLOGY_ANNOTATIONS)


def affinity_of(pod: Json) -> Json:
    """What pods ask of nodes by affinity, maybe nothing."""
    affinity: Json = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    return affinity


def matches_selectors(node: Json, pod: Json) -> tuple[bool, bool]:
    """Does a node match the node selector of pods, and what they require by affinity? (rules/08 §4.7)."""
    labels = node["metadata"]["labels"]
    is_selected = all(labels.get(name) == value for name, value in (pod.get("nodeSelector") or {}).items())
    required = affinity_of(pod).get("requiredDuringSchedulingIgnoredDuringExecution")
    has_affinity = required is None or any(matches_term(term, node) for term in required.get("nodeSelectorTerms") or ())
    return is_selected, has_affinity


def exclusion(node: Json, pod: Json, tolerations: list[Json]) -> str:
    """Why pods cannot go to a node, as it is counted; empty if they can (rules/08 §4.7).

    Args:
        node: The node.
        pod: Spec of the pods, with what admission checks add.
        tolerations: Those of the flavor.
    """
    every = [*(pod.get("tolerations") or ()), *tolerations]
    if taint := untolerated_taint(node["spec"].get("taints") or [], every):
        value = f"={taint['value']}" if taint.get("value") else ""
        return f'taint "{taint.get("key", "")}{value}:{taint["effect"]}"'
    is_selected, has_affinity = matches_selectors(node, pod)
    return "nodeSelector" if not is_selected else "" if has_affinity else "affinity"


def score(node: Json, pod: Json) -> int:
    """How much pods would like a node (rules/08 §4.8)."""
    preferred = affinity_of(pod).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return sum(each["weight"] for each in preferred if matches_term(each["preference"], node))
