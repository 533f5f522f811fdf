"""Forecasts when waiting workloads will be admitted: quantiles over random futures based on a cluster's past."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from math import inf

from kueuecore._arguments import flag, instance
from kueuecore.errors import ManifestError
from kueuecore.forecasts.answer import ArrivalNote, Assumptions, Eta, Forecast
from kueuecore.forecasts.backtest import N_MOMENTS, PastForecast, Record
from kueuecore.forecasts.bounds import Bounds, bounds_of
from kueuecore.forecasts.calibration import Calibration
from kueuecore.forecasts.draws_part import draws_of_part
from kueuecore.forecasts.experience import Experience
from kueuecore.forecasts.fit import Fit
from kueuecore.forecasts.futures import Future, Played
from kueuecore.forecasts.history.queue_rates import QueueRates
from kueuecore.forecasts.past_jobs import PastJob
from kueuecore.forecasts.playing import FIRST_SEEDS, Progress, played_so_far
from kueuecore.forecasts.present_workloads import PresentWorkload, Status
from kueuecore.forecasts.question import Question, question_of
from kueuecore.forecasts.relevance import relevant_part
from kueuecore.forecasts.run_time_plan import UnknownRunTimesError
from kueuecore.scenarios import Scenario, Spans
from kueuecore.times import END_NS, SECOND_NS

__all__ = ["HORIZON_SECONDS", "MAX_HORIZON_SECONDS", "N_SEEDS", "eta"]

HORIZON_SECONDS = 30 * 86400.0
MAX_HORIZON_SECONDS = 3660 * 86400.0
N_SEEDS = 200


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
    history: Sequence[PastJob] = (),
    rates: Sequence[QueueRates] = (),
    n_moments: int = N_MOMENTS,
    experience: Experience | None = None,
    trusted: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
    progress_of_past: Progress | None = None,
    is_enough: Callable[[int], bool] | None = None,
    interim: Callable[[Eta], None] | None = None,
) -> Eta:
    """Forecast when waiting workloads will be admitted.

    Each seed draws run times and arrivals, and simulates that future. All answers come from the same futures, so one
    call for many workloads costs little more than for one.

    If fewer than 10 jobs have ended, forecasts have bounds that need no run times; if none has and some have no time
    limit, they have nothing else.

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
        history: Jobs of the past that the objects no longer show.
        rates: What is known of past waits, for bounds where too few jobs have ended.
        n_moments: At how many moments of the cluster's past, at most, to make such forecasts, in order to correct
            today's by how these turned out. None are made with `run_seconds`, without fitted arrivals, or if the
            scenario says something about the future.
        experience: Past forecasts of earlier calls for this cluster; new ones are added.
        trusted: Whether the objects are a dump, to be taken as they are, without defaults and validation.
        executor: What simulates the futures; None: one at a time, in this process.
        progress: Called now and then with the numbers of finished futures and of all futures.
        progress_of_past: The same for moments of the past.
        is_enough: Called now and then with the number of futures at hand, which are those of the first seeds. If it
            returns true, no more are played: the forecasts are made of these, and of the past forecasts so far.
        interim: Called with the forecasts after 20 futures, then after each doubling.

    Raises:
        ManifestError: The objects are wrong, or a workload does not exist.
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
    if scenario.until_seconds is not None:
        horizon_seconds = min(horizon_seconds, scenario.until_seconds)
    experience = experience or Experience()
    question = question_of(scenario, workloads, experience, trusted=flag("trusted", trusted))
    part = relevant_part(question.state, question.watched)
    answers = _Answers(question, tuple(seeds), horizon_seconds)
    has_arrivals = not scenario.n_jobs if arrivals is None else arrivals
    try:
        fit = Fit(
            question.scenario,
            question.present,
            question.past_jobs(history),
            run_seconds=run_seconds or {} if question.targets else {},
            has_arrivals=bool(question.targets) and has_arrivals,
            window_seconds=window_seconds,
        )
    except UnknownRunTimesError as error:
        answers.bounds = bounds_of(part, question.targets, rates, horizon_seconds=horizon_seconds)
        return answers.without_futures(error)
    future = Future(
        state=part,
        draws=draws_of_part(fit.draws, question.state, part),
        targets=question.watched,
        horizon_seconds=horizon_seconds,
        window_seconds=fit.plan.typical_seconds,
        first_uid=question.first_uid,
        most_steps=most_steps,
    )
    backtest = fit.backtest(question.state, future, experience, n_moments)
    answers.assumptions, answers.is_calibrated = _assumptions(question, fit), backtest is not None
    if fit.has_few_ended:
        answers.bounds = bounds_of(part, question.targets, rates, horizon_seconds=horizon_seconds)
    if not question.targets:
        return answers.given([], [], 0)
    played: Sequence[Played] = []
    past: Sequence[PastForecast] = []
    n_past, due = 0, FIRST_SEEDS
    for played, past, n_past in played_so_far(future, seeds, backtest, executor, progress, progress_of_past):
        if interim is not None and due <= len(played) < len(seeds):
            interim(answers.given(played, past, n_past))
            due = 2 * len(played)
        if is_enough is not None and played and is_enough(len(played)):
            break
    return answers.given(played, past, n_past, is_last=True)


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


@dataclass(slots=True)
class _Answers:
    """The answers to one question, from more and more futures.

    Args:
        question: The question.
        seeds: The seeds of all futures.
        horizon_seconds: How far to look.
        assumptions: What the forecasts are based on; None: nothing says how long jobs run.
        bounds: What holds however long jobs run, by `namespace/name`.
        is_calibrated: Whether forecasts of the past correct these.
    """

    question: Question
    seeds: tuple[int, ...]
    horizon_seconds: float
    assumptions: Assumptions | None = None
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    is_calibrated: bool = False

    def given(
        self, played: Sequence[Played], past: Sequence[PastForecast], n_past: int, *, is_last: bool = False
    ) -> Eta:
        """Return the answer.

        Args:
            played: The futures so far.
            past: The forecasts of the past so far.
            n_past: At how many moments these were made.
            is_last: Whether there will be no more; only then the past forecasts are counted.
        """
        seeds = self.seeds[: len(played)] if self.question.targets else self.seeds
        horizon = min((one.end for one in played), default=self.horizon_seconds)
        rows = [tuple(second if second <= horizon else inf for second in one.seconds) for one in played]
        targets = enumerate(self.question.targets)
        seconds = {target.key: tuple(row[place] for row in rows) for place, target in targets}
        calibration = Calibration(tuple(forecast.outcome for forecast in past)) if self.is_calibrated else None
        return self._eta(
            seeds,
            horizon,
            [self._forecast(workload, seconds, len(seeds), calibration) for workload in self.question.wanted],
            record=Record.of(past) if is_last and past else None,
            n_moments=n_past,
        )

    def without_futures(self, error: UnknownRunTimesError) -> Eta:
        """Return the answer if nothing says how long jobs run."""
        unknown = f"{error.problems[0].message}; {error.problems[0].remedy}"
        forecasts = [self._forecast(workload, {}, 0, None) for workload in self.question.wanted]
        return self._eta((), self.horizon_seconds, forecasts, unknown=unknown)

    def _eta(
        self,
        seeds: tuple[int, ...],
        horizon: float,
        forecasts: Sequence[Forecast],
        *,
        record: Record | None = None,
        n_moments: int = 0,
        unknown: str = "",
    ) -> Eta:
        return Eta(
            now=self.question.scenario.start,
            horizon_seconds=horizon,
            seeds=seeds,
            forecasts=tuple(forecasts),
            assumptions=self.assumptions or _assumptions(self.question, None),
            n_asked=len(self.seeds),
            is_shortened=horizon < self.horizon_seconds,
            record=record,
            n_moments=n_moments,
            unknown=unknown,
        )

    def _forecast(
        self,
        workload: PresentWorkload,
        seconds: Mapping[str, tuple[float, ...]],
        n_seeds: int,
        calibration: Calibration | None,
    ) -> Forecast:
        never = self.question.never.get(workload.key, "")
        now = self.question.scenario.start
        waited = max(now - (workload.created or now), 0) / SECOND_NS
        return Forecast(
            workload=workload.key,
            job=workload.job,
            status=workload.status,
            since=workload.ended if workload.ended is not None else workload.started,
            seconds=(inf,) * n_seeds if never else seconds.get(workload.key, ()),
            never=never,
            calibration=None if calibration is None else calibration.after(waited),
            bounds=self.bounds.get(workload.key),
        )


def _assumptions(question: Question, fit: Fit | None) -> Assumptions:
    """Return what forecasts are based on; without a fit, there are none."""
    workloads = question.state.workloads
    n_pending = sum(workload.status is Status.PENDING for workload in workloads)
    arrivals = None if fit is None else fit.arrivals
    seconds = 0.0 if arrivals is None else arrivals.window_seconds
    return Assumptions(
        run_times=() if fit is None else fit.plan.notes,
        arrivals=tuple(
            ArrivalNote(local_queue="/".join(queue), n_seen=n_seen, per_hour=n_seen * 3600 / seconds)
            for queue, n_seen in (() if arrivals is None else arrivals.n_by_queue)
        ),
        window_seconds=seconds or None,
        n_running=len(workloads) - n_pending,
        n_pending=n_pending,
        n_work=question.scenario.n_jobs,
        warnings=() if fit is None else tuple(fit.plan.warnings),
    )
