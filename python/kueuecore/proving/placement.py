"""Shapes that fit into a quota, but are not admitted even if they are alone."""

from __future__ import annotations

from kueuecore.proving.explorer import Explorer, Move, MoveKind, Property
from kueuecore.proving.scope import Scope
from kueuecore.proving.search import Found

__all__ = ["never_placed"]


def never_placed(scope: Scope, explorer: Explorer) -> Found | None:
    """Return the simplest shape that is never placed; None if each of them is."""
    fits = explorer.fit_alone()
    unplaced = [number for number, is_placed in enumerate(fits) if not is_placed]
    if not unplaced:
        return None
    simplest = min(unplaced, key=lambda number: (scope.shapes[number].tier, scope.shapes[number].simplicity))
    return Found(Property.PLACEMENT, scope.shapes, (Move(MoveKind.ARRIVE, simplest),))
