"""What a job controller does about the Workloads of a job, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kueuecore._json import JsonObject
from kueuecore.jobs.integration import Write

__all__ = ["Action", "Sync", "WorkloadStep"]


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
    """

    action: Action
    workload: JsonObject
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """What brings the Workloads of a job in line with it.

    Args:
        workload: The Workload that stands for the job, as it is to be; None if none does, for now.
        steps: What to do with Workloads, one after the other.
        writes: What to do before with the job or, of a group, with its pods: a job that no Workload fits is stopped,
            pods that are too many are deleted.
        reason: Why there is no Workload; empty if there is one.
    """

    workload: JsonObject | None = None
    steps: tuple[WorkloadStep, ...] = ()
    writes: tuple[Write, ...] = ()
    reason: str = ""
