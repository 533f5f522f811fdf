"""Reconciles parents and variants for a controller: which are due, and what to write (rules/09 §4.3)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from kueuecore._json import JsonObject, text_at
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
from kueuecore.controller.open_writes import OpenWrites
from kueuecore.controller.versions import Key
from kueuecore.controller.workload_records import WorkloadRecords
from kueuecore.decisions import Event
from kueuecore.times import backoff_ns
from kueuecore.writes import Answer, Verb, Write, reference

__all__ = ["VariantFamilies"]

_LOGGER = logging.getLogger("kueuecore.controller")
_FIRST_PAUSE_NS = 1_000_000_000
_LONGEST_PAUSE_NS = 1_000 * _FIRST_PAUSE_NS


class VariantFamilies:
    """Creates the variants of parents, and keeps both in sync. With the gate ConcurrentAdmission off it does nothing.

    Args:
        configuration: Has the feature gates.
        workloads: The Workloads as they are stored.
        writes: Makes the writes.
    """

    def __init__(self, configuration: Configuration, workloads: WorkloadRecords, writes: OpenWrites) -> None:
        self._is_on = configuration.is_enabled("ConcurrentAdmission")
        self._configuration = configuration
        self._workloads = workloads
        self._writes = writes
        self._index = FamilyIndex()
        self._objects: list[Write] = []
        # Variants that are being created and deleted, and the events that follow.
        self._under_way: dict[WorkloadKey, tuple[Verb, Event]] = {}
        # How often in a row a variant was refused, by parent.
        self._n_refused: dict[WorkloadKey, int] = {}

    # Watching.

    def observe(self, manifest: JsonObject) -> None:
        """Take in the current version of an object."""
        if self._is_on:
            self._index.observe(manifest)
            if text_at(manifest, "kind") == "Workload":
                self._note_done(workload_key(manifest), Verb.CREATE)

    def forget(self, key: Key) -> None:
        """Take in a deletion."""
        kind, namespace, name = key
        self._index.forget(kind, (namespace, name))
        if kind == "Workload":
            self._n_refused.pop((namespace, name), None)
            self._note_done((namespace, name), Verb.DELETE)

    def note_open(self, writes: Iterable[Write]) -> None:
        """Make the Workloads of open writes due once they are answered."""
        for write in writes if self._is_on else ():
            self._index.touch((write.namespace, write.name))

    # Deciding.

    def review_settled(self, at: int) -> tuple[Write, ...]:
        """Reconcile the parents that are due and, like all their variants, have no open write.

        Returns:
            The writes. The engine learns of them once they are accepted: quota that a refused write leaves in use must
            not be given away. Variants to create and delete are in `take_objects`.
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

    def refused(self, write: Write, answer: Answer, *, now: int) -> None:
        """Retry a refused creation or deletion of a variant, with growing pauses."""
        parent, ref = write.workload, write.object
        _LOGGER.info("%s %s/%s was refused: %s", write.verb, ref.namespace, ref.name, answer.error)
        # The writes after it were left out. If the object exists, a watch will show it.
        for key, (_, event) in list(self._under_way.items()):
            is_known = answer.is_conflict and key == (ref.namespace, ref.name)
            if (event.namespace, event.name) == parent and not is_known:
                del self._under_way[key]
        self._n_refused[parent] = n_refused = self._n_refused.get(parent, 0) + 1
        pause_ns = backoff_ns(n_refused, first_ns=_FIRST_PAUSE_NS, longest_ns=_LONGEST_PAUSE_NS)
        self._index.look_at(parent, now + pause_ns)

    def take_objects(self) -> tuple[Write, ...]:
        """Take the variants to create and delete."""
        taken, self._objects = tuple(self._objects), []
        return taken

    @property
    def has_due(self) -> bool:
        """Whether a parent is due now."""
        return self._index.has_open(self._is_settled)

    def next_time(self) -> int | None:
        """Return when a gate opens or a pause ends by time alone."""
        return self._index.next_time()

    def _review(self, key: WorkloadKey, parent: JsonObject, queue: JsonObject, at: int) -> Iterator[Write]:
        records = {it: self._workloads.get(it) for it in (key, *self._index.variants_of(key))}
        others = (it.data for it in records.values() if it is not None and it.data is not parent)
        variants = [it for it in others if belongs_to(it, parent)]
        review = reconcile_parent(parent, variants, queue, now=at, configuration=self._configuration)
        self._note_objects(key, review)
        if review.again_at is not None:
            self._index.look_at(key, review.again_at)
        for changed in review.changed:
            record = records[workload_key(changed)]
            assert record is not None
            about = [it for it in review.events if (it.namespace, it.name) == workload_key(changed)]
            yield self._writes.open_change(record, changed, about)

    def _note_objects(self, parent: WorkloadKey, review: FamilyReview) -> None:
        wanted = [(Verb.CREATE, it, creation_event(it)) for it in review.creates]
        wanted += [(Verb.DELETE, it, deletion_event(it)) for it in review.deletes]
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
        return all(self._workloads.get(it) is None or self._workloads.is_settled(it) for it in family)
