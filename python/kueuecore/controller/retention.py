"""Deletes finished Workloads after their retention, as Kueue's workload controller does (rules/07 §9)."""

from __future__ import annotations

from heapq import heappop, heappush

from kueuecore._conditions import transition_time
from kueuecore._json import JsonObject, list_at, text_at
from kueuecore.checks import WorkloadKey
from kueuecore.configuration import Configuration
from kueuecore.controller.open_writes import OpenWrites
from kueuecore.controller.sent_writes import SentWrites
from kueuecore.controller.side_controllers import SideController
from kueuecore.controller.versions import Key
from kueuecore.controller.workload_records import WorkloadRecords
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.decisions import Event
from kueuecore.jobs.workload_builder import RESOURCE_IN_USE
from kueuecore.times import duration_ns
from kueuecore.writes import Answer, Verb, Write, reference

__all__ = ["Retention", "retention_ns"]


def retention_ns(configuration: Configuration) -> int | None:
    """Return how long finished Workloads are kept, in nanoseconds; `None`: forever."""
    after = text_at(configuration.to_dict(), "objectRetentionPolicies", "workloads", "afterFinished")
    return duration_ns(after) if after else None


class Retention(SideController):
    """The finished Workloads, and when each is to be deleted.

    Args:
        configuration: Sets how long they are kept.
        workloads: The Workloads as they are stored.
        writes: Makes the writes of Workloads, and takes the events.
    """

    def __init__(self, configuration: Configuration, workloads: WorkloadRecords, writes: OpenWrites) -> None:
        self._after_ns = retention_ns(configuration)
        self._workloads = workloads
        self._writes = writes
        self._due: dict[WorkloadKey, int] = {}
        # The same, sorted by time, including stale entries.
        self._times: list[tuple[int, WorkloadKey]] = []
        # Those whose retention has passed.
        self._ripe: dict[WorkloadKey, None] = {}
        self._sent = SentWrites()

    def note(self, key: Key, manifest: JsonObject | None, at: int) -> None:
        """Take in the stored version of an object; `None` if it was deleted."""
        if key[0] == "Workload" and self._after_ns is not None:
            self._note(key[1:], manifest, self._after_ns)

    def _note(self, key: WorkloadKey, manifest: JsonObject | None, after_ns: int) -> None:
        finished = None if manifest is None else conditions_that_hold(manifest).get("Finished")
        # A Workload that is already being deleted needs no help, unless the finalizer blocks it.
        is_done = manifest is not None and _is_going(manifest) and not _has_finalizer(manifest)
        if finished is None or is_done:
            self._due.pop(key, None)
            self._ripe.pop(key, None)
            self._sent.forget(("Workload", *key))
            return
        due = transition_time(finished) + after_ns
        if self._due.get(key) != due:
            self._due[key] = due
            heappush(self._times, (due, key))

    def take_writes(self, at: int) -> list[Write]:
        """Return the writes that are due: the finalizer is removed first, then the Workload is deleted."""
        writes: list[Write] = []
        while self._times and self._times[0][0] <= at:
            due, key = heappop(self._times)
            if self._due.get(key) == due:
                self._ripe[key] = None
        for key in list(self._ripe):
            record = self._workloads.get(key)
            if record is None or not self._workloads.is_settled(key):
                continue
            stored, ref = record.data, ("Workload", *key)
            if _has_finalizer(stored):
                record.write = self._writes.writer.without_finalizer(stored, RESOURCE_IN_USE)
                writes.append(record.write)
            elif self._sent.may_send(ref, stored, at):
                if not self._sent.has(ref):
                    self._writes.hold_loose(Event("Normal", "Deleted", *key, _MESSAGE))
                self._sent.send(ref, stored, at)
                writes.append(Write(Verb.DELETE, reference(stored), workload=key))
        return writes

    def refused(self, write: Write, answer: Answer, *, at: int) -> bool:
        """Retry a refused deletion after a pause."""
        ref = write.object
        # Variants are deleted for their parents.
        is_own = ref.kind == "Workload" and write.workload == (ref.namespace, ref.name)
        if is_own:
            self._sent.refuse(("Workload", *write.workload), at)
        return is_own

    def next_wake(self) -> int | None:
        """Return when the next Workload is due; `None` if none is."""
        while self._times and self._due.get(self._times[0][1]) != self._times[0][0]:
            heappop(self._times)
        times = [
            self._sent.next_time(("Workload", *key), record.data)
            for key in self._ripe
            if (record := self._workloads.get(key)) is not None and record.write is None
        ]
        times += (due for due, _ in self._times[:1])
        return min(times, default=None)


_MESSAGE = "Deleted finished workload due to elapsed retention"


def _has_finalizer(manifest: JsonObject) -> bool:
    return RESOURCE_IN_USE in list_at(manifest, "metadata", "finalizers")


def _is_going(manifest: JsonObject) -> bool:
    return bool(text_at(manifest, "metadata", "deletionTimestamp"))
