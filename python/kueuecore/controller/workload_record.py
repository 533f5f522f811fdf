"""What a controller knows of one Workload."""

from __future__ import annotations

from dataclasses import dataclass, field

from kueuecore._json import JsonObject
from kueuecore.controller.job_report import NOTHING, JobReport
from kueuecore.controller.writes import WorkloadWrite
from kueuecore.decisions import Event

__all__ = ["WorkloadRecord"]


@dataclass(slots=True)
class WorkloadRecord:
    """A Workload as the API server has it, and what is on its way.

    Args:
        data: The newest version that is not put off.
        write: The write that is open.
        telling: What of its job the open write tells.
        newer: What came while it was open.
        told: What else is to be told of its job.
        events: Events that go with its next write.
    """

    data: JsonObject
    write: WorkloadWrite | None = None
    telling: JobReport = NOTHING
    newer: JsonObject | None = None
    told: JobReport = NOTHING
    events: list[Event] = field(default_factory=list)
