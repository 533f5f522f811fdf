"""Applies answers to writes of Workloads to engine and records: accepted writes count, refused ones do not."""

from __future__ import annotations

import logging

from kueuecore._json import JsonObject
from kueuecore._patches import patched
from kueuecore.checks import WorkloadKey
from kueuecore.controller import validation
from kueuecore.controller.idle_cycles import IdleCycles
from kueuecore.controller.issued_preemptions import IssuedPreemptions
from kueuecore.controller.metrics import Metrics
from kueuecore.controller.object_intake import ObjectIntake
from kueuecore.controller.open_writes import OpenWrites
from kueuecore.controller.versions import Version, newest_of
from kueuecore.controller.workload_records import WorkloadRecord, WorkloadRecords
from kueuecore.engine import Engine
from kueuecore.jobs.job_report import NOTHING
from kueuecore.states import Stage
from kueuecore.writes import Answer, Write

__all__ = ["WriteAnswers"]

_LOGGER = logging.getLogger("kueuecore.controller")


class WriteAnswers:
    """Takes in the outcomes of writes.

    Args:
        engine: Keeps accepted writes, and forgets refused ones.
        workloads: The Workloads, with their open writes.
        writes: Opens further writes.
        objects: Receives the Workloads as stored afterwards.
        idle_cycles: Reset by each answer.
        metrics: Counts accepted writes.
    """

    def __init__(
        self,
        engine: Engine,
        workloads: WorkloadRecords,
        writes: OpenWrites,
        objects: ObjectIntake,
        idle_cycles: IdleCycles,
        metrics: Metrics | None,
    ) -> None:
        self._engine = engine
        self._workloads = workloads
        self._writes = writes
        self._objects = objects
        self._idle_cycles = idle_cycles
        self._metrics = metrics
        self.preemptions = IssuedPreemptions(engine, workloads)
        # Whether a refused write would be overwritten by the next cycle.
        self._looks_again = False

    def done(self, write: Write, answer: Answer, at: int) -> bool:
        """Take in how a write went; see `Controller.done`."""
        key = write.namespace, write.name
        known = self._workloads.get(key)
        if known is None or known.write is not write:
            return False
        if answer.is_accepted:
            self._confirm(key, known, write, answer.object, at)
        else:
            self._refuse(key, known, write, answer, at)
        return True

    def _confirm(
        self, key: WorkloadKey, known: WorkloadRecord, write: Write, answer: JsonObject | None, at: int
    ) -> None:
        newer, is_ahead = known.newer, known.is_ahead or known.telling != NOTHING
        if answer is None:
            after = patched(known.data, write.manifest)
        else:
            after = validation.confirmed_answer(write.object.key, answer, known.data, self._engine, at)
        if self._metrics is not None:
            self._metrics.count_write(write, known.data, after)
        known.write = known.newer = None
        version = Version.of(after)
        is_overtaken = newer is not None and Version.of(newer).is_newer_than(version)
        if is_ahead or is_overtaken:
            # What the engine has decided since is decided again.
            known.events.clear()
        known.telling, known.is_ahead = NOTHING, False
        self.preemptions.answered(key, is_written=True)
        self._idle_cycles.end()
        if answer is not None:
            self._objects.store.put(("Workload", *key), version, after, at)
        known.data = after
        self._engine.confirm(write.name, namespace=write.namespace)
        self._writes.mark_changed()
        if newer is not None and is_overtaken:
            self._objects.take(("Workload", *key), Version.of(newer), newer, at)
        elif is_ahead or not self._workloads.is_marked(key) or self._writes.is_stored(known):
            self._objects.take(("Workload", *key), version, after, at, is_echo=not is_ahead)

    def _refuse(self, key: WorkloadKey, known: WorkloadRecord, write: Write, answer: Answer, at: int) -> None:
        newest, gone = answer.object, answer.is_gone
        if newest is not None:
            newest = validation.checked_answer("answer", newest, known.data, self._engine, at)
        _LOGGER.info("%s: write %d was refused", write.object.key, write.number)
        stored, newer = known.data, known.newer
        known.write, known.newer, known.is_ahead = None, None, False
        if known.telling != NOTHING:
            self._workloads.tell_again(key)
        known.events.clear()
        self.preemptions.answered(key, is_written=False)
        self._idle_cycles.end()
        self._forget(key, gone=gone, at=at)
        if gone:
            self._objects.delete(("Workload", *key), Version.of(stored), at)
            return
        stored = newest_of(stored, newer, newest)
        seen = Version.of(known.data)
        if not Version.of(stored).is_same_object(seen):
            self._objects.delete(("Workload", *key), seen, at)
        self._objects.take(("Workload", *key), Version.of(stored), stored, at)
        # Kueue's node controller writes its findings by itself, and retries after an error.
        self._looks_again |= self._engine._core._look_at_nodes_again(*key, at)

    def open_failures(self, at: int) -> tuple[Write, ...]:
        """Open the writes that the next cycle would overwrite: failed preemptions, and findings about nodes.

        After a refused write, findings about a node are written without the cycle: a second pass on an older copy
        (rules/08 §11.10) may be refused each time.
        """
        is_told, looks_again = self.preemptions.tell_failures(at), self._looks_again
        self._looks_again = False
        return self._writes.open(at) if is_told or looks_again else ()

    def _forget(self, key: WorkloadKey, *, gone: bool, at: int) -> None:
        """Take back a reservation that the engine holds but that was not written."""
        namespace, name = key
        if self._engine.workload(name, namespace=namespace).stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED):
            self._engine.forget(name, namespace=namespace, now=at, gone=gone)
