"""Bounds on the quantiles of waits in the manner of QBETS (D. Nurmi, J. Brevik & R. Wolski 2008).

Of n independent waits, the number below the true q-quantile is binomial. So the k-th smallest is above that quantile
with a confidence that depends on n, q and k alone, whatever the distribution. The history is cut to its latest part
when more waits in a row exceed the bound on the 95 % quantile than is likely without a change. This is a program of
our own: groups are a queue and a class of sizes, where QBETS clusters sizes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from functools import lru_cache
from math import ceil, exp, inf, lgamma, log, sqrt
from statistics import NormalDist

import numpy as np

from benches.forecast.moments import Question
from benches.forecast.past import Past
from benches.forecast.scores import SHARES

__all__ = ["CONFIDENCE", "Qbets", "lower_rank", "upper_rank"]

CONFIDENCE = 0.95
_WATCHED = 0.95
_LEAST = 59
"""So many waits are needed for a bound on the 95 % quantile with 95 % confidence: 0.95**59 < 0.05."""
_RARE = 0.05 * 0.05
_LEAST_MISSES, _MOST_MISSES = 3, 20
_LARGE = 1_000
"""From so many on, the binomial is taken as normal."""


class Qbets:
    """The bounds for one replay; ask in order of time.

    Args:
        past: Its past waits.
    """

    def __init__(self, past: Past) -> None:
        self._past = past
        self._groups: dict[tuple[int, int], _History] = {}
        self._n_read = 0

    def quantiles(self, question: Question, waited: float) -> tuple[float, ...]:
        """Return lower bounds for the quantiles below the median, upper ones above, of the wait that is left.

        Args:
            question: The job and the moment.
            waited: How long it has waited, in seconds; only waits that were as long count.
        """
        past, row = self._past, question.row
        end = past.n_at(question.now)
        waits = past.between(self._n_read, end)
        for key, seconds in zip(
            zip(waits.queue.tolist(), waits.size.tolist(), strict=True), waits.seconds.tolist(), strict=True
        ):
            for name in (key, _ALL):
                self._groups.setdefault(name, _History()).append(seconds)
        self._n_read = end
        longer: list[float] = []
        for name in ((int(past.queue[row]), int(past.size[row])), _ALL):
            history = self._groups.get(name)
            longer = [] if history is None else history.ordered[bisect_left(history.ordered, waited) :]
            if len(longer) >= _LEAST:
                break
        if not longer:
            # Nothing is known: the bounds are as wide as they can be.
            return tuple(0.0 if share <= 0.5 else inf for share in SHARES)
        return tuple(max(_bound(longer, share) - waited, 0.0) for share in SHARES)


_ALL = (-1, -1)
_NORMAL = NormalDist()


class _History:
    """The waits of one group since the last change."""

    def __init__(self) -> None:
        self.ordered: list[float] = []
        self._latest: deque[float] = deque(maxlen=_LEAST)
        self._n_missed = 0

    def append(self, seconds: float) -> None:
        rank = upper_rank(len(self.ordered), _WATCHED)
        is_miss = rank is not None and seconds > self.ordered[rank]
        self._n_missed = self._n_missed + 1 if is_miss else 0
        insort(self.ordered, seconds)
        self._latest.append(seconds)
        if self._n_missed >= _LEAST_MISSES and self._n_missed >= self._most_misses():
            self.ordered = sorted(self._latest)
            self._n_missed = 0

    def _most_misses(self) -> int:
        """Return how many misses in a row show a change: three if waits are independent, more if they are alike.

        One miss is followed by another with a probability that grows with the correlation of successive waits.
        """
        logs = np.log(np.array(self._latest) + 1)
        spread = float(logs.std())
        correlation = 0.0 if spread < 1e-9 else float(np.mean((logs[1:] - logs.mean()) * (logs[:-1] - logs.mean())))
        again = 1 - _WATCHED + _WATCHED * max(min(correlation / max(spread**2, 1e-9), 0.98), 0.0)
        n, chance = 1, 1 - _WATCHED
        while chance > _RARE and n < _MOST_MISSES:
            n, chance = n + 1, chance * again
        return max(n, _LEAST_MISSES)


def _bound(ordered: list[float], share: float) -> float:
    if share == 0.5:
        return ordered[(len(ordered) - 1) // 2]
    if share > 0.5:
        rank = upper_rank(len(ordered), share)
        return ordered[-1] if rank is None else ordered[rank]
    rank = lower_rank(len(ordered), share)
    return 0.0 if rank is None else ordered[rank]


@lru_cache(maxsize=100_000)
def upper_rank(n: int, share: float) -> int | None:
    """Return the place, from 0, of the least of n ordered values that is above a quantile with the confidence.

    Returns:
        The place; None if there are too few.

    Example:
        >>> upper_rank(58, 0.95), upper_rank(59, 0.95)
        (None, 58)
    """
    if n > _LARGE:
        place = ceil(n * share + _NORMAL.inv_cdf(CONFIDENCE) * sqrt(n * share * (1 - share)))
        return place if place < n else None
    # The value at place k is below the quantile if more than k of n are.
    below = 0.0
    for k in range(n):
        below += _binomial(n, k, share)
        if below >= CONFIDENCE:
            return k
    return None


def lower_rank(n: int, share: float) -> int | None:
    """Return the place of the largest that is below a quantile with the confidence; None if there are too few."""
    mirrored = upper_rank(n, round(1 - share, 9))
    return None if mirrored is None else n - 1 - mirrored


def _binomial(n: int, k: int, share: float) -> float:
    return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(share) + (n - k) * log(1 - share))
