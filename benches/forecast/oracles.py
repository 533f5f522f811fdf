"""Forecasts that know a part of the future: they show what keeps a forecast from being sharp.

They play futures as `eta` does, with simple draws for what they do not know: run times of the same user's jobs, and
days of the past as they came.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from random import Random

import numpy as np
import numpy.typing as npt

from benches.forecast.dump import Dumps
from benches.forecast.moments import Question
from benches.forecast.replay import Replay, copies_of
from benches.forecast.scores import HORIZON_SECONDS, SHARES
from kueuecore.forecasts.answer import quantile
from kueuecore.scenarios import Scenario
from kueuecore.simulation import Copies, Happening, JobPlan, Operation
from kueuecore.simulation.stepper import Stepper
from kueuecore.times import SECOND_NS

__all__ = ["Knows", "Oracle"]

_DAY = 86400
_WEEK = 7 * _DAY
_LEAST_ALIKE = 10
_FIRST_WINDOW = 3600.0


class Knows(StrEnum):
    """What an oracle knows."""

    RUN_TIMES = "knows run times"
    """How long each job runs that is there; not what arrives."""
    ARRIVALS = "knows arrivals"
    """What arrives and when; not how long anything runs."""


@dataclass(frozen=True, slots=True, eq=False)
class _Future:
    """How long each present job runs in total, and what arrives: rows to copy, times from now, and run times."""

    present: npt.NDArray[np.float64]
    rows: npt.NDArray[np.int64]
    at: npt.NDArray[np.float64]
    run_seconds: npt.NDArray[np.float64]


class Oracle:
    """The oracles for one replay.

    Args:
        replay: The replay.
        n_futures: How many futures each plays.
    """

    def __init__(self, replay: Replay, n_futures: int) -> None:
        self._replay, self._n_futures = replay, n_futures
        self._dumps = Dumps(replay)

    def quantiles(self, question: Question, knows: Knows) -> tuple[float, ...]:
        """Return the quantiles for the wait that is left, in seconds.

        Args:
            question: The job and the moment.
            knows: What the oracle knows.
        """
        scenario = self._dumps.scenario(question.now)
        seconds = []
        for number in range(self._n_futures):
            random = Random(f"{number}/{question.now}/{question.row}/{knows}")
            seconds.append(self._admitted(scenario, question, self._future(question.now, knows, random)))
        return tuple(quantile(seconds, share) for share in SHARES)

    def _future(self, now: int, knows: Knows, random: Random) -> _Future:
        replay, log = self._replay, self._replay.log
        present = self._present(now)
        elapsed = np.maximum(now - replay.admitted[present], 0) / SECOND_NS
        if knows is Knows.RUN_TIMES:
            rows, at = self._past_days(now, random)
            return _Future(log.run_seconds[present], rows, at, log.run_seconds[rows])
        first, end = np.searchsorted(replay.created, [now, now + HORIZON_SECONDS * SECOND_NS], side="right")
        rows = np.arange(first, end)
        draws = _RunTimes(replay, self._dumps.seen(now).ended, random)
        return _Future(
            np.array([draws.draw(int(row), float(so_far)) for row, so_far in zip(present, elapsed, strict=True)]),
            rows,
            (replay.created[rows] - now) / SECOND_NS,
            np.array([draws.draw(int(row), 0.0) for row in rows]),
        )

    def _present(self, now: int) -> npt.NDArray[np.int64]:
        seen = self._dumps.seen(now)
        return np.sort(np.concatenate([seen.waiting, seen.running]))

    def _past_days(self, now: int, random: Random) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return jobs that come as on past days of the same weekday, one after the other."""
        replay, start = self._replay, self._replay.log.start
        n_weeks = max(int((now - start) / SECOND_NS // _WEEK), 1)
        rows: list[npt.NDArray[np.int64]] = []
        at: list[npt.NDArray[np.float64]] = []
        for day in range(int(HORIZON_SECONDS // _DAY)):
            shift = (random.randint(1, max(n_weeks - day // 7, 1)) + day // 7) * _WEEK * SECOND_NS
            begin = now + day * _DAY * SECOND_NS - shift
            first, end = np.searchsorted(replay.created, [begin, begin + _DAY * SECOND_NS], side="right")
            some = np.arange(first, end)
            some = some[replay.finished[some] <= now]
            rows.append(some)
            at.append((replay.created[some] + shift - now) / SECOND_NS)
        return np.concatenate(rows), np.concatenate(at)

    def _admitted(self, scenario: Scenario, question: Question, future: _Future) -> float:
        """Return after how many seconds the job is admitted; infinite: not by the horizon."""
        replay, now, key = self._replay, question.now, self._replay.key(question.row)
        stepper = Stepper(
            replay.cluster,
            configuration=scenario.cluster.configuration,
            now=now,
            checks=[],
            trusted=True,
            cycle_seconds=scenario.cycle_seconds,
            max_cycles=None,
            eviction_seconds=0.0,
            messages=False,
            cycles=False,
            finished=False,
        )
        stepper.schedule(self._happenings(question.now, future))
        stepper.happened()
        n_steps, begin, end = 0, 0.0, 0.0
        while end < HORIZON_SECONDS:
            begin, end = end, min(max(2 * end, _FIRST_WINDOW), HORIZON_SECONDS)
            copies = self._arriving(future, begin, end)
            if len(copies):
                stepper.schedule_copies(copies)
            stepper.advance(now + round(end * SECOND_NS))
            steps = stepper.clock.steps_since(n_steps)
            n_steps += len(steps)
            for time, kind, admitted in steps:
                if kind == "Admitted" and admitted == key:
                    return float(time - now) / SECOND_NS
        return inf

    def _happenings(self, now: int, future: _Future) -> Iterator[Happening]:
        replay, present = self._replay, self._present(now)
        manifests = self._dumps.workloads(now)[-len(present) :]
        plans = [
            (bool(replay.admitted[row] > now), manifest, float(seconds), max(now - int(replay.admitted[row]), 0))
            for row, manifest, seconds in zip(present.tolist(), manifests, future.present, strict=True)
        ]
        # Reservations exist before anything else happens.
        for _, manifest, seconds, elapsed in sorted(plans, key=lambda plan: plan[0]):
            plan = JobPlan(run_seconds=round(seconds, 3), done_seconds=elapsed / SECOND_NS)
            yield Happening(at=0, op=Operation.CREATE, object=manifest, plan=plan)

    def _arriving(self, future: _Future, begin: float, end: float) -> Copies:
        places = np.flatnonzero((future.at >= begin) & (future.at < end))
        names = [f"arrival-{place}" for place in places.tolist()]
        # Those that are there have the numbers of their rows.
        first_uid = len(self._replay.log) + 1 + (int(places[0]) if len(places) else 0)
        return copies_of(
            self._replay.log,
            future.rows[places],
            names,
            future.at[places],
            future.run_seconds[places],
            first_uid=first_uid,
        )


class _RunTimes:
    """Run times of jobs that have ended: of the user's, or of all."""

    def __init__(self, replay: Replay, ended: npt.NDArray[np.int64], random: Random) -> None:
        self._random, self._users = random, replay.log.user.codes
        self._all = np.sort(replay.log.run_seconds[ended])
        of_rows = replay.log.user.codes[ended]
        self._by = {user: np.sort(replay.log.run_seconds[ended][of_rows == user]) for user in set(of_rows.tolist())}

    def draw(self, row: int, elapsed: float) -> float:
        """Draw how long a job runs in total that has run for a while."""
        for known in (self._by.get(int(self._users[row]), self._all[:0]), self._all):
            longer = known[np.searchsorted(known, elapsed, side="right") :] if elapsed else known
            if len(known) >= _LEAST_ALIKE and len(longer):
                return float(longer[self._random.randrange(len(longer))])
        return 2 * elapsed + 1
