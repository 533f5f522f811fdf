"""Keeps objects that others use, by Kueue's finalizer `kueue.x-k8s.io/resource-in-use` (rules/01 §13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.controller.sent_writes import SentWrites
from kueuecore.controller.side_controllers import SideController
from kueuecore.controller.versions import Key
from kueuecore.engine import Engine
from kueuecore.jobs.workload_builder import RESOURCE_IN_USE
from kueuecore.writes import Answer, Verb, Write, patch_of

__all__ = ["IN_USE_KINDS", "InUseFinalizers", "with_finalizer"]

IN_USE_KINDS = frozenset({"AdmissionCheck", "ClusterQueue", "ResourceFlavor", "Topology"})
"""The kinds that get the finalizer, and lose it; Workloads are another matter."""


def with_finalizer(manifest: JsonObject) -> JsonObject:
    """Return an object that has the finalizer, if its kind gets it; the same one otherwise."""
    if text_at(manifest, "kind") not in IN_USE_KINDS or _has_finalizer(manifest):
        return manifest
    return {**manifest, "metadata": {**object_at(manifest, "metadata"), "finalizers": _changed(manifest)}}


class InUseFinalizers(SideController):
    """The ClusterQueues, ResourceFlavors, AdmissionChecks and Topologies, and who uses them.

    Each gets the finalizer, and loses it once it is being deleted and not used: a ClusterQueue by a workload that holds
    quota in it, a flavor or check by a ClusterQueue, a Topology by a flavor.

    Args:
        engine: Knows which workloads hold quota.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # The objects whose finalizer may have to change.
        self._open: dict[Key, JsonObject] = {}
        self._used_by: dict[Key, frozenset[Key]] = {}
        self._n_users: Counter[Key] = Counter()
        self._sent = SentWrites()

    def note(self, key: Key, manifest: JsonObject | None, at: int) -> None:
        """Take in the stored version of an object; `None` if it was deleted."""
        if key[0] not in IN_USE_KINDS:
            return
        self._n_users.subtract(self._used_by.pop(key, ()))
        if manifest is not None and (used := frozenset(_used_by(manifest))):
            self._used_by[key] = used
            self._n_users.update(used)
        self._open.pop(key, None)
        if manifest is not None and _is_deleted(manifest) == _has_finalizer(manifest):
            self._open[key] = manifest
        self._sent.forget(key)

    def take_writes(self, at: int) -> list[Write]:
        """Return the due writes: finalizers to add, and to remove from deleted objects that nothing uses."""
        writes: list[Write] = []
        for key, stored in self._due():
            if self._sent.may_send(key, stored, at):
                self._sent.send(key, stored, at)
                writes.append(Write(Verb.PATCH, patch_of(stored, {"metadata": {"finalizers": _changed(stored)}})))
        return writes

    def refused(self, write: Write, answer: Answer, *, at: int) -> bool:
        """Retry a refused write after a pause, or as soon as a watch shows another version."""
        ref = write.object
        is_own = ref.kind in IN_USE_KINDS and write.verb is Verb.PATCH
        if is_own:
            self._sent.refuse((ref.kind, ref.namespace, ref.name), at)
        return is_own

    def next_wake(self) -> int | None:
        """Return when the next write is due; 0: at once; `None`: none is."""
        return min((self._sent.next_time(key, stored) for key, stored in self._due()), default=None)

    def _due(self) -> list[tuple[Key, JsonObject]]:
        return [(key, stored) for key, stored in self._open.items() if not (_is_deleted(stored) and self._is_used(key))]

    def _is_used(self, key: Key) -> bool:
        if key[0] == "ClusterQueue":
            return bool(self._engine._core.cluster_queue_status(key[2])["reservingWorkloads"])
        return self._n_users[key] > 0


def _used_by(manifest: JsonObject) -> Iterator[Key]:
    """Yield what an object uses."""
    spec = object_at(manifest, "spec")
    if text_at(manifest, "kind") == "ResourceFlavor":
        if name := text_at(spec, "topologyName"):
            yield "Topology", "", name
    elif text_at(manifest, "kind") == "ClusterQueue":
        for group in list_at(spec, "resourceGroups"):
            for flavor in list_at(group, "flavors"):
                yield "ResourceFlavor", "", text_at(flavor, "name")
        for check in list_at(spec, "admissionChecksStrategy", "admissionChecks"):
            yield "AdmissionCheck", "", text_at(check, "name")


def _is_deleted(manifest: JsonObject) -> bool:
    return bool(text_at(manifest, "metadata", "deletionTimestamp"))


def _has_finalizer(manifest: JsonObject) -> bool:
    return RESOURCE_IN_USE in list_at(manifest, "metadata", "finalizers")


def _changed(manifest: JsonObject) -> list[JsonValue]:
    """Return the finalizers of an object with Kueue's; without it if it is being deleted. Those of others stay."""
    others: list[JsonValue] = [row for row in list_at(manifest, "metadata", "finalizers") if row != RESOURCE_IN_USE]
    return others if _is_deleted(manifest) else [*others, RESOURCE_IN_USE]
