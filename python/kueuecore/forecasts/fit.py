"""What a cluster's past says about its future."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kueuecore.forecasts.arrivals import Arrivals, arrivals_of, arrivals_since
from kueuecore.forecasts.backtest import Backtest
from kueuecore.forecasts.base_state import State
from kueuecore.forecasts.experience import Experience
from kueuecore.forecasts.fitted_draws import FittedDraws
from kueuecore.forecasts.futures import Future
from kueuecore.forecasts.past_jobs import PastJob
from kueuecore.forecasts.past_states import PastStates
from kueuecore.forecasts.present_workloads import PresentWorkload, Status
from kueuecore.forecasts.run_time_plan import LEAST_FINISHED, RunTimePlan
from kueuecore.forecasts.similar_jobs import SimilarJobs
from kueuecore.scenarios import Scenario, Spans
from kueuecore.times import SECOND_NS, format_time

__all__ = ["Fit"]


class Fit:
    """What the past says about the future.

    Args:
        scenario: The scenario.
        present: Its Workloads, ended ones included.
        jobs: The jobs of these, then others of the past.
        run_seconds: How long jobs run, as the caller says.
        has_arrivals: Whether work keeps arriving.
        window_seconds: The longest window of past arrivals.

    Raises:
        UnknownRunTimesError: Nothing says how long jobs run.
        ManifestError: `run_seconds` names a queue without Workloads.
    """

    def __init__(
        self,
        scenario: Scenario,
        present: Sequence[PresentWorkload],
        jobs: Sequence[PastJob],
        *,
        run_seconds: Mapping[str, Spans],
        has_arrivals: bool,
        window_seconds: float | None,
    ) -> None:
        self._present, self._now = present, scenario.start
        self._similar = SimilarJobs(jobs)
        past = self._similar.at(self._now / SECOND_NS)
        self._since = arrivals_since(jobs[: len(present)], now=self._now)
        self._window_seconds = window_seconds
        self._all_arrivals = arrivals_of(jobs, now=self._now)
        recent = self._all_arrivals
        if window_seconds is not None:
            recent = arrivals_of(jobs, now=self._now, window_seconds=window_seconds)
        self.arrivals = recent if has_arrivals else Arrivals()
        places = [place for place, workload in enumerate(present) if workload.status is not Status.FINISHED]
        self.alive = tuple(present[place] for place in places)
        self.plan = RunTimePlan(
            past,
            jobs,
            [(place, present[place].status) for place in places],
            self.arrivals.jobs.tolist(),
            given_present=scenario.present,
            given=run_seconds,
        )
        if (hole := self.arrivals.hole) is not None:
            begin, end = (format_time((self._now // SECOND_NS + round(edge)) * SECOND_NS) for edge in hole)
            self.plan.warnings.append(
                f"no arrivals are known from {begin} to {end}, which counts as a time without any: "
                "a shorter --window leaves it out"
            )
        self.draws = FittedDraws(past, places, self.arrivals, self.plan.draws)
        knows_future = bool(
            scenario.timetable or scenario.n_jobs or scenario.cluster.nodes or scenario.cluster.capacity
        )
        self.has_few_ended = self.plan.is_fitted and past.n_ended < LEAST_FINISHED
        """Whether run times come from so few jobs that they are a guess."""
        self._is_fitted = self.plan.is_fitted and has_arrivals and not knows_future

    def backtest(self, state: State, future: Future, experience: Experience, n_moments: int) -> Backtest | None:
        """Return the same forecasts of the past; None: these are not the same, as the caller assumes something."""
        if not self._is_fitted:
            return None
        return Backtest(
            PastStates(state, self._present),
            self._present,
            self._similar,
            self._all_arrivals,
            since=self._since,
            now=self._now,
            horizon_seconds=future.horizon_seconds,
            most_steps=future.most_steps,
            first_uid=future.first_uid,
            experience=experience,
            window_seconds=self._window_seconds,
            n_moments=n_moments,
        )
