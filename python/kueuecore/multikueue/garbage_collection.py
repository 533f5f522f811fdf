"""Removes from workers what no longer has a counterpart on the manager (rules/06 §4.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from kueuecore._json import JsonObject, text_at
from kueuecore.multikueue.adapters import Adapter, gvk_text, is_owned, owner_of, prebuilt_name
from kueuecore.multikueue.commands import MANAGER
from kueuecore.multikueue.connections import Connection
from kueuecore.multikueue.object_store import ObjectStore
from kueuecore.multikueue.settings import MultiKueueSettings
from kueuecore.multikueue.workload_group import delete
from kueuecore.writes import Write

__all__ = ["GarbageCollection"]

_Seen: TypeAlias = tuple[dict[str, tuple[ObjectStore, int]], frozenset[str]]


class GarbageCollection:
    """Looks for garbage at regular intervals.

    Args:
        stores: The objects seen, by cluster.
        connections: The connections, by cluster; nothing is collected on clusters that are not connected.
        adapters: Adapters by group, version and kind.
        settings: The settings, for origin and interval.
    """

    def __init__(
        self,
        stores: Mapping[str, ObjectStore],
        connections: Mapping[str, Connection],
        adapters: Mapping[str, Adapter],
        settings: MultiKueueSettings,
    ) -> None:
        self._stores = stores
        self._connections = connections
        self._adapters = adapters
        self._settings = settings
        self._next: int | None = None
        # Copies, by cluster and UID, whose jobs are being deleted.
        self._without_jobs_soon: set[tuple[str, str]] = set()
        # What was there when a look found nothing: until it changes, another look finds nothing either.
        self._clean: _Seen | None = None

    @property
    def next(self) -> int | None:
        """Return when to look again; 0: at once; None: no first look yet, or nothing has changed since the last."""
        if self._found(is_due=False)[0]:
            return 0
        return None if self._clean is not None and self._clean == self._seen() else self._next

    def commands(self, now: int) -> list[Write]:
        """Return what to delete: at each interval the jobs, and each copy once none of its jobs is seen any more.

        If a copy were deleted first and the deletion of its job got lost, nothing would lead to that job any more.

        Args:
            now: The time. The first interval begins with the first call.
        """
        interval_ns = self._settings.gc_interval_ns
        if not interval_ns:
            return []
        if self._clean is not None and self._next is not None:
            if self._next < now:
                # Looks that would find nothing are skipped; the rhythm of intervals stays.
                self._next += (now - self._next + interval_ns - 1) // interval_ns * interval_ns
            if self._clean != self._seen():
                self._clean = None
        is_due = self._next is not None and self._next <= now
        if self._next is None or is_due:
            self._next = now + interval_ns
        commands, self._without_jobs_soon = self._found(is_due=is_due)
        if is_due and not commands and not self._without_jobs_soon:
            self._clean = self._seen()
        return commands

    def _seen(self) -> _Seen:
        """Return what a look depends on: the stores with their change counts, and which workers are connected."""
        stores = {name: (store, store.n_changes) for name, store in self._stores.items()}
        return stores, frozenset(name for name, connection in self._connections.items() if connection.is_connected)

    def _found(self, *, is_due: bool) -> tuple[list[Write], set[tuple[str, str]]]:
        """Return what to delete, and the copies that wait for their jobs; between looks only considers such copies."""
        commands: list[Write] = []
        left: set[tuple[str, str]] = set()
        if not is_due and not self._without_jobs_soon:
            return commands, left
        for cluster in sorted(cluster for cluster, connection in self._connections.items() if connection.is_connected):
            for copy in self._copies_on(cluster):
                key = (cluster, text_at(copy, "metadata", "uid"))
                if not is_due and key not in self._without_jobs_soon:
                    continue
                jobs = [job for job in self._jobs_of(copy, cluster) if is_owned(job, self._settings.origin)]
                if jobs:
                    left.add(key)
                    commands += [delete(cluster, job) for job in jobs] if is_due else []
                elif not text_at(copy, "metadata", "deletionTimestamp"):
                    commands.append(delete(cluster, copy))
        return commands, left

    def _copies_on(self, cluster: str) -> Iterator[JsonObject]:
        """Yield the Workloads on a worker that are ours and whose original is missing or being deleted."""
        for copy in self._stores[cluster].of_kind("Workload"):
            namespace, name = text_at(copy, "metadata", "namespace"), text_at(copy, "metadata", "name")
            original = self._stores[MANAGER].get("Workload", name, namespace=namespace)
            is_needed = original is not None and not text_at(original, "metadata", "deletionTimestamp")
            if not is_needed and is_owned(copy, self._settings.origin):
                yield copy

    def _jobs_of(self, copy: JsonObject, cluster: str) -> Iterator[JsonObject]:
        """Yield the job that controls a copy; if nothing controls it, as with groups of pods, all jobs that name it."""
        store = self._stores[cluster]
        namespace, owner = text_at(copy, "metadata", "namespace"), owner_of(copy)
        if owner is not None and owner.get("controller") is True:
            adapter = self._adapters.get(gvk_text(text_at(owner, "apiVersion"), text_at(owner, "kind")))
            job = store.get(adapter.kind, text_at(owner, "name"), namespace=namespace) if adapter else None
            yield from () if job is None else (job,)
            return
        members = (
            other for adapter in self._adapters.values() if adapter.has_members for other in store.of_kind(adapter.kind)
        )
        for job in members:
            is_here = text_at(job, "metadata", "namespace") == namespace
            if is_here and prebuilt_name(job, self._settings) == text_at(copy, "metadata", "name"):
                yield job
