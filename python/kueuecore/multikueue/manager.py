"""The MultiKueue manager without its I/O: watch events and the results of commands in, commands out (rules/06)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kueuecore._arguments import flag, instance, mapping, text
from kueuecore._json import JsonObject
from kueuecore._patches import patched
from kueuecore.checks import WorkloadKey
from kueuecore.configuration import Configuration
from kueuecore.controller import Metrics
from kueuecore.controller.validation import check_key, event_of
from kueuecore.multikueue.active_checks import ActiveChecks
from kueuecore.multikueue.adapters import Adapter
from kueuecore.multikueue.affected_workloads import AffectedWorkloads, key_of
from kueuecore.multikueue.attempts import attempts_of
from kueuecore.multikueue.command_counts import CommandCounts
from kueuecore.multikueue.commands import (
    MANAGER,
    Command,
    Connect,
    ManagerProblem,
    ManagerTurn,
)
from kueuecore.multikueue.connections import ConnectionReason
from kueuecore.multikueue.dispatcher_protocol import Attempt, Dispatcher, OverflowPolicy
from kueuecore.multikueue.functions import DispatchFunction, as_dispatcher
from kueuecore.multikueue.garbage_collection import GarbageCollection
from kueuecore.multikueue.group_views import GroupViews
from kueuecore.multikueue.job_moves import JobMoves
from kueuecore.multikueue.kind_adapters import adapters_of
from kueuecore.multikueue.kueue_dispatchers import dispatcher_of, is_kueues
from kueuecore.multikueue.object_store import ObjectStore, is_same
from kueuecore.multikueue.open_commands import OpenCommands
from kueuecore.multikueue.quota_automation import QuotaAutomation
from kueuecore.multikueue.settings import MultiKueueSettings
from kueuecore.multikueue.triggers import Triggers
from kueuecore.multikueue.watched_kinds import WatchedKinds
from kueuecore.multikueue.work_queue import WorkQueue
from kueuecore.multikueue.worker_connections import WorkerConnections
from kueuecore.multikueue.workload_group import Result
from kueuecore.multikueue.workload_looks import WorkloadLooks, WorkloadMemory
from kueuecore.times import TimeLike, nanoseconds
from kueuecore.writes import Answer, Verb, Write

__all__ = ["Manager"]


class Manager:
    """The state and the decisions of the MultiKueue manager. It does no I/O and has no clock.

    Its caller feeds it what the watches of all clusters deliver (`observe`, `resync`), asks for a `turn`, carries out
    the commands, and reports how each went (`done`; `connected`, `connection_failed`). As in Kueue, it
    works beside the scheduler of the manager cluster: the scheduler gives quota and evicts, the manager sets its own
    check. Not safe for concurrent use by several threads.

    Args:
        configuration: Kueue's Configuration; by default that of Kueue's release manifest.
        settings: Settings that a Configuration does not cover; by default derived from the Configuration.
        dispatcher: Decides which workers get copies, an object or a plain function; by default the dispatcher that the
            Configuration names.
        adapters: How kinds of jobs are delegated, by group, version and kind; by default all enabled kinds.
        overflow: Decides which jobs move on from queues of the manager itself to one that dispatches; by default none.
        metrics: Counts dispatches and admissions; for example those of the `Controller` beside it.

    Raises:
        TypeError: `dispatcher`, `overflow`, `adapters` or `metrics` is of the wrong type.

    Example:
        >>> manager = Manager()
        >>> manager.observe({"type": "ADDED", "object": {
        ...     "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster",
        ...     "metadata": {"name": "west", "uid": "1", "resourceVersion": "1"},
        ...     "spec": {"clusterSource": {"kubeConfig": {"location": "west-secret"}}}}}, now="2026-01-01T00:00:00Z")
        True
        >>> (command,) = manager.turn("2026-01-01T00:00:00Z").commands
        >>> command.cluster, command.source
        ('west', {'kubeConfig': {'location': 'west-secret'}})
    """

    def __init__(
        self,
        configuration: Configuration | None = None,
        *,
        settings: MultiKueueSettings | None = None,
        dispatcher: Dispatcher | DispatchFunction | None = None,
        adapters: Mapping[str, Adapter] | None = None,
        overflow: OverflowPolicy | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        if configuration is not None:
            configuration = instance("configuration", configuration, Configuration)
        if settings is None:
            settings = MultiKueueSettings() if configuration is None else MultiKueueSettings.of(configuration)
        self.settings = instance("settings", settings, MultiKueueSettings)
        self.dispatcher = dispatcher_of(self.settings) if dispatcher is None else as_dispatcher(dispatcher)
        self.adapters = dict(adapters_of(self.settings) if adapters is None else mapping("adapters", adapters))
        _check_parts(self.dispatcher, self.adapters, overflow, metrics)
        self._stores: dict[str, ObjectStore] = {MANAGER: ObjectStore()}
        self._kinds = WatchedKinds(self.adapters.values(), overflows=overflow is not None)
        self._links = WorkerConnections(self._stores[MANAGER], self.settings)
        self._quota = QuotaAutomation(self._stores, self._links.connections, self.settings)
        self._checks = ActiveChecks(self._stores[MANAGER])
        self._garbage = GarbageCollection(self._stores, self._links.connections, self.adapters, self.settings)
        views = GroupViews(self._stores, self._links.connections, self.settings, self.dispatcher)
        moves = None
        if overflow is not None:
            moves = JobMoves(self._stores[MANAGER], self.adapters, overflow, self.settings)
        self._memory = WorkloadMemory()
        self._looks = WorkloadLooks(self._stores[MANAGER], views, self.adapters, self.settings, self._memory, moves)
        self._workloads: WorkQueue[WorkloadKey] = WorkQueue()
        self._affected = AffectedWorkloads(self._stores[MANAGER], self.adapters, self._workloads)
        self._triggers = Triggers(
            settings=self.settings,
            adapters={adapter.kind: adapter for adapter in self.adapters.values()},
            workloads=self._workloads,
            affected=self._affected,
            memory=self._memory,
            links=self._links,
            checks=self._checks,
            quota=self._quota,
            asks_about_workers=not is_kueues(self.dispatcher),
        )
        self._ledger = OpenCommands()
        self._nominations: set[int] = set()
        self._counts = CommandCounts(metrics)

    # Watches.

    @property
    def manager_kinds(self) -> dict[str, str]:
        """Return what to list and watch on the manager: kinds with their apiVersion; list them in this order.

        With overflow, ConfigMaps are among them; those with the label `multikueue.kueuecore/moving` are enough.
        """
        return dict(self._kinds.manager)

    @property
    def worker_kinds(self) -> dict[str, str]:
        """Return what to list and watch on a worker: kinds with their apiVersion.

        Of Workloads and jobs, those with the label `kueue.x-k8s.io/multikueue-origin` are enough.
        """
        return dict(self._kinds.worker)

    def observe(self, event: Mapping[str, Any], *, now: TimeLike, cluster: str = MANAGER) -> bool:
        """Take in a watch event. Events may arrive in any order and repeatedly.

        Args:
            event: `type` (ADDED, MODIFIED, DELETED, BOOKMARK, ERROR) and `object`, as the API server sends them.
            now: The time.
            cluster: The cluster that it comes from; the manager by default.

        Raises:
            WatchError: The event reports an error.
            ManifestError: The event has no type, no object, or a version that no API server would send. Nothing has
                changed.
            TypeError: The event or its object is not plain data. Nothing has changed.
            ValueError: The event type is unknown.

        Returns:
            False if the event is outdated, or of a kind that the manager does not use.
        """
        at, cluster = nanoseconds(now), text("cluster", cluster)
        kind, manifest = event_of(event)
        if kind == "BOOKMARK" or not self._kinds.are_watched(cluster, manifest):
            return False
        before = self._store(cluster).observe(event)
        if before is None:
            return False
        self._note(cluster, before, None if kind == "DELETED" else manifest, at)
        return True

    def resync(
        self,
        kind: str,
        objects: Iterable[JsonObject],
        *,
        now: TimeLike,
        cluster: str = MANAGER,
        resource_version: str = "",
    ) -> None:
        """Take in the list of all objects of a kind: objects missing from it are gone.

        Args:
            kind: The kind, one of `manager_kinds` or `worker_kinds`.
            objects: All of them.
            now: The time.
            cluster: The cluster that it comes from; the manager by default.
            resource_version: The `metadata.resourceVersion` of the list.

        Raises:
            ManifestError: An object has a version that no API server would send. Nothing has changed.
            TypeError: An object is not plain data. Nothing has changed.
            ValueError: The manager does not use this kind. Nothing has changed.
        """
        at, cluster, kind = nanoseconds(now), text("cluster", cluster), text("kind", kind)
        resource_version = text("resource_version", resource_version)
        watched = self._kinds.listed(cluster, kind, objects)
        for before, after in self._store(cluster).resync(kind, watched, resource_version):
            self._note(cluster, before, after, at)

    # Connections.

    def connected(self, cluster: str, *, now: TimeLike) -> None:
        """Report that all watches of a worker are up and all its kinds were listed."""
        at, cluster = nanoseconds(now), text("cluster", cluster)
        self._links.connected(cluster, at)
        for workload in self._stores[MANAGER].of_kind("Workload"):
            self._workloads.add(key_of(workload), at + self.settings.batch_period_ns)
        self._quota.look_at_all(at + self.settings.batch_period_ns)

    def connection_failed(
        self, cluster: str, reason: ConnectionReason, message: str, *, now: TimeLike, is_missing: bool = False
    ) -> None:
        """Report that an attempt to connect failed.

        Args:
            cluster: The worker.
            reason: Why.
            message: What is wrong.
            now: The time.
            is_missing: Whether the credentials do not exist. Then nothing is tried until `source_changed`.
        """
        cluster, why = text("cluster", cluster), text("message", message)
        is_absent = flag("is_missing", is_missing)
        instance("reason", reason, ConnectionReason)
        self._links.failed(cluster, reason, why, nanoseconds(now), is_missing=is_absent)

    def connection_pending(self, cluster: str, message: str, *, now: TimeLike) -> None:
        """Report that an earlier attempt is still under way: it is retried soon, and not counted."""
        self._links.pending(text("cluster", cluster), text("message", message), nanoseconds(now))

    def connection_lost(self, cluster: str, *, now: TimeLike) -> None:
        """Report that a watch of a worker ended. Its unanswered commands count as lost."""
        at, cluster = nanoseconds(now), text("cluster", cluster)
        self._links.lost(cluster, at)
        self._drop_commands(cluster, at)
        self._triggers.worker(at)

    def source_changed(self, cluster: str, *, now: TimeLike) -> None:
        """Report that the credentials of a worker, such as its Secret, have changed: it is connected anew."""
        at, cluster = nanoseconds(now), text("cluster", cluster)
        self._links.source_changed(cluster, at)
        self._drop_commands(cluster, at)

    def is_connected(self, cluster: str) -> bool:
        """Return whether a worker is connected."""
        connection = self._links.connections.get(text("cluster", cluster))
        return connection is not None and connection.is_connected

    # Decisions.

    def turn(self, now: TimeLike) -> ManagerTurn:
        """Reconcile everything that is due, and return the commands to carry out.

        Args:
            now: The time.
        """
        at = nanoseconds(now)
        problems: list[ManagerProblem] = []
        commands: list[Command] = []
        for command in self._links.commands(at):
            commands += self._opened([command], None, at)
            if isinstance(command, Connect):
                # What was seen of it before may belong to another cluster by now.
                self._stores[command.cluster] = ObjectStore()
        commands += self._opened(self._garbage.commands(at), None, at)
        for key in self._workloads.take(at):
            # A workload with unanswered commands is reconciled again once they are answered.
            if not self._ledger.is_busy(key):
                result = self._looks.look(key, at)
                problems += [ManagerProblem("/".join(key), result.problem)] if result.problem else []
                commands += self._noted(key, result, at)
        commands += self._opened(self._checks.commands(at), None, at)
        commands += self._opened(self._quota.commands(at), None, at)
        return ManagerTurn(tuple(commands), tuple(problems))

    def next_wake(self, now: TimeLike) -> int | None:
        """Return when to take the next turn if nothing is observed before, in nanoseconds since 1970; `None`: never.

        Args:
            now: The time.
        """
        at = nanoseconds(now)
        times = [entry.next for entry in (self._workloads, self._links, self._garbage, self._checks, self._quota)]
        return min((max(at, time) for time in times if time is not None), default=None)

    # Results of commands.

    def done(self, write: Write, answer: Answer, *, now: TimeLike) -> bool:
        """Report how a write went. If it was refused or its outcome is unknown, it is decided anew.

        Args:
            write: The write.
            answer: How it went, with the object that a deletion leaves until its finalizers are gone. After a conflict
                (409), or if a creation found one of that name, get the current object.
            now: The time.

        Returns:
            False if the result no longer matters because the connection to its cluster was lost meanwhile.

        Raises:
            TypeError: The answer is not plain data. Nothing has changed.
            ValueError: The answer is another object. Nothing has changed.
        """
        at = nanoseconds(now)
        instance("answer", answer, Answer)
        if not self._ledger.is_open(instance("write", write, Write)):
            return False
        store, found, is_deletion = self._stores[write.cluster], answer.object, write.verb is Verb.DELETE
        if found is not None:
            check_key("answer", found, (write.kind, write.namespace, write.name))
        elif answer.is_accepted and not is_deletion:
            found = self._expected(write)
        is_vain = False
        if found is not None:
            store.put(found)
            wanted = patched(found, write.manifest) if write.verb is Verb.PATCH and answer.is_accepted else found
            is_vain = not is_same(wanted, found)
            if is_vain and write.subresource and store.is_newest(found):
                # The server has dropped fields that it does not know: to write them again would be as vain.
                store.assume({**wanted, "metadata": found["metadata"]})
        elif (is_deletion and answer.is_accepted) or (answer.is_gone and write.verb is not Verb.CREATE):
            store.drop(write.kind, write.name, namespace=write.namespace, uid=write.uid if is_deletion else "")
        if answer.is_accepted:
            self._counts.count(write)
        has_failed = not (answer.is_accepted or answer.is_gone or found is not None)
        self._close(write, at, has_failed=has_failed or (is_vain and not write.subresource))
        return True

    @property
    def open_commands(self) -> tuple[Write, ...]:
        """Return the commands whose results have not been reported yet; connecting does not count."""
        return self._ledger.commands

    def attempts(self, name: str, *, namespace: str) -> tuple[Attempt, ...]:
        """Return which workers had won a Workload before, and how that ended; empty with Kueue's own dispatchers."""
        key = text("namespace", namespace), text("name", name)
        return attempts_of(self._stores[MANAGER].get("Workload", key[1], namespace=key[0]))

    # Results of reconciling a Workload.

    def _noted(self, key: WorkloadKey, result: Result, at: int) -> list[Command]:
        """Note the result of a reconcile, and return its commands."""
        if result.problem:
            self._workloads.failed(key, at)
        elif not result.commands:
            # Commands have not succeeded until they are accepted.
            self._workloads.went_well(key)
        if result.wake_in_ns is not None:
            self._workloads.add(key, at + result.wake_in_ns)
        if result.forgets_round:
            self._memory.nominated_at.pop(key, None)
        if result.reads is not None:
            self._memory.read[key] = result.reads
        commands = self._opened(result.commands, key, at)
        if result.nominates and commands:
            self._nominations.add(commands[0].number)
        stored = self._stores[MANAGER].get("Workload", key[1], namespace=key[0])
        self._counts.note(stored, commands, result)
        if result.wakes_components:
            self._affected.by_sibling(stored, at + self.settings.batch_period_ns)
        return commands

    # Incoming objects.

    def _store(self, cluster: str) -> ObjectStore:
        return self._stores.setdefault(cluster, ObjectStore())

    def _note(self, cluster: str, before: JsonObject, after: JsonObject | None, at: int) -> None:
        """Queue what a change affects (rules/06 §4.7)."""
        if cluster == MANAGER:
            self._triggers.here(before, after, at)
        elif self.is_connected(cluster):
            # Objects listed while the worker is still connecting are reconciled once it is connected.
            self._triggers.there(after or before, at)

    # Open commands.

    def _opened(self, commands: Iterable[Command], about: WorkloadKey | None, at: int) -> list[Command]:
        """Number the commands; what would touch an object with an open command is decided anew afterwards."""
        opened, left_out = self._ledger.open(commands, about)
        if left_out and about is not None:
            self._workloads.add(about, at + self.settings.batch_period_ns)
        return opened

    def _close(self, command: Write, at: int, *, has_failed: bool = False) -> None:
        about = self._ledger.close(command)
        was_nomination = command.number in self._nominations
        self._nominations.discard(command.number)
        self._counts.drop(command)
        if about is None:
            self._triggers.written(command, at, has_failed=has_failed)
        elif has_failed:
            self._memory.read.pop(about, None)
            self._workloads.failed(about, at)
        else:
            if was_nomination:
                self._memory.nominated_at[about] = at
            self._workloads.add(about, at)

    def _drop_commands(self, cluster: str, at: int) -> None:
        for command in [open_command for open_command in self.open_commands if open_command.cluster == cluster]:
            self._close(command, at)

    def _expected(self, write: Write) -> JsonObject | None:
        """Return what an object looks like after a write, unless the answer says otherwise."""
        if write.verb is Verb.CREATE:
            return write.manifest
        stored = self._stores[write.cluster].get(write.kind, write.name, namespace=write.namespace)
        return patched(stored, write.manifest) if stored is not None and write.verb is Verb.PATCH else None


def _check_parts(
    dispatcher: Dispatcher, adapters: Mapping[str, Adapter], overflow: OverflowPolicy | None, metrics: Metrics | None
) -> None:
    """Refuse parts that would otherwise fail in the middle of a turn."""
    for name, part, kind, method in (
        ("dispatcher", dispatcher, "a Dispatcher", "nominate"),
        ("overflow", overflow, "an OverflowPolicy", "look"),
    ):
        if part is not None and (isinstance(part, type) or not callable(getattr(part, method, None))):
            raise TypeError(f"{name} must be {kind} with a method {method}, not {type(part).__name__}")
    for key, adapter in adapters.items():
        instance(f"adapters[{key!r}]", adapter, Adapter)
    if metrics is not None:
        instance("metrics", metrics, Metrics)
