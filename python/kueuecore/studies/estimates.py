"""Estimates of one number from several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from statistics import median

__all__ = ["CONFIDENCE", "Estimate", "paired"]

CONFIDENCE = 0.95
"""The least probability that an interval contains the true median."""


@dataclass(frozen=True)
class Estimate:
    """One number from several runs.

    Args:
        values: Its value in each run that has it.

    Example:
        >>> Estimate((3.0, 1.0, 2.0)).median, Estimate((3.0, 1.0, 2.0)).interval
        (2.0, None)
        >>> Estimate((1.0, 2.0, 3.0, 4.0, 5.0, 6.0)).interval
        (1.0, 6.0)
    """

    values: tuple[float, ...]

    @property
    def median(self) -> float | None:
        """The median; None without values."""
        return median(self.values) if self.values else None

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the median over all seeds.

        It assumes only that seeds are independent, and nothing about the distribution: values fall below the median as
        often as heads in coin tosses (W. Conover, Practical Nonparametric Statistics, 3.2). None with fewer than six
        values.
        """
        ordered, rank = sorted(self.values), _rank(len(self.values))
        return None if rank is None else (ordered[rank], ordered[-1 - rank])


def _rank(n: int) -> int | None:
    """Return how many of n ordered values lie outside the interval on each side; None if n is too small."""
    outside, rank = 0, None
    for k in range(n // 2):
        outside += comb(n, k)
        if 2 * outside > (1 - CONFIDENCE) * 2**n:
            break
        rank = k
    return rank


def paired(a: Sequence[float | None], b: Sequence[float | None]) -> Estimate:
    """Return the differences b - a of the runs that have both."""
    return Estimate(tuple(y - x for x, y in zip(a, b, strict=True) if x is not None and y is not None))
