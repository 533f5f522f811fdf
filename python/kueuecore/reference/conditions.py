"""Conditions of Workloads: reading them, and writing them as Kubernetes does (rules/05 §6.6, 07 §1).

A status that somebody else holds is never changed: `own` first, then write.
"""

from __future__ import annotations

from typing import Any

from kueuecore.reference import times
from kueuecore.reference.settings import Json, Settings

__all__ = [
    "copied",
    "cut",
    "find",
    "has_reservation",
    "is_active",
    "is_admissible",
    "is_admitted",
    "is_evicted",
    "is_finished",
    "is_on_hold",
    "is_true",
    "own",
    "put",
    "reserve",
    "stage",
    "sync_admitted",
    "unreserve",
]

MESSAGE_BYTES = 32768
EVENT_BYTES = 1024


def cut(message: str, n_bytes: int) -> str:
    """Cut a long text as Kueue does (rules/05 §6.5)."""
    encoded = message.encode()
    return message if len(encoded) <= n_bytes else encoded[: n_bytes - 4].decode(errors="ignore") + " ..."


def copied(value: Any) -> Any:
    """A copy of plain JSON."""
    if isinstance(value, dict):
        return {name: copied(each) for name, each in value.items()}
    return [copied(each) for each in value] if isinstance(value, list) else value


def own(workload: Json) -> Json:
    """A copy whose status may be written to."""
    return {**workload, "status": copied(workload.get("status") or {})}


def find(workload: Json, kind: str) -> Json | None:
    """A condition, if it is there."""
    for condition in (workload.get("status") or {}).get("conditions") or ():
        if condition["type"] == kind:
            found: Json = condition
            return found
    return None


def is_true(workload: Json, kind: str) -> bool:
    """Is a condition there and True?"""
    condition = find(workload, kind)
    return condition is not None and condition["status"] == "True"


def put(
    workload: Json, kind: str, status: bool, reason: str, message: str, now: int, *, generation: bool = True
) -> bool:
    """Write a condition; its time moves only with its status. Says whether anything changed."""
    wanted: Json = {"type": kind, "status": str(status), "reason": reason, "message": cut(message, MESSAGE_BYTES)}
    observed = workload["metadata"].get("generation", 0) if generation else 0
    if observed:
        wanted["observedGeneration"] = observed
    previous = find(workload, kind)
    moved = previous is None or previous["status"] != wanted["status"]
    wanted["lastTransitionTime"] = times.text(now) if moved else (previous or {}).get("lastTransitionTime")
    others = [c for c in workload["status"].get("conditions") or () if c is not previous]
    if previous == wanted:
        return False
    workload["status"]["conditions"] = [*others, wanted]
    return True


def is_finished(workload: Json) -> bool:
    """Has it ended? (rules/07 §1)."""
    return is_true(workload, "Finished")


def is_admitted(workload: Json) -> bool:
    """May it run? (rules/07 §1)."""
    return is_true(workload, "Admitted")


def is_evicted(workload: Json) -> bool:
    """Has it been told to stop? (rules/07 §8)."""
    return is_true(workload, "Evicted")


def has_reservation(workload: Json) -> bool:
    """Does it hold quota? (rules/07 §1)."""
    return is_true(workload, "QuotaReserved")


def is_active(workload: Json) -> bool:
    """Does anybody want it to run? (rules/07 §9)."""
    return workload["spec"].get("active", True) is not False


def is_on_hold(workload: Json) -> bool:
    """Was its quota given back on purpose? (rules/05 §2)."""
    condition = find(workload, "QuotaReserved")
    return condition is not None and condition["status"] == "False" and condition.get("reason") == "OnHold"


def admission_gate(workload: Json, settings: Settings) -> str:
    """Who holds it back from the queue, or nobody (rules/07 §8)."""
    annotations = workload["metadata"].get("annotations") or {}
    gate = annotations.get("kueue.x-k8s.io/admission-gated-by", "")
    return str(gate) if settings.on("AdmissionGatedBy") else ""


def is_admissible(workload: Json, settings: Settings) -> bool:
    """May it be queued? (rules/05 §2)."""
    return (
        not admission_gate(workload, settings)
        and is_active(workload)
        and not is_finished(workload)
        and not has_reservation(workload)
        and not is_on_hold(workload)
        and not is_true(workload, "WaitingForReplacementPods")
    )


def stage(workload: Json) -> str:
    """Finished, Admitted, QuotaReserved or Pending (rules/07 §1)."""
    return next((kind for kind in ("Finished", "Admitted", "QuotaReserved") if is_true(workload, kind)), "Pending")


def check_states(workload: Json) -> list[Json]:
    """States of its admission checks."""
    return list((workload.get("status") or {}).get("admissionChecks") or ())


def _awaits_topology(workload: Json) -> bool:
    assignments = (workload["status"].get("admission") or {}).get("podSetAssignments") or ()
    return any(a.get("delayedTopologyRequest") == "Pending" and not a.get("topologyAssignment") for a in assignments)


def sync_admitted(workload: Json, now: int, settings: Settings) -> bool:
    """Make Admitted follow from the reservation and the checks (rules/07 §1). Says whether anything changed."""
    reserved, was_admitted = has_reservation(workload), is_admitted(workload)
    ready = all(check["state"] == "Ready" for check in check_states(workload))
    placed = not _awaits_topology(workload)
    observed = settings.on("UnadmittedWorkloadsObservability")
    if observed:
        explicit = settings.on("UnadmittedWorkloadsExplicitStatus")
        if find(workload, "QuotaReserved") is None and find(workload, "Admitted") is None and not explicit:
            return False
    elif was_admitted == (reserved and ready and placed):
        return False
    admitted = reserved and ready and placed
    if admitted:
        reason, message = "Admitted", "The workload is admitted"
    elif not reserved and not ready and not observed:
        reason = "NoReservationUnsatisfiedChecks"
        message = "The workload has no reservation and not all checks ready"
    elif not reserved:
        reason, message = "NoReservation", "The workload has no reservation"
    elif not ready:
        reason = "UnsatisfiedAdmissionChecks" if observed else "UnsatisfiedChecks"
        message = "The workload has not all checks ready"
    else:
        reason, message = "PendingDelayedTopologyRequests", "There are pending delayed topology requests"
    if was_admitted and not admitted:
        since = times.moment((find(workload, "Admitted") or {}).get("lastTransitionTime"))
        past = workload["status"].get("accumulatedPastExecutionTimeSeconds", 0)
        workload["status"]["accumulatedPastExecutionTimeSeconds"] = past + (now - since) // times.SECOND
    return put(workload, "Admitted", admitted, reason, message, now)


def unreserve(workload: Json, reason: str, message: str, now: int, settings: Settings) -> bool:
    """Write QuotaReserved=False, and take the admission away (rules/05 §6.5). Says whether anything changed."""
    changed = put(workload, "QuotaReserved", False, reason, message, now)
    changed |= workload["status"].pop("admission", None) is not None
    return sync_admitted(workload, now, settings) or changed


def reserve(workload: Json, admission: Json, now: int) -> None:
    """Write an admission and QuotaReserved=True; what happened before is past (rules/05 §6.6)."""
    workload["status"]["admission"] = admission
    message = f"Quota reserved in ClusterQueue {admission['clusterQueue']}"
    put(workload, "QuotaReserved", True, "QuotaReserved", message, now)
    for kind in ("Evicted", "Preempted", "BlockedOnPreemptionGates"):
        condition = find(workload, kind)
        if condition is not None and condition["status"] == "True":
            put(workload, kind, False, "QuotaReserved", f"Previously: {condition['message']}", now)
