"""What several seeds say together of one number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from statistics import median

__all__ = ["CONFIDENCE", "Estimate", "paired"]

CONFIDENCE = 0.95
"""An interval holds the true median at least so often."""


@dataclass(frozen=True)
class Estimate:
    """One number of several runs.

    Args:
        values: Its value in each run that has one.

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
        """Between two of the values lies the median of all seeds, in 95 of 100 studies or more.

        It assumes only that seeds are independent, nothing about how values are distributed: values
        fall below the median as heads fall in throws of a coin (W. Conover, Practical Nonparametric Statistics, 3.2).
        None: it takes six values.
        """
        ordered, rank = sorted(self.values), _rank(len(self.values))
        return None if rank is None else (ordered[rank], ordered[-1 - rank])


def _rank(n: int) -> int | None:
    """How many of n ordered values lie outside the interval on each side; None if even all are too few."""
    outside, rank = 0, None
    for k in range(n // 2):
        outside += comb(n, k)
        if 2 * outside > (1 - CONFIDENCE) * 2**n:
            break
        rank = k
    return rank


def paired(a: Sequence[float | None], b: Sequence[float | None]) -> Estimate:
    """The differences b - a of the runs in which both are there."""
    return Estimate(tuple(y - x for x, y in zip(a, b, strict=True) if x is not None and y is not None))
