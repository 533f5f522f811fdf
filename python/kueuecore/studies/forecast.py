"""Forecasts when waiting workloads will be admitted: quantiles over random futures based on a cluster's past."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from math import floor, inf, isinf

from kueuecore._arguments import flag, instance
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest
from kueuecore.scenarios import Scenario, Spans
from kueuecore.scenarios.job_rows import first_uid
from kueuecore.simulation import Happening, Operation, simulate
from kueuecore.studies.arrivals import Arrivals, arrivals_of
from kueuecore.studies.futures import Future, Played, admissions, rows_of
from kueuecore.studies.present_workloads import PresentWorkload, Status, found_workload, present_workloads
from kueuecore.studies.run_time_plan import RunTimeNote, RunTimePlan
from kueuecore.studies.running import run_all
from kueuecore.times import END_NS
from kueuecore.waiting_cause import message_or_cause
from kueuecore.world import is_workload

__all__ = ["ArrivalNote", "Assumptions", "Eta", "Forecast", "RunTimeNote", "eta", "quantile"]

HORIZON_SECONDS = 30 * 86400.0
MAX_HORIZON_SECONDS = 3660 * 86400.0
N_SEEDS = 200
FIRST_SEEDS = 20
"""How many futures a first answer needs."""
# Small, so that a slow future does not hold up an answer.
_BATCH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """When one workload is admitted.

    Args:
        workload: `namespace/name`.
        job: `Kind/name` of its job; empty: unknown.
        status: Its status now.
        since: When it was admitted or ended, in nanoseconds since 1970; None: it waits, or that is unknown.
        seconds: The seconds from now until it is admitted in each future; infinite: not by the horizon. Empty: it is
            already admitted.
        never: Why it would not be admitted even if it had the cluster to itself; empty: it would.
    """

    workload: str
    job: str
    status: Status
    since: int | None
    seconds: tuple[float, ...]
    never: str = ""

    def quantile(self, share: float) -> float:
        """Return the seconds by which it is admitted in this share of futures; infinite: not by the horizon."""
        return quantile(self.seconds, share)

    @property
    def share_not_admitted(self) -> float:
        """The share of the futures in which it is not admitted by the horizon."""
        return sum(map(isinf, self.seconds)) / len(self.seconds) if self.seconds else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalNote:
    """The arrivals at a LocalQueue.

    Args:
        local_queue: `namespace/name`.
        n_seen: How many arrived within the window.
        per_hour: The same, per hour.
    """

    local_queue: str
    n_seen: int
    per_hour: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What a forecast is based on.

    Args:
        run_times: Where the run times of each kind of job come from.
        arrivals: A row for each LocalQueue with arrivals; empty: none besides the scenario's own work.
        window_seconds: The window that these arrivals were seen in; None: they are left out.
        n_running: How many workloads hold quota.
        n_pending: How many wait.
        n_work: How many jobs the scenario itself submits.
        warnings: What makes the forecast doubtful.
    """

    run_times: tuple[RunTimeNote, ...]
    arrivals: tuple[ArrivalNote, ...]
    window_seconds: float | None
    n_running: int
    n_pending: int
    n_work: int
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Eta:
    """The forecasts of when workloads will be admitted.

    Args:
        now: The present, in nanoseconds since 1970.
        horizon_seconds: How far the futures go.
        seeds: The seed of each future.
        forecasts: One per workload, in the order of the request.
        assumptions: What the forecasts are based on.
        n_asked: How many futures were asked for: more than there are seeds if it stopped early.
        is_shortened: Whether a future ended before the horizon that was asked for, after `most_steps`.
    """

    now: int
    horizon_seconds: float
    seeds: tuple[int, ...]
    forecasts: tuple[Forecast, ...]
    assumptions: Assumptions
    n_asked: int
    is_shortened: bool = False


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of future values lies, if they are like the given ones.

    A new value is equally likely to rank anywhere among the n given ones, so the position is share * (n + 1), with
    linear interpolation between values (type 6 of R. Hyndman & Y. Fan 1996). Beyond the ends it is the end.

    Example:
        >>> quantile([1.0, 2.0, 3.0], 0.5), quantile([4.0, 1.0, 2.0, 3.0], 0.5), quantile([1.0], 0.9)
        (2.0, 2.5, 1.0)
    """
    ordered = sorted(values)
    place = min(max(share * (len(ordered) + 1), 1.0), float(len(ordered))) - 1
    low = floor(place)
    if place == low or isinf(ordered[low + 1]):
        # There is nothing between a time and never, so halfway is never.
        return ordered[low] if place == low else inf
    return ordered[low] + (place - low) * (ordered[low + 1] - ordered[low])


def eta(
    scenario: Scenario,
    workloads: Sequence[str] | None = None,
    *,
    seeds: Sequence[int] = range(N_SEEDS),
    horizon_seconds: float = HORIZON_SECONDS,
    most_steps: int | None = None,
    run_seconds: Mapping[str, Spans] | None = None,
    arrivals: bool | None = None,
    window_seconds: float | None = None,
    trusted: bool = False,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    is_enough: Callable[[int], bool] | None = None,
    interim: Callable[[Eta], None] | None = None,
) -> Eta:
    """Forecast when waiting workloads will be admitted.

    Each seed draws run times and arrivals, and simulates that future. All answers come from the same futures, so one
    call for many workloads costs little more than for one.

    Args:
        scenario: The current state of a cluster, such as a dump, and optionally the known part of its future.
        workloads: Names of Workloads or their jobs as `NAMESPACE/NAME`; None: all that wait.
        seeds: Distinct seeds, one per future. The results do not depend on the executor.
        horizon_seconds: How far to look; at most to the scenario's `until`.
        most_steps: After how many arrivals, admissions, evictions and ends in a future not to look further; an
            eviction counts as five. The horizon of the answer is then that of the shortest future. None: look as far as
            the horizon.
        run_seconds: How long jobs run, by the `NAMESPACE/NAME` of a LocalQueue, the name of a ClusterQueue, or "" for
            all others. By default as the scenario says (`present`), or else like the cluster's finished jobs.
        arrivals: Whether new workloads arrive as they have so far. None: unless the scenario has work of its own.
        window_seconds: The longest window of past arrivals to use.
        trusted: Whether the objects are a dump, to be taken as they are, without defaults and validation.
        executor: What simulates the futures; None: one at a time, in this process.
        progress: Called now and then with the numbers of finished futures and of all futures.
        is_enough: Called now and then with the number of futures at hand, which are those of the first seeds. If it
            returns true, the forecasts are made of these: the same number always gives the same forecasts.
        interim: Called with the forecasts after 20 futures, then after each doubling.

    Raises:
        ManifestError: The objects are wrong, a workload does not exist, or nothing says how long jobs run.
        ValueError: There is no seed, a seed occurs twice, or the horizon is out of range.

    Example:
        >>> from kueuecore.scenarios import ClusterPart, Scenario, Span
        >>> from kueuecore import read_manifests
        >>> cluster = ClusterPart(objects=read_manifests("examples/scenario/queues.yaml", "examples/scenario/job.yaml"))
        >>> found = eta(Scenario(cluster=cluster), seeds=range(3), run_seconds={"": Span(60)})
        >>> [(it.workload, it.status.value, it.seconds) for it in found.forecasts]
        [('team-a/job-small-64f21', 'Pending', (0.0, 0.0, 0.0))]
    """
    _check(scenario, seeds, horizon_seconds)
    objects = rows_of(scenario, trusted=flag("trusted", trusted)).objects
    present = present_workloads(objects)
    if workloads is None:
        wanted = [workload for workload in present if workload.status is Status.PENDING]
    else:
        wanted = [found_workload(present, workload) for workload in workloads]
    others = tuple(object_ for object_ in objects if not is_workload(object_.object))
    never = {
        workload.key: _why_never(scenario, others, workload, trusted=trusted) for workload in wanted if _waits(workload)
    }
    targets = tuple(dict.fromkeys(key for key, why in never.items() if not why))
    coming, window = Arrivals(), None
    if targets and (not scenario.n_jobs if arrivals is None else arrivals):
        coming, window = arrivals_of(present, now=scenario.start, window_seconds=window_seconds)
    # If nothing waits, the future does not matter.
    plan = RunTimePlan(
        present if targets else (),
        coming.kinds,
        now=scenario.start,
        present=scenario.present,
        given=run_seconds or {} if targets else {},
    )
    until = scenario.until_seconds
    future = Future(
        scenario=scenario,
        objects=others,
        workloads=tuple(workload for workload in present if workload.status is not Status.FINISHED),
        run_times=plan.run_times,
        group_of=plan.group_of,
        group_of_running=plan.group_of_running,
        arrivals=coming,
        targets=targets,
        horizon_seconds=horizon_seconds if until is None else min(horizon_seconds, until),
        window_seconds=plan.typical_seconds,
        first_uid=first_uid(objects),
        trusted=trusted,
        most_steps=most_steps,
    )
    assumptions = _assumptions(future, plan, window)

    def answer(played: Sequence[Played]) -> Eta:
        n_seeds = len(played) if targets else len(seeds)
        horizon = min((one.end for one in played), default=future.horizon_seconds)
        rows = [tuple(second if second <= horizon else inf for second in one.seconds) for one in played]
        return Eta(
            now=scenario.start,
            horizon_seconds=horizon,
            seeds=tuple(seeds[:n_seeds]),
            forecasts=tuple(
                _forecast(workload, future, rows, never.get(workload.key, ""), n_seeds) for workload in wanted
            ),
            assumptions=assumptions,
            n_asked=len(seeds),
            is_shortened=horizon < future.horizon_seconds,
        )

    played: list[Played] = []
    due = FIRST_SEEDS
    for played in _played(future, seeds, executor, progress) if targets else ():
        if interim is not None and due <= len(played) < len(seeds):
            interim(answer(played))
            due = 2 * len(played)
        if is_enough is not None and played and is_enough(len(played)):
            break
    return answer(played)


def _check(scenario: Scenario, seeds: Sequence[int], horizon_seconds: float) -> None:
    instance("scenario", scenario, Scenario)
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError("seeds must be distinct, and at least one")
    if not 0 < horizon_seconds <= MAX_HORIZON_SECONDS:
        raise ValueError("horizon_seconds must be greater than 0 and at most ten years")
    if scenario.fleet is not None:
        raise ManifestError.of("a forecast is for one cluster", field="fleet", remedy="name the state of one cluster")
    if scenario.start + 4 * MAX_HORIZON_SECONDS * 1e9 > END_NS:
        remedy = "name an earlier time with --now, or `start`"
        raise ManifestError.of("the forecast runs past April 2262", field="start", remedy=remedy)


def _assumptions(future: Future, plan: RunTimePlan, window_seconds: float | None) -> Assumptions:
    n_pending = sum(workload.status is Status.PENDING for workload in future.workloads)
    return Assumptions(
        run_times=plan.notes,
        arrivals=tuple(
            ArrivalNote(
                local_queue="/".join(queue.local_queue), n_seen=sum(map(len, queue.batches)), per_hour=queue.per_hour
            )
            for queue in future.arrivals.queues
        ),
        window_seconds=window_seconds,
        n_running=len(future.workloads) - n_pending,
        n_pending=n_pending,
        n_work=future.scenario.n_jobs,
        warnings=tuple(plan.warnings),
    )


def _waits(workload: PresentWorkload) -> bool:
    return workload.status in (Status.PENDING, Status.QUOTA_RESERVED)


def _played(
    future: Future,
    seeds: Sequence[int],
    executor: Executor | None,
    progress: Callable[[int, int], None] | None,
) -> Iterator[list[Played]]:
    """Play futures; yields the results of the first ones, in the order of their seeds, whenever there are more."""
    calls = [(future, tuple(seeds[first : first + _BATCH])) for first in range(0, len(seeds), _BATCH)]
    early: dict[int, list[Played]] = {}
    played: list[Played] = []
    n_calls = 0
    with closing(run_all(admissions, calls, executor)) as results:
        for place, rows in results:
            early[place] = rows
            while n_calls in early:
                played += early.pop(n_calls)
                n_calls += 1
            if progress is not None:
                progress(len(played) + sum(map(len, early.values())), len(seeds))
            yield played


def _forecast(
    workload: PresentWorkload, future: Future, played: Sequence[tuple[float, ...]], never: str, n_seeds: int
) -> Forecast:
    seconds: tuple[float, ...] = ()
    if never:
        seconds = (inf,) * n_seeds
    elif workload.key in future.targets:
        place = future.targets.index(workload.key)
        seconds = tuple(row[place] for row in played)
    return Forecast(
        workload=workload.key,
        job=workload.job,
        status=workload.status,
        since=workload.ended if workload.ended is not None else workload.started,
        seconds=seconds,
        never=never,
    )


def _why_never(scenario: Scenario, others: Sequence[Manifest], workload: PresentWorkload, *, trusted: bool) -> str:
    """Return why a workload would not be admitted if it had the cluster to itself; empty if it would or might."""
    if scenario.timetable or scenario.cluster.nodes or workload.status is not Status.PENDING:
        return ""
    run = simulate(
        others,
        [Happening(at=0, op=Operation.CREATE, object=workload.manifest)],
        configuration=scenario.cluster.configuration,
        now=scenario.start,
        trusted=trusted,
        cycles=False,
    )
    if run.outcome_table["admitted"][0] >= 0:
        return ""
    # A trusted name may have slashes, which a key does not tell from the one that it has.
    state = next(other for other in run.engine.workloads() if other.key == workload.key)
    return message_or_cause(run.engine, state) or "it is not admitted"
