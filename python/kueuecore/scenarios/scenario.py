"""A scenario: clusters, their work, and a seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kueuecore.experiments import Experiments
from kueuecore.releases import Release
from kueuecore.scenarios.cluster_part import ClusterPart
from kueuecore.scenarios.present import Present

if TYPE_CHECKING:  # parts that few scenarios have, and that import much
    from kueuecore.scenarios.fleet_part import FleetPart
    from kueuecore.scenarios.generator_reader import GeneratedRun
    from kueuecore.scenarios.timed_changes import TimedChange
    from kueuecore.scenarios.trace_part import TracePart
    from kueuecore.scenarios.work import Work

__all__ = ["DEFAULT_START", "MAX_SEED", "Scenario"]

DEFAULT_START = "2026-01-01T00:00:00Z"
"""When a scenario starts that does not say when."""

MAX_SEED = 2**53
"""The largest seed: JSON numbers are exact up to here in every language."""

_FOR_EVER = Present()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What to simulate.

    Args:
        cluster: The cluster, unless it is a fleet.
        fleet: The fleet, if there are several clusters.
        work: The jobs that arrive.
        generated: What a file of Kueue's performance tests adds to the cluster and its work.
        traces: Recorded jobs in addition to the work.
        seed: The seed of all random draws.
        start: The start time, in nanoseconds since 1970.
        until_seconds: The latest end, in seconds from the start; None: when nothing is left to happen.
        cycle_seconds: How long a cycle of the cluster takes.
        timetable: Changes of the cluster's objects.
        present: How long the cluster's initial Workloads run.
        skipped: What is skipped of the directories that it names, in sentences.
        notes: Which release of Kueue its objects show, in sentences.
    """

    cluster: ClusterPart = field(default_factory=ClusterPart)
    fleet: FleetPart | None = None
    work: tuple[Work, ...] = ()
    generated: GeneratedRun | None = None
    traces: tuple[TracePart, ...] = ()
    seed: int = 0
    start: int = 0
    until_seconds: float | None = None
    cycle_seconds: float = 1.0
    timetable: tuple[TimedChange, ...] = ()
    present: Present = _FOR_EVER
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def release(self) -> Release:
        """The release of Kueue that decides: in the cluster, or on the manager of a fleet."""
        return (self.cluster if self.fleet is None else self.fleet.manager).configuration.release

    @property
    def experiments(self) -> Experiments:
        """The rules that Kueue does not have: in the cluster, or on the manager of a fleet."""
        return (self.cluster if self.fleet is None else self.fleet.manager).configuration.experiments

    @property
    def experiment_notices(self) -> tuple[str, ...]:
        """What an output says about the rules that Kueue does not have, in the cluster or in a fleet; empty: none."""
        workers = {} if self.fleet is None else self.fleet.workers
        of_workers = {name: worker.cluster.configuration.experiments.notice for name, worker in workers.items()}
        found = [self.experiments.notice, *(f"worker {name}: {text}" for name, text in of_workers.items() if text)]
        return tuple(filter(None, found))

    @property
    def worker_releases(self) -> dict[str, Release]:
        """The release of Kueue that decides on each worker of a fleet."""
        workers = {} if self.fleet is None else self.fleet.workers
        return {name: worker.cluster.configuration.release for name, worker in workers.items()}

    @property
    def n_jobs(self) -> int:
        """The number of jobs."""
        n_generated = 0 if self.generated is None else len(self.generated.copies)
        return n_generated + sum(work.n_expected for work in self.work) + sum(trace.n_jobs for trace in self.traces)
