"""The sources of random choices: a seed, which is fast, or Hypothesis, which shrinks what fails."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

__all__ = ["Chance", "SeededChance"]

Drawn = TypeVar("Drawn")


class Chance(Protocol):
    """Makes every choice that a world leaves open. The first of the options is always the simplest."""

    def one(self, *values: Drawn) -> Drawn:
        """Return one of the values."""
        ...

    def integer(self, low: int, high: int) -> int:
        """Return a number from `low` to `high`, both included."""
        ...

    def rarely(self, one_in: int) -> bool:
        """Return True in one of this many cases."""
        ...

    def boolean(self) -> bool:
        """Return True in half of all cases."""
        ...

    def shuffled(self, values: Sequence[Drawn]) -> list[Drawn]:
        """Return the values in some order."""
        ...


class SeededChance:
    """Choices that follow from a seed and are the same on every machine.

    Args:
        seed: The seed.

    Example:
        >>> SeededChance(7).integer(0, 9) == SeededChance(7).integer(0, 9)
        True
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def one(self, *values: Drawn) -> Drawn:
        """Return one of the values."""
        return values[int(self._random() * len(values))]

    def integer(self, low: int, high: int) -> int:
        """Return a number from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def rarely(self, one_in: int) -> bool:
        """Return True in one of this many cases."""
        return self._random() * one_in < 1

    def boolean(self) -> bool:
        """Return True in half of all cases."""
        return self._random() < 0.5

    def shuffled(self, values: Sequence[Drawn]) -> list[Drawn]:
        """Return the values in some order."""
        left, found = list(values), []
        while left:
            found.append(left.pop(int(self._random() * len(left))))
        return found
