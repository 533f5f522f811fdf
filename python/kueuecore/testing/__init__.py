"""Random worlds for tests, by seed or as Hypothesis strategies, with a player for their moves and invariants to check.

For code that builds on an [`Engine`][kueuecore.engine.Engine]: a controller, a policy, a simulator. The strategies need
[Hypothesis](https://hypothesis.readthedocs.io): `pip install 'kueuecore[testing]'`; the rest works without it.

Example:
    >>> from kueuecore.testing import Move, MoveKind, Play, History, check_invariants
    >>> play = Play.of(History(()))
    >>> result = play.do(Move(kind=MoveKind.CYCLE))
    >>> check_invariants(play.engine)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from kueuecore.testing.cycle_invariants import Invariants
from kueuecore.testing.drawn_histories import random_history
from kueuecore.testing.drawn_worlds import Limits
from kueuecore.testing.engine_view import EngineView
from kueuecore.testing.fleet_invariants import FleetInvariants, Invariant, InvariantError
from kueuecore.testing.history import START, History, Move, MoveKind, read_histories, shown
from kueuecore.testing.invariants import check_invariants
from kueuecore.testing.move_result import MoveResult
from kueuecore.testing.play import Play, first_difference, observe

if TYPE_CHECKING:
    from kueuecore.testing.strategies import histories, worlds

# Names that need Hypothesis are imported on first use.
_STRATEGIES = ("histories", "worlds")

__all__ = [
    "START",
    "EngineView",
    "FleetInvariants",
    "History",
    "Invariant",
    "InvariantError",
    "Invariants",
    "Limits",
    "Move",
    "MoveKind",
    "MoveResult",
    "Play",
    "check_invariants",
    "first_difference",
    "histories",
    "observe",
    "random_history",
    "read_histories",
    "shown",
    "worlds",
]


def __getattr__(name: str) -> object:
    if name not in _STRATEGIES:
        raise AttributeError(f"module 'kueuecore.testing' has no attribute {name!r}")
    try:
        return getattr(import_module("kueuecore.testing.strategies"), name)
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        raise ModuleNotFoundError(
            f"kueuecore.testing.{name} needs Hypothesis: pip install 'kueuecore[testing]'", name="hypothesis"
        ) from None
