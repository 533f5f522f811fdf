"""Conditions and admission checks in the status of an object, read and written as Kubernetes does."""

from __future__ import annotations

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore.times import format_time, saturated_ns

__all__ = ["check_state", "condition", "has_quota", "is_true", "transition_time", "with_check_state", "with_condition"]

_SECOND_NS = 1_000_000_000
_LONGEST_MESSAGE = 32 * 1024


def condition(manifest: JsonObject | None, kind: str) -> JsonObject | None:
    """The condition of a type, if there is one."""
    for it in list_at(manifest, "status", "conditions"):
        if text_at(it, "type") == kind:
            return object_at(it)
    return None


def is_true(manifest: JsonObject | None, kind: str) -> bool:
    """Is a condition there, and True?"""
    return text_at(condition(manifest, kind), "status") == "True"


def has_quota(workload: JsonObject) -> bool:
    """Has a Workload a quota reservation?"""
    return is_true(workload, "QuotaReserved")


def transition_time(value: JsonObject | None) -> int:
    """When a condition, or a gate, came to be as it is; 0 if it does not say.

    Raises:
        ValueError: What it says is no time.
    """
    text = text_at(value, "lastTransitionTime")
    try:
        return saturated_ns(text) if text else 0
    except ValueError as error:
        raise ValueError(f"lastTransitionTime: {error}") from None


def with_condition(
    manifest: JsonObject, kind: str, *, is_true: bool, reason: str, message: str, now: int
) -> JsonObject:
    """The status of an object with a condition; its time changes only with its status.

    Kueue leaves a condition alone whose status, reason and message are as they are to be.
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
    conditions = [new if text_at(it, "type") == kind else it for it in list_at(status, "conditions")]
    return {**status, "conditions": conditions if old is not None else [*conditions, new]}


def check_state(workload: JsonObject, name: str) -> JsonObject | None:
    """The state of an admission check of a Workload, if it has it."""
    for it in list_at(workload, "status", "admissionChecks"):
        if text_at(it, "name") == name:
            return object_at(it)
    return None


def with_check_state(workload: JsonObject, name: str, state: str, message: str, now: int) -> JsonObject:
    """The status of a Workload with another state of a check; its time changes only with its state (rules/07 §3)."""
    status = object_at(workload, "status")
    checks: list[JsonValue] = []
    for it in list_at(status, "admissionChecks"):
        check = object_at(it)
        if text_at(check, "name") == name:
            time = _seconds(now) if text_at(check, "state") != state else check.get("lastTransitionTime")
            check = {**check, "state": state, "message": truncated(message), "lastTransitionTime": time}
        checks.append(check)
    return {**status, "admissionChecks": checks}


def truncated(message: str) -> str:
    """A message of at most as many bytes as a condition may have."""
    encoded = message.encode()
    if len(encoded) <= _LONGEST_MESSAGE:
        return message
    return encoded[: _LONGEST_MESSAGE - 4].decode(errors="ignore") + " ..."


def _seconds(now: int) -> str:
    return format_time(now // _SECOND_NS * _SECOND_NS)
