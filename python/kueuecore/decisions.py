"""What a scheduling cycle decided, as plain frozen data.

A [`Decision`][kueuecore.decisions.Decision] holds the engine's own result and creates Python objects lazily.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from kueuecore import _core, decision_tables
from kueuecore._events import Event
from kueuecore._keyed import Keyed
from kueuecore.errors import ObjectRef, Problem

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from kueuecore._core import Decision as Recorded

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
    """The assignment of one pod set (`status.admission.podSetAssignments[]`).

    Args:
        name: Name of the pod set.
        count: Pods that may start; fewer than asked for after partial admission (rules/03 §9.1).
        flavors: Resource to flavor.
        resource_usage: Resource to the total of the pod set, as a quantity.
        topology_assignment: The domains for its pods, as Kueue writes it (rules/08 §15); `None`: anywhere.
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
        pod_sets: The assignment of each pod set.
        is_admitted: Whether it may start; false while admission checks are open.
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
        is_parked: Whether it is set aside until something changes. Otherwise the next cycle tries it again.
    """

    namespace: str
    name: str
    cluster_queue: str
    reason: str
    message: str
    is_parked: bool


@dataclass(frozen=True, slots=True)
class Preemption(Keyed):
    """A preempted workload: it is marked, and holds its quota until its job has stopped (rules/04 §8).

    Args:
        namespace: Namespace of the victim.
        name: Name of the victim.
        cluster_queue: The ClusterQueue whose quota it holds.
        preemptor: Key of the workload that needs the quota.
        reason: Reason of its condition Preempted, such as `InClusterQueue` or `InCohortReclamation`; `FlavorMigration`
            for a variant preempted by one for a preferred flavor (rules/09 §4.4).
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
    """A workload that loses its quota because no host can replace one that failed (rules/08 §11.7).

    Args:
        namespace: Namespace of the workload.
        name: Name of the workload.
        reason: Reason of its condition Evicted: `NodeFailures`.
        message: Kueue's message.
        again: Whether it was Evicted before, so that its condition is only rewritten.
        unwritten: Kueue's message if that cannot be written, in an event SecondPassFailed.
    """

    namespace: str
    name: str
    reason: str
    message: str
    again: bool
    unwritten: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ReplacedSlice(Keyed):
    """A slice of an elastic workload that is finished because its replacement got quota (rules/09 §2.3).

    Args:
        namespace: Namespace of the slice.
        name: Name of the slice.
        successor: Key of the slice that replaces it.
        message: Kueue's message.
    """

    namespace: str
    name: str
    successor: str
    message: str


@dataclass(frozen=True, slots=True)
class Undecided(Keyed):
    """A workload without a decision, because it needs a feature that kueuecore does not have yet.

    Args:
        namespace: Namespace of the workload.
        name: Name of the workload.
        field: The field that asks for that feature.
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
    """What would happen to a workload."""

    FITS = "Fits"
    """It would get quota."""
    PREEMPTS = "Preempts"
    """It would get quota after preempting others."""
    WAITS = "Waits"
    """It would stay pending."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What would happen to a workload.

    Args:
        outcome: The outcome.
        cluster_queue: The ClusterQueue in which it would wait; empty if there is none.
        pod_sets: What each pod set would get, at once or after the preemptions; empty if it would wait.
        preemptions: The workloads that it would preempt.
        reason: Reason of its condition QuotaReserved, such as `WaitingForQuota`; empty if it would get quota or none is
            written.
        message: Kueue's message.
        n_ahead: How many workloads of the ClusterQueue are ahead of it.
        undecided: The field and what is missing, if it needs a feature that kueuecore does not have yet.
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
        """Read a row of the extension."""
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


_COMPARED = (
    *("cycle", "has_changed_something", "counts", "placed", "evictions", "preemptions", "replaced", "waits_for_pods"),
    *("admissions", "pending", "parked", "events", "skipped_preemptions", "target_recomputations", "undecided"),
)
# They number what the others name.
_ROWS = ("admission_rows", "flavor_rows", "preemption_rows", "pending_rows")


def _part(core: _core.Decision, name: str) -> object:
    part = getattr(core, name)
    return part() if callable(part) else part


class _Kept:
    """The parts of a decision in a pickle, under the names that the extension gives them."""

    def __init__(self, parts: Mapping[str, object]) -> None:
        self._parts = parts

    def __getattr__(self, name: str) -> object:
        if name not in (*_COMPARED, *_ROWS):
            raise AttributeError(name)
        part = self._parts[name]
        return part if name in ("cycle", "has_changed_something") else lambda: part


class Decision:
    """The decisions of one cycle (rules/05 §6). Each part is built on first access.

    Two are equal if they decided the same. Pickling keeps all parts.
    """

    _core: Recorded

    def __init__(self, core: Recorded) -> None:
        vars(self)["_core"] = core

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Decision):
            return NotImplemented
        return all(_part(self._core, name) == _part(other._core, name) for name in _COMPARED)

    def __hash__(self) -> int:
        return hash((self.cycle, *self._core.counts()))

    def __reduce__(self) -> tuple[object, ...]:
        return Decision, (_Kept({name: _part(self._core, name) for name in (*_COMPARED, *_ROWS)}),)

    @property
    def cycle(self) -> int:
        """The number of the cycle, from 1; 0 if no ClusterQueue had a head and so no cycle ran."""
        return self._core.cycle

    @property
    def has_changed_something(self) -> bool:
        """Whether the cycle changed more than messages: a reservation, a preemption, or what is in a heap or parked."""
        return self._core.has_changed_something

    @cached_property
    def waits_for_pods(self) -> str | None:
        """The `namespace/name` of the head that fits but waits until the pods of all workloads with quota are ready.

        That is what `waitForPodsReady.blockAdmission` asks for (rules/07 §6). The cycle is not over then: the next call
        of `Engine.cycle` continues it before anything else is decided.
        """
        key = self._core.waits_for_pods()
        return None if key is None else "/".join(key)

    @cached_property
    def admissions(self) -> tuple[WorkloadAdmission, ...]:
        """The workloads that got quota, in the order of the decisions."""
        return _admissions(self._core.admissions())

    @cached_property
    def placed(self) -> tuple[WorkloadAdmission, ...]:
        """The workloads with quota whose admission a second pass has changed (rules/08 §11.10).

        Their pods were placed, late or in place of a failed host, or only the count of those that are left is new.
        """
        return _admissions(self._core.placed())

    @cached_property
    def evictions(self) -> tuple[Eviction, ...]:
        """The workloads that lose their quota because no host can replace one that failed."""
        rows = self._core.evictions()
        return tuple(Eviction(*key, reason, message, again, text) for key, reason, message, again, text in rows)

    @cached_property
    def preemptions(self) -> tuple[Preemption, ...]:
        """The workloads that are preempted."""
        return _preemptions(self._core.preemptions())

    @cached_property
    def replaced_slices(self) -> tuple[ReplacedSlice, ...]:
        """The slices of elastic workloads that ended because their replacements got quota."""
        return tuple(
            ReplacedSlice(*key, "/".join(successor), message) for key, successor, message in self._core.replaced()
        )

    @cached_property
    def pending(self) -> tuple[Pending, ...]:
        """The heads that stayed pending, in the order of the decisions."""
        rows = self._core.pending()
        return tuple(Pending(*key, queue, reason, message, parked) for key, queue, reason, message, parked in rows)

    @cached_property
    def parked(self) -> tuple[str, ...]:
        """Keys of the workloads parked without a try, because one of the same shape did not fit (rules/05 §4)."""
        return tuple("/".join(key) for key in self._core.parked())

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The events of the cycle."""
        return tuple(Event(type_, reason, *key, message) for type_, reason, key, message in self._core.events())

    @cached_property
    def skipped_preemptions(self) -> Mapping[str, int]:
        """Preemptions skipped because of other entries of the cycle, per ClusterQueue."""
        return MappingProxyType(self._core.skipped_preemptions())

    @cached_property
    def target_recomputations(self) -> Mapping[str, Mapping[str, int]]:
        """How often an entry was assigned again because targets overlapped, per ClusterQueue (rules/05 §6.4).

        The inner keys are the results: `new_targets`, `deferred_fit` or `skipped`.
        """
        return MappingProxyType(self._core.target_recomputations())

    @cached_property
    def undecided(self) -> tuple[Undecided, ...]:
        """The heads on which no decision could be made."""
        return tuple(Undecided(*key, field, message) for key, field, message in self._core.undecided())

    # The same as arrays, without a Python object per decision. Workload numbers index `Engine.workload_keys`, all
    # others `Engine.names`.

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
        """The assignments of workloads with new quota, pod set by pod set, as a structured array, shape (n,).

        `admission` is the index in `admission_table`, `pod_set` that of the pod set, `count` how many of its pods may
        start; `resource` and `flavor` as numbers; `amount` the total of the pod set, in milli-units for `cpu` and whole
        units (bytes) for the rest.
        """
        return decision_tables.table(self._core.flavor_rows(), decision_tables.FLAVORS)

    @cached_property
    def preemption_table(self) -> npt.NDArray[np.void]:
        """`preemptions` as a structured array, shape (n,).

        `workload`, `cluster_queue`, `preemptor` and `reason` as numbers. For a workload that no longer holds quota,
        `cluster_queue` is `kueuecore.decision_tables.NONE`.
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
