"""The outcome of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from kueuecore._json import JsonObject
from kueuecore.scenarios.job_outcomes import JobOutcomes
from kueuecore.scenarios.waits import Waits
from kueuecore.simulation import Run
from kueuecore.simulation.left_out import LeftOut

if TYPE_CHECKING:
    from kueuecore.results import Results
    from kueuecore.scenarios.fleet_results import FleetResults

__all__ = ["QuotaOutcome", "ScenarioEnding", "ScenarioOutcome", "WorkloadVersion"]


class ScenarioEnding(StrEnum):
    """Why a scenario ended."""

    COMPLETE = "Complete"
    """It ran to its end."""
    CYCLE_LIMIT = "CycleLimit"
    """A cluster ran so many cycles that it will never settle."""
    UNSETTLED = "Unsettled"
    """A fleet never settles; a note says where and when."""
    INTERRUPTED = "Interrupted"
    """Ctrl-C was pressed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaOutcome:
    """The quota of a dispatching ClusterQueue, compared with the workers', in whole units.

    Args:
        cluster_queue: The ClusterQueue on the manager.
        resource: The resource.
        manager: What it may use; None: no limit.
        by_worker: What each worker has for it; None: no limit.
    """

    cluster_queue: str
    resource: str
    manager: Fraction | None
    by_worker: Mapping[str, Fraction | None] = field(hash=False)

    @property
    def workers(self) -> Fraction | None:
        """What the workers have together; None: no limit."""
        known = [fraction for fraction in self.by_worker.values() if fraction is not None]
        return sum(known, Fraction()) if len(known) == len(self.by_worker) else None

    @property
    def verdict(self) -> str:
        """What that means, in short."""
        if self.manager == self.workers:
            return "equal"
        if self.workers is None or (self.manager is not None and self.manager < self.workers):
            return "below: the workers have more than it admits"
        return "above: it admits more than the workers have"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadVersion:
    """A version of a Workload of a fleet, or of its copy on a worker.

    Args:
        time: When it was stored, in nanoseconds since 1970.
        cluster: The worker; empty for the manager.
        object: The Workload.
        is_deleted: Whether it was deleted then.
    """

    time: int
    cluster: str
    object: JsonObject = field(hash=False, repr=False)
    is_deleted: bool = False


@dataclass(frozen=True, kw_only=True)  # without slots, as it keeps its results
class ScenarioOutcome:
    """The outcome of a scenario. Two are equal if the same happened. It can be pickled.

    Args:
        start: The start time, in nanoseconds since 1970.
        end: The end time.
        jobs: All jobs, in order of arrival.
        run: The run of the single cluster; None for a fleet.
        fleet: The results of a fleet: tables, measures, metrics, files; None for a single cluster.
        ending: Why it ended.
        notes: What else the user should know, in sentences.
        quotas: The quota of a fleet's manager compared with that of its workers.
        warnings: What is odd about the objects, such as unknown fields.
        left_out: The jobs of traces that have no Workload, for each trace that has such.
        versions: All versions of each Workload of a fleet that `run_scenario` was asked to follow, by its
            `namespace/name`. In a single cluster, `run` has what happened to all.
        workload_keys: The `namespace/name` of the Workloads of a fleet by UID, if any was followed.
    """

    start: int
    end: int
    jobs: JobOutcomes
    run: Run | None = None
    fleet: FleetResults | None = None
    ending: ScenarioEnding = ScenarioEnding.COMPLETE
    notes: tuple[str, ...] = ()
    quotas: tuple[QuotaOutcome, ...] = ()
    warnings: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    versions: Mapping[str, tuple[WorkloadVersion, ...]] = field(default_factory=dict, hash=False, repr=False)
    workload_keys: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    def __repr__(self) -> str:
        return f"ScenarioOutcome({len(self.jobs)} jobs, {self.ending})"

    @property
    def is_fleet(self) -> bool:
        """Whether there were several clusters."""
        return self.fleet is not None

    @property
    def all(self) -> Waits:
        """The waits of all jobs."""
        return Waits.of("all", self.jobs)

    @cached_property
    def results(self) -> Results:
        """The results of a single cluster: tables, measures, metrics, files.

        Raises:
            ValueError: There were several clusters, whose results are `fleet`.
        """
        from kueuecore.results import Results  # most users of an outcome read its jobs only

        if self.run is None:
            raise ValueError("results are those of one cluster; for a fleet use outcome.fleet")
        return Results.of(self.run, left_out=self.left_out)

    def _repr_html_(self) -> str:
        """What became of the jobs and how long they waited, for notebooks."""
        from kueuecore.scenarios.outcome_html import outcome_html  # which imports this module

        return outcome_html(self)
