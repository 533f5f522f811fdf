"""Forecasts waits of a cluster's own past, to see how such forecasts turn out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, log2

import numpy as np

from kueuecore.forecasts.arrivals import Arrivals
from kueuecore.forecasts.calibration import Calibration, Curve, Outcome
from kueuecore.forecasts.draws_part import draws_of_part
from kueuecore.forecasts.experience import Experience, Moment
from kueuecore.forecasts.fitted_draws import FittedDraws
from kueuecore.forecasts.futures import Future, Player
from kueuecore.forecasts.past_states import PastStates
from kueuecore.forecasts.present_workloads import PresentWorkload
from kueuecore.forecasts.relevance import relevant_part
from kueuecore.forecasts.similar_jobs import SimilarJobs
from kueuecore.times import SECOND_NS

__all__ = ["N_MOMENTS", "Backtest", "PastForecast", "Record"]

N_MOMENTS = 40
"""How many moments of the past are looked at, at most."""
# Of so many times as many moments, those with waits are taken.
_CANDIDATES = 4
_N_WAITS = 2
_N_FUTURES = 24
# Nothing is forecast in the first part of the past: there is too little to learn from.
_LEARNING_SHARE = 0.25
_LEAST_ENDED = 10
_LEAST_GRID_SECONDS = 60.0
# How many times as far as the wait that happened a future is played: beyond, only the order of waits matters.
_LONG_ENOUGH = 4.0
_LEAST_HORIZON_SECONDS = 3600.0
_INTERVAL = 0.8


@dataclass(frozen=True, slots=True)
class PastForecast:
    """A forecast that could have been made in the past.

    Args:
        moment: When, in nanoseconds since 1970.
        workload: `namespace/name` of the Workload that waited.
        futures: Its waits in the futures.
        seconds: How long it waited from then on, or has waited.
        is_over: Whether it has been admitted.
        waited: For how many seconds it had waited.
    """

    moment: int
    workload: str
    futures: Curve
    seconds: float
    is_over: bool
    waited: float = 0.0

    @property
    def outcome(self) -> Outcome:
        """How unusual the wait was among the futures."""
        return Outcome(self.futures.score_of(self.seconds), self.is_over, self.waited)


@dataclass(frozen=True, slots=True)
class Record:
    """How forecasts of a cluster's past turned out.

    Args:
        n: How many waits were compared with their 80 % intervals.
        n_held: How many were within; each interval is calibrated with the outcomes of the others.
        n_early: How many were shorter.
        n_late: How many were longer.
    """

    n: int
    n_held: int
    n_early: int
    n_late: int

    @classmethod
    def of(cls, forecasts: Sequence[PastForecast]) -> Record:
        """Compare each of some forecasts with what happened, as far as that is known."""
        outcomes = [forecast.outcome for forecast in forecasts]
        counts = {"held": 0, "early": 0, "late": 0}
        for place, forecast in enumerate(forecasts):
            others = Calibration((*outcomes[:place], *outcomes[place + 1 :]), forecast.waited)
            low, high = (others.seconds(forecast.futures, 0.5 + sign * _INTERVAL / 2) for sign in (-1, 1))
            if forecast.seconds > high:
                counts["late"] += 1
            elif forecast.is_over:
                counts["early" if forecast.seconds < low else "held"] += 1
        return cls(sum(counts.values()), counts["held"], counts["early"], counts["late"])


class Backtest:
    """Forecasts of a cluster's past, each with what was known at its moment.

    The moments are random ones in a grid that does not move with time, so that they are the same in a later call.

    Args:
        states: The past states.
        workloads: The Workloads they come from.
        similar: The past jobs: these Workloads, then others.
        arrivals: Which of them have arrived by now.
        since: Since when all that waited is known, in nanoseconds since 1970.
        now: The present.
        horizon_seconds: How far to look.
        most_steps: See `Future`.
        first_uid: See `Future`.
        experience: What was forecast before.
        window_seconds: The longest window of arrivals before each moment.
        n_moments: At most how many moments.
    """

    def __init__(
        self,
        states: PastStates,
        workloads: Sequence[PresentWorkload],
        similar: SimilarJobs,
        arrivals: Arrivals,
        *,
        since: int,
        now: int,
        horizon_seconds: float,
        most_steps: int | None,
        first_uid: int,
        experience: Experience,
        window_seconds: float | None = None,
        n_moments: int = N_MOMENTS,
    ) -> None:
        self._states, self._workloads, self._similar, self._arrivals = states, workloads, similar, arrivals
        self._now, self._horizon, self._most_steps, self._first_uid = now, horizon_seconds, most_steps, first_uid
        self._experience, self._window_seconds = experience, window_seconds
        # Only those at which something waited are worth it, and far and near ones in turn.
        moments = _moments(since, now, _CANDIDATES * n_moments)
        self.moments = [moment for moment in moments if self._has_waits(_time_of(moment))][:n_moments]

    def forecasts(self, moment: Moment) -> list[PastForecast]:
        """Return the forecasts for one of the `moments`; empty: nothing waited then, or too little was known."""
        kept = self._experience.forecasts(moment)
        if kept is None:
            kept = self._played(moment)
            self._experience.keep(moment, kept)
        waits = {workload.key: workload for workload in self._workloads} if kept else {}
        found = []
        for at, key, futures in kept:
            workload = waits.get(key)
            if workload is None or not futures.has_finite:
                continue
            # One that has ended without a start has waited until then.
            end = next((time for time in (workload.started, workload.ended) if time is not None), self._now)
            waited = (at - (workload.created or at)) / SECOND_NS
            # By now another may have its name, or a clock that was wrong is set.
            if end > at and waited >= 0:
                seconds = (end - at) / SECOND_NS
                found.append(PastForecast(at, key, futures, seconds, workload.started is not None, waited))
        return found

    def _has_waits(self, at: int) -> bool:
        return bool(self._states.clear_waits(self._states.waiting_at(at))) and self._states.running_at(at) is not None

    def _played(self, moment: Moment) -> list[tuple[int, str, Curve]]:
        at = _time_of(moment)
        # Most of those that wait have waited for long: so one that has just come is asked about, too.
        newest = self._states.first_wait(at, min(at + moment[0] * SECOND_NS, self._now))
        if newest is not None:
            at = newest[0]
        waiting, running = self._states.waiting_at(at), self._states.running_at(at)
        known = self._similar.at(at / SECOND_NS)
        if not waiting or running is None or known.n_ended < _LEAST_ENDED:
            return []
        random = np.random.default_rng([moment[0], moment[1]])
        clear = self._states.clear_waits(waiting)
        others = [clear[place] for place in random.permutation(len(clear)).tolist()]
        asked = others if newest is None else [newest[1], *(place for place in others if place != newest[1])]
        targets = [self._workloads[place] for place in sorted(asked[:_N_WAITS])]
        watched = tuple(target.namespace_and_name for target in targets)
        state = self._states.state(at, running, waiting)
        part = relevant_part(state, watched)
        arrivals = self._arrivals.seen((self._now - at) / SECOND_NS, longest=self._window_seconds)
        draws = FittedDraws(known, [*running, *waiting], arrivals)
        future = Future(
            state=part,
            draws=draws_of_part(draws, state, part),
            targets=watched,
            horizon_seconds=self._horizon_of(targets, at),
            window_seconds=_LEAST_HORIZON_SECONDS,
            first_uid=self._first_uid,
            most_steps=self._most_steps,
        )
        played = Player(future).play_all(range(_N_FUTURES))
        # Where it takes longer than was looked at, it does not matter how much longer.
        longest = future.horizon_seconds if future.horizon_seconds < self._horizon else inf
        return [
            (at, target.key, Curve([min(one.seconds[place], longest) for one in played]))
            for place, target in enumerate(targets)
        ]

    def _horizon_of(self, targets: Sequence[PresentWorkload], at: int) -> float:
        """Return how far futures must be played to see how unusual the waits were."""
        if any(target.started is None for target in targets):
            return self._horizon
        longest = max((target.started or 0) - at for target in targets) / SECOND_NS
        return min(max(_LONG_ENOUGH * longest, _LEAST_HORIZON_SECONDS), self._horizon)


def _moments(begin: int, now: int, n: int) -> list[Moment]:
    """Return moments as the width of their grid in seconds, and their place in it; far and near ones in turn."""
    seconds = (1 - _LEARNING_SHARE) * (now - begin) / SECOND_NS
    if n < 1 or seconds < _LEAST_GRID_SECONDS:
        return []
    grid = round(_LEAST_GRID_SECONDS * 2 ** max(ceil(log2(seconds / n / _LEAST_GRID_SECONDS)), 0))
    last = now // SECOND_NS // grid
    places = [(grid, last - back) for back in range(n + 1)]
    earliest = now - round(seconds * SECOND_NS)
    # None is before 1970: a time that is so wrong has nothing to teach.
    inside = [moment for moment in places if moment[1] >= 0 and earliest <= _time_of(moment) < now]
    return sorted(inside, key=lambda moment: (int(f"{moment[1] % 256:08b}"[::-1], 2), moment[1]))


def _time_of(moment: Moment) -> int:
    """Return when a moment is, in nanoseconds since 1970: anywhere in its cell."""
    grid, place = moment
    return int((place + np.random.default_rng([grid, place]).random()) * grid) * SECOND_NS
