"""Random worlds for tests: Hypothesis strategies, a player for what happens in them, and what must hold.

For whoever builds on an [`Engine`][kueuecore.engine.Engine]: a controller, a policy, a simulator. The strategies need
[Hypothesis](https://hypothesis.readthedocs.io): `pip install 'kueuecore[testing]'`; the rest works without.

Example:
    >>> from kueuecore.testing import Move, MoveKind, Play, Scenario, check_invariants
    >>> play = Play.of(Scenario(()))
    >>> told = play.do(Move(kind=MoveKind.CYCLE))
    >>> check_invariants(play.engine)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from kueuecore.testing.cycle_invariants import Invariants
from kueuecore.testing.invariants import check_invariants
from kueuecore.testing.play import Play, Told, first_difference, observe
from kueuecore.testing.scenario import START, Move, MoveKind, Scenario, read_scenarios, shown
from kueuecore.testing.shares import Shares, Witness

if TYPE_CHECKING:
    from kueuecore.testing.drawn_histories import histories
    from kueuecore.testing.drawn_worlds import Limits, worlds

# What needs Hypothesis is imported when it is first used.
_STRATEGIES = {"Limits": "drawn_worlds", "worlds": "drawn_worlds", "histories": "drawn_histories"}

__all__ = [
    "START",
    "Invariants",
    "Limits",
    "Move",
    "MoveKind",
    "Play",
    "Scenario",
    "Shares",
    "Told",
    "Witness",
    "check_invariants",
    "first_difference",
    "histories",
    "observe",
    "read_scenarios",
    "shown",
    "worlds",
]


def __getattr__(name: str) -> object:
    if name not in _STRATEGIES:
        raise AttributeError(f"module 'kueuecore.testing' has no attribute {name!r}")
    try:
        return getattr(import_module(f"kueuecore.testing.{_STRATEGIES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        raise ModuleNotFoundError(
            f"kueuecore.testing.{name} needs Hypothesis: pip install 'kueuecore[testing]'", name="hypothesis"
        ) from None
