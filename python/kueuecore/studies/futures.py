"""Simulates possible futures of a cluster: its Workloads and new arrivals, with random run times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from random import Random

import numpy as np

from kueuecore.manifests import Manifest
from kueuecore.provisioning import ProvisioningController, QueuedCapacity, VirtualProvisioning
from kueuecore.scenarios import Scenario
from kueuecore.scenarios.cluster_scenario import changes_of
from kueuecore.scenarios.job_rows import JobRows
from kueuecore.scenarios.node_timetable import nodes_of
from kueuecore.simulation import Copies, Happening, JobPlan, Operation
from kueuecore.simulation.copies import joined_names
from kueuecore.simulation.stepper import Stepper
from kueuecore.studies.arrivals import Arrivals
from kueuecore.studies.present_workloads import JobKind, PresentWorkload, Status
from kueuecore.studies.run_times import RunTimes, Sampler
from kueuecore.times import SECOND_NS

__all__ = ["Future", "Played", "admissions", "rows_of"]

# Only workloads that preempt each other forever need so many.
_MAX_CYCLES = 1_000_000
# No real job has run for longer, but a time in a status may be anything.
_MAX_ELAPSED = 50 * 366 * 86400.0
_ARRIVAL = "arrival-of-eta-"
# In how many parts a window is simulated: all that happens after the last admission is for nothing.
_PARTS = 16
# An eviction takes a search for it, and leads to another admission. Where workloads preempt each other in turn, nearly
# all that happens is evictions.
_MORE_OF_AN_EVICTION = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Future:
    """A cluster's current state, and the assumptions about its future.

    Args:
        scenario: The cluster, its timetable, and its own work.
        objects: All objects except Workloads.
        workloads: Its Workloads; finished ones play no part.
        run_times: How long jobs run, by the name of a group.
        group_of: The group of each kind of job.
        group_of_running: The group of those that hold quota, if it is another one.
        arrivals: What arrives besides the scenario's work.
        targets: The keys of the workloads to forecast.
        horizon_seconds: How far to look.
        window_seconds: How far to simulate before the first look at the targets; then twice as far, and so on.
        first_uid: The first number that occurs in no UID.
        trusted: Whether the objects are taken as they are.
        most_steps: After how many arrivals, admissions, evictions and ends a future ends early; an eviction counts as
            five. None: not at all.
    """

    scenario: Scenario
    objects: tuple[Manifest, ...]
    workloads: tuple[PresentWorkload, ...]
    run_times: Mapping[str, RunTimes]
    group_of: Mapping[JobKind, str]
    group_of_running: Mapping[JobKind, str]
    arrivals: Arrivals
    targets: tuple[str, ...]
    horizon_seconds: float
    window_seconds: float
    first_uid: int
    trusted: bool
    most_steps: int | None


@dataclass(frozen=True, slots=True)
class Played:
    """What happened in one future.

    Args:
        seconds: The seconds until each target is admitted; infinite: not by the end.
        end: How far the future was looked at, in seconds: to the horizon, unless it ended early.
    """

    seconds: tuple[float, ...]
    end: float


def admissions(future: Future, seeds: Sequence[int]) -> list[Played]:
    """Play the future of each seed until all targets are admitted, or to the horizon.

    Raises:
        ManifestError: Everything that is wrong with the objects.
    """
    return [_played(future, seed) for seed in seeds]


def _played(future: Future, seed: int) -> Played:
    scenario = replace(future.scenario, seed=seed)
    samplers = {
        name: item.sampler(Random(f"{seed}/eta/runs/{name}")) for name, item in sorted(future.run_times.items())
    }
    stepper = _stepper(future, scenario)
    running = [workload for workload in future.workloads if workload.status in (Status.ADMITTED, Status.QUOTA_RESERVED)]
    waiting = [workload for workload in future.workloads if workload.status is Status.PENDING]
    # As in a scenario: reservations exist before anything else happens.
    stepper.schedule(
        [
            *(_happening(future, workload, samplers) for workload in running),
            *changes_of(scenario, scenario.cluster),
            *(_happening(future, workload, samplers) for workload in waiting),
        ]
    )
    n_rows = 0
    if scenario.work or scenario.generated is not None or scenario.traces:
        copies = rows_of(scenario, trusted=future.trusted).copies
        n_rows = len(copies)
        stepper.schedule_copies(copies)
    stepper.happened()
    coming = _Coming(future, samplers, seed, first_uid=future.first_uid + n_rows)
    admitted: dict[str, int] = {}
    left, begin, end = set(future.targets), 0.0, 0.0
    n_steps = n_evictions = 0
    horizon = future.horizon_seconds
    while left and end < horizon:
        begin, end = end, min(max(2 * end, future.window_seconds), horizon)
        copies = coming.until(end)
        if len(copies):
            stepper.schedule_copies(copies)
        for part in range(1, _PARTS + 1):
            at = end if part == _PARTS else begin + (end - begin) * part / _PARTS
            stepper.advance(stepper.start + round(at * SECOND_NS))
            steps = stepper.clock.steps_since(n_steps)
            n_steps += len(steps)
            for time, kind, key in steps:
                n_evictions += kind == "Stopped"
                if kind == "Admitted" and key in left:
                    left.discard(key)
                    admitted[key] = time
            n_counted = n_steps + _MORE_OF_AN_EVICTION * n_evictions
            if future.most_steps is not None and n_counted >= future.most_steps and left:
                horizon = at
            if not left or horizon <= at:
                break
    # Decisions of a cycle that ends after the horizon are not by the horizon.
    seconds = [(admitted[key] - stepper.start) / SECOND_NS if key in admitted else inf for key in future.targets]
    return Played(tuple(second if second <= horizon else inf for second in seconds), horizon)


def rows_of(scenario: Scenario, *, trusted: bool) -> JobRows:
    """Return a scenario's objects as an engine takes them, and its own work.

    Args:
        scenario: The scenario.
        trusted: Whether its objects come from a dump: then nothing is added or checked.

    Raises:
        ManifestError: A job that Kueue's webhooks would refuse, or two of the same name.
    """
    generated = () if scenario.generated is None else map(Manifest, scenario.generated.objects)
    return JobRows.of(
        [*generated, *nodes_of(scenario.cluster.nodes, start=scenario.start), *scenario.cluster.objects],
        scenario.work,
        generated=scenario.generated,
        traces=scenario.traces,
        configuration=scenario.cluster.configuration,
        seed=scenario.seed,
        trusted=trusted,
    )


def _stepper(future: Future, scenario: Scenario) -> Stepper:
    stocks, configuration = scenario.cluster.capacity, scenario.cluster.configuration
    controller = ProvisioningController.of(configuration)
    checks = [VirtualProvisioning(QueuedCapacity(stocks, seed=scenario.seed), controller=controller)] if stocks else []
    return Stepper(
        future.objects,
        configuration=configuration,
        now=scenario.start,
        checks=checks,
        trusted=future.trusted,
        cycle_seconds=scenario.cycle_seconds,
        max_cycles=_MAX_CYCLES,
        eviction_seconds=0.0,
        messages=False,
        cycles=False,
        finished=False,
    )


def _happening(future: Future, workload: PresentWorkload, samplers: Mapping[str, Sampler]) -> Happening:
    """Say how long an existing Workload runs; for a running one, in total."""
    of_running = {} if workload.status is Status.PENDING else future.group_of_running
    group = of_running.get(workload.kind) or future.group_of[workload.kind]
    elapsed = 0.0
    if workload.started is not None:
        elapsed = min(max(future.scenario.start - workload.started, 0) / SECOND_NS, _MAX_ELAPSED)
    seconds, done = samplers[group](elapsed)
    plan = JobPlan(run_seconds=_within(seconds, future, elapsed), done_seconds=done)
    return Happening(at=0, op=Operation.CREATE, object=workload.manifest, plan=plan)


def _within(seconds: float, future: Future, elapsed: float = 0.0) -> float:
    """Round a run time to a millisecond; one that ends after the horizon may end a little later."""
    return round(min(seconds, elapsed + 2 * future.horizon_seconds), 3)


class _Coming:
    """The arrivals in one future, window by window."""

    def __init__(self, future: Future, samplers: Mapping[str, Sampler], seed: int, *, first_uid: int) -> None:
        self._future = future
        self._samplers = [samplers[future.group_of[kind]] for kind in future.arrivals.kinds]
        self._templates = [
            Happening(at=0, op=Operation.CREATE, object=template) for template in future.arrivals.templates
        ]
        self._draws = future.arrivals.draws(f"{seed}/eta/arrivals")
        self._next: tuple[float, int] | None = next(self._draws, None)
        self._n = 0
        self._first_uid = first_uid

    def until(self, end: float) -> Copies:
        """Return the next arrivals before a time, in seconds from now."""
        rows = list(self._take(end))
        names, ends = joined_names([f"{_ARRIVAL}{self._n + row + 1}" for row in range(len(rows))])
        runs = [self._samplers[template](0.0)[0] for _, template in rows]
        copies = Copies(
            templates=self._templates,
            template=np.array([template for _, template in rows], np.uint32),
            names=names,
            ends=ends,
            at=np.array([at for at, _ in rows], np.float64),
            run_seconds=np.array([_within(run, self._future) for run in runs], np.float64),
            first_uid=self._first_uid + self._n,
        )
        self._n += len(rows)
        return copies

    def _take(self, end: float) -> Iterator[tuple[float, int]]:
        while self._next is not None and self._next[0] < end:
            yield self._next
            self._next = next(self._draws, None)
