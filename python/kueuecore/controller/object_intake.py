"""Passes objects on to the engine and to all who follow them; outdated versions change nothing."""

from __future__ import annotations

from collections.abc import Sequence

from kueuecore._json import JsonObject
from kueuecore.controller.check_reviews import CheckReviews
from kueuecore.controller.estimates import is_estimate
from kueuecore.controller.idle_cycles import IdleCycles
from kueuecore.controller.metrics import Metrics
from kueuecore.controller.object_store import ObjectStore
from kueuecore.controller.queue_statuses import is_answer
from kueuecore.controller.side_controllers import SideController
from kueuecore.controller.versions import Key, Version, key_of
from kueuecore.controller.watched_kinds import SOMETIMES_WATCHED, WATCHED
from kueuecore.controller.workload_records import WorkloadRecords
from kueuecore.engine import Engine
from kueuecore.errors import ObjectRef
from kueuecore.manifests import to_json_lines
from kueuecore.object_batch import Batch

__all__ = ["ObjectIntake"]

_OF_CLUSTER = frozenset({"Node", "Pod"})


class ObjectIntake:
    """Takes in the objects of a cluster as a controller sees them.

    Args:
        engine: Receives the objects of the store's own kinds.
        store: Keeps all objects.
        workloads: Receives the Workloads.
        check_reviews: Receives what check controllers watch.
        idle_cycles: Reset by each change.
        sides: Receive all objects.
        metrics: Receives the configuration, and all objects.
    """

    def __init__(
        self,
        engine: Engine,
        store: ObjectStore,
        workloads: WorkloadRecords,
        check_reviews: CheckReviews,
        idle_cycles: IdleCycles,
        sides: Sequence[SideController],
        metrics: Metrics | None,
    ) -> None:
        self._engine = engine
        self._workloads = workloads
        self._check_reviews = check_reviews
        self._idle_cycles = idle_cycles
        self._sides = sides
        self._metrics = metrics
        if metrics is not None:
            metrics.configure(engine.configuration)
        self.store = store
        self.versions = store.versions
        self.kinds = store.own_kinds
        # Whether anything arrived since the last turn that may have to be reconciled.
        self.has_news = False

    def observe(
        self, happened: object, manifest: JsonObject, at: int, *, data: bytes = b"", is_answer: bool = False
    ) -> bool:
        """Take in a checked watch event, or an answer ahead of its watch event; see `Controller.observe`."""
        key, version = key_of(manifest), Version.of(manifest)
        is_there = happened not in ("BOOKMARK", "DELETED")
        if is_there:
            self.store.check(manifest)
        if not self.store.is_stored(key, manifest):
            return False
        if is_there and self.versions.is_news(key, version):
            self._observe_news(key, version, manifest, at, data)
            is_news = True
        else:
            is_news = happened == "DELETED" and self._observe_deletion(key, version, at)
        if not is_answer:
            self.store.note_watched(key[0], version, at)
        return is_news

    def _observe_news(self, key: Key, version: Version, manifest: JsonObject, at: int, data: bytes) -> None:
        known = self._workloads.get(key[1:]) if key[0] == "Workload" else None
        seen = self.versions[key]
        is_other = known is not None and seen is not None and not version.is_same_object(seen)
        if known is not None and (is_other or known.write is not None):
            # Handled later, or after something else.
            self._engine._check(manifest, now=at, trusted=True)
        if is_other and seen is not None:
            # Its deletion was missed.
            self.delete(key, seen, at)
            known = None
        if known is not None and known.write is not None:
            self.store.put(key, version, manifest, at)
            known.newer = manifest
        else:
            self.take(key, version, manifest, at, data=data)

    def take(
        self, key: Key, version: Version, manifest: JsonObject, at: int, *, data: bytes = b"", is_echo: bool = False
    ) -> None:
        """Take in the current version of an object.

        Args:
            key: Kind, namespace and name.
            version: Its version.
            manifest: The object.
            at: The time, in nanoseconds since 1970.
            data: The object as JSON; empty: it is written here.
            is_echo: Whether this is our own write, unchanged.
        """
        if key[0] in self.kinds:
            self._apply(key, manifest, at, data, is_echo=is_echo)
        self.store.put(key, version, manifest, at)
        if key[0] in self.kinds:
            self._tell(key, manifest, at)

    def _apply(self, key: Key, manifest: JsonObject, at: int, data: bytes, *, is_echo: bool) -> None:
        """Pass an object on to the engine, which may refuse it, then to the check controllers."""
        is_workload = key[0] == "Workload"
        data = data or to_json_lines([manifest])
        if self._check_reviews.reads(key[0]):
            # A check controller may refuse it, and must not see what the engine refuses.
            self._engine._check(data, now=at, trusted=True)
            self._check_reviews.observe(manifest, now=at)
        n_changes = self._engine._core._n_cluster_changes() if key[0] in _OF_CLUSTER else None
        # An API server has warned of unknown fields already.
        Batch(data).given_to(self._engine._core.apply, True, at)
        if is_workload:
            self._check_reviews.observe(manifest, now=at)
        # Nodes send heartbeats.
        before = self.store.get(key)
        is_heartbeat = n_changes is not None and n_changes == self._engine._core._n_cluster_changes()
        if not is_heartbeat and not is_answer(manifest, before) and not is_estimate(manifest, before):
            self.has_news |= not is_echo
            self._idle_cycles.end()
            if key[0] == "ClusterQueue":
                self._idle_cycles.flavors_changed()
        if is_workload:
            self._workloads.put(key[1:], manifest)

    def _observe_deletion(self, key: Key, version: Version, at: int) -> bool:
        """Take in a deletion event; return whether it was new."""
        if not self.versions.is_gone(key, version):
            if self.versions[key] is None:
                self.versions.drop(key, version)
            return False
        self.delete(key, version, at)
        return True

    def delete(self, key: Key, version: Version, at: int) -> None:
        """Remove an object that was deleted."""
        if key[0] not in self.kinds:
            self.store.drop(key, version, at)
            return
        # A check controller may raise: nothing has changed by then.
        self._check_reviews.forget(ObjectRef(key[0], key[2], key[1]), now=at)
        self._idle_cycles.end()
        self.has_news = True
        if key[0] == "Workload":
            self._workloads.drop(key[1:])
        self._tell(key, None, at)
        if key[0] in WATCHED or key[0] in SOMETIMES_WATCHED:
            self._engine.delete(key[0], key[2], namespace=key[1], now=at)
        self.store.drop(key, version, at)

    def _tell(self, key: Key, manifest: JsonObject | None, at: int) -> None:
        """Pass on an object as the API server has it now; `None` if it was deleted."""
        if self._metrics is not None:
            self._metrics.note(key, manifest)
        for side in self._sides:
            side.note(key, manifest, at)
