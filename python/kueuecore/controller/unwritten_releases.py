"""Keeps quota that a Workload has given up until that is stored: until then nobody else may have it."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore.checks import WorkloadKey
from kueuecore.controller.open_writes import OpenWrites
from kueuecore.controller.workload_records import WorkloadRecord, WorkloadRecords
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.decisions import Event
from kueuecore.engine import Engine
from kueuecore.manifests import to_json_lines
from kueuecore.states import Stage

__all__ = ["UnwrittenReleases"]


class UnwrittenReleases:
    """Puts Workloads whose reservation the engine has ended back for each cycle, as long as the stored ones have it.

    The engine ends a reservation by itself when its ClusterQueue or LocalQueue is stopped (rules/07 §4); others are
    reported by jobs, and the engine learns of those once they are stored.

    Args:
        engine: Decides on what is stored.
        workloads: The Workloads as stored.
        writes: The writes that end the reservations.
    """

    def __init__(self, engine: Engine, workloads: WorkloadRecords, writes: OpenWrites) -> None:
        self._engine = engine
        self._workloads = workloads
        self._writes = writes
        # What may be such a Workload, now or once its open write is stored.
        self._suspects: dict[WorkloadKey, None] = {}
        self._held: dict[WorkloadKey, WorkloadRecord] = {}

    def put_back(self, at: int) -> None:
        """Let the next cycle find the quota of all of them taken. Reconcile afterwards: that ends them again."""
        ended = (key for key, state in self._writes.mark_changed().items() if state.stage is Stage.PENDING)
        suspects, self._suspects, self._held = {**self._suspects, **dict.fromkeys(ended)}, {}, {}
        for key in suspects:
            record = self._workloads.get(key)
            if record is None:
                continue
            if self._is_kept(record):
                if self._engine.workload(key[1], namespace=key[0]).stage is Stage.PENDING:
                    self._held[key] = record
                    self._suspects[key] = None
            elif record.write is not None:
                self._suspects[key] = None
        if self._held:
            stored = to_json_lines([record.data for record in self._held.values()])
            self._engine._core.apply(stored, True, at)

    def without_repeats(self, events: Iterable[Event]) -> list[Event]:
        """Return events without those of the Workloads that were put back, which come each time."""
        return [event for event in events if (event.namespace, event.name) not in self._held]

    def note_open(self) -> None:
        """Let the engine take these Workloads as stored once they are written."""
        for record in self._held.values():
            if record.write is not None:
                record.is_ahead = True

    @staticmethod
    def _is_kept(record: WorkloadRecord) -> bool:
        holds = conditions_that_hold(record.data)
        return "QuotaReserved" in holds and "Finished" not in holds
