"""The conditions of Workloads, read and written as in Kubernetes (rules/05 §6.6, 07 §1).

A status that is shared is never changed: call `own` first, then write.
"""

from __future__ import annotations

from typing import Any

from kueuecore.reference import times
from kueuecore.reference.settings import Json, Settings

MESSAGE_BYTES = 32768
EVENT_BYTES = 1024


def cut(message: str, n_bytes: int) -> str:
    """Truncate a long text as Kueue does (rules/05 §6.5)."""
    encoded = message.encode()
    return message if len(encoded) <= n_bytes else encoded[: n_bytes - 4].decode(errors="ignore") + " ..."


def copied(value: Any) -> Any:
    """Return a copy of plain JSON."""
    if isinstance(value, dict):
        return {name: copied(each) for name, each in value.items()}
    return [copied(each) for each in value] if isinstance(value, list) else value


def own(workload: Json) -> Json:
    """Return a copy of a Workload whose status may be changed."""
    return {**workload, "status": copied(workload["status"])}


def find(workload: Json, kind: str) -> Json:
    """Return a condition; empty if it does not exist."""
    found: Json = next((c for c in workload["status"].get("conditions") or () if c["type"] == kind), {})
    return found


def said(workload: Json, kind: str) -> tuple[str, str]:
    """Return status and reason of a condition; empty if it does not exist."""
    condition = find(workload, kind)
    return condition.get("status", ""), condition.get("reason", "")


def since(workload: Json, kind: str) -> int:
    """Return when a condition got its status; earlier than any time if it does not exist."""
    return times.moment(find(workload, kind).get("lastTransitionTime"))


def is_true(workload: Json, kind: str) -> bool:
    """Return whether a condition exists and is True."""
    return said(workload, kind)[0] == "True"


def put(workload: Json, kind: str, status: bool, reason: str, message: str, now: int, *, observed: bool = True) -> bool:
    """Write a condition; its time changes only with its status. Returns whether anything changed."""
    previous = find(workload, kind)
    wanted: Json = {"type": kind, "status": str(status), "reason": reason, "message": cut(message, MESSAGE_BYTES)}
    moved = previous.get("status") != wanted["status"]
    wanted["lastTransitionTime"] = times.text(now) if moved else previous.get("lastTransitionTime")
    if observed and workload["metadata"]["generation"]:
        wanted["observedGeneration"] = workload["metadata"]["generation"]
    if previous == wanted:
        return False
    others = [condition for condition in workload["status"].get("conditions") or () if condition["type"] != kind]
    workload["status"]["conditions"] = [*others, wanted]
    return True


def is_finished(workload: Json) -> bool:
    """Return whether the workload has finished (rules/07 §1)."""
    return is_true(workload, "Finished")


def has_reservation(workload: Json) -> bool:
    """Return whether the workload holds quota (rules/07 §1)."""
    return is_true(workload, "QuotaReserved")


def is_active(workload: Json) -> bool:
    """Return whether the workload is meant to run (rules/07 §9)."""
    return workload["spec"].get("active", True) is not False


def is_on_hold(workload: Json) -> bool:
    """Return whether the workload's quota was taken back on purpose (rules/05 §2)."""
    return said(workload, "QuotaReserved") == ("False", "OnHold")


def admission_gate(workload: Json, settings: Settings) -> str:
    """Return which controller keeps the workload out of the queue; empty if none does (rules/07 §8)."""
    gate = workload["metadata"]["annotations"].get("kueue.x-k8s.io/admission-gated-by", "")
    return str(gate) if settings.on("AdmissionGatedBy") else ""


def is_admissible(workload: Json, settings: Settings) -> bool:
    """Return whether the workload may be queued (rules/05 §2)."""
    hindrances = ("Finished", "QuotaReserved", "WaitingForReplacementPods")
    is_hindered = is_on_hold(workload) or any(is_true(workload, kind) for kind in hindrances)
    return is_active(workload) and not is_hindered and not admission_gate(workload, settings)


def stage(workload: Json) -> str:
    """Return the stage: Finished, Admitted, QuotaReserved or Pending (rules/07 §1)."""
    return next((kind for kind in ("Finished", "Admitted", "QuotaReserved") if is_true(workload, kind)), "Pending")


def check_states(workload: Json) -> list[Json]:
    """Return the states of its admission checks."""
    return list(workload["status"].get("admissionChecks") or ())


def admission(workload: Json) -> Json:
    """Return its admission; empty if it has none."""
    return workload["status"].get("admission") or {}


def _why_not_admitted(workload: Json, settings: Settings) -> tuple[str, str]:
    """Return reason and message of Admitted=False; empty if it may run (rules/07 §1)."""
    reserved = has_reservation(workload)
    ready = all(check["state"] == "Ready" for check in check_states(workload))
    observability = settings.on("UnadmittedWorkloadsObservability")
    if not reserved and not ready and not observability:
        return "NoReservationUnsatisfiedChecks", "The workload has no reservation and not all checks ready"
    if not reserved:
        return "NoReservation", "The workload has no reservation"
    if not ready:
        reason = "UnsatisfiedAdmissionChecks" if observability else "UnsatisfiedChecks"
        return reason, "The workload has not all checks ready"
    for assignment in admission(workload).get("podSetAssignments") or ():
        if assignment.get("delayedTopologyRequest") == "Pending" and not assignment.get("topologyAssignment"):
            return "PendingDelayedTopologyRequests", "There are pending delayed topology requests"
    return "", ""


def sync_admitted(workload: Json, now: int, settings: Settings) -> bool:
    """Derive Admitted from the reservation and the checks (rules/07 §1). Returns whether anything changed."""
    was_admitted, (reason, message) = is_true(workload, "Admitted"), _why_not_admitted(workload, settings)
    if settings.on("UnadmittedWorkloadsObservability"):
        is_known = find(workload, "QuotaReserved") or find(workload, "Admitted")
        is_due = bool(is_known) or settings.on("UnadmittedWorkloadsExplicitStatus")
    else:
        is_due = was_admitted != (not reason)
    if not is_due:
        return False
    if was_admitted and reason:
        past = workload["status"].get("accumulatedPastExecutionTimeSeconds", 0)
        ran_s = (now - since(workload, "Admitted")) // times.SECOND
        workload["status"]["accumulatedPastExecutionTimeSeconds"] = past + ran_s
    return put(workload, "Admitted", not reason, reason or "Admitted", message or "The workload is admitted", now)


def unreserve(workload: Json, reason: str, message: str, now: int, settings: Settings) -> bool:
    """Write QuotaReserved=False and remove the admission (rules/05 §6.5). Returns whether anything changed."""
    changed = put(workload, "QuotaReserved", False, reason, message, now)
    changed |= workload["status"].pop("admission", None) is not None
    return sync_admitted(workload, now, settings) or changed


def reserve(workload: Json, given: Json, now: int) -> None:
    """Write an admission and QuotaReserved=True, and clear what happened before (rules/05 §6.6)."""
    workload["status"]["admission"] = given
    put(
        workload, "QuotaReserved", True, "QuotaReserved", f"Quota reserved in ClusterQueue {given['clusterQueue']}", now
    )
    for kind in ("Evicted", "Preempted", "BlockedOnPreemptionGates"):
        if is_true(workload, kind):
            put(workload, kind, False, "QuotaReserved", f"Previously: {find(workload, kind)['message']}", now)
