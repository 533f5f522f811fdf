"""Which nodes a flavor has, which pods use them, and which nodes pods may go to (rules/08 §4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kueuecore.reference import conditions, quantity
from kueuecore.reference.pods import pod_requests
from kueuecore.reference.selectors import matches_term, untolerated_taint
from kueuecore.reference.settings import Json, Settings

_TOPOLOGY_ANNOTATIONS = (
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-preferred-topology",
    "kueue.x-k8s.io/podset-unconstrained-topology",
    "kueue.x-k8s.io/podset-slice-required-topology",
    "kueue.x-k8s.io/podset-slice-required-topology-constraints",
)


def is_ready(node: Json) -> bool:
    """Return whether its condition Ready is True."""
    return conditions.is_true(node, "Ready")


def watched_name(node: Json, settings: Settings) -> str | None:
    """Return the name by which failures know a node; None: they do not (rules/08 §13.1)."""
    if not settings.has("FailuresByHostname"):
        return str(node["metadata"]["name"])
    host: str | None = node["metadata"]["labels"].get("kubernetes.io/hostname")
    return host


def is_schedulable(node: Json) -> bool:
    """Return whether it accepts pods, apart from taints (rules/08 §4.1)."""
    return is_ready(node) and not node["spec"].get("unschedulable")


def is_of_flavor(node: Json, flavor: Json, levels: Sequence[str]) -> bool:
    """Return whether its labels match a flavor and give its place in the topology (rules/08 §4.1)."""
    labels: Mapping[str, str] = node["metadata"]["labels"]
    wanted = flavor["spec"].get("nodeLabels") or {}
    # Kueue reads a Go map, in which a missing label equals an empty one.
    return all(labels.get(name, "") == value for name, value in wanted.items()) and all(
        level in labels for level in levels
    )


def single_pod(pod: Json, settings: Settings) -> dict[str, int]:
    """Return the requests of one pod, by its spec (rules/08 §4.5)."""
    return {name: quantity.value(name, asked) for name, asked in pod_requests(pod, settings).items()}


def allocatable(node: Json) -> dict[str, int]:
    """Return the allocatable resources of a node."""
    return {name: quantity.value(name, written) for name, written in (node["status"].get("allocatable") or {}).items()}


def is_over(pod: Json) -> bool:
    """Return whether a pod has ended."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_foreign(pod: Json, settings: Settings) -> bool:
    """Return whether a pod uses a node without being placed by Kueue (rules/08 §4.4)."""
    return bool(pod["spec"].get("nodeName")) and not is_over(pod) and not is_placed(pod, settings)


def is_placed(pod: Json, settings: Settings) -> bool:
    """Return whether Kueue has placed a pod, or will do so."""
    is_labelled = "kueue.x-k8s.io/tas" in pod["metadata"]["labels"] and not settings.has("TasLabelHasNoMeaning")
    return is_labelled or any(name in pod["metadata"]["annotations"] for name in _TOPOLOGY_ANNOTATIONS)


def affinity_of(pod: Json) -> Json:
    """Return the node affinity of pods; may be empty."""
    affinity: Json = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    return affinity


def matches_selectors(node: Json, pod: Json) -> tuple[bool, bool]:
    """Return whether a node matches the node selector, and the required affinity of pods (rules/08 §4.7)."""
    labels = node["metadata"]["labels"]
    is_selected = all(labels.get(name) == value for name, value in (pod.get("nodeSelector") or {}).items())
    required = affinity_of(pod).get("requiredDuringSchedulingIgnoredDuringExecution")
    has_affinity = required is None or any(matches_term(term, node) for term in required.get("nodeSelectorTerms") or ())
    return is_selected, has_affinity


def exclusion(node: Json, pod: Json, tolerations: list[Json]) -> str:
    """Return why pods cannot go to a node, as it is counted; empty if they can (rules/08 §4.7).

    Args:
        node: The node.
        pod: Spec of the pods, with what admission checks add.
        tolerations: The tolerations of the flavor.
    """
    every = [*(pod.get("tolerations") or ()), *tolerations]
    if taint := untolerated_taint(node["spec"].get("taints") or [], every):
        value = f"={taint['value']}" if taint.get("value") else ""
        return f'taint "{taint.get("key", "")}{value}:{taint["effect"]}"'
    is_selected, has_affinity = matches_selectors(node, pod)
    return "nodeSelector" if not is_selected else "" if has_affinity else "affinity"


def score(node: Json, pod: Json) -> int:
    """Return how strongly pods prefer a node (rules/08 §4.8)."""
    preferred = affinity_of(pod).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return sum(each["weight"] for each in preferred if matches_term(each["preference"], node))
