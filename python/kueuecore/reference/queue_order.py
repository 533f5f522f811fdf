"""By which time a workload stands in its queue (rules/05 §1)."""

from __future__ import annotations

from kueuecore.reference import conditions, times
from kueuecore.reference.settings import Json, Settings

__all__ = ["queue_time"]


def queue_time(workload: Json, settings: Settings, requeuing_timestamp: str = "") -> int:
    """When it was evicted for its pods or checks, else when it was created (rules/05 §1)."""
    evicted = conditions.find(workload, "Evicted")
    if evicted is not None and evicted["status"] == "True":
        strategy = (settings.wait_for_pods_ready or {}).get("requeuingStrategy") or {}
        timestamp = requeuing_timestamp or strategy.get("timestamp") or "Eviction"
        reasons = ("PodsReadyTimeout", "AdmissionCheck") if timestamp == "Eviction" else ("AdmissionCheck",)
        if evicted.get("reason") in reasons:
            return times.moment(evicted.get("lastTransitionTime"))
    preempted = conditions.find(workload, "Preempted")
    if (
        not settings.on("PrioritySortingWithinCohort")
        and preempted is not None
        and preempted["status"] == "True"
        and preempted.get("reason") == "InCohortReclaimWhileBorrowing"
    ):
        return times.moment(preempted.get("lastTransitionTime")) + times.SECOND // 1000
    return times.moment(workload["metadata"].get("creationTimestamp"))
