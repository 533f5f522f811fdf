"""Reconciles parents and variants for a controller: which are due, and what to write (rules/09 §4.3)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from kueuecore._json import JsonObject
from kueuecore._text import logged
from kueuecore.checks import WorkloadKey
from kueuecore.concurrent_admission import (
    PARENT_LABEL,
    FamilyIndex,
    FamilyReview,
    becomes_parent,
    belongs_to,
    creation_event,
    deletion_event,
    is_parent,
    reconcile_parent,
    workload_key,
)
from kueuecore.configuration import Configuration
from kueuecore.controller.idle_cycles import IdleCycles
from kueuecore.controller.open_writes import OpenWrites
from kueuecore.controller.side_controllers import SideController
from kueuecore.controller.versions import Key
from kueuecore.controller.workload_records import WorkloadRecords
from kueuecore.decisions import Event
from kueuecore.times import backoff_ns
from kueuecore.writes import Answer, Verb, Write, reference

__all__ = ["VariantFamilies"]

_LOGGER = logging.getLogger("kueuecore.controller")
_FIRST_PAUSE_NS = 1_000_000_000
_MAX_PAUSE_NS = 1_000 * _FIRST_PAUSE_NS


class VariantFamilies(SideController):
    """Creates the variants of parents, and keeps both in sync. With the gate ConcurrentAdmission off it does nothing.

    Args:
        configuration: Has the feature gates.
        workloads: The Workloads as they are stored.
        writes: Makes the writes.
        idle_cycles: Reset by a refused write.
    """

    def __init__(
        self, configuration: Configuration, workloads: WorkloadRecords, writes: OpenWrites, idle_cycles: IdleCycles
    ) -> None:
        self._is_on = configuration.is_enabled("ConcurrentAdmission")
        self._configuration = configuration
        self._workloads = workloads
        self._writes = writes
        self._idle_cycles = idle_cycles
        self._index = FamilyIndex()
        self._objects: list[Write] = []
        # Variants that are being created and deleted, and the events that follow.
        self._under_way: dict[WorkloadKey, tuple[Verb, Event]] = {}
        # How often in a row a variant was refused, by parent.
        self._n_refused: dict[WorkloadKey, int] = {}

    # Watching.

    def note(self, key: Key, manifest: JsonObject | None, at: int) -> None:
        """Take in the stored version of an object; `None` if it was deleted."""
        if not self._is_on:
            return
        if manifest is not None:
            self._index.observe(manifest)
        else:
            self._index.forget(key[0], key[1:])
        if key[0] == "Workload":
            if manifest is None:
                self._n_refused.pop(key[1:], None)
            self._note_done(key[1:], Verb.DELETE if manifest is None else Verb.CREATE)

    def note_open(self, writes: Iterable[Write]) -> None:
        """Make the Workloads of open writes due once they are answered."""
        for write in writes if self._is_on else ():
            self._index.touch((write.namespace, write.name))

    # Deciding.

    def review_settled(self, at: int) -> tuple[Write, ...]:
        """Reconcile the parents that are due and, like all their variants, have no open write.

        Returns:
            The writes. The engine learns of them once they are accepted: quota that a refused write leaves in use must
            not be given away. Variants to create and delete are in `take_writes`.
        """
        writes: list[Write] = []
        for key in self._index.take_due(at, self._is_settled):
            record, queue = self._workloads.get(key), self._index.cluster_queue_of(key)
            if record is None or queue is None:
                continue
            if becomes_parent(record.data, queue):
                writes.append(self._writes.open_label(record, PARENT_LABEL))
            elif is_parent(record.data):
                writes += self._review(key, record.data, queue, at)
        return tuple(writes)

    def refused(self, write: Write, answer: Answer, *, at: int) -> bool:
        """Retry a refused creation or deletion of a variant, with growing pauses."""
        parent, ref = write.workload, write.object
        if ref.kind != "Workload" or parent == (ref.namespace, ref.name):
            return False
        _LOGGER.info("%s %s/%s was refused: %s", write.verb, ref.namespace, ref.name, logged(answer.error))
        # The writes after it were left out. If the object exists, a watch will show it.
        for key, (_, event) in list(self._under_way.items()):
            is_known = answer.is_conflict and key == (ref.namespace, ref.name)
            if (event.namespace, event.name) == parent and not is_known:
                del self._under_way[key]
        self._n_refused[parent] = n_refused = self._n_refused.get(parent, 0) + 1
        pause_ns = backoff_ns(n_refused, first_ns=_FIRST_PAUSE_NS, longest_ns=_MAX_PAUSE_NS)
        self._index.look_at(parent, at + pause_ns)
        self._idle_cycles.end()
        return True

    def take_writes(self, at: int) -> list[Write]:
        """Return the variants to create and delete."""
        taken, self._objects = self._objects, []
        return taken

    def next_wake(self) -> int | None:
        """Return when a parent is due, a gate opens or a pause ends; 0: at once."""
        return 0 if self._index.has_open(self._is_settled) else self._index.next_time()

    def _review(self, key: WorkloadKey, parent: JsonObject, queue: JsonObject, at: int) -> Iterator[Write]:
        records = {variant: self._workloads.get(variant) for variant in (key, *self._index.variants_of(key))}
        others = (record.data for record in records.values() if record is not None and record.data is not parent)
        variants = [other for other in others if belongs_to(other, parent)]
        review = reconcile_parent(parent, variants, queue, now=at, configuration=self._configuration)
        self._note_objects(key, review)
        if review.again_at is not None:
            self._index.look_at(key, review.again_at)
        for changed in review.changed:
            record = records[workload_key(changed)]
            assert record is not None
            about = [event for event in review.events if (event.namespace, event.name) == workload_key(changed)]
            yield self._writes.open_change(record, changed, about)

    def _note_objects(self, parent: WorkloadKey, review: FamilyReview) -> None:
        wanted = [(Verb.CREATE, create, creation_event(create)) for create in review.creates]
        wanted += [(Verb.DELETE, delete, deletion_event(delete)) for delete in review.deletes]
        for verb, manifest, event in wanted:
            key = workload_key(manifest)
            if self._under_way.get(key, (None,))[0] is not verb:
                self._under_way[key] = verb, event
                named = reference(manifest) if verb is Verb.DELETE else manifest
                self._objects.append(Write(verb, named, workload=parent))

    def _note_done(self, key: WorkloadKey, verb: Verb) -> None:
        """Take in that a variant was created or deleted."""
        done = self._under_way.get(key)
        if done is not None and done[0] is verb:
            del self._under_way[key]
            event = done[1]
            self._n_refused.pop((event.namespace, event.name), None)
            self._workloads.hold([event])

    def _is_settled(self, key: WorkloadKey) -> bool:
        """Return whether a Workload and its variants are as stored, or it no longer exists."""
        family = (key, *self._index.variants_of(key))
        return all(self._workloads.get(variant) is None or self._workloads.is_settled(variant) for variant in family)
