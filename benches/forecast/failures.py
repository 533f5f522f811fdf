"""Find where forecasts fail: the groups of questions whose 80 % interval holds too seldom or too often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan

from benches.figures import table
from benches.forecast.asking import ETA, Asked, Kept
from benches.forecast.scores import Estimate, Scores, scores

__all__ = ["Group", "failures_table", "groups_of"]

_LEAST = 40
_N_WORST = 3
_LEVEL = 0.8
_CERTAIN = 2.0
"""How many standard errors a group has to be off by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Questions of a kind.

    Args:
        name: What they have in common.
        scores: How well `eta` held for them.
    """

    name: str
    scores: Scores

    @property
    def coverage(self) -> Estimate:
        """The coverage of the 80 % interval."""
        return self.scores.coverage[_LEVEL]

    @property
    def errors_off(self) -> float:
        """By how many standard errors the coverage is off; 0: that is unknown."""
        estimate = self.coverage
        return 0.0 if isnan(estimate.error) else abs(estimate.value - _LEVEL) / max(estimate.error, 0.01)


def groups_of(kept: Kept) -> list[Group]:
    """Return the groups of one part that have enough questions."""
    by: dict[str, list[Asked]] = {}
    for asked in kept.asked:
        for name in _names(asked, int(kept.about["processors"])):
            by.setdefault(name, []).append(asked)
    return [
        Group(name=name, scores=scores([each.answer(ETA) for each in some]))
        for name, some in sorted(by.items())
        if _LEAST <= len(some) < len(kept.asked)
    ]


def failures_table(parts: list[Kept]) -> str:
    """Return the worst groups of each part; empty if none is off by more than two standard errors."""
    rows = []
    for kept in parts:
        off = [group for group in groups_of(kept) if group.errors_off > _CERTAIN]
        for group in sorted(off, key=lambda group: (-abs(group.coverage.value - _LEVEL), group.name))[:_N_WORST]:
            own = group.scores
            shares = (group.coverage, own.below, own.above)
            rows.append([kept.log, kept.way.value, group.name, f"{own.n:,}", *(each.percent() for each in shares)])
    head = ["log", "asked", "about jobs", "number", "in 80 %", "earlier", "later"]
    return table(head, rows, n_left=3) if rows else ""


def _names(asked: Asked, processors: int) -> Iterator[str]:
    yield f"of queue {asked.queue}"
    yield _class(asked.waited, "that had waited", [(600, "ten minutes"), (3600, "an hour"), (86400, "a day")])
    yield _class(
        asked.pods / processors, "that request", [(0.05, "a twentieth"), (0.2, "a fifth"), (0.5, "half of the machine")]
    )
    yield _class(asked.n_waiting, "when jobs that wait are", [(5, "5"), (20, "20"), (80, "80")])


def _class(value: float, what: str, limits: list[tuple[float, str]]) -> str:
    below = next((name for limit, name in limits if value <= limit), None)
    return f"{what} more than {limits[-1][1]}" if below is None else f"{what} up to {below}"
