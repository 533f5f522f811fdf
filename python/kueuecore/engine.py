"""The engine: Kubernetes objects in, a cycle, Kueue's decisions out. Nothing is done to any cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn, SupportsIndex

import numpy.typing as npt

from kueuecore import _core
from kueuecore._arguments import flag, text, workload_key
from kueuecore.configuration import Configuration
from kueuecore.decision_tables import Names
from kueuecore.decisions import Decision, Event, WhatIf
from kueuecore.held_objects import HeldObjects
from kueuecore.manifests import ManifestLike
from kueuecore.object_batch import Applied, Batch, Objects, each_manifest
from kueuecore.saved_engine import SavedEngine
from kueuecore.states import ClusterQueueState, LocalQueueState, PendingWorkload, QuotaRow, WorkloadState
from kueuecore.submissions import encode
from kueuecore.times import TimeLike, nanoseconds, optional_ns
from kueuecore.topology import DomainCapacity, Placement

__all__ = ["Applied", "Engine", "Objects"]


class Engine(SavedEngine, HeldObjects):
    """Kueue's scheduler as an object. Safe to use from several threads; each call is done before the next begins.

    Not safe across `os.fork()`: if another thread is inside a call, its lock stays locked in the child for ever. Start
    processes with the start method `spawn`, and hand over what `save` gives. `fork()` makes a copy in this process.

    Args:
        configuration: Kueue's Configuration; by default what Kueue does without a file.
        models_readiness: Do pods become ready here? Otherwise `waitForPodsReady`, which Kueue has on by default, only
            counts if the Configuration names it (rules/11 §2.1).
        keeps_journal: Keep a record of the calls, for `journal`? It grows with all that happens. A call and its entry
            are one step: Ctrl-C leaves both or neither.

    Example:
        >>> engine = Engine()
        >>> applied = engine.apply('''
        ... {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default-flavor}}
        ... ---
        ... apiVersion: kueue.x-k8s.io/v1beta2
        ... kind: ClusterQueue
        ... metadata: {name: cluster-queue}
        ... spec:
        ...   namespaceSelector: {}
        ...   resourceGroups:
        ...   - coveredResources: [cpu]
        ...     flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: 9}]}]
        ... ---
        ... {apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: default, name: user-queue},
        ...  spec: {clusterQueue: cluster-queue}}
        ... ---
        ... {apiVersion: v1, kind: Namespace, metadata: {name: default}}
        ... ---
        ... apiVersion: kueue.x-k8s.io/v1beta2
        ... kind: Workload
        ... metadata: {namespace: default, name: sample}
        ... spec:
        ...   queueName: user-queue
        ...   podSets:
        ...   - {name: main, count: 3, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}
        ... ''')
        >>> decision = engine.cycle("2026-01-01T00:00:00Z")
        >>> decision.admissions[0].key, dict(decision.admissions[0].pod_sets[0].resource_usage)
        ('default/sample', {'cpu': '3'})
        >>> engine.cluster_queue("cluster-queue").admitted_workloads
        1
    """

    def __init__(
        self, configuration: Configuration | None = None, *, models_readiness: bool = False, keeps_journal: bool = False
    ) -> None:
        if not isinstance(configuration, Configuration | None):
            raise TypeError(f"configuration must be a Configuration or None, not {type(configuration).__name__}")
        self._configuration = configuration or Configuration()
        self._models_readiness = flag("models_readiness", models_readiness)
        keeps_calls = flag("keeps_journal", keeps_journal)
        self._core = _core.Engine(self._configuration._core, self._models_readiness, keeps_calls)

    @property
    def configuration(self) -> Configuration:
        """The Configuration that it was made with."""
        return self._configuration

    @property
    def now(self) -> int:
        """The latest time that any call named, in nanoseconds since 1970; 0 before the first."""
        return self._core.now()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse `copy.copy`, which would share what changes, `copy.deepcopy` and `pickle`."""
        raise TypeError(
            "an Engine is neither copied nor pickled: fork() makes a copy, and save() gives bytes, which load() reads "
            "in another process"
        )

    # Objects.

    def apply(self, objects: Objects, *, now: TimeLike | None = None, trusted: bool = False) -> Applied:
        """Create objects, or take over their newer versions. All or nothing; their order does not matter.

        Args:
            objects: YAML or JSON text, JSON bytes (one object, a `List`, an array, or one object a line), one object or
                many: manifests, dicts, objects of `kueuecore.objects`.
            now: When it happened; by default the latest time that any call named.
            trusted: Take the objects as they are, without defaults and validation: those of a watch or a dump, which an
                API server has checked.

        Raises:
            ManifestError: Everything that is wrong with any of the objects (rules/01). Nothing was applied then.

        Returns:
            Warnings, and the objects that are none of Kueue's.
        """
        batch = Batch.of(objects)
        return batch.applied(*batch.given_to(self._core.apply, flag("trusted", trusted), optional_ns(now)))

    def submit(
        self,
        *,
        namespace: str,
        local_queues: Sequence[str],
        queue: npt.ArrayLike,
        requests: Mapping[str, npt.ArrayLike],
        count: npt.ArrayLike = 1,
        priority: npt.ArrayLike = 0,
        created: npt.ArrayLike = 0,
        prefix: str = "workload-",
        first: int = 0,
        now: TimeLike | None = None,
    ) -> None:
        """Bring in many new workloads of one pod set each, as arrays of n values or scalars that hold for all.

        Args:
            namespace: Namespace of all of them.
            local_queues: Names of LocalQueues.
            queue: Index into `local_queues`, shape (n,), with n up to 10,000,000.
            requests: What one pod requests of each resource, as integers: milli-units of `cpu`, whole units (bytes) of
                the rest. 0: not requested.
            count: Pods of each workload.
            priority: Priority of each workload.
            created: Creation time in nanoseconds since 1970.
            prefix: Names are this and a number; the UID is the name.
            first: Number of the first.
            now: When it happens; by default the latest time that any call named.

        Raises:
            TypeError: An argument of another type.
            ValueError: Arrays that do not fit together or have masked values, values that no workload can have, or a
                name that a Workload has already. Nothing was applied then.

        Example:
            >>> import numpy as np
            >>> engine = Engine()
            >>> engine.submit(namespace="default", local_queues=["user-queue"], queue=np.zeros(1000, int),
            ...               requests={"cpu": np.full(1000, 500)})
            >>> len(engine)
            1000
        """
        batch = encode(
            namespace=namespace,
            local_queues=local_queues,
            queue=queue,
            requests=requests,
            count=count,
            priority=priority,
            created=created,
            prefix=prefix,
            first=first,
        )
        self._core.submit(*batch, optional_ns(now))

    def delete(self, kind: str, name: str, *, namespace: str = "", now: TimeLike | None = None) -> bool:
        """Delete an object. What a deleted Workload held is free again.

        Args:
            kind: Kind, such as `Workload`.
            name: Name.
            namespace: Namespace of a namespaced kind.
            now: When it happened; by default the latest time that any call named.

        Raises:
            ValueError: Objects of this kind are not kept.

        Returns:
            Was it there?
        """
        names = text("kind", kind), text("namespace", namespace), text("name", name)
        return self._core.delete(*names, optional_ns(now))

    # Scheduling.

    def cycle(self, now: TimeLike) -> Decision:
        """Run one scheduling cycle: take the head of every ClusterQueue and decide on each (rules/05 §6).

        Args:
            now: The time of the cycle: conditions get it, backoffs are measured against it.

        Returns:
            The decisions. The engine takes them for done: admitted workloads hold their quota from now on.
        """
        return Decision(self._core.cycle(nanoseconds(now)))

    def what_if(self, workload: ManifestLike, *, now: TimeLike | None = None, trusted: bool = False) -> WhatIf:
        """What would become of a Workload if it were applied now and were the only head of the next cycle.

        It is tried on the quota as it stands, with all its preemptions, and taken back: nothing changes, and it costs
        no more than the decision itself. Those that stand before it are counted, not decided on.

        Args:
            workload: One Workload that is not there yet.
            now: When it is asked; by default the latest time that any call named.
            trusted: Take it as it is, without defaults and validation.

        Raises:
            ManifestError: Everything that is wrong with the Workload (rules/01).
            ValueError: It is something else, or a Workload of this name exists.

        Example:
            >>> engine = Engine()
            >>> sample = {
            ...     "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            ...     "metadata": {"namespace": "default", "name": "sample"},
            ...     "spec": {"queueName": "user-queue",
            ...              "podSets": [{"count": 1, "template": {"spec": {"containers": [{"name": "c"}]}}}]}}
            >>> answer = engine.what_if(sample)
            >>> answer.outcome, answer.message
            (<Outcome.WAITS: 'Waits'>, "LocalQueue user-queue doesn't exist")
        """
        batch = Batch.of_manifests(each_manifest(workload, "workload"))
        # A question does not move the time of the engine.
        at = self.now if now is None else nanoseconds(now)
        return WhatIf.of(batch.given_to(self._core.what_if, flag("trusted", trusted), at))

    def reconcile(self, now: TimeLike) -> tuple[Event, ...]:
        """Write what Kueue's controllers of workloads and nodes write outside of cycles (rules/07, rules/08 §13).

        Why a workload is not even queued, evictions by stop policies, Admitted once all checks are ready, which nodes
        have failed: call it after `apply` and after each cycle.

        Args:
            now: The time of what is written.

        Returns:
            The events.
        """
        rows = self._core.reconcile(nanoseconds(now))
        return tuple(Event(type_, reason, *key, message) for type_, reason, key, message in rows)

    def next_wake(self, *, since: TimeLike | None = None) -> int | None:
        """When time alone will change something, in nanoseconds since 1970; `None`: never.

        A backoff or a timeout ends, or a second pass for a place on nodes is due (rules/08 §11.10).

        Args:
            since: Only what comes after this time; by default the latest time that any call named. What came due
                before, and was not reconciled since, is not returned.
        """
        return self._core.next_wake(self.now if since is None else nanoseconds(since))

    @property
    def has_heads(self) -> bool:
        """May a cycle have something to do: is anything in a heap, or asked to be tried again?"""
        return self._core.has_heads()

    def finish(
        self,
        name: str,
        *,
        namespace: str,
        now: TimeLike,
        reason: str = "Succeeded",
        message: str = "Job finished successfully",
    ) -> bool:
        """A workload's job has ended: it is Finished, and its quota is free.

        Raises:
            UnknownObjectError: There is no such Workload.

        Returns:
            False if it had finished before.
        """
        key = workload_key(namespace, name)
        reported = text("reason", reason), text("message", message)
        return self._core.finish(*key, *reported, nanoseconds(now))

    def evict(
        self,
        name: str,
        *,
        namespace: str,
        now: TimeLike,
        reason: str = "Preempted",
        message: str = "",
        stopped: bool = True,
    ) -> bool:
        """Evict a workload (rules/04 §8, §9).

        Args:
            name: Name of the Workload.
            namespace: Its namespace.
            now: When it happens.
            reason: Reason of the condition Evicted, such as `Preempted` or `NodeFailures`; with others it is not
                requeued by itself.
            message: Message of the condition.
            stopped: Has its job stopped at once, so that its quota is free? Otherwise call `release` when it has.

        Raises:
            UnknownObjectError: There is no such Workload.

        Returns:
            False if it was evicted before.
        """
        key, reported = workload_key(namespace, name), (text("reason", reason), text("message", message))
        return self._core.evict(*key, *reported, flag("stopped", stopped), nanoseconds(now))

    def release(self, name: str, *, namespace: str, now: TimeLike) -> bool:
        """The job of an evicted workload has stopped: its quota is free, and it is pending again (rules/04 §9).

        Raises:
            UnknownObjectError: There is no such Workload.
        """
        return self._core.release(*workload_key(namespace, name), nanoseconds(now))

    def note_readiness(self, name: str, *, namespace: str, now: TimeLike, are_ready: bool) -> bool:
        """The pods of a workload's job are all ready, or not any more: condition PodsReady (rules/07 §6).

        Raises:
            UnknownObjectError: There is no such Workload.

        Returns:
            False if that says nothing new.
        """
        return self._core.note_readiness(*workload_key(namespace, name), flag("are_ready", are_ready), nanoseconds(now))

    def take_written(self) -> tuple[WorkloadState, ...]:
        """The workloads to which something may have been written since the last call, by namespace and name.

        The first call finds none. From then on a reservation can be taken back with `forget` not only after its own
        cycle, but until `confirm` says that it was written, or a newer version of the Workload is applied.

        Example:
            >>> Engine().take_written()
            ()
        """
        return tuple(WorkloadState.of(row) for row in self._core._take_written(None))

    def confirm(self, name: str, *, namespace: str) -> bool:
        """A reservation was written: it can no longer be taken back with `forget`.

        Raises:
            UnknownObjectError: There is no such Workload.

        Returns:
            False if none was open.
        """
        return self._core.confirm(*workload_key(namespace, name), None)

    def forget(self, name: str, *, namespace: str, now: TimeLike, gone: bool = False) -> bool:
        """A reservation of the last cycle could not be written: the workload is as it was before that cycle.

        For those who call `take_written` that holds for every cycle whose reservation is not confirmed yet.

        Args:
            name: Name of the Workload.
            namespace: Its namespace.
            now: When it happens.
            gone: Does the Workload no longer exist? Then it is not queued again, and its deletion is to follow.

        Raises:
            UnknownObjectError: There is no such Workload.

        Returns:
            False if the last cycle reserved nothing for it.
        """
        return self._core.forget(*workload_key(namespace, name), flag("gone", gone), nanoseconds(now))

    def fork(self) -> Engine:
        """A copy that goes its own way: neither sees what happens to the other. They share what neither changes."""
        return self._of(self._core.fork(), self._configuration, self._models_readiness)

    # What it holds.

    def workload(self, name: str, *, namespace: str) -> WorkloadState:
        """Where a workload stands.

        Raises:
            UnknownObjectError: There is no such Workload.
        """
        return WorkloadState.of(self._core.workload(*workload_key(namespace, name)))

    def workloads(self) -> tuple[WorkloadState, ...]:
        """All workloads, by namespace and name."""
        return tuple(WorkloadState.of(row) for row in self._core.workloads())

    def names(self) -> Names:
        """The names of ClusterQueues, flavors, resources and reasons by number, for the tables of decisions.

        Example:
            >>> engine = Engine()
            >>> engine.submit(namespace="default", local_queues=["user-queue"], queue=[0], requests={"cpu": 1})
            >>> engine.names().resources
            ('cpu',)
        """
        return Names(*map(tuple, self._core.names()))

    def workload_keys(self) -> tuple[str | None, ...]:
        """`namespace/name` of the workloads by number, for the tables of decisions; `None`: the number is free.

        A workload keeps its number until it is deleted; then the next one that comes gets it.
        """
        return tuple(key and "/".join(key) for key in self._core.workload_keys())

    def __len__(self) -> int:
        """Number of workloads."""
        return self._core.n_workloads()

    def __bool__(self) -> bool:
        """True: an engine without workloads is an engine."""
        return True

    def pending(self, cluster_queue: str) -> tuple[PendingWorkload, ...]:
        """The pending workloads of a ClusterQueue in queue order, parked ones included (rules/12 §2).

        Raises:
            UnknownObjectError: There is no such ClusterQueue.
        """
        return tuple(map(PendingWorkload.of, self._core.pending(text("cluster_queue", cluster_queue))))

    def cluster_queues(self) -> tuple[str, ...]:
        """The names of the ClusterQueues, sorted."""
        return tuple(self._core.cluster_queues())

    def cluster_queue(self, name: str) -> ClusterQueueState:
        """Status of a ClusterQueue.

        Raises:
            UnknownObjectError: There is no such ClusterQueue.
        """
        return ClusterQueueState.of(name, self._core.cluster_queue_status(text("name", name)))

    def local_queue(self, name: str, *, namespace: str) -> LocalQueueState:
        """Status of a LocalQueue.

        Raises:
            UnknownObjectError: There is no such LocalQueue.
        """
        return LocalQueueState.of(namespace, name, self._core.local_queue_status(*workload_key(namespace, name)))

    def quota(self) -> tuple[QuotaRow, ...]:
        """Quota and usage of every ClusterQueue and Cohort, per flavor and resource (rules/02 §2)."""
        return tuple(map(QuotaRow.of, self._core.quota()))

    def placements(self) -> tuple[Placement, ...]:
        """Where pods stand: of each workload that holds quota, the pod sets with a topology assignment (rules/08 §8).

        By namespace and name, then in the order of the pod sets. `kueuecore.topology.Placement` shows a whole world.

        Example:
            >>> Engine().placements()
            ()
        """
        return tuple(map(Placement.of, self._core.placements()))

    def domain_capacity(self) -> tuple[DomainCapacity, ...]:
        """What each domain of each topology has and has left, a row per resource (rules/08 §4).

        Flavors by name, levels from the top, domains by their paths, resources by name. Only flavors whose Topology
        exists have any, and only domains with a usable node of the flavor.

        Example:
            >>> Engine().domain_capacity()
            ()
        """
        return tuple(map(DomainCapacity.of, self._core.domain_capacity()))
