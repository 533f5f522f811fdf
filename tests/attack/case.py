"""One input, and what has to come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kueuecore.errors import OutOfTimeError, UnsettledError

__all__ = ["MAY_BE_LATE", "Case", "Wrong", "size_of"]

MAY_BE_LATE = (OutOfTimeError, UnsettledError)
"""What only shows when something has happened already."""


class Wrong(Exception):  # noqa: N818
    """What came of an input is neither a documented error nor a right answer."""


@dataclass(frozen=True, slots=True)
class Case:
    """One input to a door.

    Args:
        title: What it is.
        act: Gives it to the door. Raises `Wrong` if the answer is wrong.
        size: Of the input, in bytes: time and memory are in proportion to it.
        names: A refusal names one of them; empty where `act` looks at the words itself.
        state: What a refusal must leave as it is.
        seconds: What the door may take besides.
        twice: Gives the door the same at double size, which takes at most 2.5 times as long.
    """

    title: str
    act: Callable[[], object]
    size: int
    names: tuple[str, ...] = ()
    state: Callable[[], object] | None = None
    seconds: float = 2.0
    twice: Callable[[], object] | None = None


def size_of(value: Any, depth: int = 0) -> int:
    """About how many bytes a value takes as text, or in an array."""
    if isinstance(value, (str, bytes, bytearray)):
        return len(value) + 2
    if isinstance(value, int):
        return value.bit_length() // 3 + 1
    if isinstance(value, np.ndarray):
        return int(value.size) * value.itemsize
    if depth < 50 and type(value) is dict:
        return sum(size_of(key, depth + 1) + size_of(row, depth + 1) + 2 for key, row in value.items()) + 2
    if depth < 50 and type(value) in (list, tuple):
        return sum(size_of(row, depth + 1) + 1 for row in value) + 2
    if depth < 50 and isinstance(value, Mapping) and hasattr(value, "object"):
        return size_of(value.object, depth + 1)
    return 8
