"""Handles parents and variants in virtual time, where decisions take effect at once (rules/09 §4.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.checks import WorkloadKey
from kueuecore.concurrent_admission import (
    PARENT_LABEL,
    FamilyIndex,
    becomes_parent,
    creation_event,
    deletion_event,
    flavor_of,
    flavors_of,
    is_parent,
    reconcile_parent,
    workload_key,
)
from kueuecore.decisions import Event
from kueuecore.engine import Engine
from kueuecore.errors import ObjectRef, UnknownObjectError
from kueuecore.simulation.stored_objects import Stored

__all__ = ["FamilyChanges", "VirtualFamilies"]


@dataclass(frozen=True, slots=True)
class FamilyChanges:
    """The changes to make now.

    Args:
        puts: Workloads to create or change.
        deletes: Variants to delete.
        events: The events to record.
    """

    puts: tuple[JsonObject, ...] = ()
    deletes: tuple[ObjectRef, ...] = ()
    events: tuple[Event, ...] = ()


class VirtualFamilies:
    """Makes variants of parents and keeps them in sync. With the gate ConcurrentAdmission off it does nothing.

    Args:
        engine: The engine with the statuses of Workloads.
        stored: The Workloads.
    """

    def __init__(self, engine: Engine, stored: Stored) -> None:
        self.is_on = engine.configuration.is_enabled("ConcurrentAdmission")
        self._engine = engine
        self._stored = stored
        self._index = FamilyIndex()

    def observe(self, manifest: JsonObject) -> None:
        """Take note of a new or changed object."""
        if self.is_on:
            self._index.observe(manifest)

    def forget(self, ref: ObjectRef) -> tuple[ObjectRef, ...]:
        """Take note that an object is gone; return its variants, which the garbage collector would delete."""
        key = ref.namespace, ref.name
        orphans = self._index.variants_of(key) if ref.kind == "Workload" else ()
        self._index.forget(ref.kind, key)
        return tuple(ObjectRef("Workload", name, namespace) for namespace, name in orphans)

    def touch(self, keys: Iterable[WorkloadKey]) -> None:
        """Take note that Workloads have changed."""
        for key in keys if self.is_on else ():
            self._index.touch(key)

    @property
    def has_open(self) -> bool:
        """Whether anything is due now."""
        return self._index.has_open(lambda _: True)

    def next_time(self) -> int | None:
        """Return when the next gate opens by time alone."""
        return self._index.next_time()

    def take_due(self, now: int) -> list[WorkloadKey]:
        """Take the Workloads that are due now."""
        return self._index.take_due(now, lambda _: True)

    def review(self, key: WorkloadKey, now: int) -> FamilyChanges:
        """Decide what changes for a Workload and its variants, if it is a parent."""
        queue, stored = self._index.cluster_queue_of(key), self._workload(key)
        if queue is None or stored is None:
            return FamilyChanges()
        if becomes_parent(stored, queue):
            metadata = object_at(stored, "metadata")
            labels: JsonObject = {**object_at(metadata, "labels"), PARENT_LABEL: "true"}
            return FamilyChanges(puts=({**stored, "metadata": {**metadata, "labels": labels}},))
        if not is_parent(stored):
            return FamilyChanges()
        parent = _with_uid(stored, "/".join(key))
        variants = [it for key in self._index.variants_of(key) if (it := self._workload(key)) is not None]
        review = reconcile_parent(parent, variants, queue, now=now, configuration=self._engine.configuration)
        changed = (
            {**manifest, "metadata": stored["metadata"]} if workload_key(manifest) == key else manifest
            for manifest in review.changed
        )
        if review.again_at is not None:
            self._index.look_at(key, review.again_at)
        places = {flavor: place for place, flavor in enumerate(flavors_of(queue))}
        # Among variants of the same age the first UID is tried first: the preferred one.
        creates = (
            _with_uid(create, f"{'/'.join(key)}/{places[flavor_of(create)]:02}/{flavor_of(create)}")
            for create in review.creates
        )
        return FamilyChanges(
            puts=(*changed, *creates),
            deletes=tuple(_ref(delete) for delete in review.deletes),
            events=(
                *map(creation_event, review.creates),
                *map(deletion_event, review.deletes),
                *review.events,
            ),
        )

    def _workload(self, key: WorkloadKey) -> JsonObject | None:
        namespace, name = key
        try:
            return self._stored.workload(self._engine.workload(name, namespace=namespace))
        except UnknownObjectError:
            return None


def _with_uid(workload: JsonObject, uid: str) -> JsonObject:
    """Give a variant the UID that distinguishes siblings; in virtual time no server does."""
    metadata = object_at(workload, "metadata")
    return {**workload, "metadata": {**metadata, "uid": text_at(metadata, "uid") or uid}}


def _ref(workload: JsonObject) -> ObjectRef:
    namespace, name = workload_key(workload)
    return ObjectRef("Workload", name, namespace)
