"""The engine: Kubernetes objects in, Kueue's decisions out. It never touches a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn, SupportsIndex

from kueuecore import _core
from kueuecore._arguments import flag, text, workload_key
from kueuecore._rows import read_rows
from kueuecore.configuration import Configuration, configuration_for
from kueuecore.decisions import Decision, Event, WhatIf
from kueuecore.held_objects import Held
from kueuecore.manifests import ManifestLike
from kueuecore.object_batch import Applied, Batch, Objects, each_manifest
from kueuecore.releases import Release
from kueuecore.saved_engine import SavedEngine
from kueuecore.states import WorkloadState
from kueuecore.times import TimeLike, nanoseconds, optional_ns

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Applied", "Engine", "Objects"]


class Engine(SavedEngine, Held):
    """Kueue's scheduler as an object. Thread-safe: each call finishes before the next begins.

    Not safe across `os.fork()`: if another thread is inside a call, the child's copy of the lock is never released.
    Start processes with the start method `spawn`, and pass them `save()`. `fork()` makes a copy in this process.

    Args:
        configuration: Kueue's Configuration; by default what Kueue runs with when it has no file.
        release: The release of Kueue that decides, such as `0.17` or `0.17.3`; by default that of the Configuration.
        models_readiness: Whether pods become ready here. If not, `waitForPodsReady`, which Kueue has on by default,
            only applies if the Configuration names it (rules/11 §2.1).
        batches_retries: Whether parked workloads are retried a second after the change that may let them in, as in a
            running Kueue, and not in the next cycle (rules/05 §3.1).
        keeps_journal: Whether to record every call, for `journal`. The record grows with each call. A call and its
            entry are one step: Ctrl-C leaves both or neither.

    Raises:
        ValueError: The Configuration is for another release.
        UnknownReleaseError: There is no such release.

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
        self,
        configuration: Configuration | None = None,
        *,
        release: str | Release | None = None,
        models_readiness: bool = False,
        batches_retries: bool = False,
        keeps_journal: bool = False,
    ) -> None:
        self._configuration = configuration_for(configuration, release) or Configuration()
        self._models_readiness = flag("models_readiness", models_readiness)
        self._batches_retries = flag("batches_retries", batches_retries)
        keeps_calls = flag("keeps_journal", keeps_journal)
        core = self._configuration._core
        self._core = _core.Engine(core, self._models_readiness, self._batches_retries, keeps_calls)

    @property
    def configuration(self) -> Configuration:
        """The Configuration that the engine was made with."""
        return self._configuration

    @property
    def now(self) -> int:
        """The latest time that any call named, in nanoseconds since 1970; 0 before the first."""
        return self._core.now()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse `copy.copy`, which would share mutable state, `copy.deepcopy` and `pickle`."""
        raise TypeError(
            "an Engine cannot be copied or pickled: use fork() for a copy, or save() and load() to move it to another "
            "process"
        )

    # Objects.

    def apply(self, objects: Objects, *, now: TimeLike | None = None, trusted: bool = False) -> Applied:
        """Create or update objects, all or none of them. Their order does not matter.

        Args:
            objects: YAML or JSON text; JSON bytes (one object, a `List`, an array, or one object per line); or one or
                many manifests, dicts or objects of `kueuecore.objects`.
            now: When it happened, which may be reported late; by default the latest time that any call named.
            trusted: Take the objects as they are, without defaults and validation, because an API server has checked
                them: objects from a watch or a dump.

        Raises:
            ManifestError: Everything that is wrong with any of the objects (rules/01). Nothing has been applied.

        Returns:
            Warnings, and the objects of kinds that the engine does not read, such as a Deployment or a Scenario.
        """
        batch = Batch.of(objects)
        return batch.applied(*batch.given_to(self._core.apply, flag("trusted", trusted), optional_ns(now)))

    def _check(self, objects: Objects, *, now: TimeLike, trusted: bool = False) -> Applied:
        """Return or raise what `apply` would; nothing changes."""
        batch = Batch.of(objects)
        return batch.applied(*batch.given_to(self._core.check, trusted, nanoseconds(now)))

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
        """Add many new workloads with one pod set each, as arrays of n values or scalars for all.

        Args:
            namespace: Namespace of all of them.
            local_queues: Names of LocalQueues.
            queue: Index into `local_queues`, shape (n,), with n up to 10,000,000.
            requests: What one pod requests of each resource, as integers: milli-units for `cpu`, whole units (bytes)
                for the rest. 0: not requested.
            count: Pods of each workload.
            priority: Priority of each workload.
            created: Creation time in nanoseconds since 1970.
            prefix: Names are this prefix and a number; the UID is the name.
            first: Number of the first workload.
            now: When it happens; by default the latest time that any call named.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: The arrays differ in length or have masked values, a value is one that no workload can have, or
                a Workload of the same name exists. Nothing has been applied.

        Example:
            >>> import numpy as np
            >>> engine = Engine()
            >>> engine.submit(namespace="default", local_queues=["user-queue"], queue=np.zeros(1000, int),
            ...               requests={"cpu": np.full(1000, 500)})
            >>> len(engine)
            1000
        """
        from kueuecore.submissions import encode  # imports numpy

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
        """Delete an object. Deleting a Workload frees its quota.

        Args:
            kind: Kind, such as `Workload`.
            name: Name.
            namespace: Namespace of a namespaced kind.
            now: When it happened, which may be reported late; by default the latest time that any call named.

        Raises:
            ValueError: The engine does not keep objects of this kind.

        Returns:
            Whether it existed.
        """
        names = text("kind", kind), text("namespace", namespace), text("name", name)
        return self._core.delete(*names, optional_ns(now))

    # Scheduling.

    def cycle(self, now: TimeLike) -> Decision:
        """Run one scheduling cycle: take the head of every ClusterQueue and decide on each (rules/05 §6).

        Args:
            now: The time of the cycle, for conditions and backoffs; not before the latest time that any call named.

        Returns:
            The decisions. The engine treats them as done: admitted workloads hold their quota from now on.

        Raises:
            ValueError: The time goes back. Nothing has changed.
        """
        return Decision(self._core.cycle(nanoseconds(now)))

    def what_if(self, workload: ManifestLike, *, now: TimeLike | None = None, trusted: bool = False) -> WhatIf:
        """Say what would happen to a Workload if it were applied now and were the only head of the next cycle.

        It is tried on the current quota, with all its preemptions, and undone: nothing changes, and it costs no more
        than the decision itself. The workloads ahead of it are counted, not scheduled. It sees all objects as they are,
        whether or not a cycle has run since they changed.

        Args:
            workload: One Workload that does not exist yet.
            now: The time of the question, earlier or later; by default the latest time that any call named.
            trusted: Take it as it is, without defaults and validation.

        Raises:
            ManifestError: Everything that is wrong with the Workload (rules/01).
            ValueError: It is not a Workload, or a Workload of this name exists.

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
        # A question does not advance the engine's time.
        at = self.now if now is None else nanoseconds(now)
        return WhatIf.of(batch.given_to(self._core.what_if, flag("trusted", trusted), at))

    def reconcile(self, now: TimeLike) -> tuple[Event, ...]:
        """Write what Kueue's controllers for workloads and nodes write outside of cycles (rules/07, rules/08 §13).

        Examples are why a workload is not queued, evictions by stop policies, Admitted once all checks are ready, and
        failed nodes. Call it after `apply` and after each cycle.

        Args:
            now: The time to write in conditions; not before the latest time that any call named.

        Returns:
            The events.

        Raises:
            ValueError: The time goes back. Nothing has changed.
        """
        rows = self._core.reconcile(nanoseconds(now))
        return tuple(Event(type_, reason, *key, message) for type_, reason, key, message in rows)

    def next_wake(self, *, since: TimeLike | None = None) -> int | None:
        """Return when time alone will change something, in nanoseconds since 1970; `None`: never.

        That is when a backoff or a timeout ends, a second pass for a placement on nodes is due (rules/08 §11.10), or a
        retry of parked workloads, if they are batched.

        Args:
            since: Look only after this time; by default the latest time that any call named. Changes that were due
                earlier and have not been reconciled are not returned.
        """
        return self._core.next_wake(self.now if since is None else nanoseconds(since))

    @property
    def has_heads(self) -> bool:
        """Return whether a cycle may have something to do: a workload is in a heap, or is due for another try."""
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
        """Record that a workload's job has ended: it becomes Finished, and its quota is free.

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
            stopped: Whether its job has stopped already, so that its quota is free. If not, call `release` when it has.

        Raises:
            UnknownObjectError: There is no such Workload.

        Returns:
            False if it was evicted before.
        """
        key, reported = workload_key(namespace, name), (text("reason", reason), text("message", message))
        return self._core.evict(*key, *reported, flag("stopped", stopped), nanoseconds(now))

    def release(self, name: str, *, namespace: str, now: TimeLike) -> bool:
        """Record that the job of an evicted workload has stopped: its quota is free, it is pending again (rules/04 §9).

        Raises:
            UnknownObjectError: There is no such Workload.
        """
        return self._core.release(*workload_key(namespace, name), nanoseconds(now))

    def note_readiness(self, name: str, *, namespace: str, now: TimeLike, are_ready: bool) -> bool:
        """Record whether all pods of a workload's job are ready: condition PodsReady (rules/07 §6).

        Raises:
            UnknownObjectError: There is no such Workload.

        Returns:
            False if that is nothing new.
        """
        return self._core.note_readiness(*workload_key(namespace, name), flag("are_ready", are_ready), nanoseconds(now))

    def note_scheduling(self, name: str, *, namespace: str, now: TimeLike, are_scheduled: bool) -> bool:
        """Record whether all pods of a workload's job have nodes: condition PodsScheduled (rules/07 §6).

        Raises:
            UnknownObjectError: There is no such Workload.

        Returns:
            False if that is nothing new, or if there is no `waitForPodsReady.unscheduledTimeout`.
        """
        are_scheduled = flag("are_scheduled", are_scheduled)
        return self._core.note_scheduling(*workload_key(namespace, name), are_scheduled, nanoseconds(now))

    def take_written(self) -> tuple[WorkloadState, ...]:
        """Return the workloads that may have been written to since the last call, by namespace and name.

        The first call returns none. From then on `forget` can undo a reservation not only after its own cycle, but
        until `confirm` says that it was written or a newer version of the Workload is applied.

        Example:
            >>> Engine().take_written()
            ()
        """
        return read_rows(WorkloadState, self._core._take_written(None))

    def confirm(self, name: str, *, namespace: str) -> bool:
        """Record that a reservation was written: `forget` can no longer undo it.

        Raises:
            UnknownObjectError: There is no such Workload.

        Returns:
            False if none was open.
        """
        return self._core.confirm(*workload_key(namespace, name), None)

    def forget(self, name: str, *, namespace: str, now: TimeLike, gone: bool = False) -> bool:
        """Undo a reservation of the last cycle that could not be written: the workload is as it was before that cycle.

        If you call `take_written`, it undoes a reservation of any cycle that has not been confirmed yet.

        Args:
            name: Name of the Workload.
            namespace: Its namespace.
            now: When it happens.
            gone: Whether the Workload no longer exists. Then it is not queued again; call `delete` for it next.

        Raises:
            UnknownObjectError: There is no such Workload.

        Returns:
            False if the last cycle reserved nothing for it.
        """
        return self._core.forget(*workload_key(namespace, name), flag("gone", gone), nanoseconds(now))

    def fork(self) -> Engine:
        """Return an independent copy: neither sees changes to the other. They share memory for what neither changes."""
        return self._like(self._core.fork())

    def _like(self, core: _core.Engine) -> Engine:
        """An engine of the extension with the settings of this one."""
        return self._of(core, self._configuration, self._models_readiness, self._batches_retries)

    def __len__(self) -> int:
        """Return the number of workloads."""
        return self._core.n_workloads()

    def __bool__(self) -> bool:
        """Return True, also without workloads."""
        return True
