"""A snapshot of an engine: each part is computed once, however many watchers read it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from kueuecore.engine import Engine
from kueuecore.states import ClusterQueueState, PendingWorkload, QuotaRow, Stage, WorkloadState

__all__ = ["EngineView", "holds_quota", "is_evicted"]


class EngineView:
    """A snapshot of an engine. After a change of the engine, create a new one.

    Args:
        engine: The engine; it is only read.

    Example:
        >>> EngineView(Engine()).workloads
        ()
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @cached_property
    def workloads(self) -> tuple[WorkloadState, ...]:
        """All workloads, by namespace and name."""
        return self.engine.workloads()

    @cached_property
    def states(self) -> Mapping[str, WorkloadState]:
        """The workloads by key."""
        return {workload.key: workload for workload in self.workloads}

    @cached_property
    def quota(self) -> tuple[QuotaRow, ...]:
        """Quota and usage, by ClusterQueue, Cohort, flavor and resource."""
        return self.engine.quota()

    @cached_property
    def orders(self) -> Mapping[str, tuple[PendingWorkload, ...]]:
        """The pending workloads of each ClusterQueue, in order."""
        return {name: self.engine.pending(name) for name in self.engine.cluster_queues()}

    @cached_property
    def cluster_queues(self) -> Mapping[str, ClusterQueueState]:
        """The statuses of the ClusterQueues."""
        return {name: self.engine.cluster_queue(name) for name in self.orders}

    def is_as(self, other: EngineView) -> bool:
        """Return whether two snapshots show the same."""
        return (
            self.workloads == other.workloads
            and self.quota == other.quota
            and self.orders == other.orders
            and self.cluster_queues == other.cluster_queues
            and self.engine.next_wake() == other.engine.next_wake()
        )


def holds_quota(workload: WorkloadState) -> bool:
    """Return whether a workload holds quota."""
    return workload.stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED)


def is_evicted(workload: WorkloadState) -> bool:
    """Return whether the condition Evicted of a workload is True."""
    conditions = workload.status.get("conditions", ())
    return any(condition["type"] == "Evicted" and condition["status"] == "True" for condition in conditions)
