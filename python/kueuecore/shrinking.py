"""Delta debugging: removes whatever is not needed to show something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

__all__ = ["shrunk", "smallest_by", "without_parts"]

Thing = TypeVar("Thing")


def smallest_by(
    first: Thing,
    candidates_of: Callable[[Callable[[], Thing]], Iterator[Thing]],
    shows: Callable[[Thing], bool],
    *,
    max_tries: int | None = None,
    progress: Callable[[int, Thing], None] | None = None,
) -> Thing:
    """Shrink a thing while it still shows something, until no candidate does.

    Args:
        first: A thing that shows it.
        candidates_of: Yields smaller candidates. It is passed a function that returns the smallest thing so far, which
            changes while candidates are tried.
        shows: Whether a candidate shows it too.
        max_tries: The most candidates to try; None for no limit.
        progress: Called with the number of tries and the smallest thing so far.

    Example:
        >>> smallest_by("hay needle hay", lambda it: (it()[:i] + it()[i + 1 :] for i in range(len(it()))),
        ...             lambda it: "needle" in it)
        'needle'
    """
    tries = 0
    found = [first]
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in candidates_of(lambda: found[-1]):
            if tries == max_tries:
                return found[-1]
            tries += 1
            if shows(candidate):
                found[:] = [candidate]
                is_smaller = True
            if progress is not None:
                progress(tries, found[-1])
    return found[-1]


def shrunk(
    things: Sequence[Thing], holds: Callable[[tuple[Thing, ...]], bool], *, max_tries: int | None = None
) -> tuple[Thing, ...]:
    """Return the things that the property needs, in their order.

    None of the rest can be removed alone, unless the tries ran out.

    Args:
        things: Things that together have the property.
        holds: Whether some of them have it.
        max_tries: The most calls of `holds`; None for no limit.

    Example:
        >>> shrunk(range(10), lambda some: {3, 7} <= set(some))
        (3, 7)
    """
    return smallest_by(tuple(things), without_parts, holds, max_tries=max_tries)


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
