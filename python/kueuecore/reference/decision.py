"""The decisions of a cycle, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class PodSetAdmission:
    """The admission of one pod set, and where its pods run, as the API writes it (rules/05 §6.4 12, 08 §15)."""

    name: str
    count: int
    flavors: Mapping[str, str]
    resource_usage: Mapping[str, str]
    topology: Mapping[str, Any] | None = None
    delayed: str = ""


@dataclass(frozen=True)
class _Named:
    namespace: str
    name: str

    @property
    def key(self) -> str:
        """Key of the workload."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Admission(_Named):
    """A workload that got quota, with the time; `is_admitted`: it may start (rules/05 §6.4 12)."""

    cluster_queue: str
    pod_sets: tuple[PodSetAdmission, ...]
    is_admitted: bool
    time: int


@dataclass(frozen=True)
class Pending(_Named):
    """A head that stayed pending (rules/05 §6.5)."""

    cluster_queue: str
    reason: str
    message: str
    is_parked: bool


@dataclass(frozen=True)
class Preemption(_Named):
    """A workload that is preempted (rules/04 §8)."""

    cluster_queue: str
    preemptor: str
    reason: str
    message: str


@dataclass(frozen=True)
class ReplacedSlice(_Named):
    """A slice that finished because its replacement got quota (rules/09 §2.3)."""

    successor: str
    message: str


@dataclass(frozen=True)
class Eviction(_Named):
    """A workload that must stop because its nodes failed; `again`: it was asked before (rules/08 §11.7)."""

    reason: str
    message: str
    again: bool


@dataclass(frozen=True)
class Event(_Named):
    """A Kubernetes event about a workload."""

    type: str
    reason: str
    message: str


@dataclass
class Decision:
    """The decisions of one cycle (rules/05 §6). `cycle` is 0 if there was no head.

    `placements` are admissions of workloads that already held quota: their pods are now placed, or placed elsewhere, or
    fewer are left (rules/08 §11.10).
    """

    cycle: int = 0
    admissions: list[Admission] = field(default_factory=list)
    placements: list[Admission] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    preemptions: list[Preemption] = field(default_factory=list)
    replaced_slices: list[ReplacedSlice] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)
    parked: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    skipped_preemptions: dict[str, int] = field(default_factory=dict)
    target_recomputations: dict[str, dict[str, int]] = field(default_factory=dict)
