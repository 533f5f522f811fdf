"""Plays the futures of a cluster and those of its past side by side, and says what there is so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from typing import TypeAlias

from kueuecore.forecasts.backtest import Backtest, PastForecast
from kueuecore.forecasts.experience import Moment
from kueuecore.forecasts.futures import Future, Played, Player
from kueuecore.studies.running import run_all

__all__ = ["FIRST_SEEDS", "Progress", "SoFar", "played_so_far"]

FIRST_SEEDS = 20
"""How many futures a first answer needs."""
# Small, so that a slow future does not hold up an answer.
_BATCH = 2

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how many are finished, and how many there are."""

SoFar: TypeAlias = tuple[list[Played], list[PastForecast], int]
"""The futures in the order of their seeds, the forecasts of the past, and at how many moments these were made."""

_Call: TypeAlias = tuple[tuple[int, ...], Moment | None]
"""The seeds of futures to play, or a moment of the past."""


def played_so_far(
    future: Future,
    seeds: Sequence[int],
    backtest: Backtest | None,
    executor: Executor | None,
    progress: Progress | None,
    progress_of_past: Progress | None,
) -> Iterator[SoFar]:
    """Play futures, and those of the past; yield what there is whenever it is more.

    The first futures come before the past. What is yielded depends on the number of calls that are over, not on which
    of them end first.

    Args:
        future: What to play.
        seeds: The seed of each future.
        backtest: The forecasts of the past; None: none.
        executor: What plays them; None: this thread.
        progress: Called with the numbers of futures.
        progress_of_past: Called with the numbers of moments of the past.
    """
    player = Player(future)

    def work(seeds: Sequence[int], moment: Moment | None) -> SoFar:
        if moment is None or backtest is None:
            return player.play_all(seeds), [], 0
        return [], backtest.forecasts(moment), 1

    batches = [(tuple(seeds[first : first + _BATCH]), None) for first in range(0, len(seeds), _BATCH)]
    moments = [((), moment) for moment in ([] if backtest is None else backtest.moments)]
    n_first = FIRST_SEEDS // _BATCH
    calls = [*batches[:n_first], *_in_turn(batches[n_first:], moments)]
    early: dict[int, SoFar] = {}
    played: list[Played] = []
    past: list[PastForecast] = []
    n_past = n_calls = 0
    with closing(run_all(work, calls, executor)) as results:
        for place, result in results:
            early[place] = result
            while n_calls in early:
                more, earlier, n_moments = early.pop(n_calls)
                played += more
                past += earlier
                n_past += n_moments
                n_calls += 1
            if progress is not None:
                progress(len(played) + sum(len(more) for more, *_ in early.values()), len(seeds))
            if progress_of_past is not None:
                progress_of_past(n_past + sum(n for *_, n in early.values()), len(moments))
            yield played, past, n_past


def _in_turn(some: Sequence[_Call], others: Sequence[_Call]) -> list[_Call]:
    """Merge two kinds of calls, so that they come to their ends together."""
    places = [
        ((place + 0.5) / len(calls), kind, place)
        for kind, calls in enumerate((some, others))
        for place in range(len(calls))
    ]
    return [(some, others)[kind][place] for _, kind, place in sorted(places)]
