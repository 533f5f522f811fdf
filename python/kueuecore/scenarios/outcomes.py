"""What came of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from kueuecore.scenarios.job_outcomes import JobOutcomes
from kueuecore.scenarios.waits import Waits
from kueuecore.simulation import Run

__all__ = ["QuotaOutcome", "ScenarioEnding", "ScenarioOutcome"]


class ScenarioEnding(StrEnum):
    """Why a scenario ended."""

    COMPLETE = "Complete"
    """It came to its end."""
    CYCLE_LIMIT = "CycleLimit"
    """A cluster ran too many cycles ever to come to rest."""
    UNSETTLED = "Unsettled"
    """A fleet does not come to rest; a note says where and when."""
    INTERRUPTED = "Interrupted"
    """Ctrl-C was pressed."""


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
        run: The run of the one cluster; None: there were several.
        is_fleet: Were there several clusters?
        ending: Why it ended.
        notes: Whatever else the user should know, in sentences.
        quotas: The quota of a fleet's manager beside that of its workers.
        warnings: What is odd about the objects, such as fields that nobody knows.
    """

    start: int
    end: int
    jobs: JobOutcomes
    run: Run | None = None
    is_fleet: bool = False
    ending: ScenarioEnding = ScenarioEnding.COMPLETE
    notes: tuple[str, ...] = ()
    quotas: tuple[QuotaOutcome, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def all(self) -> Waits:
        """How all jobs fared."""
        return Waits.of("all", self.jobs)
