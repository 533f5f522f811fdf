"""Tracks which Workloads form a family, which ClusterQueue they have, and which parents are due."""

from __future__ import annotations

from collections.abc import Callable

from kueuecore._json import JsonObject, list_at, text_at
from kueuecore.checks import WorkloadKey
from kueuecore.concurrent_admission.variant_objects import parent_of, workload_key

__all__ = ["FamilyIndex"]


class FamilyIndex:
    """An index of the families among all Workloads, and of those that have changed."""

    def __init__(self) -> None:
        # The target of each LocalQueue, and the ClusterQueues.
        self._targets: dict[WorkloadKey, str] = {}
        self._queues: dict[str, JsonObject] = {}
        # The LocalQueues of Workloads other than variants; variants by parent, and parents by variant.
        self._local_queues: dict[WorkloadKey, WorkloadKey] = {}
        self._variants: dict[WorkloadKey, dict[WorkloadKey, None]] = {}
        self._parents: dict[WorkloadKey, WorkloadKey] = {}
        self._open: dict[WorkloadKey, None] = {}
        self._times: dict[WorkloadKey, int] = {}

    def observe(self, manifest: JsonObject) -> None:
        """Take in the current version of an object of any kind."""
        kind, key = text_at(manifest, "kind"), workload_key(manifest)
        if kind == "Workload":
            parent = parent_of(manifest)
            if parent is None:
                self._local_queues[key] = key[0], text_at(manifest, "spec", "queueName")
            else:
                self._parents[key] = parent
                self._variants.setdefault(parent, {})[key] = None
            self._open[parent or key] = None
        elif kind == "LocalQueue":
            target = text_at(manifest, "spec", "clusterQueue")
            if self._targets.get(key) != target:
                self._targets[key] = target
                self._open_all(target)
        elif kind == "ClusterQueue":
            _, name = key
            old, self._queues[name] = self._queues.get(name), manifest
            # Skipped, as quotas and statuses change all the time.
            if old is None or _flavors(old) != _flavors(manifest):
                self._open_all(name)

    def forget(self, kind: str, key: WorkloadKey) -> None:
        """Forget a deleted object."""
        if kind == "LocalQueue":
            self._targets.pop(key, None)
        elif kind == "ClusterQueue":
            self._queues.pop(key[1], None)
        elif kind == "Workload":
            self._local_queues.pop(key, None)
            self._open.pop(key, None)
            self._times.pop(key, None)
            parent = self._parents.pop(key, None)
            if parent is not None:
                self._variants[parent].pop(key)
                self._open[parent] = None
                if not self._variants[parent]:
                    del self._variants[parent]

    def touch(self, key: WorkloadKey) -> None:
        """Note that a Workload has changed."""
        self._open[self._parents.get(key, key)] = None

    def look_at(self, parent: WorkloadKey, time: int) -> None:
        """Make a parent due at a time, in nanoseconds since 1970."""
        self._times[parent] = time

    def take_due(self, now: int, is_ready: Callable[[WorkloadKey], bool]) -> list[WorkloadKey]:
        """Take the possible parents that are due now; those that are not ready stay due."""
        for key in [key for key, time in self._times.items() if time <= now]:
            del self._times[key]
            self._open[key] = None
        due = [key for key in self._open if is_ready(key)]
        for key in due:
            del self._open[key]
        return due

    def has_open(self, is_ready: Callable[[WorkloadKey], bool]) -> bool:
        """Return whether a Workload is due and ready."""
        return any(is_ready(key) for key in self._open)

    def next_time(self) -> int | None:
        """Return when a parent becomes due merely because time passes."""
        return min(self._times.values(), default=None)

    def variants_of(self, parent: WorkloadKey) -> tuple[WorkloadKey, ...]:
        """Return the variants of the parent of this name."""
        return tuple(self._variants.get(parent, ()))

    def cluster_queue_of(self, key: WorkloadKey) -> JsonObject | None:
        """Return the ClusterQueue of a Workload other than a variant, by its LocalQueue; `None`: there is none."""
        target = self._targets.get(self._local_queues.get(key, ("", "")))
        return None if target is None else self._queues.get(target)

    def _open_all(self, cluster_queue: str) -> None:
        """Note that a ClusterQueue, or the set of LocalQueues that point to it, has changed."""
        for key, local_queue in self._local_queues.items():
            if self._targets.get(local_queue) == cluster_queue:
                self._open[key] = None


def _flavors(cluster_queue: JsonObject) -> list[list[str]]:
    """Return the names of the flavors of each resource group. The policy of a ClusterQueue never changes."""
    groups = list_at(cluster_queue, "spec", "resourceGroups")
    return [[text_at(flavor, "name") for flavor in list_at(group, "flavors")] for group in groups]
