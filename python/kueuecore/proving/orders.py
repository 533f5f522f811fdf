"""Workloads that are admitted in other ClusterQueues if they arrive in another order."""

from __future__ import annotations

from itertools import combinations_with_replacement, islice, permutations

from kueuecore.proving.explorer import Move, MoveKind, Property
from kueuecore.proving.scope import Scope
from kueuecore.proving.search import Coverage, Found, Spent
from kueuecore.proving.shapes import Tier

__all__ = ["order_dependence"]

_MAX_WORKLOADS = 3
_BATCH = 200


def order_dependence(scope: Scope, spent: Spent, coverage: Coverage) -> Found | None:
    """Try the simplest shapes in each order; return the first orders that differ in who is served.

    Args:
        scope: The tree.
        spent: Given how many moves were played, returns which part of the time is over; 1 ends the search.
        coverage: Where to note how many orders were tried.
    """
    if spent(0) >= 1:
        return None
    shapes = tuple(shape for shape in scope.shapes if shape.tier is Tier.FIRST)
    explorer = scope.explorer(shapes)
    n_moves = 0
    for n_workloads in range(2, _MAX_WORKLOADS + 1):
        mixes = combinations_with_replacement(range(len(shapes)), n_workloads)
        while spent(n_moves) < 1 and (batch := list(islice(mixes, _BATCH))):
            orders = [sorted(set(permutations(mix))) for mix in batch]
            lists = [tuple(Move(MoveKind.ARRIVE, number) for number in order) for each in orders for order in each]
            n_moves += sum(map(len, lists))
            coverage.n_orders += len(lists)
            played = iter(zip(lists, explorer.play(lists, ()), strict=True))
            for each in orders:
                first, *rest = islice(played, len(each))
                for moves, other in rest:
                    if other.served != first[1].served and other.n_moves == first[1].n_moves == n_workloads:
                        return Found(Property.ORDER, shapes, first[0], instead=moves)
    return None
