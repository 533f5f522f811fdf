"""How long jobs run: distributions fitted to those that a cluster has seen, with what is not known about them."""

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

# A job that has run longer than almost anything that is drawn: after so many draws nothing longer is to be expected.
_MOST_DRAWS = 1000
# The tail is fitted to this share of the longest run times, and to no fewer than this number of them.
_TAIL_SHARE = 0.2
_LEAST_TAIL = 5
# The rate at which jobs end that have never taken any time.
_AT_ONCE = 1e9

Sampler: TypeAlias = Callable[[float], tuple[float, float]]
"""Takes how many seconds a job has run so far; draws how many it runs in all, and how many of these are done."""


class RunTimes(Protocol):
    """How long jobs run."""

    def sampler(self, random: Random) -> Sampler:
        """Run times of one possible future, in which all jobs follow the same distribution."""
        ...


@dataclass(frozen=True, slots=True)
class GivenRunTimes:
    """Run times of a distribution that somebody has named.

    Args:
        spans: How long jobs run in all.

    Example:
        >>> from kueuecore.scenarios import Span
        >>> sample = GivenRunTimes(Span(60, 120)).sampler(Random(1))
        >>> sample(0), sample(100)
        ((68.062, 0.0), (110.846, 100))
    """

    spans: Spans

    def sampler(self, random: Random) -> Sampler:
        """See `RunTimes`. A job that has run longer than anything that is drawn runs on for another whole run time."""
        draws = self.spans.draws(random)

        def sample(elapsed: float) -> tuple[float, float]:
            seconds = next(draws)
            if elapsed <= 0:
                return seconds, 0.0
            for _ in range(_MOST_DRAWS):
                if seconds > elapsed:
                    return seconds, elapsed
                seconds = next(draws)
            return elapsed + seconds, elapsed

        return sample


@dataclass(frozen=True, slots=True)
class LeftRunTimes:
    """How much longer jobs run, whatever they have run so far; after an eviction again as long (`present.runs`).

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
    """Run times like those that were seen.

    The hazard of ending, summed up, is Nelson's and Aalen's estimate with straight lines between its steps. Jobs that
    still run count: they are known to run longer. Beyond the longest, jobs end at the rate of the longest fifth. Each
    future weights what was seen anew, by the Bayesian bootstrap (D. Rubin 1981), as a few run times do not say all.

    Args:
        seconds: What was seen, in ascending order; of a job that still runs, for how long by now.
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
        """Fit to the run times of jobs that have ended, and to how long others have run by now.

        Raises:
            ValueError: None has ended.
        """
        if not ended:
            raise ValueError("no job has ended")
        # Of one that ended after as long as another has run by now, the end comes first.
        seen = sorted([*((it, False) for it in ended), *((it, True) for it in running)])
        return cls(tuple(it for it, _ in seen), tuple(not is_running for _, is_running in seen))

    def sampler(self, random: Random) -> Sampler:
        """See `RunTimes`."""
        hazard = _Hazard.of(self, [random.expovariate(1.0) for _ in self.seconds])

        def sample(elapsed: float) -> tuple[float, float]:
            elapsed = max(elapsed, 0.0)
            # It ends once the hazard it has been through exceeds a threshold, which is exponential.
            return hazard.time_of(hazard.up_to(elapsed) + random.expovariate(1.0), least=elapsed), elapsed

        return sample


@dataclass(frozen=True, slots=True)
class _Hazard:
    """The hazard of ending, summed up from 0.

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
        """The hazard up to a time."""
        place = bisect_right(self.times, time)
        if place == len(self.times):
            return self.sums[-1] + (time - self.times[-1]) * self.tail
        before, after = self.times[place - 1], self.times[place]
        return self.sums[place - 1] + (self.sums[place] - self.sums[place - 1]) * (time - before) / (after - before)

    def time_of(self, hazard: float, *, least: float) -> float:
        """When the hazard reaches so much."""
        place = bisect_left(self.sums, hazard)
        if place == len(self.sums):
            return max(least, self.times[-1]) + (hazard - max(self.up_to(least), self.sums[-1])) / self.tail
        before, after = self.sums[place - 1], self.sums[place]
        return max(
            least,
            self.times[place - 1] + (self.times[place] - self.times[place - 1]) * (hazard - before) / (after - before),
        )


def _tail(seen: FittedRunTimes, weights: Sequence[float], times: Sequence[float]) -> float:
    """The rate at which those that run longest end, per second."""
    n_ends = len(times) - 1
    n_tail = min(n_ends, max(_LEAST_TAIL, ceil(_TAIL_SHARE * n_ends)))
    n, exposure = _after(seen, weights, times[n_ends - n_tail])
    if not n:
        # Of those that all ran equally long, none ran any longer than the others: then all of their time counts.
        n, exposure = _after(seen, weights, 0.0)
    rate = n / exposure if n else _AT_ONCE
    # Many that have run on for long after the last end say that there are others than those that have ended.
    _, exposure = _after(seen, weights, times[-1])
    return min(rate, 1 / exposure) if exposure else rate


def _after(seen: FittedRunTimes, weights: Sequence[float], begin: float) -> tuple[float, float]:
    """How many have ended after a time, and for how many seconds all of them ran after it."""
    rows = [
        (seconds - begin, has_ended, weight)
        for seconds, has_ended, weight in zip(seen.seconds, seen.has_ended, weights, strict=True)
        if seconds > begin
    ]
    return (
        sum(weight for _, has_ended, weight in rows if has_ended),
        sum(weight * seconds for seconds, _, weight in rows),
    )
