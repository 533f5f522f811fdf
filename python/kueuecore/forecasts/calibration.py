"""Corrects forecasts by how earlier ones of the same cluster turned out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import exp, inf, isinf, log
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

__all__ = ["Calibration", "Curve", "Outcome"]

_NORMAL = NormalDist()
# A few seconds more or less do not matter: waits are compared as logarithms of so many seconds more.
_OFFSET = 60.0
# Beyond the outermost futures, log waits grow with scores as from the median to the 10 or 90 % quantile, or this fast.
_EIGHTY = _NORMAL.inv_cdf(0.9)
_LEAST_SLOPE = 0.08
# Expected before any outcome is known: the truth spreads more than the futures. Counts as this many outcomes.
_N_EXPECTED = 24
_EXPECTED_SCALE = 1.35
# Workloads that have waited for about as long are alike: within a factor of this power of e.
_ALIKE = 1.5
# How far a correction may narrow, widen, and shift at the median, in scores.
_NARROWEST, _WIDEST, _MOST_SHIFT = 0.6, 2.2, 0.5


class Curve:
    """The waits in the futures of one forecast, as a function of normal scores: -1.28 is the 10 % quantile.

    Args:
        seconds: The wait in each future; infinite: beyond the horizon.
    """

    def __init__(self, seconds: Sequence[float]) -> None:
        ordered = np.sort(np.asarray(seconds, np.float64))
        n = len(ordered)
        self._scores = _scores(n)
        self._logs = np.log(ordered[np.isfinite(ordered)] + _OFFSET)
        middle, low, high = (self._inside(score) for score in (0.0, -_EIGHTY, _EIGHTY))
        self._down = max((middle - low) / _EIGHTY, _LEAST_SLOPE) if not isinf(middle) else _LEAST_SLOPE
        self._up = max((high - middle) / _EIGHTY, _LEAST_SLOPE) if not isinf(high) else _LEAST_SLOPE

    @property
    def has_finite(self) -> bool:
        """Whether any of the waits ends before the horizon."""
        return len(self._logs) > 0

    def _inside(self, score: float) -> float:
        n = len(self._logs)
        place = float(np.interp(score, self._scores, np.arange(len(self._scores))))
        if place > n - 1 and n < len(self._scores):
            return inf
        return float(np.interp(place, np.arange(n), self._logs))

    def seconds_at(self, score: float) -> float:
        """Return the wait at a score; infinite: beyond the horizon."""
        first, last = float(self._scores[0]), float(self._scores[-1])
        if len(self._logs) and score < first:
            return max(exp(float(self._logs[0]) - (first - score) * self._down) - _OFFSET, 0.0)
        if len(self._logs) == len(self._scores) and score > last:
            return max(exp(float(self._logs[-1]) + (score - last) * self._up) - _OFFSET, 0.0)
        found = self._inside(score)
        return found if isinf(found) else max(exp(found) - _OFFSET, 0.0)

    def score_of(self, seconds: float) -> float:
        """Return the score of a wait: how unusual it is among the futures."""
        value = log(seconds + _OFFSET)
        n = len(self._logs)
        if n and value < self._logs[0]:
            return float(self._scores[0]) - (float(self._logs[0]) - value) / self._down
        if n == len(self._scores) and value > self._logs[-1]:
            return float(self._scores[-1]) + (value - float(self._logs[-1])) / self._up
        # Among equal waits it is in the middle.
        left, right = np.searchsorted(self._logs, value, "left"), np.searchsorted(self._logs, value, "right")
        if right > left:
            return float(self._scores[left:right].mean())
        if right in (0, n):
            return float(self._scores[min(int(right), len(self._scores) - 1)])
        share = (value - self._logs[left - 1]) / (self._logs[left] - self._logs[left - 1])
        return float(self._scores[left - 1] + share * (self._scores[left] - self._scores[left - 1]))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an earlier forecast turned out.

    Args:
        score: The score of the wait among the futures.
        is_over: Whether the wait is over; if not, the score is that of the wait so far.
        waited: For how many seconds it had waited when it was asked about.
    """

    score: float
    is_over: bool = True
    waited: float = 0.0


@dataclass(frozen=True)
class Calibration:
    """What the outcomes of earlier forecasts say about the next one.

    If 1 in 10 waits was longer than the 99 % quantile of its futures, then the 90 % quantile of the next wait is where
    the 99 % quantile of its futures is: conformal prediction (V. Vovk et al. 2005) on normal scores. Waits that are not
    over count as censored (E. Kaplan & P. Meier 1958). Few outcomes are complemented by what is expected without any.

    Args:
        outcomes: The outcomes; those of workloads that had waited for about as long count most.
        waited: For how many seconds the workload has waited.

    Example:
        >>> futures = Curve([600.0, 1200.0, 1800.0])
        >>> round(Calibration().seconds(futures, 0.5)), round(Calibration().seconds(futures, 0.9))
        (1200, 2627)
    """

    outcomes: tuple[Outcome, ...] = ()
    waited: float = 0.0

    def after(self, waited: float) -> Calibration:
        """Return the one for a workload that has waited for so many seconds."""
        return replace(self, waited=waited)

    @cached_property
    def _columns(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]:
        """The scores of waits that are over, ascending; the estimated share up to the middle of each; all weights."""
        expected = _EXPECTED_SCALE * _scores_between(_N_EXPECTED)
        scores = np.concatenate([expected, [outcome.score for outcome in self.outcomes]])
        is_over = np.array([True] * len(expected) + [outcome.is_over for outcome in self.outcomes])
        apart = np.array([log((outcome.waited + _OFFSET) / (self.waited + _OFFSET)) for outcome in self.outcomes])
        weights = np.concatenate([np.ones(len(expected)), np.exp(-((apart / _ALIKE) ** 2) / 2)])
        # Ties: a wait that ends comes before one that goes on.
        order = np.lexsort((~is_over, scores))
        scores, is_over, weights = scores[order], is_over[order], weights[order]
        at_risk = np.cumsum(weights[::-1])[::-1]
        left = np.cumprod(np.where(is_over, 1 - weights / at_risk, 1.0))
        middles = 1 - (left + np.concatenate([[1.0], left[:-1]])) / 2
        return scores[is_over], middles[is_over], float(weights.sum())

    def score(self, share: float) -> float:
        """Return the score in the futures that a share of waits does not exceed."""
        normal = _NORMAL.inv_cdf(min(max(share, 1e-6), 1 - 1e-6))
        # The next wait ranks anywhere among the n earlier ones.
        scores, middles, weight = self._columns
        share = 0.5 + (share - 0.5) * (1 + 1 / weight)
        found = float(np.interp(share, middles, scores))
        slack = _MOST_SHIFT * exp(-(normal**2))
        low, high = sorted((_NARROWEST * normal, _WIDEST * normal))
        return min(max(found, low - slack), high + slack)

    def seconds(self, futures: Curve, share: float) -> float:
        """Return the wait that this share of waits with such futures does not exceed."""
        return futures.seconds_at(self.score(share))


@lru_cache(maxsize=64)
def _scores(n: int) -> npt.NDArray[np.float64]:
    return np.array([_NORMAL.inv_cdf((place + 1) / (n + 1)) for place in range(n)])


@lru_cache(maxsize=4)
def _scores_between(n: int) -> npt.NDArray[np.float64]:
    return np.array([_NORMAL.inv_cdf((place + 0.5) / n) for place in range(n)])
