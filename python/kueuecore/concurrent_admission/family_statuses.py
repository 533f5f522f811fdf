"""The status changes of the reconciler of a parent. Each function returns the changed Workload."""

from __future__ import annotations

from kueuecore._conditions import condition, is_true, with_condition
from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore.concurrent_admission.variant_objects import VARIANT_GATE, is_parent
from kueuecore.configuration import Configuration
from kueuecore.times import SECOND_NS, format_time, nanoseconds

__all__ = ["admitted_like", "evicted", "finished", "is_admitted_by_variant", "opened", "ready_like", "released"]

_BY_VARIANT = "The variant"
# An eviction for one of these reasons requeues the workload at once.
_REQUEUED = ("Preempted", "NodeFailures")


def evicted(parent: JsonObject, reason: str, message: str, now: int) -> JsonObject:
    """Set only the condition Evicted: checks, gates and eviction counts stay as they are."""
    return _with(parent, with_condition(parent, "Evicted", is_true=True, reason=reason, message=message, now=now))


def finished(variant: JsonObject, parent: JsonObject, now: int) -> JsonObject:
    """Finish a variant with the reason of the parent."""
    if is_true(variant, "Finished"):
        return variant
    end = condition(parent, "Finished")
    reason, message = text_at(end, "reason"), text_at(end, "message")
    return _with(variant, with_condition(variant, "Finished", is_true=True, reason=reason, message=message, now=now))


def released(variant: JsonObject, now: int, configuration: Configuration) -> JsonObject:
    """Free the quota that an evicted variant held."""
    eviction = condition(variant, "Evicted")
    reason, message = text_at(eviction, "reason"), text_at(eviction, "message")
    is_observed = configuration.is_enabled("UnadmittedWorkloadsObservability")
    was_admitted = condition(variant, "Admitted")
    status = with_condition(variant, "Requeued", is_true=reason in _REQUEUED, reason=reason, message=message, now=now)
    status = with_condition(
        _with(variant, status),
        "QuotaReserved",
        is_true=False,
        reason="PendingEvaluation" if is_observed else "Pending",
        message=message,
        now=now,
    )
    status = {name: value for name, value in status.items() if name != "admission"}
    is_admitted = text_at(was_admitted, "status") == "True"
    if is_admitted:
        past = int_at(status, "accumulatedPastExecutionTimeSeconds")
        since = nanoseconds(text_at(was_admitted, "lastTransitionTime"))
        status["accumulatedPastExecutionTimeSeconds"] = past + (now - since) // SECOND_NS
    if is_admitted or is_observed:
        lacks_checks = not is_observed and any(
            text_at(check, "state") != "Ready" for check in list_at(status, "admissionChecks")
        )
        status = with_condition(
            _with(variant, status),
            "Admitted",
            is_true=False,
            reason="NoReservationUnsatisfiedChecks" if lacks_checks else "NoReservation",
            message=f"The workload has no reservation{' and not all checks ready' if lacks_checks else ''}",
            now=now,
        )
    return _with(variant, status)


def admitted_like(parent: JsonObject, variant: JsonObject, now: int) -> JsonObject:
    """Admit the parent with the admission of a variant."""
    admission, name = object_at(variant, "status", "admission"), text_at(variant, "metadata", "name")
    reason = "QuotaReserved"
    conditions = {reason: (True, reason, f"Quota reserved in ClusterQueue {text_at(admission, 'clusterQueue')}")}
    for kind in ("Evicted", "Preempted", "BlockedOnPreemptionGates"):
        if is_true(parent, kind):
            conditions[kind] = False, reason, f"Previously: {text_at(condition(parent, kind), 'message')}"
    conditions["Admitted"] = True, "Admitted", f"{_BY_VARIANT} {name} is admitted"
    parent = _with(parent, {**object_at(parent, "status"), "admission": admission})
    for kind, (holds, why, message) in conditions.items():
        parent = _with(parent, with_condition(parent, kind, is_true=holds, reason=why, message=message, now=now))
    return parent


def is_admitted_by_variant(workload: JsonObject) -> bool:
    """Return whether a Workload is a parent whose admission comes from one of its variants."""
    message = text_at(condition(workload, "Admitted"), "message")
    return is_parent(workload) and is_true(workload, "Admitted") and message.startswith(_BY_VARIANT)


def ready_like(variant: JsonObject, parent: JsonObject) -> JsonObject:
    """Copy the condition PodsReady of the parent to a variant, if the parent has it."""
    said, old = condition(parent, "PodsReady"), condition(variant, "PodsReady")
    if said is None or said == old:
        return variant
    if old is not None and old.get("status") == said.get("status"):
        said = {**said, "lastTransitionTime": old.get("lastTransitionTime", said.get("lastTransitionTime"))}
    status = object_at(variant, "status")
    conditions = [other for other in list_at(status, "conditions") if text_at(other, "type") != "PodsReady"]
    return _with(variant, {**status, "conditions": [*conditions, said]})


def opened(variant: JsonObject, now: int) -> JsonObject:
    """Open the preemption gate of a variant, if its spec has one."""
    if all(text_at(gate, "name") != VARIANT_GATE for gate in list_at(variant, "spec", "preemptionGates")):
        return variant
    status, time = object_at(variant, "status"), format_time(now // SECOND_NS * SECOND_NS)
    gate: JsonObject = {"name": VARIANT_GATE, "position": "Open", "lastTransitionTime": time}
    gates: list[JsonValue] = [
        preemption_gate
        for preemption_gate in list_at(status, "preemptionGates")
        if text_at(preemption_gate, "name") != VARIANT_GATE
    ]
    return _with(variant, {**status, "preemptionGates": [*gates, gate]})


def _with(workload: JsonObject, status: JsonObject) -> JsonObject:
    return workload if status is workload.get("status") else {**workload, "status": status}
