"""Updates a Workload with what follows its job after creation: gates, priority class, queue (rules/10 §3.3, §3.4)."""

from __future__ import annotations

from collections.abc import Sequence

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._text import quoted
from kueuecore.jobs.context import (
    ADMISSION_GATED_BY,
    PRIORITY_CLASS_LABEL,
    QUEUE_LABEL,
    Surroundings,
    annotations_of,
    labels_of,
)
from kueuecore.jobs.field_paths import value_at, with_value, without_value
from kueuecore.jobs.job_event import JobEvent
from kueuecore.jobs.job_status import has_condition
from kueuecore.jobs.sync_steps import key_of, normal
from kueuecore.jobs.workload_builder import check_priority, priority_of

__all__ = ["gates_followed", "in_queue_of", "priority_followed"]

_QUEUE_NAME = ("spec", "queueName")


def gates_followed(job: JsonObject, workload: JsonObject, *, about: JsonObject) -> tuple[JsonObject, JobEvent | None]:
    """Return a Workload with the admission gates of its job, and the event if they have changed.

    Args:
        job: The job.
        workload: Its Workload.
        about: The object of the event.
    """
    gates = annotations_of(job).get(ADMISSION_GATED_BY, "")
    if gates == annotations_of(workload).get(ADMISSION_GATED_BY, ""):
        return workload, None
    path = ("metadata", "annotations", ADMISSION_GATED_BY)
    event = normal(about, "UpdatedWorkload", f"Updated workload AdmissionGatedBy to {quoted(gates)}")
    return with_value(workload, path, gates) if gates else without_value(workload, path), event


def priority_followed(
    job: JsonObject,
    workloads: Sequence[JsonObject],
    surroundings: Surroundings,
    *,
    pod_class: str | None,
    about: JsonObject,
) -> list[tuple[JsonObject, JobEvent | None]]:
    """Return the Workloads of a job with the priority class that it names, each with the event if that has changed.

    Nothing changes while all have a class of that name: a priority that was changed by hand stays.

    Args:
        job: The job.
        workloads: Its Workloads; those that do not follow its label stay unchanged.
        surroundings: The classes.
        pod_class: The pod priority class of the job; None: that of its pod sets.
        about: The object of the events.

    Raises:
        NoWorkload: The class is missing.
    """
    name = labels_of(job).get(PRIORITY_CLASS_LABEL, "")
    following = list(filter(_follows_label, workloads))
    stale = [workload for workload in following if text_at(workload, "spec", "priorityClassRef", "name") != name]
    if not stale:
        return [(workload, None) for workload in workloads]
    pod_sets = [object_at(pod_set) for pod_set in list_at(stale[0], "spec", "podSets")]
    priority, problem = priority_of(job, pod_sets, surroundings, pod_class=pod_class)
    check_priority(problem, surroundings.configuration)
    found: list[tuple[JsonObject, JobEvent | None]] = []
    for workload in workloads:
        spec = {key: value for key, value in object_at(workload, "spec").items() if key != "priorityClassRef"}
        is_fixed = _is_fixed(workload, priority, surroundings)
        changed = {**workload, "spec": {**spec, **priority}} if workload in following and not is_fixed else workload
        event = normal(about, "UpdatedWorkload", f"Updated workload priority class: {key_of(workload)}")
        found.append((changed, None if changed == workload else event))
    return found


def _follows_label(workload: JsonObject) -> bool:
    """Return whether a Workload takes the priority class that its job names."""
    reference = value_at(workload, ("spec", "priorityClassRef"))
    if reference is None:
        return not has_condition(workload, "QuotaReserved")
    return text_at(reference, "kind") == "WorkloadPriorityClass"


def _is_fixed(workload: JsonObject, priority: JsonObject, surroundings: Surroundings) -> bool:
    """Return whether the API server refuses this priority: with quota, a class may only give way to one of its kind."""
    if not has_condition(workload, "QuotaReserved") or not surroundings.has("ReservedPriorityKeepsItsKind"):
        return False
    before, after = object_at(workload, "spec", "priorityClassRef"), object_at(priority, "priorityClassRef")
    return any(text_at(before, key) != text_at(after, key) for key in ("group", "kind"))


def in_queue_of(job: JsonObject, workload: JsonObject) -> JsonObject:
    """Return a Workload in the queue that its job names."""
    queue = labels_of(job).get(QUEUE_LABEL, "")
    # A server may leave out an empty name.
    return workload if text_at(workload, "spec", "queueName") == queue else with_value(workload, _QUEUE_NAME, queue)
