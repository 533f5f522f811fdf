"""An engine's state as plain frozen data: workloads, quota and usage, statuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from kueuecore._keyed import Keyed

__all__ = ["ClusterQueueState", "LocalQueueState", "PendingWorkload", "QuotaRow", "Stage", "WorkloadState"]


class Stage(StrEnum):
    """The stage of a workload's life."""

    PENDING = "Pending"
    QUOTA_RESERVED = "QuotaReserved"
    ADMITTED = "Admitted"
    FINISHED = "Finished"


@dataclass(frozen=True, slots=True)
class WorkloadState(Keyed):
    """The state of a workload, and what Kueue says about it.

    Args:
        namespace: Namespace.
        name: Name.
        stage: Stage.
        local_queue: `spec.queueName`.
        cluster_queue: The ClusterQueue of its LocalQueue; `None` if the LocalQueue does not exist.
        priority: `spec.priority`.
        reason: Reason of the most telling condition.
        message: Its message.
        place: `active` in the heap, `inadmissible` while parked, `None` if it is not queued.
        status: `status` as the API server would show it.
        is_active: `spec.active`: a deactivated workload does not run.
    """

    namespace: str
    name: str
    stage: Stage
    local_queue: str
    cluster_queue: str | None
    priority: int
    reason: str
    message: str
    place: str | None
    status: Mapping[str, Any] = field(repr=False)
    is_active: bool = True

    @property
    def flavors(self) -> dict[str, dict[str, str]]:
        """The flavors by pod set and resource, once quota is reserved."""
        assignments = self.status.get("admission", {}).get("podSetAssignments", ())
        return {assignment["name"]: dict(assignment.get("flavors", {})) for assignment in assignments}


@dataclass(frozen=True, slots=True)
class PendingWorkload(Keyed):
    """A pending workload and its position (rules/12 §2).

    Args:
        namespace: Namespace.
        name: Name.
        priority: `spec.priority`.
        local_queue: Its LocalQueue.
        position_in_cluster_queue: Position in the order of the whole ClusterQueue, from 0, parked ones included.
        position_in_local_queue: Position among those of its LocalQueue, from 0.
        place: `active` or `inadmissible`.
    """

    namespace: str
    name: str
    priority: int
    local_queue: str
    position_in_cluster_queue: int
    position_in_local_queue: int
    place: str


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """Quota and usage of one node for one flavor and resource (rules/02 §2).

    Amounts are quantities; `None` is unlimited, and where a limit is absent.

    Args:
        kind: `ClusterQueue` or `Cohort`.
        name: Its name.
        parent: The cohort above it.
        flavor: Flavor.
        resource: Resource.
        nominal: `nominalQuota`.
        borrowing_limit: `borrowingLimit`.
        lending_limit: `lendingLimit`.
        subtree_quota: Its own quota and what its children lend.
        usage: What is used here; for a cohort, what its children take from it.
        available: What can still be used.
        potential_available: What could be used if everything were idle.
        borrowed: Usage above the subtree quota, for nodes with a parent.
    """

    kind: str
    name: str
    parent: str | None
    flavor: str
    resource: str
    nominal: str | None
    borrowing_limit: str | None
    lending_limit: str | None
    subtree_quota: str | None
    usage: str
    available: str | None
    potential_available: str | None
    borrowed: str


@dataclass(frozen=True, slots=True)
class ClusterQueueState:
    """Status of a ClusterQueue.

    Args:
        name: Name.
        is_active: Whether it may admit.
        reason: Reason of its condition Active.
        message: Message of its condition Active: everything that prevents it from admitting (rules/02 §5).
        pending_workloads: How many workloads wait in it.
        reserving_workloads: How many workloads hold its quota.
        admitted_workloads: How many of them are Admitted.
        status: `status` as the API server would show it.
    """

    name: str
    is_active: bool
    reason: str
    message: str
    pending_workloads: int
    reserving_workloads: int
    admitted_workloads: int
    status: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, name: str, status: Mapping[str, Any]) -> Self:
        """Read a status."""
        active: Mapping[str, Any] = next(iter(status.get("conditions", ())), {})
        return cls(
            name,
            active.get("status") == "True",
            active.get("reason", ""),
            active.get("message", ""),
            status["pendingWorkloads"],
            status["reservingWorkloads"],
            status["admittedWorkloads"],
            status,
        )


@dataclass(frozen=True, slots=True)
class LocalQueueState:
    """Status of a LocalQueue; see [`ClusterQueueState`][kueuecore.states.ClusterQueueState]."""

    namespace: str
    name: str
    pending_workloads: int
    reserving_workloads: int
    admitted_workloads: int
    status: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, namespace: str, name: str, status: Mapping[str, Any]) -> Self:
        """Read a status."""
        counts = status["pendingWorkloads"], status["reservingWorkloads"], status["admittedWorkloads"]
        return cls(namespace, name, *counts, status)
