"""Limits on the work of trying things out, so that a check ends soon on any input.

Work is counted, not timed: the same objects give the same findings on each machine.
"""

from __future__ import annotations

__all__ = ["OF_A_CYCLE", "OF_A_ROUND", "Effort"]

OF_A_CYCLE = 3
"""A cycle of the scheduler takes about as long as loading this many objects."""
OF_A_ROUND = 15
"""The same for a workload that ends and comes back, without the cycles that follow."""


class Effort:
    """How much work may still be done, in objects that could be loaded meanwhile.

    Args:
        most: All work that may be done.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self.is_spent = False
        """Whether something was left out because the rest was too little."""

    def spend(self, work: int) -> bool:
        """Take some of it; False if there is too little left, and from then on."""
        self.is_spent = self.is_spent or work > self._left
        if self.is_spent:
            return False
        self._left -= work
        return True
