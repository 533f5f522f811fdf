"""What a job controller does about the Workloads of a job, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kueuecore._json import JsonObject, text_at
from kueuecore.jobs.finalizers import without_finalizer
from kueuecore.jobs.integration import NoWorkload, Write
from kueuecore.jobs.job_event import JobEvent
from kueuecore.jobs.workload_builder import RESOURCE_IN_USE

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
    """One thing to do with one Workload.

    Args:
        action: Create or update it, or its status, finish or delete it.
        workload: The Workload as it is to be; of one that ends or goes, as it is.
        reason: Why it ends: the reason of its condition Finished.
        message: Why it ends, for people.
        event: The event to create once the step has succeeded; None if there is none.
    """

    action: Action
    workload: JsonObject
    reason: str = ""
    message: str = ""
    event: JobEvent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """What brings the Workloads of a job in line with it.

    Args:
        workloads: The Workloads that stand for the job, as they are to be: of a LeaderWorkerSet one a group, of other
            jobs one at most.
        steps: What to do with Workloads, one after the other.
        writes: What to do before with the job or with its pods: a job that no Workload fits is stopped, pods that are
            too many are deleted, those of a set join their group.
        events: Events to create once the writes have succeeded: what was stopped, and why there is no Workload.
        reason: Why there is no Workload, or not every one; empty if all are there.
    """

    workloads: tuple[JsonObject, ...] = ()
    steps: tuple[WorkloadStep, ...] = ()
    writes: tuple[Write, ...] = ()
    events: tuple[JobEvent, ...] = ()
    reason: str = ""

    @property
    def workload(self) -> JsonObject | None:
        """The only Workload that stands for the job; None if none does, for now, or if several do."""
        return self.workloads[0] if len(self.workloads) == 1 else None


def normal(about: JsonObject, reason: str, message: str) -> JobEvent:
    """A Normal event about an object."""
    return JobEvent(about, "Normal", reason, message)


def warnings_of(reason: NoWorkload, about: JsonObject) -> tuple[JobEvent, ...]:
    """The event that a job gets no Workload, if Kueue creates one."""
    return (JobEvent(about, "Warning", reason.warning, reason.note),) if reason.warning else ()


def created(workload: JsonObject, job: JsonObject) -> WorkloadStep:
    """The step that creates a Workload, with the event about its job."""
    return WorkloadStep(
        Action.CREATE, workload, event=normal(job, "CreatedWorkload", f"Created Workload: {key_of(workload)}")
    )


def deleted(workload: JsonObject, event: JobEvent | None = None) -> list[WorkloadStep]:
    """The steps that delete a Workload: without its finalizer first, or it would stay."""
    steps = []
    free = without_finalizer(workload, RESOURCE_IN_USE)
    if free is not workload:
        steps.append(WorkloadStep(Action.UPDATE, free))
    if not text_at(workload, "metadata", "deletionTimestamp"):
        steps.append(WorkloadStep(Action.DELETE, free, event=event))
    return steps


def key_of(workload: JsonObject) -> str:
    """Namespace and name of a Workload, as events name it."""
    return f"{text_at(workload, 'metadata', 'namespace')}/{text_at(workload, 'metadata', 'name')}"
