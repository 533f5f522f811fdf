"""Kueue's texts about preemption and waiting (rules/04 §8, 05 §6.6)."""

from __future__ import annotations

from kueuecore.reference import conditions, times
from kueuecore.reference.amount import UNLIMITED
from kueuecore.reference.settings import Json
from kueuecore.reference.totals import Info

__all__ = ["preempted_workload", "preemption", "priorities", "waited"]

_DUE_TO = {
    "InClusterQueue": "prioritization in the ClusterQueue",
    "InCohortReclamation": "reclamation within the cohort",
    "InCohortFairSharing": "Fair Sharing within the cohort",
    "InCohortReclaimWhileBorrowing": "reclamation within the cohort while borrowing",
}


def preemption(preemptor: Json, reason: str, preemptor_path: str, preemptee_path: str) -> str:
    """Message of the conditions Evicted and Preempted (rules/04 §8)."""
    uid = preemptor["metadata"].get("uid") or "UNKNOWN"
    job = (preemptor["metadata"].get("labels") or {}).get("kueue.x-k8s.io/job-uid") or "UNKNOWN"
    return (
        f"Preempted to accommodate a workload (UID: {uid}, JobUID: {job}) due to {_DUE_TO.get(reason, 'UNKNOWN')}; "
        f"preemptor path: {preemptor_path or 'UNKNOWN'}; preemptee path: {preemptee_path or 'UNKNOWN'}"
    )


def priorities(preemptor: Info, preemptee: Info) -> str:
    """End of the events about a preemption (rules/04 §8)."""
    told = (f"{i.priority} (base: {i.priority - i.boost}, boost: {i.boost})" for i in (preemptor, preemptee))
    return "; preemptor effective priority: {}; preemptee effective priority: {}".format(*told)


def preempted_workload(preemptee: Info) -> str:
    """Begin of the event about the preemptor (rules/04 §8)."""
    name = preemptee.key.removeprefix("/")
    return f"Preempted workload {name} (UID: {preemptee.uid}) in ClusterQueue {preemptee.cluster_queue}"


def waited(workload: Json, now: int) -> str:
    """How long a workload has waited, in whole seconds (rules/05 §6.6)."""
    requeued = conditions.find(workload, "Requeued")
    created = workload["metadata"].get("creationTimestamp")
    since = times.moment(created if requeued is None else requeued.get("lastTransitionTime"))
    return f"{times.seconds_of(min(now - since, UNLIMITED)):.0f}s"
