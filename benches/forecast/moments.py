"""Choose the moments of a replay at which forecasts are asked for, and the jobs that they are asked about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random

import numpy as np

from benches.forecast.cluster import WARM_UP
from benches.forecast.replay import Replay
from kueuecore.times import SECOND_NS

__all__ = ["Question", "Way", "questions"]

# Few, so that moments with many waiting jobs do not count more than others; more moments take longer.
_MAX_AT_ONCE = 3
_MAX_TRIES = 200
"""How many moments are drawn for one at which a job waits."""


class Way(StrEnum):
    """When one asks."""

    WAITING = "waiting"
    """At a random moment, about random jobs that wait then: one call answers for all."""
    SUBMITTED = "submitted"
    """When a random job has been created and the next cycle has found no room for it."""


@dataclass(frozen=True, slots=True, order=True)
class Question:
    """A job to ask about.

    Args:
        now: When, in nanoseconds since 1970.
        row: Its row in the log.
    """

    now: int
    row: int


def questions(replay: Replay, way: Way, n: int, *, seed: int = 1) -> list[Question]:
    """Return what to ask, in order of time; fewer than `n` if there is too little to ask about.

    Args:
        replay: The replay.
        way: When to ask.
        n: How many.
        seed: The seed of the random draws.
    """
    random = Random(f"{seed}/{replay.log.name}/{way}")
    begin, end = int(replay.created[0]), int(replay.created[-1])
    begin += round(WARM_UP * (end - begin)) // SECOND_NS * SECOND_NS
    found = _submitted if way is Way.SUBMITTED else _waiting
    return sorted(found(replay, random, begin, end, n))


def _waiting(replay: Replay, random: Random, begin: int, end: int, n: int) -> list[Question]:
    asked: list[Question] = []
    for _ in range(n * _MAX_TRIES):
        if len(asked) == n or begin >= end:
            break
        now = random.randrange(begin // SECOND_NS, end // SECOND_NS) * SECOND_NS
        n_created = int(np.searchsorted(replay.created, now, side="right"))
        waiting = np.flatnonzero(replay.admitted[:n_created] > now)
        some = random.sample(waiting.tolist(), min(len(waiting), _MAX_AT_ONCE, n - len(asked)))
        asked += [Question(now, row) for row in some]
    return asked


def _submitted(replay: Replay, random: Random, begin: int, end: int, n: int) -> list[Question]:
    # A cycle takes a second, and one may be under way when the job arrives.
    after = 2 * SECOND_NS
    rows = np.flatnonzero(
        (replay.created >= begin) & (replay.created < end) & (replay.admitted > replay.created + after)
    )
    chosen = random.sample(rows.tolist(), min(n, len(rows)))
    return [Question(int(replay.created[row]) + after, row) for row in chosen]
