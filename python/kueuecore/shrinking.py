"""Makes a collection small that has a property: whatever can go without losing it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

__all__ = ["shrunk", "without_parts"]

Thing = TypeVar("Thing")


def shrunk(things: Sequence[Thing], holds: Callable[[tuple[Thing, ...]], bool], *, max_tries: int) -> tuple[Thing, ...]:
    """The things without those that the property does not need, in their order.

    No single one of those that are left can go, unless tries ran out.

    Args:
        things: Things that have the property together.
        holds: Do others have it?
        max_tries: Ask so often at most.

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
    """Without large parts first, then without each one, from the end.

    Args:
        current: The smallest collection so far, which changes while those that come out are tried.
    """
    size = len(current()) // 2
    while size:
        end = len(current())
        while end > 0:
            things = tuple(current())
            yield things[: max(0, end - size)] + things[end:]
            end -= size
        size //= 2
