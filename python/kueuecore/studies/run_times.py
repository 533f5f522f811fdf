"""How long jobs run: distributions fitted to a cluster's past, including their uncertainty."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from random import Random
from typing import Protocol, TypeAlias

from kueuecore.scenarios import Spans

__all__ = ["FittedRunTimes", "GivenRunTimes", "LeftRunTimes", "RunTimes", "Sampler"]

# For a job that has run longer than almost any draw: after so many draws, expect nothing longer.
_MAX_DRAWS = 1000
# The tail is fitted to this share of the longest run times, and at least to this many.
_TAIL_SHARE = 0.2
_LEAST_TAIL = 5
# The rate at which jobs end if none ever took any time.
_AT_ONCE = 1e9

Sampler: TypeAlias = Callable[[float], tuple[float, float]]
"""Takes how long a job has run so far; draws how long it runs in total, and how much of that is done; in seconds."""


class RunTimes(Protocol):
    """A model of how long jobs run."""

    def sampler(self, random: Random) -> Sampler:
        """Return the run times of one possible future, in which all jobs follow the same distribution."""
        ...


@dataclass(frozen=True, slots=True)
class GivenRunTimes:
    """Run times from a given distribution.

    Args:
        spans: How long jobs run in total.

    Example:
        >>> from kueuecore.scenarios import Span
        >>> sample = GivenRunTimes(Span(60, 120)).sampler(Random(1))
        >>> sample(0), sample(100)
        ((68.062, 0.0), (110.846, 100))
    """

    spans: Spans

    def sampler(self, random: Random) -> Sampler:
        """See `RunTimes`. A job that has already run longer than any draw runs for another whole run time."""
        draws = self.spans.draws(random)

        def sample(elapsed: float) -> tuple[float, float]:
            seconds = next(draws)
            if elapsed <= 0:
                return seconds, 0.0
            for _ in range(_MAX_DRAWS):
                if seconds > elapsed:
                    return seconds, elapsed
                seconds = next(draws)
            return elapsed + seconds, elapsed

        return sample


@dataclass(frozen=True, slots=True)
class LeftRunTimes:
    """How much longer jobs run, however long they have run; after an eviction, the same again (`present.runs`).

    Args:
        spans: How much longer.
    """

    spans: Spans

    def sampler(self, random: Random) -> Sampler:
        """See `RunTimes`."""
        draws = self.spans.draws(random)
        return lambda elapsed: (next(draws), 0.0)


@dataclass(frozen=True, slots=True)
class FittedRunTimes:
    """Run times like observed ones.

    The cumulative hazard of ending is the Nelson-Aalen estimate, linear between its steps. Running jobs count as
    censored. Beyond the longest run time, jobs end at the rate of the longest fifth. Each future reweights the
    observations by the Bayesian bootstrap (D. Rubin 1981), to reflect how uncertain a small sample is.

    Args:
        seconds: The observed run times, ascending; for a running job, its run time so far.
        has_ended: Which of them have ended; at least one.

    Example:
        >>> sample = FittedRunTimes.of([50.0, 60.0, 70.0], [65.0]).sampler(Random(1))
        >>> [round(sample(elapsed)[0]) for elapsed in (0, 0, 0, 65, 200)]
        [61, 60, 65, 177, 210]
    """

    seconds: tuple[float, ...]
    has_ended: tuple[bool, ...]

    @classmethod
    def of(cls, ended: Sequence[float], running: Sequence[float]) -> FittedRunTimes:
        """Fit to the run times of finished jobs, and to how long others have run so far.

        Raises:
            ValueError: None has ended.
        """
        if not ended:
            raise ValueError("no job has ended")
        # Ties: an end comes before a job that still runs.
        seen = sorted([*((value, False) for value in ended), *((value, True) for value in running)])
        return cls(tuple(value for value, _ in seen), tuple(not is_running for _, is_running in seen))

    def sampler(self, random: Random) -> Sampler:
        """See `RunTimes`."""
        hazard = _Hazard.of(self, [random.expovariate(1.0) for _ in self.seconds])

        def sample(elapsed: float) -> tuple[float, float]:
            elapsed = max(elapsed, 0.0)
            # It ends once its cumulative hazard exceeds a threshold, which is exponentially distributed.
            return hazard.time_of(hazard.up_to(elapsed) + random.expovariate(1.0), least=elapsed), elapsed

        return sample


@dataclass(frozen=True, slots=True)
class _Hazard:
    """The cumulative hazard of ending.

    Args:
        times: Where its slope changes, in ascending order, from 0.
        sums: The hazard up to each of them.
        tail: The slope after the last.
    """

    times: Sequence[float]
    sums: Sequence[float]
    tail: float

    @classmethod
    def of(cls, seen: FittedRunTimes, weights: Sequence[float]) -> _Hazard:
        at_risk = list(accumulate(reversed(weights)))[::-1]
        times, sums = [0.0], [0.0]
        for seconds, has_ended, weight, left in zip(seen.seconds, seen.has_ended, weights, at_risk, strict=True):
            if has_ended:
                times.append(seconds)
                sums.append(sums[-1] + weight / left)
        return cls(times, sums, _tail(seen, weights, times))

    def up_to(self, time: float) -> float:
        """Return the hazard up to a time."""
        place = bisect_right(self.times, time)
        if place == len(self.times):
            return self.sums[-1] + (time - self.times[-1]) * self.tail
        before, after = self.times[place - 1], self.times[place]
        return self.sums[place - 1] + (self.sums[place] - self.sums[place - 1]) * (time - before) / (after - before)

    def time_of(self, hazard: float, *, least: float) -> float:
        """Return when the hazard reaches a value."""
        place = bisect_left(self.sums, hazard)
        if place == len(self.sums):
            return max(least, self.times[-1]) + (hazard - max(self.up_to(least), self.sums[-1])) / self.tail
        before, after = self.sums[place - 1], self.sums[place]
        return max(
            least,
            self.times[place - 1] + (self.times[place] - self.times[place - 1]) * (hazard - before) / (after - before),
        )


def _tail(seen: FittedRunTimes, weights: Sequence[float], times: Sequence[float]) -> float:
    """Return the rate at which the longest jobs end, per second."""
    n_ends = len(times) - 1
    n_tail = min(n_ends, max(_LEAST_TAIL, ceil(_TAIL_SHARE * n_ends)))
    n, exposure = _after(seen, weights, times[n_ends - n_tail])
    if not n:
        # If all ran equally long, none ran longer than the others: count all of their time.
        n, exposure = _after(seen, weights, 0.0)
    rate = n / exposure if n else _AT_ONCE
    # Many jobs that still run long after the last end are unlike those that have ended.
    _, exposure = _after(seen, weights, times[-1])
    return min(rate, 1 / exposure) if exposure else rate


def _after(seen: FittedRunTimes, weights: Sequence[float], begin: float) -> tuple[float, float]:
    """Return how many ended after a time, and how many seconds all of them ran after it."""
    rows = [
        (seconds - begin, has_ended, weight)
        for seconds, has_ended, weight in zip(seen.seconds, seen.has_ended, weights, strict=True)
        if seconds > begin
    ]
    return (
        sum(weight for _, has_ended, weight in rows if has_ended),
        sum(weight * seconds for seconds, _, weight in rows),
    )
