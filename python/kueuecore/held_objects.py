"""What an engine holds: its objects as plain data, and the states of workloads, queues, quota and nodes."""

from __future__ import annotations

from kueuecore._arguments import text, workload_key
from kueuecore._core import Engine as CoreEngine
from kueuecore._json import JsonObject
from kueuecore._kinds import KINDS
from kueuecore._rows import read_row, read_rows
from kueuecore.decision_tables import Names
from kueuecore.errors import ObjectRef, UnknownObjectError
from kueuecore.states import ClusterQueueState, LocalQueueState, PendingWorkload, QuotaRow, WorkloadState
from kueuecore.topology import DomainCapacity, Placement

__all__ = ["HELD_KINDS", "Held"]

HELD_KINDS = tuple(kind.name for kind in KINDS if kind.is_given_back)
"""The kinds whose objects an engine returns, in an order in which they can be applied one by one."""


class Held:
    """What an `Engine` says about what it holds."""

    _core: CoreEngine

    def objects(self, kind: str) -> tuple[JsonObject, ...]:
        """Return the objects of a kind, by namespace and name; Kueue's kinds in version v1beta2.

        They have only the fields that scheduling reads: an engine drops the others, such as container images.
        Workloads include their status. An engine that you apply them to as trusted returns the same objects.
        LimitRanges, RuntimeClasses, Pods and the kinds that describe devices are kept, but not returned.

        Args:
            kind: One of `HELD_KINDS`.

        Raises:
            ValueError: The engine does not keep enough of this kind.

        Example:
            >>> from kueuecore import Engine
            >>> engine = Engine()
            >>> _ = engine.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: spot}}")
            >>> [flavor["metadata"]["name"] for flavor in engine.objects("ResourceFlavor")]
            ['spot']
        """
        found = self._core.objects(text("kind", kind), None)
        if found is None:
            raise ValueError(f"kind: {kind!r} is not one of {', '.join(HELD_KINDS)}")
        return tuple(found)

    def object(self, kind: str, name: str, *, namespace: str = "") -> JsonObject:
        """Return one object; see `objects`.

        Args:
            kind: One of `HELD_KINDS`.
            name: Its name.
            namespace: Its namespace, if it has one.

        Raises:
            UnknownObjectError: There is no such object.
            ValueError: The engine does not keep enough of this kind.
        """
        only = text("namespace", namespace), text("name", name)
        found = self._core.objects(text("kind", kind), only)
        if found is None:
            raise ValueError(f"kind: {kind!r} is not one of {', '.join(HELD_KINDS)}")
        if not found:
            raise UnknownObjectError(ObjectRef(kind, name, namespace))
        return dict(found[0])

    def workload(self, name: str, *, namespace: str) -> WorkloadState:
        """Return the state of a workload.

        Raises:
            UnknownObjectError: There is no such Workload.
        """
        return read_row(WorkloadState, self._core.workload(*workload_key(namespace, name)))

    def workloads(self) -> tuple[WorkloadState, ...]:
        """Return all workloads, by namespace and name."""
        return read_rows(WorkloadState, self._core.workloads())

    def names(self) -> Names:
        """Return the names of ClusterQueues, flavors, resources and reasons by number, for the tables of decisions.

        Example:
            >>> from kueuecore import Engine
            >>> engine = Engine()
            >>> engine.submit(namespace="default", local_queues=["user-queue"], queue=[0], requests={"cpu": 1})
            >>> engine.names().resources
            ('cpu',)
        """
        return Names(*map(tuple, self._core.names()))

    def workload_keys(self) -> tuple[str | None, ...]:
        """Return `namespace/name` of the workloads by number, for the tables of decisions; `None`: the number is free.

        A workload keeps its number until it is deleted; the next new workload then reuses it.
        """
        return tuple(key and "/".join(key) for key in self._core.workload_keys())

    def pending(self, cluster_queue: str) -> tuple[PendingWorkload, ...]:
        """Return the pending workloads of a ClusterQueue in queue order, parked ones included (rules/12 §2).

        Raises:
            UnknownObjectError: There is no such ClusterQueue.
        """
        return read_rows(PendingWorkload, self._core.pending(text("cluster_queue", cluster_queue)))

    def cluster_queues(self) -> tuple[str, ...]:
        """Return the names of the ClusterQueues, sorted."""
        return tuple(self._core.cluster_queues())

    def cluster_queue(self, name: str) -> ClusterQueueState:
        """Return the status of a ClusterQueue.

        Raises:
            UnknownObjectError: There is no such ClusterQueue.
        """
        return ClusterQueueState.of(name, self._core.cluster_queue_status(text("name", name)))

    def local_queue(self, name: str, *, namespace: str) -> LocalQueueState:
        """Return the status of a LocalQueue.

        Raises:
            UnknownObjectError: There is no such LocalQueue.
        """
        return LocalQueueState.of(namespace, name, self._core.local_queue_status(*workload_key(namespace, name)))

    def quota(self) -> tuple[QuotaRow, ...]:
        """Return quota and usage of every ClusterQueue and Cohort, per flavor and resource (rules/02 §2)."""
        return read_rows(QuotaRow, self._core.quota())

    def placements(self) -> tuple[Placement, ...]:
        """Return where pods run: the pod sets with a topology assignment of workloads that hold quota (rules/08 §8).

        Sorted by namespace and name, then in the order of the pod sets. `kueuecore.topology.Placement` has an example.

        Example:
            >>> from kueuecore import Engine
            >>> Engine().placements()
            ()
        """
        return read_rows(Placement, self._core.placements())

    def domain_capacity(self) -> tuple[DomainCapacity, ...]:
        """Return the capacity of each domain of each topology, and how much of it is free, per resource (rules/08 §4).

        Sorted by flavor, level from the top, path and resource. Only flavors whose Topology exists have rows, and only
        domains with a usable node of the flavor.

        Example:
            >>> from kueuecore import Engine
            >>> Engine().domain_capacity()
            ()
        """
        return read_rows(DomainCapacity, self._core.domain_capacity())
