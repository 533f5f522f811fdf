"""Plays possible futures of a cluster: its Workloads and new arrivals, with random run times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
import numpy.typing as npt

from kueuecore.checks import WorkloadKey
from kueuecore.forecasts.base_state import Base, State, rows_of
from kueuecore.forecasts.draws import Drawn, Draws
from kueuecore.simulation.copies import Copies
from kueuecore.simulation.look_ahead import LookAhead

__all__ = ["Future", "Played", "Player", "enough_steps"]

# A future of an overloaded cluster could go on for days of arrivals that all wait.
_ENOUGH_STEPS = 10_000
_STEPS_OF_AN_OBJECT = 5
_ARRIVAL = b"arrival-of-eta-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Future:
    """A cluster at one moment, and what to find out about its future.

    Args:
        state: The cluster at that moment.
        draws: What is random in it.
        targets: The workloads to forecast, by namespace and name.
        horizon_seconds: How far to look.
        window_seconds: How far to draw arrivals at first; then twice as far, and so on.
        first_uid: The first number that occurs in no UID.
        most_steps: After how many arrivals, admissions, evictions and ends a future ends early; an eviction counts as
            five. None: not at all.
    """

    state: State
    draws: Draws
    targets: tuple[WorkloadKey, ...]
    horizon_seconds: float
    window_seconds: float
    first_uid: int
    most_steps: int | None = None


@dataclass(frozen=True, slots=True)
class Played:
    """What happened in one future.

    Args:
        seconds: The seconds until each target is admitted; infinite: not by the end.
        end: How far the future was looked at, in seconds: to the horizon, unless it ended early.
    """

    seconds: tuple[float, ...]
    end: float


class Player:
    """Plays futures of one state; several threads may play at once.

    Args:
        future: What to play.

    Raises:
        ManifestError: Everything that is wrong with the objects.
    """

    def __init__(self, future: Future) -> None:
        self._future = future
        self._base = Base(future.state, future.targets, future.draws.templates)
        scenario = future.state.scenario
        self._has_work = bool(scenario.work or scenario.generated is not None or scenario.traces)

    def __reduce__(self) -> tuple[type[Player], tuple[Future]]:
        """Pickle what to play; another process builds its own base."""
        return Player, (self._future,)

    def play(self, seed: int) -> Played:
        """Play the future of a seed until all targets are admitted, or to the horizon."""
        future = self._future
        drawn = future.draws.drawn(seed)
        run, numbers = self._base.future(seed)
        # How far beyond the horizon a job ends does not matter.
        longest = 2 * future.horizon_seconds
        done = drawn.done_seconds
        run.set_runs(numbers, _rounded(np.minimum(drawn.run_seconds, done + longest)), done)
        arrivals = _Arrivals(self._base, run, drawn, first_uid=future.first_uid + self._schedule_work(run, seed))
        end, horizon, most = 0.0, future.horizon_seconds, future.most_steps
        while not run.has_seen_all and end < horizon:
            begin, end = end, min(max(2 * end, future.window_seconds), horizon)
            arrivals.schedule(begin, end, longest=longest)
            if not run.play(end, most_steps=most):
                break
            if most is not None and run.n_counted >= most and not run.has_seen_all:
                horizon = min(run.seconds, horizon)
        # Decisions of a cycle that ends after the horizon are not by the horizon.
        seconds = [second if second <= horizon else inf for second in run.admitted_seconds]
        return Played(tuple(seconds), horizon)

    def play_all(self, seeds: Sequence[int]) -> list[Played]:
        """Play the futures of some seeds."""
        return [self.play(seed) for seed in seeds]

    def _schedule_work(self, run: LookAhead, seed: int) -> int:
        """Schedule the scenario's own work; return how many jobs that are."""
        if not self._has_work:
            return 0
        state = self._future.state
        copies = rows_of(replace(state.scenario, seed=seed), trusted=state.trusted).copies
        run.stepper.schedule_copies(copies)
        return len(copies)


def enough_steps(n_objects: int) -> int:
    """Return after how many steps a future may end early (`most_steps`), if nobody says how far to look.

    Args:
        n_objects: The number of objects of the cluster.
    """
    return _ENOUGH_STEPS + _STEPS_OF_AN_OBJECT * n_objects


class _Names:
    """Names of arrivals, in the order of their numbers; shared by all futures."""

    _WIDTH = 9
    _LENGTH = len(_ARRIVAL) + _WIDTH

    def __init__(self) -> None:
        self._joined = b""

    def slice(self, first: int, n: int) -> tuple[bytes, npt.NDArray[np.uint64]]:
        """Return concatenated names, and where each ends."""
        joined, end = self._joined, self._LENGTH * (first + n)
        if len(joined) < end:
            n_all = max(1024, 2 * (first + n))
            # Another thread may make the same.
            self._joined = joined = b"".join(b"%s%09d" % (_ARRIVAL, number) for number in range(n_all))
        ends = np.arange(self._LENGTH, self._LENGTH * n + 1, self._LENGTH, dtype=np.uint64)
        return joined[self._LENGTH * first : end], ends


_NAMES = _Names()


class _Arrivals:
    """The arrivals in one future, window by window."""

    def __init__(self, base: Base, run: LookAhead, drawn: Drawn, *, first_uid: int) -> None:
        self._base, self._run, self._drawn = base, run, drawn
        self._n, self._first_uid = 0, first_uid

    def schedule(self, begin: float, end: float, *, longest: float) -> None:
        """Schedule the arrivals of the next window."""
        at, template, run_seconds = self._drawn.arrivals(begin, end)
        if not len(at):
            return
        names, ends = _NAMES.slice(self._n, len(at))
        copies = Copies(
            templates=self._base.templates,
            template=template.astype(np.uint32),
            names=names,
            ends=ends,
            at=at,
            run_seconds=_rounded(np.minimum(run_seconds, longest)),
            first_uid=self._first_uid + self._n,
        )
        self._n += len(at)
        self._run.schedule_copies(copies, self._base.read_templates)


def _rounded(seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Round to a millisecond."""
    return np.round(seconds, 3)
