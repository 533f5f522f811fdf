"""What is on a worker and has nothing here any more (rules/06 §4.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kueuecore._json import JsonObject, text_at
from kueuecore.multikueue.adapters import Adapter, gvk_text, is_owned, owner_of, prebuilt_name
from kueuecore.multikueue.commands import MANAGER, Delete
from kueuecore.multikueue.connections import Connection
from kueuecore.multikueue.groups import delete
from kueuecore.multikueue.settings import MultiKueueSettings
from kueuecore.multikueue.stores import Store

__all__ = ["Garbage"]


class Garbage:
    """Looks every so often for what can go.

    Args:
        stores: What was seen, by cluster.
        connections: The connections, by cluster; of the others nothing is collected.
        adapters: Adapters by group, version and kind.
        settings: Whose origin and interval count.
    """

    def __init__(
        self,
        stores: Mapping[str, Store],
        connections: Mapping[str, Connection],
        adapters: Mapping[str, Adapter],
        settings: MultiKueueSettings,
    ) -> None:
        self._stores = stores
        self._connections = connections
        self._adapters = adapters
        self._settings = settings
        self.next: int | None = None
        """When to look again; None: nobody has looked yet, or never."""

    def commands(self, now: int) -> list[Delete]:
        """What is to be deleted, if it is time to look; the first interval begins with the first call."""
        if not self._settings.gc_interval_ns or (self.next is not None and self.next > now):
            return []
        is_first, self.next = self.next is None, now + self._settings.gc_interval_ns
        if is_first:
            return []
        local = self._stores[MANAGER]
        return [
            delete(cluster, it)
            for cluster, connection in sorted(self._connections.items())
            if connection.is_connected
            for it in _garbage_on(self._stores[cluster], local, self._adapters, self._settings)
        ]


def _garbage_on(
    store: Store, local: Store, adapters: Mapping[str, Adapter], settings: MultiKueueSettings
) -> Iterator[JsonObject]:
    """Jobs and Workloads to delete on a worker: ours, and whose Workload here is not there or is being deleted.

    Args:
        store: What was seen of the worker.
        local: What was seen of the manager.
        adapters: Adapters by group, version and kind.
        settings: Whose origin counts.
    """
    for copy in store.of_kind("Workload"):
        namespace = text_at(copy, "metadata", "namespace")
        original = local.get("Workload", text_at(copy, "metadata", "name"), namespace=namespace)
        is_needed = original is not None and not text_at(original, "metadata", "deletionTimestamp")
        if is_needed or not is_owned(copy, settings.origin):
            continue
        yield from (job for job in _jobs_of(copy, store, adapters, settings) if is_owned(job, settings.origin))
        if not text_at(copy, "metadata", "deletionTimestamp"):
            yield copy


def _jobs_of(
    copy: JsonObject, store: Store, adapters: Mapping[str, Adapter], settings: MultiKueueSettings
) -> Iterator[JsonObject]:
    """The job that controls a copy; of those that nobody controls, as of groups of pods, all that name it."""
    namespace, owner = text_at(copy, "metadata", "namespace"), owner_of(copy)
    if owner is not None and owner.get("controller") is True:
        adapter = adapters.get(gvk_text(text_at(owner, "apiVersion"), text_at(owner, "kind")))
        job = store.get(adapter.kind, text_at(owner, "name"), namespace=namespace) if adapter else None
        yield from () if job is None else (job,)
        return
    for job in (it for adapter in adapters.values() if adapter.has_members for it in store.of_kind(adapter.kind)):
        name = prebuilt_name(job, settings)
        if name == text_at(copy, "metadata", "name") and text_at(job, "metadata", "namespace") == namespace:
            yield job
