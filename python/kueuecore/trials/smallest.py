"""Makes a scenario that fails small: whatever can go without making it pass goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from kueuecore._json import JsonObject, JsonValue
from kueuecore.shrinking import without_parts
from kueuecore.testing.history import History, Move

__all__ = ["smallest"]


def smallest(scenario: History, fails: Callable[[History], bool], *, max_tries: int = 3000) -> History:
    """The scenario without what it does not need to fail: moves, objects, fields, settings.

    Args:
        scenario: A scenario that fails.
        fails: Does another still fail, and in the same way?
        max_tries: Ask so often at most.

    Example:
        >>> objects = tuple({"kind": "Cohort", "metadata": {"name": name}, "spec": {}} for name in "abcd")
        >>> smallest(History(objects), lambda it: "'c'" in str(it.objects)).objects
        ({'kind': 'Cohort', 'metadata': {'name': 'c'}, 'spec': {}},)
    """
    tries = 0
    found = [scenario]
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in _candidates_of(lambda: found[-1]):
            if tries == max_tries:
                return found[-1]
            tries += 1
            if fails(candidate):
                found.append(candidate)
                is_smaller = True
    return found[-1]


def _candidates_of(current: Callable[[], History]) -> Iterator[History]:
    """Smaller scenarios; `current` is the smallest so far, and changes while they are tried."""
    if current().configuration:
        yield replace(current(), configuration=None)
    for candidate in without_parts(lambda: current().moves):
        yield current().with_moves(candidate)
    for objects in without_parts(lambda: current().objects):
        yield current().with_objects(objects)
    configuration = current().configuration
    if configuration:
        for plain in _simpler(configuration):
            yield replace(current(), configuration=plain)
    yield from _simpler_objects(current)
    yield from _simpler_moves(current)


def _simpler_objects(current: Callable[[], History]) -> Iterator[History]:
    for index in range(len(current().objects)):
        before = None
        while current().objects[index] is not before:
            before = current().objects[index]
            for simpler in _simpler_object(before):
                objects = list(current().objects)
                objects[index] = simpler
                yield current().with_objects(objects)
                if current().objects[index] is simpler:
                    break


def _simpler_moves(current: Callable[[], History]) -> Iterator[History]:
    for index in range(len(current().moves)):
        before: Move | None = None
        while current().moves[index] is not before:
            before = current().moves[index]
            if before.object is None:
                break
            for simpler in _simpler_object(before.object):
                moves = list(current().moves)
                moves[index] = replace(before, object=simpler)
                yield current().with_moves(moves)
                if current().moves[index] is moves[index]:
                    break


def _simpler_object(plain: JsonObject) -> Iterator[JsonObject]:
    """The object with less in its spec, or without its status; its metadata say who it is."""
    if "status" in plain:
        yield {name: it for name, it in plain.items() if name != "status"}
    if isinstance(spec := plain.get("spec"), dict):
        for simpler in _simpler(spec):
            yield {**plain, "spec": simpler}


def _simpler(value: JsonObject) -> Iterator[JsonObject]:
    for name, inner in value.items():
        yield {key: it for key, it in value.items() if key != name}
        for simpler in _simpler_value(inner):
            yield {**value, name: simpler}


def _simpler_value(value: JsonValue) -> Iterator[JsonValue]:
    if isinstance(value, dict):
        yield from _simpler(value)
    elif isinstance(value, list):
        for index in range(len(value)):
            if len(value) > 1:
                yield value[:index] + value[index + 1 :]
            for simpler in _simpler_value(value[index]):
                yield [*value[:index], simpler, *value[index + 1 :]]
    elif isinstance(value, int) and not isinstance(value, bool) and value > 1:
        yield 1
