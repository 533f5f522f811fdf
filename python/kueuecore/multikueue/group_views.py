"""Builds the group of one Workload from what was seen of all clusters (rules/06 §4.1)."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import JsonObject, list_at, text_at, texts_at
from kueuecore.multikueue.adapters import OWNER_GVK, Adapter, gvk_text, is_owned, prebuilt_name
from kueuecore.multikueue.attempts import attempts_of
from kueuecore.multikueue.commands import MANAGER
from kueuecore.multikueue.connections import Connection
from kueuecore.multikueue.dispatcher_protocol import Dispatch, Dispatcher, KnownCluster
from kueuecore.multikueue.object_store import ObjectStore
from kueuecore.multikueue.settings import MultiKueueSettings
from kueuecore.multikueue.workload_group import Group, Worker, replaced_name

__all__ = ["GroupViews"]


class GroupViews:
    """Builds groups from the stores of all clusters.

    Args:
        stores: The objects seen, by cluster.
        connections: The connections, by cluster.
        settings: The settings of the manager.
        dispatcher: Its dispatcher.
    """

    def __init__(
        self,
        stores: Mapping[str, ObjectStore],
        connections: Mapping[str, Connection],
        settings: MultiKueueSettings,
        dispatcher: Dispatcher,
    ) -> None:
        self._stores = stores
        self._connections = connections
        self._settings = settings
        self._dispatcher = dispatcher

    def group(
        self,
        local: JsonObject,
        check: str,
        adapter: Adapter,
        owner: str,
        clusters: tuple[str, ...],
        now: int,
        *,
        nominated_at: int | None = None,
        has_lost_quota: bool = False,
        read: tuple[str, str] | None = None,
    ) -> Group:
        """Return the group of a Workload.

        Args:
            local: The Workload; if it is gone, as it was last seen.
            check: Its MultiKueue check.
            adapter: The adapter of its job.
            owner: Name of its job.
            clusters: The workers that the config of the check lists.
            now: The time.
            has_lost_quota: As in `Group`.
            nominated_at: When the dispatcher last nominated.
            read: As in `Group`.
        """
        jobs = self._local_jobs(local, adapter, owner)
        workers: dict[str, Worker] = {}
        unavailable: dict[str, int | None] = {}
        for name in clusters:
            connection = self._connections.get(name)
            if connection is not None and connection.is_connected:
                workers[name] = self._worker(name, local, adapter, owner, jobs)
            else:
                unavailable[name] = connection.lost_at if connection is not None else None
        components = self._components(local)
        n_workloads = adapter.n_workloads
        return Group(
            local=local,
            check_name=check,
            adapter=adapter,
            jobs=jobs,
            workers=workers,
            unavailable=unavailable,
            components=components,
            n_components=n_workloads(jobs[0]) if n_workloads is not None and components and jobs else None,
            dispatch=Dispatch(
                workload=local,
                job=jobs[0] if jobs else {},
                clusters=tuple(self._known(name, local, workers.get(name)) for name in clusters),
                now=now,
                nominated=tuple(map(str, list_at(local, "status", "nominatedClusterNames"))),
                nominated_at=nominated_at,
                attempts=attempts_of(local),
            ),
            dispatcher=self._dispatcher,
            has_lost_quota=has_lost_quota,
            read=read,
            predecessor=self._predecessor(local),
            settings=self._settings,
            now=now,
        )

    def _local_jobs(self, local: JsonObject, adapter: Adapter, owner: str) -> tuple[JsonObject, ...]:
        namespace = text_at(local, "metadata", "namespace")
        store = self._stores[MANAGER]
        job = store.get(adapter.kind, owner, namespace=namespace)
        if job is None:
            return ()
        if not adapter.has_members:
            return (job,)
        there = (
            member for member in store.of_kind(adapter.kind) if text_at(member, "metadata", "namespace") == namespace
        )
        return tuple(adapter.members(job, there))

    def _worker(
        self, cluster: str, local: JsonObject, adapter: Adapter, owner: str, jobs: tuple[JsonObject, ...]
    ) -> Worker:
        store, namespace = self._stores[cluster], text_at(local, "metadata", "namespace")
        name, origin = text_at(local, "metadata", "name"), self._settings.origin
        wanted = dict.fromkeys([owner, *(text_at(job, "metadata", "name") for job in jobs)])
        found = {
            fromkey: job
            for fromkey in wanted
            if (job := store.get(adapter.kind, fromkey, namespace=namespace)) is not None
        }
        if adapter.has_members and not jobs:
            # The pods here are gone, and with them the names of those there.
            for job in store.of_kind(adapter.kind):
                if text_at(job, "metadata", "namespace") == namespace and prebuilt_name(job, self._settings) == name:
                    found[text_at(job, "metadata", "name")] = job
        copy = store.get("Workload", name, namespace=namespace)
        is_ours = copy is not None and is_owned(copy, origin)
        return Worker(workload=copy if is_ours else None, jobs=found, foreign=None if is_ours else copy)

    def _predecessor(self, local: JsonObject) -> JsonObject | None:
        namespace, _, name = replaced_name(local).partition("/")
        return self._stores[MANAGER].get("Workload", name, namespace=namespace) if name else None

    def _components(self, local: JsonObject) -> tuple[JsonObject, ...]:
        """Return all Workloads of the job that the annotations name; empty without such annotations."""
        gvk = texts_at(local, "metadata", "annotations").get(OWNER_GVK)
        uid = next(
            (
                text_at(reference, "uid")
                for reference in list_at(local, "metadata", "ownerReferences")
                if gvk_text(text_at(reference, "apiVersion"), text_at(reference, "kind")) == gvk
            ),
            "",
        )
        if not uid:
            return ()
        namespace = text_at(local, "metadata", "namespace")
        return tuple(
            store
            for store in self._stores[MANAGER].of_kind("Workload")
            if text_at(store, "metadata", "namespace") == namespace
            and any(text_at(owner, "uid") == uid for owner in list_at(store, "metadata", "ownerReferences"))
        )

    def _known(self, cluster: str, local: JsonObject, worker: Worker | None) -> KnownCluster:
        manifest = self._stores[MANAGER].get("MultiKueueCluster", cluster)
        connection, store = self._connections.get(cluster), self._stores.get(cluster)
        local_queue = cluster_queue = None
        if store is not None:
            queue, namespace = text_at(local, "spec", "queueName"), text_at(local, "metadata", "namespace")
            local_queue = store.get("LocalQueue", queue, namespace=namespace)
            cluster_queue = store.get("ClusterQueue", text_at(local_queue, "spec", "clusterQueue"))
        return KnownCluster(
            name=cluster,
            is_connected=worker is not None,
            lost_at=connection.lost_at if connection is not None else None,
            labels=texts_at(manifest, "metadata", "labels"),
            annotations=texts_at(manifest, "metadata", "annotations"),
            workload=worker.workload if worker is not None else None,
            job=next(iter(worker.jobs.values()), None) if worker is not None else None,
            local_queue=local_queue,
            cluster_queue=cluster_queue,
        )
