"""The connections to all workers: when to connect, and the statuses of MultiKueueClusters (rules/06 §2)."""

from __future__ import annotations

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.multikueue.commands import MANAGER, Command, Connect
from kueuecore.multikueue.connections import Connection, ConnectionReason, establish_timeout_ns
from kueuecore.multikueue.object_store import ObjectStore
from kueuecore.multikueue.settings import MultiKueueSettings
from kueuecore.multikueue.work_queue import WorkQueue
from kueuecore.multikueue.workload_group import status_patch

__all__ = ["WorkerConnections"]


class WorkerConnections:
    """Keeps a connection to every MultiKueueCluster.

    Args:
        store: Objects seen on the manager.
        settings: The settings of the manager.
    """

    def __init__(self, store: ObjectStore, settings: MultiKueueSettings) -> None:
        self.connections: dict[str, Connection] = {}
        self._store = store
        self._settings = settings
        self._queue: WorkQueue[str] = WorkQueue()
        self._connecting: set[str] = set()
        # Why a cluster is not Active, and the error, as last written; no reason if it is Active.
        self._found: dict[str, tuple[ConnectionReason | None, str]] = {}

    def look_at(self, cluster: str, now: int) -> None:
        """Schedule a review of a MultiKueueCluster."""
        self._queue.add(cluster, now)

    @property
    def next(self) -> int | None:
        """Return when the next cluster is due."""
        return self._queue.next

    def connected(self, cluster: str, now: int) -> None:
        """Note that all watches of a worker are up."""
        self._connecting.discard(cluster)
        if cluster in self.connections:
            self.connections[cluster].connected()
            self._find(cluster, None, "", now)

    def failed(self, cluster: str, reason: ConnectionReason, message: str, now: int, *, is_missing: bool) -> None:
        """Note that an attempt failed. Faulty credentials are retried automatically, unless they are missing."""
        self._connecting.discard(cluster)
        connection = self.connections.get(cluster)
        if connection is None:
            return
        if reason.is_of_configuration:
            connection.unreadable(now, is_missing=is_missing)
        else:
            connection.failed(now)
        self._find(cluster, reason, message, now)

    def pending(self, cluster: str, message: str, now: int) -> None:
        """Note that an earlier attempt is still under way."""
        self._connecting.discard(cluster)
        if cluster in self.connections:
            self.connections[cluster].still_pending(now)
            self._find(cluster, ConnectionReason.CONNECTION_FAILED, message, now)

    def lost(self, cluster: str, now: int) -> None:
        """Note that a watch ended, and connect anew at once. The status stays as it is if that succeeds."""
        connection = self.connections.get(cluster)
        if connection is not None and connection.is_connected:
            connection.lost(now)
            self._queue.add(cluster, now)

    def source_changed(self, cluster: str, now: int) -> None:
        """Note that the credentials of a worker have changed."""
        if cluster in self.connections:
            self.connections[cluster].source = None
            self._queue.add(cluster, now)

    def commands(self, now: int) -> list[Command]:
        """Return the commands for the clusters that are due."""
        commands: list[Command] = []
        for cluster in self._queue.take(now):
            manifest = self._store.get("MultiKueueCluster", cluster)
            if manifest is None or text_at(manifest, "metadata", "deletionTimestamp"):
                self.connections.pop(cluster, None)
                self._connecting.discard(cluster)
                self._found.pop(cluster, None)
                self._queue.forget(cluster)
                continue
            connect = self._connect(cluster, object_at(manifest, "spec", "clusterSource"), now)
            commands += [connect] if connect is not None else []
            if cluster in self._found:
                told = self._settings.tells_next_attempt
                status = self.connections[cluster].status(manifest, *self._found[cluster], now, tells_next_attempt=told)
                reported = status_patch(MANAGER, manifest, status)
                commands += [reported] if reported is not None else []
        return commands

    def _connect(self, cluster: str, source: JsonObject, now: int) -> Connect | None:
        connection = self.connections.setdefault(cluster, Connection(lost_at=now))
        if connection.source != source:
            if connection.source is not None or connection.is_connected:
                connection.lost(now)
            connection.changed(source)
            self._connecting.discard(cluster)
        if "clusterProfileRef" in source and not self._settings.has_cluster_profiles:
            connection.lost(now)
            disabled = "MultiKueueClusterProfile feature gate is disabled"
            self._found[cluster] = (ConnectionReason.CLUSTER_PROFILE_DISABLED, disabled)
            return None
        if connection.is_connected or connection.waits_for_source or cluster in self._connecting:
            return None
        if connection.next_attempt > now:
            self._queue.add(cluster, connection.next_attempt)
            return None
        self._connecting.add(cluster)
        return Connect(cluster=cluster, source=source, timeout_ns=establish_timeout_ns(connection.n_failed + 1))

    def _find(self, cluster: str, reason: ConnectionReason | None, message: str, now: int) -> None:
        self._found[cluster] = reason, message
        self._queue.add(cluster, now)
