"""Detects when further cycles would decide nothing."""

from __future__ import annotations

from kueuecore.decisions import Decision
from kueuecore.engine import Engine
from kueuecore.steady_state import most_flavors

__all__ = ["IdleCycles"]


class IdleCycles:
    """Counts how many cycles in a row decided nothing.

    Args:
        engine: The engine that runs the cycles.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._n_idle = 0
        self._n_flavors: int | None = None

    def note(self, decision: Decision) -> None:
        """Take in the decision of a cycle."""
        has_come_to_something = decision.has_changed_something and not decision.waits_for_pods
        self._n_idle = 0 if has_come_to_something else self._n_idle + 1

    def end(self) -> None:
        """Start counting again: something has happened that cycles may act on."""
        self._n_idle = 0

    def flavors_changed(self) -> None:
        """Take note that a ClusterQueue may have more flavors than before."""
        self._n_flavors = None

    @property
    def are_enough(self) -> bool:
        """Whether the next cycle would decide nothing either. A head tries one flavor after the other."""
        if self._n_flavors is None:
            self._n_flavors = most_flavors(self._engine)
        return self._n_idle > self._n_flavors
