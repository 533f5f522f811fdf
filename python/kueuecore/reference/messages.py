"""Kueue's messages about preemption and waiting (rules/04 §8, 05 §6.6)."""

from __future__ import annotations

from kueuecore.reference import conditions, times
from kueuecore.reference.amount import UNLIMITED
from kueuecore.reference.settings import Json
from kueuecore.reference.totals import Info

_DUE_TO = {
    "InClusterQueue": "prioritization in the ClusterQueue",
    "InCohortReclamation": "reclamation within the cohort",
    "InCohortFairSharing": "Fair Sharing within the cohort",
    "InCohortReclaimWhileBorrowing": "reclamation within the cohort while borrowing",
}


def job_uid(workload: Json) -> str:
    """Return the UID of the job of a workload."""
    return str(workload["metadata"]["labels"].get("kueue.x-k8s.io/job-uid", ""))


def preemption(preemptor: Json, reason: str, preemptor_path: str, preemptee_path: str) -> str:
    """Return the message of the conditions Evicted and Preempted (rules/04 §8)."""
    uids = f"UID: {preemptor['metadata']['uid'] or 'UNKNOWN'}, JobUID: {job_uid(preemptor) or 'UNKNOWN'}"
    return (
        f"Preempted to accommodate a workload ({uids}) due to {_DUE_TO.get(reason, 'UNKNOWN')}; "
        f"preemptor path: {preemptor_path or 'UNKNOWN'}; preemptee path: {preemptee_path or 'UNKNOWN'}"
    )


def priorities(preemptor: Info, preemptee: Info) -> str:
    """Return the end of the events about a preemption (rules/04 §8)."""
    each = (f"{i.priority} (base: {i.priority - i.boost}, boost: {i.boost})" for i in (preemptor, preemptee))
    return "; preemptor effective priority: {}; preemptee effective priority: {}".format(*each)


def preempted_workload(preemptee: Info) -> str:
    """Return the beginning of the event about the preemptor (rules/04 §8)."""
    name = preemptee.key.removeprefix("/")
    return f"Preempted workload {name} (UID: {preemptee.uid}) in ClusterQueue {preemptee.cluster_queue}"


def waited(workload: Json, now: int) -> str:
    """Return how long a workload has waited, in whole seconds (rules/05 §6.6)."""
    created = times.moment(workload["metadata"].get("creationTimestamp"))
    begun = conditions.since(workload, "Requeued") if conditions.find(workload, "Requeued") else created
    return f"{min(now - begun, UNLIMITED) / times.SECOND:.0f}s"
