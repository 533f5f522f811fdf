"""Passes objects on to the engine and to all who follow them; outdated versions change nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kueuecore._json import JsonObject
from kueuecore.controller.check_reviews import CheckReviews
from kueuecore.controller.idle_cycles import IdleCycles
from kueuecore.controller.metrics import Metrics
from kueuecore.controller.queue_statuses import is_answer
from kueuecore.controller.side_controllers import SideController
from kueuecore.controller.versions import Key, Version, Versions, key_of
from kueuecore.controller.watched_kinds import SOMETIMES_WATCHED, WATCHED, is_of_another_group
from kueuecore.controller.workload_records import WorkloadRecords
from kueuecore.engine import Engine
from kueuecore.errors import ObjectRef
from kueuecore.manifests import to_json_lines

__all__ = ["ObjectIntake"]

_OF_CLUSTER = frozenset({"Node", "Pod"})


class ObjectIntake:
    """Takes in the objects of a cluster as a controller sees them.

    Args:
        engine: Receives the objects.
        workloads: Receives the Workloads.
        check_reviews: Receives what check controllers watch.
        idle_cycles: Reset by each change.
        sides: Receive all objects.
        metrics: Receives the configuration, and all objects.
    """

    def __init__(
        self,
        engine: Engine,
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
        # All watched kinds: apiVersion and plural by kind.
        self.kinds: Mapping[str, tuple[str, str]] = {**check_reviews.kinds, **WATCHED, **SOMETIMES_WATCHED}
        # Whether anything arrived since the last turn that may have to be reconciled.
        self.has_news = False
        self.versions = Versions()
        # All objects except Workloads, kept for saving.
        self.others: dict[Key, JsonObject] = {}

    def observe(
        self, happened: object, manifest: JsonObject, at: int, *, data: bytes = b"", is_answer: bool = False
    ) -> bool:
        """Take in a checked watch event, or an answer ahead of its watch event; see `Controller.observe`."""
        key, version = key_of(manifest), Version.of(manifest)
        if key[0] not in self.kinds or is_of_another_group(manifest, self.kinds):
            return False
        if happened in ("BOOKMARK", "DELETED") or not self.versions.is_news(key, version):
            if not is_answer:
                self.versions.note_watched(key[0], version)
            return happened == "DELETED" and self._observe_deletion(key, version, at)
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
            if known.newer is None or version.is_newer_than(Version.of(known.newer)):
                known.newer = manifest
        else:
            self.take(key, version, manifest, at, data=data)
        if not is_answer:
            self.versions.note_watched(key[0], version)
        return True

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
        is_workload = key[0] == "Workload"
        data = data or to_json_lines([manifest])
        if self._check_reviews.reads(key[0]):
            # A check controller may refuse it, and must not see what the engine refuses.
            self._engine._check(data, now=at, trusted=True)
            self._check_reviews.observe(manifest, now=at)
        n_changes = self._engine._core._n_cluster_changes() if key[0] in _OF_CLUSTER else None
        self._engine.apply(data, now=at, trusted=True)
        if is_workload:
            self._check_reviews.observe(manifest, now=at)
        self.versions.put(key, version)
        # Nodes send heartbeats.
        is_heartbeat = n_changes is not None and n_changes == self._engine._core._n_cluster_changes()
        if not is_heartbeat and not is_answer(manifest, self.others.get(key)):
            self.has_news |= not is_echo
            self._idle_cycles.end()
            if key[0] == "ClusterQueue":
                self._idle_cycles.flavors_changed()
        if is_workload:
            self._workloads.put(key[1:], manifest)
        else:
            self.others[key] = manifest
        self._tell(key, manifest, at)

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
        # A check controller may raise: nothing has changed by then.
        self._check_reviews.forget(ObjectRef(key[0], key[2], key[1]), now=at)
        seen = self.versions[key]
        self.versions.drop(key, Version(seen.uid if seen is not None else version.uid, version.text))
        self._idle_cycles.end()
        self.has_news = True
        if key[0] == "Workload":
            self._workloads.drop(key[1:])
        self.others.pop(key, None)
        self._tell(key, None, at)
        if key[0] in WATCHED or key[0] in SOMETIMES_WATCHED:
            self._engine.delete(key[0], key[2], namespace=key[1], now=at)

    def _tell(self, key: Key, manifest: JsonObject | None, at: int) -> None:
        """Pass on an object as the API server has it now; `None` if it was deleted."""
        if self._metrics is not None:
            self._metrics.note(key, manifest)
        for side in self._sides:
            side.note(key, manifest, at)
