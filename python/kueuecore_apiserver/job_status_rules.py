"""The rules for the statuses of `batch/v1` Jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator

from kueuecore._json import int_at, list_at, object_at
from kueuecore_apiserver.refusals import Cause
from kueuecore_apiserver.requests import Object

__all__ = ["job_status_causes", "without_zeros"]

_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")
# Counts that the server leaves out when they are 0.
_OMITTED = ("active", "succeeded", "failed")
_ENDS = ("Complete", "Failed")
_BEFORE_ENDS = ("FailureTarget", "SuccessCriteriaMet")


def without_zeros(job: Object) -> Object:
    """Return a Job with its status as a server stores it: without counts that are 0, and empty rather than missing."""
    status = object_at(job, "status")
    kept = {name: value for name, value in status.items() if value is not None and value != []}
    return {**job, "status": {name: value for name, value in kept.items() if value != 0 or name not in _OMITTED}}


def job_status_causes(new: Object, old: Object) -> Iterator[Cause]:
    """Yield what is wrong with a changed status of a Job."""
    before, after = object_at(old, "status"), object_at(new, "status")
    for name in _COUNTS:
        if int_at(after, name) < 0:
            yield Cause(f"status.{name}", f"Invalid value: {after[name]}: must be greater than or equal to 0")
    was, is_now = _true_conditions(before), _true_conditions(after)
    yield from _end_causes(before, after, was, is_now)
    for name in ("succeeded", "failed"):
        if int_at(after, name) < int_at(before, name):
            yield Cause(f"status.{name}", f"Invalid value: {int_at(after, name)}: cannot decrease the {name} counter")
    if int_at(after, "ready") > max(0, int_at(after, "active")) and _differs(before, after, "ready", "active"):
        yield Cause("status.ready", f"Invalid value: {int_at(after, 'ready')}: cannot set more ready pods than active")
    is_unsuspended = object_at(new, "spec").get("suspend") is not True
    if before.get("startTime") and is_unsuspended and _differs(before, after, "startTime"):
        shown = json.dumps(after.get("startTime"))
        why = "field is immutable for unsuspended job once set"
        yield Cause("status.startTime", f"Invalid value: {shown}: {why}")
    elif "Complete" in was & is_now and before.get("completionTime") and _differs(before, after, "completionTime"):
        shown = json.dumps(after.get("completionTime"))
        yield Cause("status.completionTime", f"Invalid value: {shown}: field is immutable")


def _end_causes(before: Object, after: Object, was: frozenset[str], is_now: frozenset[str]) -> Iterator[Cause]:
    """Yield what is wrong with how a Job ends."""
    for name in (*_ENDS, *_BEFORE_ENDS):
        if name in was and name not in is_now:
            yield _condition(f"cannot disable the {'terminal ' if name in _ENDS else ''}{name}=True condition")
    is_ended = not is_now.isdisjoint(_ENDS)
    if was == is_now and not _differs(before, after, "startTime", "completionTime", "active"):
        return
    if is_now >= set(_ENDS):
        yield _condition("cannot set Complete=True and Failed=true conditions")
    if "Complete" in is_now and not after.get("completionTime"):
        yield Cause("status.completionTime", "Required value: completionTime is required for Complete jobs")
    if "Complete" not in is_now and after.get("completionTime"):
        shown = json.dumps(after["completionTime"])
        why = "cannot set completionTime when there is no Complete=True condition"
        yield Cause("status.completionTime", f"Invalid value: {shown}: {why}")
    if "Failed" in is_now and "FailureTarget" not in is_now:
        yield _condition("cannot set Failed=True condition without the FailureTarget=true condition")
    if "Complete" in is_now and "SuccessCriteriaMet" not in is_now:
        yield _condition("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
    if is_now >= {"SuccessCriteriaMet", "Failed"}:
        yield _condition("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if is_ended and int_at(after, "active") > 0:
        yield Cause("status.active", f"Invalid value: {after['active']}: active>0 is invalid for finished job")
    if is_ended and not after.get("startTime"):
        yield Cause("status.startTime", "Required value: startTime is required for finished job")


def _condition(why: str) -> Cause:
    return Cause("status.conditions", f"Invalid value: {why}")


def _true_conditions(status: Object) -> frozenset[str]:
    rows = map(object_at, list_at(status, "conditions"))
    return frozenset(str(row.get("type")) for row in rows if row.get("status") == "True")


def _differs(before: Object, after: Object, *names: str) -> bool:
    return any(before.get(name) != after.get(name) for name in names)
