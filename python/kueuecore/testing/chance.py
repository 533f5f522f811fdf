"""Where worlds take their choices from: a seed, which is quick, or Hypothesis, which makes small what fails."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

__all__ = ["Chance", "SeededChance"]

Drawn = TypeVar("Drawn")


class Chance(Protocol):
    """Answers every choice that is left open in a world. The first of the answers is always the simplest."""

    def one(self, *values: Drawn) -> Drawn:
        """One of the values."""
        ...

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        ...

    def rarely(self, one_in: int) -> bool:
        """True in one of so many cases."""
        ...

    def boolean(self) -> bool:
        """True in half of all cases."""
        ...

    def shuffled(self, values: Sequence[Drawn]) -> list[Drawn]:
        """The values in some order."""
        ...


class SeededChance:
    """Choices that follow from a seed, the same on every machine.

    Args:
        seed: The seed.

    Example:
        >>> SeededChance(7).integer(0, 9) == SeededChance(7).integer(0, 9)
        True
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def one(self, *values: Drawn) -> Drawn:
        """One of the values."""
        return values[int(self._random() * len(values))]

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def rarely(self, one_in: int) -> bool:
        """True in one of so many cases."""
        return self._random() * one_in < 1

    def boolean(self) -> bool:
        """True in half of all cases."""
        return self._random() < 0.5

    def shuffled(self, values: Sequence[Drawn]) -> list[Drawn]:
        """The values in some order."""
        left, found = list(values), []
        while left:
            found.append(left.pop(int(self._random() * len(left))))
        return found
