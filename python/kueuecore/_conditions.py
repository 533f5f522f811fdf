"""Conditions and admission checks in the status of an object, read and written as Kubernetes does."""

from __future__ import annotations

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore.times import SECOND_NS, format_time, saturated_ns

__all__ = [
    "OF_WORKLOADS",
    "check_state",
    "condition",
    "has_quota",
    "is_true",
    "transition_time",
    "with_check_state",
    "with_condition",
]

OF_WORKLOADS = frozenset(
    (
        "Admitted",
        "BlockedOnPreemptionGates",
        "DeactivationTarget",
        "Evicted",
        "Finished",
        "PodsReady",
        "PodsScheduled",
        "Preempted",
        "QuotaReserved",
        "Requeued",
    )
)
"""The conditions that Kueue writes to Workloads, with an admission or an eviction."""
_MAX_MESSAGE = 32 * 1024


def condition(manifest: JsonObject | None, kind: str) -> JsonObject | None:
    """Return the condition of a type, or None."""
    for other in list_at(manifest, "status", "conditions"):
        if text_at(other, "type") == kind:
            return object_at(other)
    return None


def is_true(manifest: JsonObject | None, kind: str) -> bool:
    """Return whether an object has a condition that is True."""
    return text_at(condition(manifest, kind), "status") == "True"


def has_quota(workload: JsonObject) -> bool:
    """Return whether a Workload has a quota reservation."""
    return is_true(workload, "QuotaReserved")


def transition_time(value: JsonObject | None) -> int:
    """Return when a condition or gate last changed; 0 if it does not say.

    Raises:
        ValueError: The value is not a time.
    """
    text = text_at(value, "lastTransitionTime")
    try:
        return saturated_ns(text) if text else 0
    except ValueError as error:
        raise ValueError(f"lastTransitionTime: {error}") from None


def with_condition(
    manifest: JsonObject, kind: str, *, is_true: bool, reason: str, message: str, now: int
) -> JsonObject:
    """Return the status of an object with a condition set; its time changes only with its status.

    Kueue does not touch a condition that already has the right status, reason and message.
    """
    status = object_at(manifest, "status")
    old = condition(manifest, kind)
    new: JsonObject = {
        "type": kind,
        "status": "True" if is_true else "False",
        "reason": reason,
        "message": truncated(message),
        "lastTransitionTime": _seconds(now),
    }
    if generation := int_at(manifest, "metadata", "generation"):
        new["observedGeneration"] = generation
    if old is not None and all(old.get(key) == new[key] for key in ("status", "reason", "message")):
        return status
    if old is not None and old.get("status") == new["status"]:
        new["lastTransitionTime"] = old.get("lastTransitionTime", new["lastTransitionTime"])
    conditions = [new if text_at(other, "type") == kind else other for other in list_at(status, "conditions")]
    return {**status, "conditions": conditions if old is not None else [*conditions, new]}


def check_state(workload: JsonObject, name: str) -> JsonObject | None:
    """Return the state of an admission check of a Workload, or None."""
    for check in list_at(workload, "status", "admissionChecks"):
        if text_at(check, "name") == name:
            return object_at(check)
    return None


def with_check_state(workload: JsonObject, name: str, state: str, message: str, now: int) -> JsonObject:
    """Return a Workload's status with a check's state set; its time changes only with its state (rules/07 §3)."""
    status = object_at(workload, "status")
    checks: list[JsonValue] = []
    for admission_check in list_at(status, "admissionChecks"):
        check = object_at(admission_check)
        if text_at(check, "name") == name:
            time = _seconds(now) if text_at(check, "state") != state else check.get("lastTransitionTime")
            check = {**check, "state": state, "message": truncated(message), "lastTransitionTime": time}
        checks.append(check)
    return {**status, "admissionChecks": checks}


def truncated(message: str) -> str:
    """Cut a message to the number of bytes that a condition may have."""
    encoded = message.encode()
    if len(encoded) <= _MAX_MESSAGE:
        return message
    return encoded[: _MAX_MESSAGE - 4].decode(errors="ignore") + " ..."


def _seconds(now: int) -> str:
    return format_time(now // SECOND_NS * SECOND_NS)
