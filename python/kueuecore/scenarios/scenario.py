"""A scenario: clusters, the work that comes to them, and a seed."""

from __future__ import annotations

from dataclasses import dataclass, field

from kueuecore.scenarios.cluster_part import ClusterPart
from kueuecore.scenarios.fleet_part import FleetPart
from kueuecore.scenarios.generator_reader import GeneratedRun
from kueuecore.scenarios.present import Present
from kueuecore.scenarios.timed_changes import TimedChange
from kueuecore.scenarios.trace_part import TracePart
from kueuecore.scenarios.work import Work

__all__ = ["MOST_SEED", "Scenario"]


MOST_SEED = 2**53
"""The largest seed: a JSON number of every language holds it."""

_FOR_EVER = Present()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is to be simulated.

    Args:
        cluster: The cluster, unless it is a fleet.
        fleet: The fleet, if there are several.
        work: What comes to it.
        generated: What a file of Kueue's performance tests adds to the cluster and its work.
        traces: Recorded jobs that come beside the work.
        seed: Where everything comes from that is drawn.
        start: The time of the beginning, in nanoseconds since 1970.
        until_seconds: When it ends at the latest, in seconds from the beginning; None: when nothing is left to happen.
        cycle_seconds: How long a cycle of the cluster takes.
        timetable: What changes about the objects of the cluster, and when.
        present: How long the Workloads run that are among the objects of the cluster.
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

    @property
    def n_jobs(self) -> int:
        """How many jobs come."""
        n_generated = 0 if self.generated is None else len(self.generated.copies)
        return n_generated + sum(it.n_expected for it in self.work) + sum(len(it.trace.at) for it in self.traces)
