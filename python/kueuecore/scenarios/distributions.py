"""Random spans of time, one class per distribution, in seconds with millisecond resolution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, cycle, repeat
from math import exp, log, sqrt
from random import Random
from statistics import NormalDist
from typing import Protocol

__all__ = ["Empirical", "Gamma", "InOrder", "LogNormal", "Span", "Spans", "Weibull"]

# The 95th percentile of a normal distribution, in standard deviations from its mean.
_Z95 = NormalDist().inv_cdf(0.95)


class Spans(Protocol):
    """A source of spans of time."""

    def draws(self, random: Random) -> Iterator[float]:
        """Yield spans in seconds, endlessly and lazily."""
        ...


@dataclass(frozen=True, slots=True)
class Span:
    """A fixed, uniform or exponential span.

    Args:
        least: The shortest, or the fixed one.
        most: The longest of a uniform distribution. None: always the shortest.
        mean: The mean of an exponential distribution; the other two are then ignored.

    Example:
        >>> Span(5).draw(Random(1)), round(Span(5, 6).draw(Random(1)), 3), round(Span(mean=60).draw(Random(1)), 3)
        (5, 5.134, 8.657)
    """

    least: float = 0.0
    most: float | None = None
    mean: float | None = None

    def draw(self, random: Random) -> float:
        """Draw the next one, to the millisecond."""
        if self.mean is not None:
            return round(random.expovariate(1 / self.mean), 3) if self.mean else 0.0
        return self.least if self.most is None else round(random.uniform(self.least, self.most), 3)

    def draws(self, random: Random) -> Iterator[float]:
        """Yield spans endlessly."""
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
        """Make the distribution with this mean and 95th percentile.

        Raises:
            ValueError: There is none: `p95` must be 1 to 3.86 times the mean.

        Example:
            >>> it = LogNormal.of_mean(60, p95=180)
            >>> round(it.median, 3), round(it.sigma, 3)
            (38.867, 0.932)
        """
        spread = log(p95 / mean) if mean > 0 and p95 > 0 else -1.0
        if not 0 <= spread <= _Z95**2 / 2:
            raise ValueError(f"no lognormal distribution has them; write a p95 of 1 to {_MAX_P95} times the mean")
        # Two distributions have that p95; take the narrower one.
        sigma = _Z95 - sqrt(_Z95**2 - 2 * spread)
        return cls(median=mean * exp(-(sigma**2) / 2), sigma=sigma)

    def draws(self, random: Random) -> Iterator[float]:
        """Yield spans endlessly."""
        return _rounded(lambda: self.median * exp(random.gauss(0.0, self.sigma)))


_MAX_P95 = 3.86
"""Rounded down from exp(_Z95**2 / 2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weibull:
    """Spans until a failure: with a shape below 1 mostly early, above 1 with age.

    Args:
        shape: The shape; 1 is exponential.
        scale: 63 % are shorter.

    Example:
        >>> next(Weibull(shape=0.5, scale=60).draws(Random(1)))
        1.249
    """

    shape: float
    scale: float

    def draws(self, random: Random) -> Iterator[float]:
        """Yield spans endlessly."""
        return _rounded(lambda: random.weibullvariate(self.scale, self.shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gamma:
    """Spans that are sums of `shape` exponential ones.

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
        """Yield spans endlessly."""
        # The random source refuses a scale of 0.
        return _rounded(lambda: random.gammavariate(self.shape, self.scale)) if self.scale else repeat(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Empirical:
    """Spans drawn from observed ones.

    Args:
        values: The observed spans.
        weights: Their relative frequencies; None: all equal.

    Example:
        >>> from itertools import islice
        >>> list(islice(Empirical(values=(5, 60), weights=(9, 1)).draws(Random(3)), 5))
        [5, 5, 5, 5, 5]
    """

    values: tuple[float, ...]
    weights: tuple[float, ...] | None = None

    def draws(self, random: Random) -> Iterator[float]:
        """Yield spans endlessly."""
        summed = None if self.weights is None else list(accumulate(self.weights))
        while True:
            yield random.choices(self.values, cum_weights=summed)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class InOrder:
    """Observed spans in their order; after the last, the first again.

    Args:
        values: The observed spans.

    Example:
        >>> from itertools import islice
        >>> list(islice(InOrder(values=(5, 60)).draws(Random(1)), 3))
        [5, 60, 5]
    """

    values: tuple[float, ...]

    def draws(self, random: Random) -> Iterator[float]:
        """Yield spans endlessly, without drawing."""
        return cycle(self.values)


def _rounded(draw: Callable[[], float]) -> Iterator[float]:
    """Yield draws, to the millisecond."""
    while True:
        yield round(draw(), 3)
