"""Opens writes: at most one for each Workload that differs from what is stored."""

from __future__ import annotations

from collections.abc import Sequence

from kueuecore._json import JsonObject
from kueuecore.checks import WorkloadKey
from kueuecore.controller.versions import key_of
from kueuecore.controller.workload_records import WorkloadRecord, WorkloadRecords
from kueuecore.controller.workload_writer import WorkloadWriter
from kueuecore.decisions import Event
from kueuecore.engine import Engine
from kueuecore.jobs.job_report import NOTHING
from kueuecore.states import WorkloadState
from kueuecore.writes import Write

__all__ = ["OpenWrites"]


class OpenWrites:
    """Makes writes from the differences between the engine's decisions and what is stored.

    Args:
        engine: Holds the state to be stored.
        records: The Workloads as stored. The record of each holds its open write.
    """

    def __init__(self, engine: Engine, records: WorkloadRecords) -> None:
        self._engine = engine
        self._records = records
        self.writer = WorkloadWriter(engine.configuration)
        self._loose_events: list[Event] = []
        engine.take_written()

    def mark_changed(self) -> dict[WorkloadKey, WorkloadState]:
        """Mark the Workloads that the engine has changed since the last call; return their states."""
        states = {(state.namespace, state.name): state for state in self._engine.take_written()}
        self._records.mark(*states)
        return states

    def open(self, at: int) -> tuple[Write, ...]:
        """Return the writes of all Workloads that differ from what is stored and have no open write."""
        states = self.mark_changed()
        writes: list[Write] = []
        for key, record in self._records.take_due():
            state = states.get(key) or self._engine.workload(key[1], namespace=key[0])
            write = None if record.reported.finished else self._write(record, state)
            if write is not None:
                # The rest follows once this is written: its status, or what its job has done.
                if not write.subresource or record.reported != NOTHING:
                    self._records.mark(key)
            elif record.reported != NOTHING:
                write = self._write(record, self.writer.after_job(record.data, record.reported, at))
                record.reported, record.telling = NOTHING, NOTHING if write is None else record.reported
            if write is not None:
                record.write = write
                writes.append(write)
            else:
                self._loose_events += record.events
            if write is None or write.subresource:
                record.events = []
        return tuple(writes)

    def open_label(self, record: WorkloadRecord, name: str) -> Write:
        """Return the write that sets a label of a Workload to `true`; it must have no open write."""
        record.write, record.is_ahead = self.writer.label(record.data, name), True
        return record.write

    def open_change(self, record: WorkloadRecord, changed: JsonObject, events: Sequence[Event]) -> Write:
        """Return the write that brings a Workload in line; it has no open write, and the engine does not know yet."""
        record.write, record.is_ahead = self.writer.change(record.data, changed, events), True
        return record.write

    def is_stored(self, record: WorkloadRecord) -> bool:
        """Return whether a Workload is stored as the engine has it."""
        _, namespace, name = key_of(record.data)
        return self._write(record, self._engine.workload(name, namespace=namespace)) is None

    def hold_loose(self, event: Event) -> None:
        """Keep an event that belongs to no write."""
        self._loose_events.append(event)

    def take_loose_events(self) -> tuple[Event, ...]:
        """Take the events that belong to no write."""
        events, self._loose_events = tuple(self._loose_events), []
        return events

    def _write(self, record: WorkloadRecord, state: WorkloadState) -> Write | None:
        return self.writer.write(record.data, state, record.events)
