"""Spans of time that are drawn: one class a distribution. All are in seconds, to the millisecond."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, cycle, repeat
from math import exp, log, sqrt
from random import Random
from statistics import NormalDist
from typing import Protocol

__all__ = ["Empirical", "Gamma", "InOrder", "LogNormal", "Span", "Spans", "Weibull"]

# How far the 95th percentile of a normal distribution lies from its mean, in standard deviations.
_Z95 = NormalDist().inv_cdf(0.95)


class Spans(Protocol):
    """Spans of time, one after the other."""

    def draws(self, random: Random) -> Iterator[float]:
        """Spans without end, each drawn when it is asked for, in seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Span:
    """A span that is fixed, uniform or exponential.

    Args:
        least: The shortest, or the only one.
        most: The longest; all between are as likely. None: always the shortest.
        mean: Of exponential spans, the mean; then the other two do not count.

    Example:
        >>> Span(5).draw(Random(1)), round(Span(5, 6).draw(Random(1)), 3), round(Span(mean=60).draw(Random(1)), 3)
        (5, 5.134, 8.657)
    """

    least: float = 0.0
    most: float | None = None
    mean: float | None = None

    def draw(self, random: Random) -> float:
        """The next one, to the millisecond."""
        if self.mean is not None:
            return round(random.expovariate(1 / self.mean), 3) if self.mean else 0.0
        return self.least if self.most is None else round(random.uniform(self.least, self.most), 3)

    def draws(self, random: Random) -> Iterator[float]:
        """Spans without end."""
        while True:
            yield self.draw(random)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNormal:
    """Spans whose logarithm is normally distributed: most are short, a few very long.

    Args:
        median: Half of them are shorter.
        sigma: The standard deviation of the logarithm.

    Example:
        >>> next(LogNormal(median=60, sigma=1).draws(Random(1)))
        217.572
    """

    median: float
    sigma: float

    @classmethod
    def of_mean(cls, mean: float, *, p95: float) -> LogNormal:
        """The one with this mean, of whose spans 95 of 100 are no longer than `p95`.

        Raises:
            ValueError: There is none: `p95` must be from 1 to 3.86 times the mean.

        Example:
            >>> it = LogNormal.of_mean(60, p95=180)
            >>> round(it.median, 3), round(it.sigma, 3)
            (38.867, 0.932)
        """
        spread = log(p95 / mean) if mean > 0 and p95 > 0 else -1.0
        if not 0 <= spread <= _Z95**2 / 2:
            raise ValueError(f"no lognormal distribution has them; write a p95 from 1 to {_MOST_P95} times the mean")
        # Of the two with that p95, the one that is less wide.
        sigma = _Z95 - sqrt(_Z95**2 - 2 * spread)
        return cls(median=mean * exp(-(sigma**2) / 2), sigma=sigma)

    def draws(self, random: Random) -> Iterator[float]:
        """Spans without end."""
        return _rounded(lambda: self.median * exp(random.gauss(0.0, self.sigma)))


_MOST_P95 = 3.86
"""Rounded down from exp(_Z95**2 / 2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weibull:
    """Spans until something fails: earlier and earlier with a shape below 1, with age above.

    Args:
        shape: The shape; 1 is exponential.
        scale: 63 of 100 are shorter.

    Example:
        >>> next(Weibull(shape=0.5, scale=60).draws(Random(1)))
        1.249
    """

    shape: float
    scale: float

    def draws(self, random: Random) -> Iterator[float]:
        """Spans without end."""
        return _rounded(lambda: random.weibullvariate(self.scale, self.shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gamma:
    """Spans made of `shape` exponential ones.

    Args:
        shape: The shape; 1 is exponential.
        scale: The mean is `shape` times this.

    Example:
        >>> next(Gamma(shape=2, scale=30).draws(Random(1)))
        20.467
    """

    shape: float
    scale: float

    def draws(self, random: Random) -> Iterator[float]:
        """Spans without end."""
        # The random source refuses a scale of 0.
        return _rounded(lambda: random.gammavariate(self.shape, self.scale)) if self.scale else repeat(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Empirical:
    """Spans drawn from those that were seen.

    Args:
        values: What was seen.
        weights: How often each comes, in relation to the others; None: all alike.

    Example:
        >>> from itertools import islice
        >>> list(islice(Empirical(values=(5, 60), weights=(9, 1)).draws(Random(3)), 5))
        [5, 5, 5, 5, 5]
    """

    values: tuple[float, ...]
    weights: tuple[float, ...] | None = None

    def draws(self, random: Random) -> Iterator[float]:
        """Spans without end."""
        summed = None if self.weights is None else list(accumulate(self.weights))
        while True:
            yield random.choices(self.values, cum_weights=summed)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class InOrder:
    """Spans in the order in which they were seen; after the last comes the first again.

    Args:
        values: What was seen.

    Example:
        >>> from itertools import islice
        >>> list(islice(InOrder(values=(5, 60)).draws(Random(1)), 3))
        [5, 60, 5]
    """

    values: tuple[float, ...]

    def draws(self, random: Random) -> Iterator[float]:
        """Spans without end; nothing is drawn."""
        return cycle(self.values)


def _rounded(draw: Callable[[], float]) -> Iterator[float]:
    """One draw after the other, to the millisecond."""
    while True:
        yield round(draw(), 3)
