"""Evicts workloads, and decides what happens once they have stopped (rules/04 §8, §9, 07 §8)."""

from __future__ import annotations

from kueuecore.reference import conditions, times
from kueuecore.reference.decision import Event
from kueuecore.reference.objects import is_owned_by_a_pod, names_of
from kueuecore.reference.settings import Json, Settings


def evict(workload: Json, reason: str, message: str, now: int, *, cause: str = "") -> Event | None:
    """Mark a workload as evicted; it keeps its quota until it has stopped (rules/07 §8). Returns the event."""
    status = workload["status"]
    named = f"{reason}DueTo{cause}" if reason == "Deactivated" and cause else reason
    conditions.put(workload, "Evicted", True, named, message, now)
    for name in ("clusterName", "nominatedClusterNames", "unhealthyNodes"):
        status.pop(name, None)
    if "admissionChecks" in status:
        status["admissionChecks"] = [_reset(check, now) for check in status["admissionChecks"]]
    if conditions.is_true(workload, "BlockedOnPreemptionGates"):
        conditions.put(workload, "BlockedOnPreemptionGates", False, reason, message, now)
    for gate in status.get("preemptionGates") or ():
        gate |= {"position": "Closed", "lastTransitionTime": times.text(now)}
    evictions: list[Json] = status.setdefault("schedulingStats", {}).setdefault("evictions", [])
    counters = [e for e in evictions if (e["reason"], e.get("underlyingCause", "")) == (reason, cause)]
    if not counters:
        counters = [{"reason": reason, "underlyingCause": cause, "count": 0}]
        evictions += counters
    counters[0]["count"] += 1
    if not conditions.admission(workload):
        return None
    return Event(*names_of(workload), "Normal", f"EvictedDueTo{named}", conditions.cut(message, conditions.EVENT_BYTES))


def _reset(check: Json, now: int) -> Json:
    """Reset a check (rules/07 §3)."""
    if check["state"] == "Pending":
        return check
    message = f"Reset to Pending after eviction. Previously: {check['state']}"
    reset = {"name": check["name"], "state": "Pending", "message": message, "lastTransitionTime": times.text(now)}
    if "requeueAfterSeconds" in check:
        reset["requeueAfterSeconds"] = check["requeueAfterSeconds"]
    if check["state"] == "Retry":
        reset["retryCount"] = check.get("retryCount", 0) + 1
    return reset


def release(workload: Json, now: int, settings: Settings) -> None:
    """Free the quota of a workload whose job has stopped, and decide whether it waits again (rules/04 §9, 07 §8)."""
    evicted = conditions.find(workload, "Evicted")
    reason, message = evicted.get("reason", ""), evicted.get("message", "")
    is_stuck = is_owned_by_a_pod(workload) and settings.on("SkipReassignmentForPodOwnedWorkloads")
    conditions.put(workload, "Requeued", reason in ("Preempted", "NodeFailures") and not is_stuck, reason, message, now)
    pending = "PendingEvaluation" if settings.on("UnadmittedWorkloadsObservability") else "Pending"
    conditions.unreserve(workload, pending, message, now, settings)
