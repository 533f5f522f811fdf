"""Follows whether the pods of an admitted Workload have nodes (rules/07 §6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from kueuecore._conditions import transition_time
from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from kueuecore.jobs.job_status import has_condition

__all__ = ["scheduling_news", "waits_for_nodes"]


def scheduling_news(
    workload: JsonObject, pods: Sequence[JsonObject], pod_set_of: Callable[[JsonObject], str]
) -> bool | None:
    """Return whether all pods have nodes, if the Workload does not say so yet; else None.

    Args:
        workload: The Workload.
        pods: Its pods.
        pod_set_of: Returns the name of a pod's pod set.
    """
    recorded = _condition(workload, "PodsScheduled")
    if not has_condition(workload, "Admitted"):
        return False if text_at(recorded, "status") == "True" else None
    found = _are_scheduled(workload, pods, pod_set_of)
    reported = text_at(recorded, "status") if _is_current(workload) else ""
    # Once all had nodes, that stays so until the next admission.
    return None if found is None or reported in ("True", str(found)) else found


def waits_for_nodes(workload: JsonObject) -> bool:
    """Return whether a Workload says that a pod has had no node since its admission."""
    recorded = _condition(workload, "PodsScheduled")
    said = text_at(recorded, "status"), text_at(recorded, "reason")
    return said == ("False", "WaitForScheduling") and _is_current(workload)


def _is_current(workload: JsonObject) -> bool:
    recorded, admitted = _condition(workload, "PodsScheduled"), _condition(workload, "Admitted")
    return bool(recorded) and transition_time(recorded) > transition_time(admitted)


def _condition(workload: JsonObject, kind: str) -> JsonObject:
    found = (
        object_at(condition)
        for condition in list_at(workload, "status", "conditions")
        if text_at(condition, "type") == kind
    )
    return next(found, {})


def _are_scheduled(
    workload: JsonObject, pods: Sequence[JsonObject], pod_set_of: Callable[[JsonObject], str]
) -> bool | None:
    """Return whether every pod set has as many pods with nodes as it was admitted with; None if no pod says."""
    live = [pod for pod in pods if not text_at(pod, "metadata", "deletionTimestamp") and _phase(pod) not in _ENDED]
    succeeded = Counter(pod_set_of(pod) for pod in pods if _phase(pod) == "Succeeded")
    reclaimed = {text_at(pod, "name"): int_at(pod, "count") for pod in list_at(workload, "status", "reclaimablePods")}
    placed = Counter(pod_set_of(pod) for pod in live if _has_node(pod))
    counts = {
        text_at(pod_set, "name"): int_at(pod_set, "count", default=1)
        for pod_set in list_at(workload, "spec", "podSets")
    }
    are_placed = True
    for assignment in list_at(workload, "status", "admission", "podSetAssignments"):
        name = text_at(assignment, "name")
        n_done = max(succeeded[name], reclaimed.get(name, 0))
        are_placed &= placed[name] + n_done >= int_at(assignment, "count", default=counts.get(name, 0))
    return are_placed if live or (succeeded and are_placed) else None


_ENDED = ("Succeeded", "Failed")


def _phase(pod: JsonObject) -> str:
    return text_at(pod, "status", "phase")


def _has_node(pod: JsonObject) -> bool:
    said = (
        condition for condition in list_at(pod, "status", "conditions") if text_at(condition, "type") == "PodScheduled"
    )
    return bool(text_at(pod, "spec", "nodeName")) and text_at(next(said, None), "status") == "True"
