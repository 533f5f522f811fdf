"""Hypothesis strategies for worlds and histories; failures are shrunk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from hypothesis import strategies as st

from kueuecore._json import JsonObject
from kueuecore.testing import drawn_histories, drawn_worlds
from kueuecore.testing.drawn_worlds import Limits, Stock
from kueuecore.testing.history import History, Move, MoveKind

__all__ = ["contents", "histories", "moves", "stocks", "worlds"]

Drawn = TypeVar("Drawn")


# Each is built once, as building them takes the time.
@cache
def _index(n: int) -> st.SearchStrategy[int]:
    return st.sampled_from(range(n))


@cache
def _integer(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


_BOOLEAN = st.booleans()


class _Drawing:
    """Choices made by Hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def one(self, *values: Drawn) -> Drawn:
        return values[self._draw(_index(len(values)))]

    def integer(self, low: int, high: int) -> int:
        return self._draw(_integer(low, high))

    def rarely(self, one_in: int) -> bool:
        # Hypothesis draws the ends of a range more often than the middle; the simplest result is false.
        return self._draw(_integer(0, one_in - 1)) == one_in * 2 // 3

    def boolean(self) -> bool:
        return self._draw(_BOOLEAN)

    def shuffled(self, values: Sequence[Drawn]) -> list[Drawn]:
        return self._draw(st.permutations(values))


@st.composite
def worlds(draw: st.DrawFn, limits: Limits | None = None) -> History:
    """Draw whole worlds without moves: queues, cohorts, flavors, workloads, and a Configuration.

    Args:
        draw: Given by Hypothesis.
        limits: How large they may become, and what may be in them.

    Example:
        >>> from hypothesis import given, settings
        >>> from kueuecore.testing import Play, worlds
        >>> @settings(max_examples=10, database=None)
        ... @given(worlds())
        ... def test_an_engine_takes_every_world(world):
        ...     Play.of(world)
        >>> test_an_engine_takes_every_world()
    """
    chance = _Drawing(draw)
    return History(*drawn_worlds.contents(chance, drawn_worlds.stocks(chance, limits or Limits())))


@st.composite
def histories(draw: st.DrawFn, limits: Limits | None = None, *, max_moves: int = 14, forks: bool = True) -> History:
    """Draw whole worlds with their moves.

    Args:
        draw: Given by Hypothesis.
        limits: How large the worlds may become, and what may be in them.
        max_moves: The maximum number of moves, not counting the first cycles.
        forks: Whether the engine may be forked.

    Example:
        >>> from hypothesis import given, settings
        >>> from kueuecore.testing import Play, check_invariants, histories
        >>> @settings(max_examples=10, database=None)
        ... @given(histories())
        ... def test_usage_is_what_is_reserved(history):
        ...     play = Play.of(history)
        ...     for _ in play.run(history.moves):
        ...         check_invariants(play.engine)
        >>> test_usage_is_what_is_reserved()
    """
    return drawn_histories.history(_Drawing(draw), limits or Limits(), max_moves=max_moves, forks=forks)


@st.composite
def stocks(draw: st.DrawFn, limits: Limits) -> Stock:
    """Draw the stock of a world."""
    return drawn_worlds.stocks(_Drawing(draw), limits)


@st.composite
def contents(draw: st.DrawFn, stock: Stock) -> tuple[tuple[JsonObject, ...], tuple[()], JsonObject | None]:
    """Draw the initial objects, no moves, and the Configuration."""
    return drawn_worlds.contents(_Drawing(draw), stock)


@st.composite
def moves(
    draw: st.DrawFn, stock: Stock, known: tuple[JsonObject, ...], *, number: int, kind: MoveKind | None = None
) -> Move:
    """Draw one move; see `drawn_histories.move`."""
    return drawn_histories.move(_Drawing(draw), stock, known, number=number, kind=kind)
