"""Score forecasts against what happened: coverage, interval score, factor of two, PIT; errors by blocks of a week."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isnan, log, nan, sqrt

__all__ = [
    "BLOCK_SECONDS",
    "LEVELS",
    "SHARES",
    "Answer",
    "Estimate",
    "Scores",
    "covered",
    "interval_score",
    "interval_scores",
    "jackknife",
    "pit",
    "scores",
]

SHARES = (0.01, 0.025, *(share / 100 for share in range(5, 100, 5)), 0.975, 0.99)
"""The quantiles that are kept of a forecast."""
_PLACES = {share: place for place, share in enumerate(SHARES)}
LEVELS = (0.5, 0.8, 0.95)
"""The intervals that are scored, each central."""
HORIZON_SECONDS = 30 * 86400.0
"""Everything later counts as this."""
BLOCK_SECONDS = 7 * 86400.0
"""Waits within such a block are taken as one observation for standard errors: they overlap."""
_SCORED = 0.8
_SHORT = 60.0
"""Below this many seconds a factor of two says nothing; in the score of logarithms it is added to each time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A forecast and what happened, in seconds from the moment.

    Args:
        at: The moment, in seconds from the start of the log.
        quantiles: The forecast, one for each of `SHARES`.
        truth: When it was admitted.
    """

    at: float
    quantiles: tuple[float, ...]
    truth: float

    def quantile(self, share: float) -> float:
        """Return one of the quantiles; an infinite one is the horizon."""
        return min(self.quantiles[_PLACES[round(share, 6)]], HORIZON_SECONDS)

    @property
    def seen(self) -> float:
        """Return the truth, at most the horizon."""
        return min(self.truth, HORIZON_SECONDS)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the central interval of a level."""
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and its standard error by the jackknife; NaN with less than two blocks."""

    value: float
    error: float

    def percent(self) -> str:
        """Return it as `78.1 % ± 2.0`."""
        if isnan(self.value):
            return "-"
        return f"{100 * self.value:.1f} %" + ("" if isnan(self.error) else f" ± {100 * self.error:.1f}")

    def plain(self) -> str:
        """Return it as `0.78 ± 0.05`."""
        if isnan(self.value):
            return "-"
        return f"{self.value:.2f}" + ("" if isnan(self.error) else f" ± {self.error:.2f}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """How well forecasts held.

    Args:
        n: How many.
        coverage: The share of truths within each interval of `LEVELS`.
        below: The share of truths before the 80 % interval.
        above: The share of truths after it.
        score: The mean interval score of the 80 % interval, in seconds; lower is better.
        log_score: The same of log(seconds + 60).
        factor_two: The share of medians within a factor of two of the truth, among truths over a minute.
    """

    n: int
    coverage: Mapping[float, Estimate]
    below: Estimate
    above: Estimate
    score: Estimate
    log_score: Estimate
    factor_two: Estimate


def covered(answer: Answer, level: float) -> bool:
    """Return whether the truth is within the interval, ends included."""
    low, high = answer.interval(level)
    return low <= answer.seen <= high


def interval_score(low: float, high: float, truth: float, level: float = _SCORED) -> float:
    """Return the interval score (T. Gneiting & A. Raftery 2007, 6.2): the width, plus what the truth is outside of it.

    Example:
        >>> interval_score(10, 20, 15), interval_score(10, 20, 5), interval_score(10, 20, 21)
        (10.0, 60.0, 20.0)
    """
    penalty = 2 / (1 - level)
    return float(high - low + round(penalty, 9) * (max(low - truth, 0.0) + max(truth - high, 0.0)))


def pit(answer: Answer) -> float:
    """Return which share of the forecast is below the truth, between kept quantiles by interpolation.

    Of a forecast that puts weight on one value, the middle of its share.
    """
    values = [min(value, HORIZON_SECONDS) for value in answer.quantiles]
    first, last = bisect_left(values, answer.seen), bisect_right(values, answer.seen)
    if first < last:
        low = 0.0 if first == 0 else SHARES[first]
        high = 1.0 if last == len(values) else SHARES[last - 1]
        return (low + high) / 2
    if first == 0:
        return SHARES[0] / 2
    if first == len(values):
        return (1 + SHARES[-1]) / 2
    share = (answer.seen - values[first - 1]) / (values[first] - values[first - 1])
    return SHARES[first - 1] + share * (SHARES[first] - SHARES[first - 1])


def jackknife(answers: Sequence[Answer], tops: Sequence[float], bottoms: Sequence[float] | None = None) -> Estimate:
    """Return the sum of some values of answers by the sum of others, and its standard error by leaving out each week.

    Args:
        answers: The answers.
        tops: A value for each.
        bottoms: What to divide by, for each; None: ones, which makes it a mean.
    """
    below = [1.0] * len(answers) if bottoms is None else bottoms
    blocks: dict[int, list[float]] = {}
    for answer, top, bottom in zip(answers, tops, below, strict=True):
        block = blocks.setdefault(int(answer.at // BLOCK_SECONDS), [0.0, 0.0])
        block[0] += top
        block[1] += bottom
    top, bottom = fsum(block[0] for block in blocks.values()), fsum(block[1] for block in blocks.values())
    if not bottom:
        return Estimate(nan, nan)
    left = [(top - block[0]) / (bottom - block[1]) for block in blocks.values() if bottom - block[1] > 1e-9 * bottom]
    if len(left) < 2:
        return Estimate(top / bottom, nan)
    mean = fsum(left) / len(left)
    spread = fsum((each - mean) ** 2 for each in left)
    return Estimate(top / bottom, sqrt((len(left) - 1) / len(left) * spread))


def interval_scores(answers: Sequence[Answer], *, of_logs: bool = False) -> list[float]:
    """Return the interval score of the 80 % interval of each, in seconds or of log(seconds + 60)."""
    found = []
    for answer in answers:
        low, high, seen = *answer.interval(_SCORED), answer.seen
        if of_logs:
            low, high, seen = (log(end + _SHORT) for end in (low, high, seen))
        found.append(interval_score(low, high, seen))
    return found


def scores(answers: Sequence[Answer]) -> Scores:
    """Score answers; at least one."""
    within = {level: [float(covered(answer, level)) for answer in answers] for level in LEVELS}
    ends = [answer.interval(_SCORED) for answer in answers]
    long = [float(answer.truth > _SHORT) for answer in answers]
    near = [float(answer.seen / 2 <= answer.quantile(0.5) <= 2 * answer.seen) for answer in answers]
    return Scores(
        n=len(answers),
        coverage={level: jackknife(answers, held) for level, held in within.items()},
        below=jackknife(answers, [float(answer.seen < low) for answer, (low, _) in zip(answers, ends, strict=True)]),
        above=jackknife(answers, [float(answer.seen > high) for answer, (_, high) in zip(answers, ends, strict=True)]),
        score=jackknife(answers, interval_scores(answers)),
        log_score=jackknife(answers, interval_scores(answers, of_logs=True)),
        factor_two=jackknife(answers, [one * other for one, other in zip(near, long, strict=True)], long),
    )
