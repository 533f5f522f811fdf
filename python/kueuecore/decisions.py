"""What a scheduling cycle decided, as plain frozen data.

A [`Decision`][kueuecore.decisions.Decision] holds on to the engine's own result and makes Python objects of it only
when they are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from kueuecore import _core, decision_tables
from kueuecore._keyed import Keyed
from kueuecore.errors import ObjectRef, Problem

__all__ = [
    "Decision",
    "Event",
    "Eviction",
    "Outcome",
    "Pending",
    "PodSetAdmission",
    "Preemption",
    "ReplacedSlice",
    "Undecided",
    "WhatIf",
    "WorkloadAdmission",
]


@dataclass(frozen=True, slots=True)
class PodSetAdmission:
    """What one pod set got (`status.admission.podSetAssignments[]`).

    Args:
        name: Name of the pod set.
        count: Pods that may start; fewer than asked for after partial admission (rules/03 §9.1).
        flavors: Resource to flavor.
        resource_usage: Resource to the total of the pod set, as a quantity.
        topology_assignment: Where its pods are to stand, as Kueue writes it (rules/08 §15); `None`: anywhere.
    """

    name: str
    count: int
    flavors: Mapping[str, str]
    resource_usage: Mapping[str, str]
    topology_assignment: Mapping[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class WorkloadAdmission(Keyed):
    """A workload that got quota (rules/05 §6.4).

    Args:
        namespace: Namespace of the workload.
        name: Name of the workload.
        cluster_queue: The ClusterQueue whose quota it holds.
        pod_sets: What each pod set got.
        is_admitted: May it start? False while admission checks are open.
        time: When, in nanoseconds since 1970: the time of the cycle, or later if that waited for pods.
    """

    namespace: str
    name: str
    cluster_queue: str
    pod_sets: tuple[PodSetAdmission, ...]
    is_admitted: bool
    time: int


@dataclass(frozen=True, slots=True)
class Pending(Keyed):
    """A head that stayed pending (rules/05 §6.5).

    Args:
        namespace: Namespace of the workload.
        name: Name of the workload.
        cluster_queue: The ClusterQueue in which it waits.
        reason: Reason of its condition QuotaReserved, such as `WaitingForQuota`.
        message: Kueue's message.
        is_parked: Is it left aside until something changes? Otherwise it is tried again in the next cycle.
    """

    namespace: str
    name: str
    cluster_queue: str
    reason: str
    message: str
    is_parked: bool


@dataclass(frozen=True, slots=True)
class Preemption(Keyed):
    """A workload that has to give way: it is marked, and holds its quota until its job has stopped (rules/04 §8).

    Args:
        namespace: Namespace of the victim.
        name: Name of the victim.
        cluster_queue: The ClusterQueue whose quota it holds.
        preemptor: Key of the workload that needs the room.
        reason: Reason of its condition Preempted, such as `InClusterQueue` or `InCohortReclamation`; `FlavorMigration`
            for a variant that gives way to one for a preferred flavor (rules/09 §4.4).
        message: Kueue's message.
    """

    namespace: str
    name: str
    cluster_queue: str
    preemptor: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Eviction(Keyed):
    """A workload that loses its quota, because nothing replaces a host that failed under it (rules/08 §11.7).

    Args:
        namespace: Namespace of the workload.
        name: Name of the workload.
        reason: Reason of its condition Evicted: `NodeFailures`.
        message: Kueue's message.
        again: Was it Evicted before, so that its condition is only written anew?
    """

    namespace: str
    name: str
    reason: str
    message: str
    again: bool


@dataclass(frozen=True, slots=True)
class ReplacedSlice(Keyed):
    """A slice of an elastic workload that is finished, because its replacement got quota (rules/09 §2.3).

    Args:
        namespace: Namespace of the slice.
        name: Name of the slice.
        successor: Key of the slice that takes its place.
        message: Kueue's message.
    """

    namespace: str
    name: str
    successor: str
    message: str


@dataclass(frozen=True, slots=True)
class Event(Keyed):
    """A Kubernetes event that Kueue would emit.

    Args:
        type: `Normal` or `Warning`.
        reason: Reason, such as `QuotaReserved`.
        namespace: Namespace of the workload that it is about.
        name: Name of the workload.
        message: Message, at most 1024 bytes.
    """

    type: str
    reason: str
    namespace: str
    name: str
    message: str


@dataclass(frozen=True, slots=True)
class Undecided(Keyed):
    """A workload on which no decision is made, because it needs what is not built yet.

    Args:
        namespace: Namespace of the workload.
        name: Name of the workload.
        field: The field that asks for it.
        message: What is missing.
    """

    namespace: str
    name: str
    field: str
    message: str

    def __str__(self) -> str:
        about = ObjectRef("Workload", self.name, self.namespace)
        return str(Problem(self.message, field=self.field, object=about, remedy="it stays undecided"))


class Outcome(StrEnum):
    """What a workload would come to."""

    FITS = "Fits"
    """It would get quota."""
    PREEMPTS = "Preempts"
    """It would get quota once others have given way."""
    WAITS = "Waits"
    """It would stay pending."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What would become of a workload.

    Args:
        outcome: What it would come to.
        cluster_queue: The ClusterQueue in which it would wait; empty if there is none.
        pod_sets: What each pod set would get, at once or after the preemptions; empty if it would wait.
        preemptions: Who would have to give way.
        reason: Reason of its condition QuotaReserved, such as `WaitingForQuota`; empty if it would get quota or none is
            written.
        message: Kueue's message.
        n_ahead: How many workloads of the ClusterQueue stand before it.
        undecided: The field and what is missing, if it asks for something on which nothing is decided.
    """

    outcome: Outcome
    cluster_queue: str
    pod_sets: tuple[PodSetAdmission, ...]
    preemptions: tuple[Preemption, ...]
    reason: str
    message: str
    n_ahead: int
    undecided: tuple[str, str] | None

    @classmethod
    def of(cls, row: _core._WhatIf) -> WhatIf:
        """From a row of the extension."""
        outcome, queue, admission, preemptions, (reason, message, n_ahead, undecided) = row
        pod_sets = () if admission is None else _pod_sets(admission)
        return cls(Outcome(outcome), queue, pod_sets, _preemptions(preemptions), reason, message, n_ahead, undecided)


def _pod_sets(admission: dict[str, Any]) -> tuple[PodSetAdmission, ...]:
    return tuple(
        PodSetAdmission(
            pod_set["name"],
            pod_set.get("count", 0),
            MappingProxyType(pod_set.get("flavors", {})),
            MappingProxyType(pod_set.get("resourceUsage", {})),
            pod_set.get("topologyAssignment"),
        )
        for pod_set in admission.get("podSetAssignments", ())
    )


def _admissions(rows: list[tuple[tuple[str, str], dict[str, Any], bool, int]]) -> tuple[WorkloadAdmission, ...]:
    return tuple(
        WorkloadAdmission(*key, admission["clusterQueue"], _pod_sets(admission), is_admitted, time)
        for key, admission, is_admitted, time in rows
    )


def _preemptions(rows: list[_core._Preemption]) -> tuple[Preemption, ...]:
    return tuple(
        Preemption(*key, cluster_queue, "/".join(preemptor), reason, message)
        for key, cluster_queue, preemptor, reason, message in rows
    )


class Decision:
    """The decisions of one cycle (rules/05 §6). Everything is worked out when it is first looked at."""

    def __init__(self, core: _core.Decision) -> None:
        self._core = core

    @property
    def cycle(self) -> int:
        """Number of the cycle, from 1; 0 if no ClusterQueue had a head, so that there was none."""
        return self._core.cycle

    @property
    def has_changed_something(self) -> bool:
        """Did the cycle change anything but messages: a reservation, a preemption, or what is in a heap or parked?"""
        return self._core.has_changed_something

    @cached_property
    def waits_for_pods(self) -> str | None:
        """`namespace/name` of the head that fits but waits until the pods of all workloads with quota are ready.

        So `waitForPodsReady.blockAdmission` wants it (rules/07 §6). The cycle is not over then: nothing else is decided
        before, and the next call of `Engine.cycle` goes on with it.
        """
        key = self._core.waits_for_pods()
        return None if key is None else "/".join(key)

    @cached_property
    def admissions(self) -> tuple[WorkloadAdmission, ...]:
        """The workloads that got quota, in the order in which they were decided on."""
        return _admissions(self._core.admissions())

    @cached_property
    def placed(self) -> tuple[WorkloadAdmission, ...]:
        """The workloads that had quota and got a place: one put off, or one for a failed host (rules/08 §11.10)."""
        return _admissions(self._core.placed())

    @cached_property
    def evictions(self) -> tuple[Eviction, ...]:
        """The workloads that lose their quota, because nothing replaces a failed host."""
        return tuple(Eviction(*key, reason, message, again) for key, reason, message, again in self._core.evictions())

    @cached_property
    def preemptions(self) -> tuple[Preemption, ...]:
        """The workloads that have to give way."""
        return _preemptions(self._core.preemptions())

    @cached_property
    def replaced_slices(self) -> tuple[ReplacedSlice, ...]:
        """The slices of elastic workloads that ended, because their replacements got quota."""
        return tuple(
            ReplacedSlice(*key, "/".join(successor), message) for key, successor, message in self._core.replaced()
        )

    @cached_property
    def pending(self) -> tuple[Pending, ...]:
        """The heads that stayed pending, in the order in which they were decided on."""
        rows = self._core.pending()
        return tuple(Pending(*key, queue, reason, message, parked) for key, queue, reason, message, parked in rows)

    @cached_property
    def parked(self) -> tuple[str, ...]:
        """Keys of the workloads that were parked unseen, because one of the same shape failed (rules/05 §4)."""
        return tuple("/".join(key) for key in self._core.parked())

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The events of the cycle."""
        return tuple(Event(type_, reason, *key, message) for type_, reason, key, message in self._core.events())

    @cached_property
    def skipped_preemptions(self) -> Mapping[str, int]:
        """Per ClusterQueue: preemptions that were skipped because of other entries of the cycle."""
        return MappingProxyType(self._core.skipped_preemptions())

    @cached_property
    def target_recomputations(self) -> Mapping[str, Mapping[str, int]]:
        """Per ClusterQueue: how often an entry was assigned again for overlapping targets (rules/05 §6.4).

        By what came of it: `new_targets`, `deferred_fit` or `skipped`.
        """
        return MappingProxyType(self._core.target_recomputations())

    @cached_property
    def undecided(self) -> tuple[Undecided, ...]:
        """The heads on which no decision could be made."""
        return tuple(Undecided(*key, field, message) for key, field, message in self._core.undecided())

    # The same as arrays, without a Python object a decision. Numbers of workloads are those of `Engine.workload_keys`,
    # all others those of `Engine.names`.

    @cached_property
    def admission_table(self) -> npt.NDArray[np.void]:
        """`admissions` as a structured array, shape (n,).

        `workload` and `cluster_queue` as numbers, `is_admitted`, `time` in nanoseconds since 1970.

        Example:
            >>> from kueuecore.engine import Engine
            >>> engine = Engine()
            >>> table = engine.cycle("2026-01-01T00:00:00Z").admission_table
            >>> len(table), table.dtype.names
            (0, ('workload', 'cluster_queue', 'is_admitted', 'time'))
        """
        return decision_tables.table(self._core.admission_rows(), decision_tables.ADMISSIONS)

    @cached_property
    def flavor_table(self) -> npt.NDArray[np.void]:
        """What the workloads with new quota got, pod set by pod set, as a structured array, shape (n,).

        `admission` is the index in `admission_table`, `pod_set` that of the pod set, `count` its pods that may start;
        `resource` and `flavor` as numbers, `amount` the total of the pod set: milli-units of `cpu`, whole units (bytes)
        of the rest.
        """
        return decision_tables.table(self._core.flavor_rows(), decision_tables.FLAVORS)

    @cached_property
    def preemption_table(self) -> npt.NDArray[np.void]:
        """`preemptions` as a structured array, shape (n,).

        `workload`, `cluster_queue`, `preemptor` and `reason` as numbers. A workload that holds no quota any more has
        `kueuecore.decision_tables.NONE` for a ClusterQueue.
        """
        return decision_tables.table(self._core.preemption_rows(), decision_tables.PREEMPTIONS)

    @cached_property
    def pending_table(self) -> npt.NDArray[np.void]:
        """`pending` as a structured array, shape (n,).

        `workload`, `cluster_queue` and `reason` as numbers, `is_parked`.
        """
        return decision_tables.table(self._core.pending_rows(), decision_tables.PENDING)

    def __repr__(self) -> str:
        n_admissions, n_preemptions, n_pending = self._core.counts()
        counts = f"{n_admissions} admitted, {n_preemptions} preempted, {n_pending} pending"
        return f"<Decision of cycle {self.cycle}: {counts}>"
