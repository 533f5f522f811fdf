"""Shrinks a collection while it keeps a property."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

__all__ = ["shrunk", "without_parts"]

Thing = TypeVar("Thing")


def shrunk(things: Sequence[Thing], holds: Callable[[tuple[Thing, ...]], bool], *, max_tries: int) -> tuple[Thing, ...]:
    """Return the things that the property needs, in their order.

    None of the rest can be removed alone, unless the tries ran out.

    Args:
        things: Things that together have the property.
        holds: Whether some of them have it.
        max_tries: The most calls of `holds`.

    Example:
        >>> shrunk(range(10), lambda some: {3, 7} <= set(some), max_tries=100)
        (3, 7)
    """
    found = [tuple(things)]
    tries = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in without_parts(lambda: found[-1]):
            if tries == max_tries:
                return found[-1]
            tries += 1
            if holds(candidate):
                found.append(candidate)
                is_smaller = True
    return found[-1]


def without_parts(current: Callable[[], Sequence[Thing]]) -> Iterator[tuple[Thing, ...]]:
    """Yield the collection without large parts first, then without each single thing, from the end.

    Args:
        current: Returns the smallest collection so far, which changes as the caller tries each one.
    """
    size = len(current()) // 2
    while size:
        end = len(current())
        while end > 0:
            things = tuple(current())
            yield things[: max(0, end - size)] + things[end:]
            end -= size
        size //= 2
