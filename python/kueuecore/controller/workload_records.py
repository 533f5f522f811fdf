"""Records the Workloads of a controller: as stored, with open writes, and which may have to be written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kueuecore._arguments import instance
from kueuecore._json import JsonObject, JsonValue
from kueuecore.checks import WorkloadKey
from kueuecore.decisions import Event, ReplacedSlice
from kueuecore.jobs.job_report import NOTHING, JobReport
from kueuecore.writes import Write

__all__ = ["WorkloadRecord", "WorkloadRecords"]


@dataclass(slots=True)
class WorkloadRecord:
    """A Workload as the API server has it, and what is on its way.

    Args:
        data: The newest version that is not deferred.
        write: The open write.
        is_ahead: Whether the open write is not the engine's, which learns of it once it is accepted.
        telling: The part of the job's report in the open write.
        newer: The version that came while the write was open.
        reported: The part of the job's report that is not written yet.
        events: Events that go with its next write.
    """

    data: JsonObject
    write: Write | None = None
    is_ahead: bool = False
    telling: JobReport = NOTHING
    newer: JsonObject | None = None
    reported: JobReport = NOTHING
    events: list[Event] = field(default_factory=list)


class WorkloadRecords:
    """The record of every Workload, and the order in which they are written."""

    def __init__(self) -> None:
        self._records: dict[WorkloadKey, WorkloadRecord] = {}
        # What may have to be written, in the order of the changes.
        self._unwritten: dict[WorkloadKey, None] = {}
        # Old slices by new ones: the end of the old one is written after the quota of the new one.
        self._successors: dict[WorkloadKey, WorkloadKey] = {}

    def __iter__(self) -> Iterator[tuple[WorkloadKey, WorkloadRecord]]:
        """Yield all of them, in order of arrival."""
        return iter(self._records.items())

    def get(self, key: WorkloadKey) -> WorkloadRecord | None:
        """Return the record of a Workload, if it exists."""
        return self._records.get(key)

    def put(self, key: WorkloadKey, manifest: JsonObject) -> None:
        """Store the API server's version of a Workload."""
        self._records.setdefault(key, WorkloadRecord(manifest)).data = manifest

    def drop(self, key: WorkloadKey) -> None:
        """Remove a deleted Workload."""
        self._records.pop(key, None)
        self._unwritten.pop(key, None)

    def mark(self, *keys: WorkloadKey) -> None:
        """Mark Workloads as possibly having to be written, if they exist."""
        self._unwritten |= dict.fromkeys(key for key in keys if key in self._records)

    def is_marked(self, key: WorkloadKey) -> bool:
        """Return whether a Workload may have to be written."""
        return key in self._unwritten

    def tell(self, key: WorkloadKey, report: JobReport) -> bool:
        """Add what the job of a Workload has done; False if there is no such Workload."""
        instance("report", report, JobReport)
        record = self._records.get(key)
        if record is not None:
            record.reported = record.reported.then(report)
            self._unwritten[key] = None
        return record is not None

    def tell_again(self, key: WorkloadKey) -> None:
        """Put the report in a failed write back, to go out with the next one."""
        record = self._records[key]
        record.reported, record.telling = record.telling.then(record.reported), NOTHING
        self._unwritten[key] = None

    def hold(self, events: Iterable[Event]) -> None:
        """Keep events for the next write of their Workload."""
        for event in events:
            key = event.namespace, event.name
            if (record := self._records.get(key)) is not None:
                record.events.append(event)
                self._unwritten[key] = None

    def note_replaced(self, slices: Iterable[ReplacedSlice]) -> None:
        """Note that these slices end once the new ones are written."""
        for replaced in slices:
            namespace, _, name = replaced.successor.partition("/")
            self._successors[replaced.namespace, replaced.name] = namespace, name

    def is_settled(self, key: WorkloadKey) -> bool:
        """Return whether a Workload is as stored, so that others may rely on it."""
        record = self._records.get(key)
        return record is not None and record.write is None and key not in self._unwritten and record.reported == NOTHING

    @property
    def has_due(self) -> bool:
        """Whether something may be written at once."""
        return any(self._records[key].write is None and not self._waits(key) for key in self._unwritten)

    def take_due(self) -> Iterator[tuple[WorkloadKey, WorkloadRecord]]:
        """Yield what may be written at once; a Workload marked meanwhile comes next time."""
        for key in list(self._unwritten):
            record = self._records[key]
            if record.write is None and not self._waits(key):
                del self._unwritten[key]
                yield key, record

    def newest(self) -> list[JsonObject]:
        """Return the newest version of each Workload, deferred or not."""
        return [record.newer or record.data for record in self._records.values()]

    def reports(self) -> list[JsonValue]:
        """Return what jobs have done that is not written yet, as plain data: namespace, name, report."""
        return [
            [*key, record.telling.then(record.reported).to_json()]
            for key, record in self._records.items()
            if (record.telling, record.reported) != (NOTHING, NOTHING)
        ]

    def _waits(self, key: WorkloadKey) -> bool:
        """Return whether its successor has yet to be written."""
        successor = self._successors.get(key)
        if successor is None:
            return False
        record = self._records.get(successor)
        if record is not None and (successor in self._unwritten or record.write is not None):
            return True
        del self._successors[key]
        return False
