"""The steps that bring the Workloads of a job in line with it, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kueuecore._json import JsonObject, text_at
from kueuecore.jobs.finalizers import without_finalizer
from kueuecore.jobs.integration import NoWorkload
from kueuecore.jobs.job_event import JobEvent
from kueuecore.jobs.workload_builder import RESOURCE_IN_USE
from kueuecore.writes import Verb, Write

__all__ = ["Action", "Sync", "WorkloadStep", "created", "deleted", "key_of", "normal", "warnings_of"]


class Action(StrEnum):
    """What to do with the Workload of a `WorkloadStep`."""

    CREATE = "Create"
    UPDATE = "Update"
    UPDATE_STATUS = "UpdateStatus"
    FINISH = "Finish"
    DELETE = "Delete"


@dataclass(frozen=True, slots=True)
class WorkloadStep:
    """One change of one Workload.

    Args:
        action: Create or update it, or its status, finish or delete it.
        workload: The updated Workload; the current one if it is finished or deleted.
        reason: Why it ends: the reason of its condition Finished.
        message: Why it ends, in a sentence.
        event: The event to create once the step has succeeded; None if there is none.
    """

    action: Action
    workload: JsonObject
    reason: str = ""
    message: str = ""
    event: JobEvent | None = None

    @property
    def write(self) -> Write:
        """The write that makes the change, unless the Workload is finished: that is reported."""
        if self.action is Action.UPDATE_STATUS:
            return Write(Verb.UPDATE, self.workload, "status")
        return Write(Verb(self.action.lower()), self.workload)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """The changes that bring the Workloads of a job in line with it.

    Args:
        workloads: The job's Workloads after the steps: one per group for a LeaderWorkerSet, at most one for other jobs.
        steps: The changes of Workloads, to be made in order.
        writes: Writes of the job or its pods to make first: a job that no Workload fits is stopped, surplus pods are
            deleted, pods of a set join their group.
        events: Events to create once the writes have succeeded: what was stopped, and why there is no Workload.
        reason: Why a Workload is missing; empty if all exist.
    """

    workloads: tuple[JsonObject, ...] = ()
    steps: tuple[WorkloadStep, ...] = ()
    writes: tuple[Write, ...] = ()
    events: tuple[JobEvent, ...] = ()
    reason: str = ""

    @property
    def workload(self) -> JsonObject | None:
        """The job's only Workload; None if it has none for now, or several."""
        return self.workloads[0] if len(self.workloads) == 1 else None


def normal(about: JsonObject, reason: str, message: str) -> JobEvent:
    """Return a Normal event about an object."""
    return JobEvent(about, "Normal", reason, message)


def warnings_of(reason: NoWorkload, about: JsonObject) -> tuple[JobEvent, ...]:
    """Return the event that a job gets no Workload, if Kueue creates one."""
    return (JobEvent(about, "Warning", reason.warning, reason.note),) if reason.warning else ()


def created(workload: JsonObject, job: JsonObject) -> WorkloadStep:
    """Return the step that creates a Workload, with the event about its job."""
    return WorkloadStep(
        Action.CREATE, workload, event=normal(job, "CreatedWorkload", f"Created Workload: {key_of(workload)}")
    )


def deleted(workload: JsonObject, event: JobEvent | None = None) -> list[WorkloadStep]:
    """Return the steps that delete a Workload, after removing its finalizer, which would keep it."""
    steps = []
    free = without_finalizer(workload, RESOURCE_IN_USE)
    if free is not workload:
        steps.append(WorkloadStep(Action.UPDATE, free))
    if not text_at(workload, "metadata", "deletionTimestamp"):
        steps.append(WorkloadStep(Action.DELETE, free, event=event))
    return steps


def key_of(workload: JsonObject) -> str:
    """Return namespace and name of a Workload, as events write it."""
    return f"{text_at(workload, 'metadata', 'namespace')}/{text_at(workload, 'metadata', 'name')}"
