"""Sets the conditions of a Workload that gives up its quota because its job cannot use it (rules/10 §5.6)."""

from __future__ import annotations

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore.jobs.context import JobsConfiguration
from kueuecore.jobs.field_paths import with_value, without_value
from kueuecore.jobs.job_status import has_condition
from kueuecore.times import SECOND_NS, format_time, nanoseconds

__all__ = ["without_reservation"]


def without_reservation(
    workload: JsonObject, *, reason: str, message: str, now: int, configuration: JobsConfiguration
) -> JsonObject:
    """Return a Workload that holds no quota: QuotaReserved is False, and it has no admission and is not admitted.

    Args:
        workload: The Workload.
        reason: The reason of the condition QuotaReserved.
        message: Its message.
        now: The time, in nanoseconds since 1970.
        configuration: Has the feature gates.
    """
    was_admitted = has_condition(workload, "Admitted")
    seconds = _seconds_admitted(workload, now) if was_admitted else 0
    after = _with_false(workload, "QuotaReserved", reason, message, now)
    after = without_value(after, ("status", "admission"))
    is_explicit = configuration.enabled("UnadmittedWorkloadsObservability")
    if not was_admitted and not is_explicit:
        return after
    if seconds:
        total = int_at(workload, "status", "accumulatedPastExecutionTimeSeconds") + seconds
        after = with_value(after, ("status", "accumulatedPastExecutionTimeSeconds"), total)
    checks = list_at(workload, "status", "admissionChecks")
    if is_explicit or all(text_at(check, "state") == "Ready" for check in checks):
        return _with_false(after, "Admitted", "NoReservation", "The workload has no reservation", now)
    message = "The workload has no reservation and not all checks ready"
    return _with_false(after, "Admitted", "NoReservationUnsatisfiedChecks", message, now)


def _seconds_admitted(workload: JsonObject, now: int) -> int:
    conditions = (
        condition for condition in list_at(workload, "status", "conditions") if text_at(condition, "type") == "Admitted"
    )
    since = text_at(next(conditions), "lastTransitionTime")
    return max(0, now - nanoseconds(since)) // SECOND_NS if since else 0


def _with_false(workload: JsonObject, kind: str, reason: str, message: str, now: int) -> JsonObject:
    """Return a Workload with a condition set to False; a condition that was False keeps its time."""
    conditions = [object_at(condition) for condition in list_at(workload, "status", "conditions")]
    before = next((condition for condition in conditions if text_at(condition, "type") == kind), None)
    after: JsonObject = {"type": kind, "status": "False", "reason": reason, "message": message}
    if "generation" in object_at(workload, "metadata"):
        after["observedGeneration"] = int_at(workload, "metadata", "generation")
    since = text_at(before, "lastTransitionTime") if text_at(before, "status") == "False" else ""
    after["lastTransitionTime"] = since or format_time(now // SECOND_NS * SECOND_NS)
    if before is None:
        changed: list[JsonValue] = [*conditions, after]
    else:
        changed = [after if condition is before else condition for condition in conditions]
    return with_value(workload, ("status", "conditions"), changed)
