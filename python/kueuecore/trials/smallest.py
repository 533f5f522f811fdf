"""Shrinks a scenario that fails: removes whatever it can lose and still fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from kueuecore.dumps.smaller import simpler, simpler_object, with_simpler_objects, without_parts
from kueuecore.shrinking import smallest_by
from kueuecore.testing.history import History, Move

__all__ = ["smallest"]


def smallest(scenario: History, fails: Callable[[History], bool], *, max_tries: int = 3000) -> History:
    """Return the scenario without what it does not need to fail: moves, objects, fields, settings.

    Args:
        scenario: A scenario that fails.
        fails: Returns whether another scenario still fails in the same way.
        max_tries: The maximum number of tries.

    Example:
        >>> objects = tuple({"kind": "Cohort", "metadata": {"name": name}, "spec": {}} for name in "abcd")
        >>> smallest(History(objects), lambda it: "'c'" in str(it.objects)).objects
        ({'kind': 'Cohort', 'metadata': {'name': 'c'}},)
    """
    return smallest_by(scenario, _candidates_of, fails, max_tries=max_tries)


def _candidates_of(current: Callable[[], History]) -> Iterator[History]:
    """Yield smaller scenarios; `current` is the smallest so far, and changes while they are tried."""
    if current().configuration:
        yield replace(current(), configuration=None)
    for moves in without_parts(lambda: current().moves):
        yield current().with_moves(moves)
    for objects in without_parts(lambda: current().objects):
        yield current().with_objects(objects)
    configuration = current().configuration
    if configuration:
        for plain in simpler(configuration):
            yield replace(current(), configuration=plain)
    for objects in with_simpler_objects(lambda: current().objects):
        yield current().with_objects(objects)
    yield from _simpler_moves(current)


def _simpler_moves(current: Callable[[], History]) -> Iterator[History]:
    for index in range(len(current().moves)):
        before: Move | None = None
        while current().moves[index] is not before:
            before = current().moves[index]
            if before.object is None:
                break
            for less in simpler_object(before.object):
                moves = list(current().moves)
                moves[index] = replace(before, object=less)
                yield current().with_moves(moves)
                if current().moves[index] is moves[index]:
                    break
