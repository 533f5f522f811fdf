"""Searches one tree for moves that break properties: all moves up to a number of them, then longer ones at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice, product, repeat
from typing import TypeAlias

from kueuecore.proving.explorer import IN_EXPLORER, Explorer, Move, MoveKind, Property, Tried
from kueuecore.proving.scope import Scope
from kueuecore.proving.shapes import Shape, Tier

__all__ = ["Coverage", "Found", "Search", "Spent", "search"]

Spent: TypeAlias = Callable[[int], float]
"""From how many moves were played to which part of the time is over."""

# Loops of workloads that may start with fewer pods need no more moves than this, or are found without them.
_MAX_ELASTIC_DEPTH = 3
# More moves than this are not tried in one pass, however long the search may take.
_MAX_MOVES = 400_000_000
_MAX_DEPTH = 8
# A pass is begun only if it is likely to be over in this part of the time; the rest goes to long lists of moves.
_EXHAUSTIVE_PART = 0.6
_LONGEST = 14
_BATCH = 256
_MAX_CORPUS = 4_000


@dataclass(frozen=True, slots=True)
class Found:
    """Moves that break a property.

    Args:
        property: The property; the name of one of the user's own.
        shapes: What the numbers of the moves stand for.
        moves: The moves.
        instead: Other moves, where the property compares two lists of them.
        is_by_chance: Whether it is a loop that ends once Kueue decides a tie by chance otherwise.
    """

    property: Property | str
    shapes: tuple[Shape, ...]
    moves: tuple[Move, ...]
    instead: tuple[Move, ...] = ()
    is_by_chance: bool = False


@dataclass(slots=True)
class Coverage:
    """What a search has tried.

    Args:
        depths: For each number of shapes, up to how many moves all were tried.
        n_moves: How many moves were played while all were tried.
        n_lists: How many longer lists of moves were played.
        longest: The longest of them.
        n_unsettled: After how many moves cycles did not come to an end, without a loop.
        n_drawn: How many moves the longer lists had.
        n_orders: How many orders of arrival were tried.
        n_alone: How many shapes were tried alone.
    """

    depths: dict[int, int] = field(default_factory=dict)
    n_moves: int = 0
    n_lists: int = 0
    longest: int = 0
    n_unsettled: int = 0
    n_drawn: int = 0
    n_orders: int = 0
    n_alone: int = 0

    @property
    def n_played(self) -> int:
        """How many moves were played."""
        return self.n_moves + self.n_drawn


@dataclass(slots=True)
class Search:
    """What a search has found, and what it has tried.

    Args:
        found: What was found.
        by_chance: The first loop that chance ends; the search went on.
        coverage: What was tried.
    """

    found: list[Found] = field(default_factory=list)
    by_chance: Found | None = None
    coverage: Coverage = field(default_factory=Coverage)


def search(
    scope: Scope,
    asked: Iterable[Property],
    *,
    spent: Spent,
    seed: int = 0,
    n_threads: int = 1,
    progress: Callable[[str], None] | None = None,
    result: Search | None = None,
) -> Search:
    """Search one tree until each property is broken or the time is over.

    Args:
        scope: The tree.
        asked: The properties.
        spent: Given how many moves were played, returns which part of the time is over; 1 ends the search.
        seed: Of the moves that are drawn.
        n_threads: How many threads search.
        progress: Called with what is tried next.
        result: Where to note what was found, so that Ctrl-C does not lose it.

    Raises:
        KeyboardInterrupt: Somebody pressed Ctrl-C; `result` has what was found by then.
    """
    result = result or Search()
    elastic: Found | None = None
    left = [it for it in asked if it in IN_EXPLORER]
    with ThreadPoolExecutor(n_threads) as executor:
        try:
            _try_all(scope, left, result, spent, executor, progress)
            elastic = _elastic_loop(scope, spent, executor) if Property.LOOPS in left else None
            if left and spent(result.coverage.n_played) < 1:
                _draw(scope, left, result, spent, executor, n_threads, random.Random(seed), progress)
        finally:
            if Property.LOOPS in left and (other := result.by_chance or elastic) is not None:
                result.found.append(other)
    return result


def _elastic_loop(scope: Scope, spent: Spent, executor: Executor) -> Found | None:
    """Try few moves of workloads that may start with fewer pods; they count where no others loop."""
    shapes = tuple(shape for shape in scope.shapes if shape.tier in (Tier.FIRST, Tier.ELASTIC))
    if all(shape.tier is Tier.FIRST for shape in shapes) or spent(0) >= 1:
        return None
    explorer, result, left = scope.explorer(shapes), Search(), [Property.LOOPS]
    for depth in range(2, _MAX_ELASTIC_DEPTH + 1):
        if not left or not _try_depth(explorer, shapes, depth, left, result, spent, executor):
            break
    return result.found[0] if result.found else None


def _try_all(
    scope: Scope,
    left: list[Property],
    result: Search,
    spent: Spent,
    executor: Executor,
    progress: Callable[[str], None] | None,
) -> None:
    """Try all moves, first few of few shapes, then more."""
    tiers = {tier: tuple(shape for shape in scope.shapes if shape.tier <= tier) for tier in (Tier.FIRST, Tier.SECOND)}
    explorers: dict[Tier, Explorer] = {}
    # Arrivals alone are counted: how many workloads can end is not known before.
    passes = sorted(
        (len(shapes) ** depth, tier, depth)
        for tier, shapes in tiers.items()
        if shapes
        for depth in range(1, _MAX_DEPTH + 1)
    )
    for n_moves, tier, depth in passes:
        played = result.coverage.n_moves
        if n_moves > _MAX_MOVES or not left or spent(played) * (1 + n_moves / max(1, played)) > _EXHAUSTIVE_PART:
            return
        shapes = tiers[tier]
        if progress is not None:
            progress(f"all lists of {depth} moves with {len(shapes)} shapes")
        if tier not in explorers:
            # With many shapes it takes long to make one.
            explorers[tier] = scope.explorer(shapes)
        if not _try_depth(explorers[tier], shapes, depth, left, result, spent, executor):
            return
        depths = result.coverage.depths
        depths[len(shapes)] = max(depths.get(len(shapes), 0), depth)


def _try_depth(
    explorer: Explorer,
    shapes: tuple[Shape, ...],
    depth: int,
    left: list[Property],
    result: Search,
    spent: Spent,
    executor: Executor,
) -> bool:
    """Try all lists of so many moves; False if the time was over before."""
    n_first = max(0, min(2, depth - 2))
    arrivals = [Move(MoveKind.ARRIVE, number) for number in range(len(shapes))]
    # The first move is always an arrival, as nothing is there; the second may be another.
    others = [Move(MoveKind.END, 0), *(Move(MoveKind.LOSE, number) for number in range(explorer.n_nodes))]
    firsts = iter(product(arrivals + others, repeat=n_first))
    while left and (batch := list(islice(firsts, 64))):
        if spent(result.coverage.n_played) >= 1:
            return False
        depths = [depth - len(first) for first in batch]
        for one in executor.map(explorer.search, batch, depths, repeat(tuple(left))):
            _note(one, explorer, shapes, left, result)
    return True


def _note(tried: Tried, explorer: Explorer, shapes: tuple[Shape, ...], left: list[Property], result: Search) -> None:
    result.coverage.n_moves += tried.n_moves
    result.coverage.n_unsettled += tried.n_unsettled
    for broken in tried.broken:
        if broken.property in left:
            _keep(broken.property, broken.moves, explorer, shapes, left, result)


def _keep(
    property_: Property,
    moves: tuple[Move, ...],
    explorer: Explorer,
    shapes: tuple[Shape, ...],
    left: list[Property],
    result: Search,
) -> None:
    """Keep what was found, and go on after a loop that chance ends: there may be another that nothing ends."""
    if property_ is Property.LOOPS and explorer.loops_by_chance(moves):
        result.by_chance = result.by_chance or Found(property_, shapes, moves, is_by_chance=True)
        return
    left.remove(property_)
    result.found.append(Found(property_, shapes, moves))


def _draw(
    scope: Scope,
    left: list[Property],
    result: Search,
    spent: Spent,
    executor: Executor,
    n_threads: int,
    draw: random.Random,
    progress: Callable[[str], None] | None,
) -> None:
    """Play lists of moves that are drawn, and variations of those that showed new kinds of preemptions."""
    shapes = tuple(shape for shape in scope.shapes if shape.tier is not Tier.ELASTIC)
    explorer, coverage = scope.explorer(shapes), result.coverage
    if progress is not None:
        progress(f"lists of up to {_LONGEST} moves, drawn from {len(shapes)} shapes")
    seen: set[int] = set()
    corpus: list[tuple[Move, ...]] = []
    while left and spent(result.coverage.n_played) < 1:
        batches = [[_drawn(draw, corpus, explorer) for _ in range(_BATCH)] for _ in range(n_threads)]
        played_in = executor.map(explorer.play, batches, repeat(tuple(left)))
        for lists, played in zip(batches, played_in, strict=True):
            coverage.n_lists += len(lists)
            for moves, one in zip(lists, played, strict=True):
                coverage.longest = max(coverage.longest, one.n_moves)
                coverage.n_drawn += one.n_moves
                if one.n_preemptions and one.preemptions not in seen and len(corpus) < _MAX_CORPUS:
                    seen.add(one.preemptions)
                    corpus.append(moves)
                for broken in one.broken:
                    if broken in left:
                        _keep(broken, moves, explorer, shapes, left, result)


def _drawn(draw: random.Random, corpus: Sequence[tuple[Move, ...]], explorer: Explorer) -> tuple[Move, ...]:
    if corpus and draw.random() < 0.6:
        return tuple(_varied(draw, draw.choice(corpus), explorer))
    # Few shapes at a time: what loops needs several workloads that are alike.
    cast = [draw.randrange(explorer.n_shapes) for _ in range(draw.randint(2, 5))]
    return tuple(_move(draw, cast, explorer) for _ in range(draw.randint(3, _LONGEST)))


def _move(draw: random.Random, cast: Sequence[int], explorer: Explorer) -> Move:
    kind = draw.random()
    if kind < 0.6:
        return Move(MoveKind.ARRIVE, draw.choice(cast))
    if kind < 0.75:
        return Move(MoveKind.BURST, draw.choice(cast))
    if explorer.n_nodes and kind < 0.8:
        return Move(MoveKind.LOSE, draw.randrange(explorer.n_nodes))
    return Move(MoveKind.END, draw.randrange(_LONGEST))


def _varied(draw: random.Random, moves: Sequence[Move], explorer: Explorer) -> Iterator[Move]:
    """A list of moves with one or two of them changed, left out, added or moved."""
    found = list(moves)
    for _ in range(draw.randint(1, 2)):
        at = draw.randrange(len(found) + 1)
        what = draw.randrange(4)
        new = _move(draw, range(explorer.n_shapes), explorer)
        if what == 0 and len(found) < _LONGEST:
            found.insert(at, new)
        elif what == 1 and at < len(found):
            found[at] = new
        elif what == 2 and len(found) > 1 and at < len(found):
            del found[at]
        elif at < len(found):
            found.insert(draw.randrange(len(found)), found.pop(at))
    return iter(found)
