"""Forecasts from past waits alone, without a model of the cluster: what `eta` is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from math import erfc, exp, inf, log, sqrt
from statistics import NormalDist, fmean, pstdev

import numpy as np
import numpy.typing as npt

from benches.forecast.moments import Question
from benches.forecast.past import Past
from benches.forecast.qbets import Qbets
from benches.forecast.scores import SHARES

__all__ = ["BASELINES", "Baselines", "lindy", "lognormal", "past_quantiles"]

_LEAST = 20
"""How many past waits a group needs."""
_LAST = 10
_LEAST_SPREAD = 0.1
_NORMAL = NormalDist()
BASELINES = {
    "past waits": "quantiles of past waits of the queue and size among those that were at least as long",
    "QBETS": "binomial bounds on these quantiles with 95 % confidence, over the recent part without change",
    "last ten": "lognormal with mean and spread of the last ten waits of the queue",
}


class Baselines:
    """All baselines for one replay; ask in order of time.

    Args:
        past: Its past waits.
    """

    def __init__(self, past: Past) -> None:
        self._past = past
        self._qbets = Qbets(past)

    def quantiles(self, question: Question, waited: float) -> dict[str, tuple[float, ...]]:
        """Return the quantiles of each baseline for the wait that is left, in seconds.

        Args:
            question: The job and the moment.
            waited: How long it has waited, in seconds.
        """
        past, row = self._past, question.row
        waits = past.recent(question.now)
        alike = (waits.queue == past.queue[row]) & (waits.size == past.size[row])
        groups = [waits.seconds[alike], waits.seconds]
        return {
            "past waits": past_quantiles(groups, waited),
            "QBETS": self._qbets.quantiles(question, waited),
            "last ten": lognormal(waits.seconds[waits.queue == past.queue[row]][-_LAST:].tolist(), waited),
        }


def past_quantiles(groups: Sequence[npt.NDArray[np.float64]], waited: float) -> tuple[float, ...]:
    """Return what was left of waits that were at least as long, of the first group with enough of them.

    Args:
        groups: Past waits in seconds, from the most similar to all.
        waited: How long the job has waited.
    """
    longer = np.empty(0)
    for group in groups:
        longer = group[group >= waited]
        if len(longer) >= _LEAST:
            break
    if len(longer) < 2:
        return lindy(waited)
    left: list[float] = np.quantile(longer - waited, SHARES, method="weibull").tolist()
    return tuple(left)


def lindy(waited: float) -> tuple[float, ...]:
    """Return quantiles for a wait longer than any: half of such last as long again (a Pareto tail of index 1)."""
    return tuple(max(waited, 1.0) * share / (1 - share) for share in SHARES)


def lognormal(waits: Sequence[float], waited: float) -> tuple[float, ...]:
    """Return quantiles of what is left of a lognormal wait with the mean and spread of some.

    Args:
        waits: The waits in seconds.
        waited: How long the job has waited.
    """
    if len(waits) < 2:
        return lindy(waited)
    logs = [log(wait + 1) for wait in waits]
    center, spread = fmean(logs), max(pstdev(logs), _LEAST_SPREAD)
    longer = _survival((log(waited + 1) - center) / spread)
    if longer < 1e-12:
        return lindy(waited)

    def left(share: float) -> float:
        z = -_NORMAL.inv_cdf(longer * (1 - share)) if longer * (1 - share) < 1 else -inf
        return max(exp(min(center + spread * z, 50.0)) - 1 - waited, 0.0)

    return tuple(map(left, SHARES))


def _survival(z: float) -> float:
    return erfc(z / sqrt(2)) / 2
