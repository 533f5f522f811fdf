"""Tables of how well forecasts held: a row for each log, and for each forecaster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from statistics import fmean

from benches.figures import table
from benches.forecast.asking import ETA, Asked, Kept
from benches.forecast.baselines import BASELINES
from benches.forecast.moments import Way
from benches.forecast.oracles import Knows
from benches.forecast.scores import LEVELS, Estimate, Scores, interval_scores, jackknife, scores

__all__ = ["Judged", "all_forecasters", "cost", "duration", "figures_table", "judged", "oracles_table", "summary"]

_LEVELS = tuple(f"in {level:.0%}".replace("%", " %") for level in LEVELS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The scores of all forecasters of one part.

    Args:
        kept: Its answers.
        by: The scores by forecaster.
    """

    kept: Kept
    by: dict[str, Scores]

    def best(self, *, of_logs: bool = False) -> str:
        """Return the baseline with the best interval score, in seconds or of logarithms."""
        return min(
            (name for name in BASELINES if name in self.by),
            key=lambda name: (self.by[name].log_score if of_logs else self.by[name].score).value,
        )

    def ratio(self, *, of_logs: bool = False) -> Estimate:
        """Return our interval score divided by that of the best baseline."""
        best = self.best(of_logs=of_logs)
        own, other = (interval_scores(self.kept.answers(name), of_logs=of_logs) for name in (ETA, best))
        return jackknife(self.kept.answers(ETA), own, other)


def judged(kept: Kept) -> Judged:
    """Score all forecasters of a part."""
    names = sorted({name for asked in kept.asked for name in asked.forecasts}, key=_order)
    return Judged(kept=kept, by={name: scores(kept.answers(name)) for name in names})


def figures_table(parts: Sequence[Judged]) -> str:
    """Return the figures of `eta`, a row for each log."""
    head = ["log", "asked", *_LEVELS, "score", "to the best baseline", "of logs", "factor 2"]
    rows = []
    for part in parts:
        own = part.by[ETA]
        rows.append(
            [
                part.kept.log,
                f"{own.n:,}",
                *(estimate.percent() for estimate in own.coverage.values()),
                duration(own.score.value),
                f"{part.ratio().plain()} ({part.best()})",
                f"{part.ratio(of_logs=True).plain()} ({part.best(of_logs=True)})",
                own.factor_two.percent(),
            ]
        )
    return table(head, rows)


def all_forecasters(part: Judged) -> str:
    """Return the figures of every forecaster for one log."""
    head = [
        "forecaster",
        "asked",
        "in 50 %",
        "in 80 %",
        "in 95 %",
        "earlier",
        "later",
        "score",
        "score of logs",
        "factor 2",
    ]
    rows = [
        [
            f"`{ETA}`" if name == ETA else name,
            f"{own.n:,}",
            *(estimate.percent() for estimate in own.coverage.values()),
            own.below.percent(),
            own.above.percent(),
            duration(own.score.value),
            f"{own.log_score.value:.2f}",
            own.factor_two.percent(),
        ]
        for name, own in part.by.items()
    ]
    return table(head, rows)


def oracles_table(parts: Sequence[Judged]) -> str:
    """Return what forecasts reach that know a part of the future, beside `eta`; empty if none was asked."""
    head = ["log", "asked", "forecaster", "number", "in 80 %", "score", "of eta's", "factor 2"]
    rows = []
    for part in parts:
        known = [asked for asked in part.kept.asked if Knows.RUN_TIMES.value in asked.forecasts]
        if not known:
            continue
        own = scores([asked.answer(ETA) for asked in known])
        for name in (ETA, *(knows.value for knows in Knows)):
            each = scores([asked.answer(name) for asked in known])
            rows.append(
                [
                    part.kept.log,
                    part.kept.way.value,
                    f"`{ETA}`" if name == ETA else name,
                    f"{each.n:,}",
                    each.coverage[0.8].percent(),
                    duration(each.score.value),
                    f"{each.score.value / own.score.value:.2f}" if own.score.value else "-",
                    each.factor_two.percent(),
                ]
            )
    return table(head, rows, n_left=3) if rows else ""


def cost(asked: Sequence[Asked]) -> float:
    """Return the CPU time of one of our forecasts on average, in seconds."""
    return fmean(each.seconds for each in asked)


def summary(parts: Sequence[Kept]) -> str:
    """Return all tables, for a terminal."""
    every = [judged(kept) for kept in parts if kept.asked]
    lines: list[str] = []
    for way in Way:
        some = [part for part in every if part.kept.way is way]
        if some:
            lines += [f"asked: {way.value}", "", figures_table(some), ""]
        for part in some:
            lines += [
                f"{part.kept.log}: {cost(part.kept.asked):.2f} s of CPU time a forecast",
                "",
                all_forecasters(part),
                "",
            ]
    return "\n".join(lines)


def duration(seconds: float) -> str:
    """Return a time with three digits: `3.25 h`."""
    if isnan(seconds):
        return "-"
    for size, unit in [(86400.0, "d"), (3600.0, "h"), (60.0, "min")]:
        if seconds >= size:
            value = seconds / size
            return f"{value:.2f} {unit}" if value < 10 else f"{value:.1f} {unit}"
    return f"{seconds:.1f} s"


def _order(name: str) -> tuple[int, str]:
    names = [ETA, *BASELINES]
    return (names.index(name) if name in names else len(names), name)
