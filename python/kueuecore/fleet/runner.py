"""What Kubernetes does with Jobs: pods that run for a while and end, none while a Job is suspended."""

from __future__ import annotations

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at, texts_at
from kueuecore.jobs.batch_job import BATCH_JOB, pods_count
from kueuecore.jobs.paths import value_at
from kueuecore.times import format_time, nanoseconds

__all__ = ["RUN_SECONDS", "ends_at", "is_running", "next_status", "runs_here"]

RUN_SECONDS = "fleet.kueuecore/run-seconds"
"""The annotation that says how long the pods of a Job run; without it they run for ever."""
_SECOND_NS = 1_000_000_000
_OWN_CONTROLLER = "kubernetes.io/job-controller"


def runs_here(job: JsonObject) -> bool:
    """Does the Job controller of its own cluster run a Job?"""
    return value_at(job, ("spec", "managedBy")) in (None, _OWN_CONTROLLER)


def is_running(job: JsonObject) -> bool:
    """Has a Job pods on its own cluster?"""
    return runs_here(job) and int_at(job, "status", "active") > 0


def ends_at(job: JsonObject) -> int | None:
    """When the pods of a Job end; None if they do not run, or run for ever."""
    seconds = texts_at(job, "metadata", "annotations").get(RUN_SECONDS)
    started = text_at(job, "status", "startTime")
    if seconds is None or not started or not is_running(job) or not int_at(job, "status", "ready"):
        return None
    return nanoseconds(started) + int(float(seconds) * _SECOND_NS)


def next_status(job: JsonObject, now: int, *, starts_pods: bool = True) -> JsonObject:
    """The status of a Job as its controller makes it at a time.

    Args:
        job: The Job.
        now: The time.
        starts_pods: Do its pods get ready?
    """
    status = dict(object_at(job, "status"))
    if not runs_here(job) or BATCH_JOB.finished(job) is not None:
        return status
    if object_at(job, "spec").get("suspend") is True:
        for key in ("startTime", "active", "ready"):
            status.pop(key, None)
        return _with(status, "Suspended", "True", "JobSuspended", "Job suspended", now)
    n_pods = pods_count(job)
    end = ends_at(job)
    if end is not None and end <= now:
        for key in ("active", "ready"):
            status.pop(key, None)
        status |= {"succeeded": n_pods, "completionTime": _time(now)}
        return _with(status, "Complete", "True", "CompletionsReached", "Reached expected number of succeeded pods", now)
    status |= {"active": n_pods, "ready": n_pods if starts_pods else 0}
    status.setdefault("startTime", _time(now))
    if any(text_at(it, "type") == "Suspended" for it in list_at(status, "conditions")):
        status = _with(status, "Suspended", "False", "JobResumed", "Job resumed", now)
    return status


def _with(status: JsonObject, kind: str, value: str, reason: str, message: str, now: int) -> JsonObject:
    conditions = list_at(status, "conditions")
    new: JsonObject = {"type": kind, "status": value, "reason": reason, "message": message}
    if any(object_at(it).items() >= new.items() for it in conditions):
        return status
    others: list[JsonValue] = [it for it in conditions if text_at(it, "type") != kind]
    return {**status, "conditions": [*others, {**new, "lastTransitionTime": _time(now)}]}


def _time(now: int) -> str:
    return format_time(now // _SECOND_NS * _SECOND_NS)
