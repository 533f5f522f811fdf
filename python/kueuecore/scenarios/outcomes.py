"""What came of a scenario: each job, and how long jobs waited."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from kueuecore._json import JsonObject, int_at, list_at, text_at

__all__ = ["JobOutcome", "QuotaOutcome", "ScenarioEnding", "ScenarioOutcome", "Waits", "node_evictions", "waits_by"]

_SECOND_NS = 1_000_000_000


class ScenarioEnding(StrEnum):
    """Why a scenario ended."""

    COMPLETE = "Complete"
    """It came to its end."""
    CYCLE_LIMIT = "CycleLimit"
    """A cluster had so many cycles that it will not come to an end."""
    UNSETTLED = "Unsettled"
    """A fleet does not come to rest; a note says where and when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """What became of one job, or of one of its Workloads if it has several.

    Args:
        work: The work that it belongs to.
        job: `Kind/name`.
        namespace: Its namespace.
        workload: Name of its Workload; empty if it got none.
        cluster_queue: The ClusterQueue of its Workload; empty if its LocalQueue is not there.
        cluster: The worker that it was on last; empty without a fleet, and on the manager.
        created: When it came, in nanoseconds since 1970.
        admitted: When it was admitted for the first time; None: never.
        finished: When it ended; None: not yet.
        n_admissions: How often it was admitted.
        n_evictions: How often it was evicted.
        n_replacements: How often its pods got other nodes in place of one that had failed, while it ran.
        n_node_evictions: How often it was evicted as a node had failed.
        n_copies: How many copies of its Workload were made on workers.
        copy_wait_ns: How long copies were there without being admitted, all together.
        message: Why it waits, or what it was refused for.
    """

    work: str
    job: str
    namespace: str
    workload: str = ""
    cluster_queue: str = ""
    cluster: str = ""
    created: int
    admitted: int | None = None
    finished: int | None = None
    n_admissions: int = 0
    n_evictions: int = 0
    n_replacements: int = 0
    n_node_evictions: int = 0
    n_copies: int = 0
    copy_wait_ns: int = 0
    message: str = ""

    @property
    def n_wasted_copies(self) -> int:
        """Copies that led to no admission: they took a place in the queue of a worker for nothing."""
        return max(self.n_copies - self.n_admissions, 0)

    @property
    def has_lost_nodes(self) -> bool:
        """Has a node failed under it?"""
        return self.n_replacements + self.n_node_evictions > 0

    @property
    def wait_ns(self) -> int | None:
        """How long it waited for its first admission; None: it still waits."""
        return None if self.admitted is None else self.admitted - self.created


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How a group of jobs fared. Times are in seconds, and those of jobs that were admitted.

    Args:
        name: Of the group.
        n_jobs: How many there are.
        n_admitted: How many were admitted.
        n_finished: How many have ended.
        least: The shortest wait.
        mean: The mean wait.
        p95: The shortest time in which 95 of 100 were admitted.
        most: The longest wait.
        n_evictions: How often any was evicted.
        n_replacements: How often pods of any got other nodes in place of one that had failed.
        n_node_evictions: How often any was evicted as a node had failed.
        n_copies: How many copies were made of them on workers.
        n_wasted_copies: How many of these led to no admission.
        copy_wait: For how many seconds copies were there without being admitted, all together.
    """

    name: str
    n_jobs: int
    n_admitted: int
    n_finished: int
    least: float | None
    mean: float | None
    p95: float | None
    most: float | None
    n_evictions: int
    n_replacements: int = 0
    n_node_evictions: int = 0
    n_copies: int = 0
    n_wasted_copies: int = 0
    copy_wait: float = 0.0

    @classmethod
    def of(cls, name: str, jobs: Sequence[JobOutcome]) -> Waits:
        """How some jobs fared.

        Example:
            >>> jobs = [JobOutcome(work="w", job="j", namespace="n", created=0, admitted=s * 10**9) for s in (1, 2, 9)]
            >>> waits = Waits.of("all", jobs)
            >>> waits.least, waits.mean, waits.p95
            (1.0, 4.0, 9.0)
        """
        waits = sorted(wait / _SECOND_NS for job in jobs if (wait := job.wait_ns) is not None)
        n = len(waits)
        return cls(
            name=name,
            n_jobs=len(jobs),
            n_admitted=n,
            n_finished=sum(job.finished is not None for job in jobs),
            least=waits[0] if waits else None,
            mean=math.fsum(waits) / n if waits else None,
            p95=waits[math.ceil(0.95 * n) - 1] if waits else None,
            most=waits[-1] if waits else None,
            n_evictions=sum(job.n_evictions for job in jobs),
            n_replacements=sum(job.n_replacements for job in jobs),
            n_node_evictions=sum(job.n_node_evictions for job in jobs),
            n_copies=sum(job.n_copies for job in jobs),
            n_wasted_copies=sum(job.n_wasted_copies for job in jobs),
            copy_wait=sum(job.copy_wait_ns for job in jobs) / _SECOND_NS,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaOutcome:
    """The quota of a ClusterQueue that dispatches, beside that of the workers (rules/00 G4), in whole units.

    Args:
        cluster_queue: The ClusterQueue on the manager.
        resource: The resource.
        manager: What it may use; None: without a limit.
        by_worker: What each worker has behind it; None: without a limit.
    """

    cluster_queue: str
    resource: str
    manager: Fraction | None
    by_worker: Mapping[str, Fraction | None]

    @property
    def workers(self) -> Fraction | None:
        """What the workers have together; None: without a limit."""
        known = [it for it in self.by_worker.values() if it is not None]
        return sum(known, Fraction()) if len(known) == len(self.by_worker) else None

    @property
    def verdict(self) -> str:
        """What that means, in a few words."""
        if self.manager == self.workers:
            return "equal"
        if self.workers is None or (self.manager is not None and self.manager < self.workers):
            return "below: the workers have more than it lets through"
        return "above: it lets through more than the workers have"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioOutcome:
    """What came of a scenario.

    Args:
        start: The time of the beginning, in nanoseconds since 1970.
        end: The time of the end.
        jobs: All jobs, in the order in which they came.
        is_fleet: Were there several clusters?
        ending: Why it ended.
        notes: What else is to be told, in sentences.
        quotas: The quota of a fleet's manager beside that of its workers.
        warnings: What is odd about the objects, such as fields that nobody knows.
    """

    start: int
    end: int
    jobs: tuple[JobOutcome, ...]
    is_fleet: bool = False
    ending: ScenarioEnding = ScenarioEnding.COMPLETE
    notes: tuple[str, ...] = ()
    quotas: tuple[QuotaOutcome, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def all(self) -> Waits:
        """How all jobs fared."""
        return Waits.of("all", self.jobs)


def node_evictions(status: JsonObject) -> int:
    """How often a Workload was evicted as a node had failed (rules/08 §13), by its `status.schedulingStats`.

    Example:
        >>> node_evictions({"schedulingStats": {"evictions": [{"reason": "NodeFailures", "count": 2}]}})
        2
    """
    evictions = list_at(status, "schedulingStats", "evictions")
    return sum(int_at(it, "count") for it in evictions if text_at(it, "reason") == "NodeFailures")


def waits_by(jobs: Iterable[JobOutcome], name_of: Callable[[JobOutcome], str]) -> tuple[Waits, ...]:
    """How groups of jobs fared, by their names.

    Args:
        jobs: The jobs.
        name_of: The group of a job.
    """
    groups: dict[str, list[JobOutcome]] = {}
    for job in jobs:
        groups.setdefault(name_of(job), []).append(job)
    return tuple(Waits.of(name, groups[name]) for name in sorted(groups))
