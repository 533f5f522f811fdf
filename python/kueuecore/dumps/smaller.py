"""What delta debugging tries on objects: fewer of them, and simpler ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from kueuecore import shrinking
from kueuecore._json import JsonObject, JsonValue

__all__ = ["simpler", "simpler_object", "with_simpler_objects", "without_parts"]

Thing = TypeVar("Thing")
# Fields that identify an object.
_IDENTITY = ("apiVersion", "kind", "metadata")
# Larger numbers are only halved.
_MAX_BY_ONE = 16
_NAMES = ("name", "namespace", "generateName")


def without_parts(current: Callable[[], Sequence[Thing]]) -> Iterator[tuple[Thing, ...]]:
    """Leave out large parts first, then single elements from the end, even the last one left."""
    yield from shrinking.without_parts(current)
    if len(current()) == 1:
        yield ()


def with_simpler_objects(current: Callable[[], Sequence[JsonObject]]) -> Iterator[tuple[JsonObject, ...]]:
    """Make one of the objects simpler."""
    for index in range(len(current())):
        before = None
        while current()[index] is not before:
            before = current()[index]
            for simpler in simpler_object(before):
                objects = list(current())
                objects[index] = simpler
                yield tuple(objects)
                if current()[index] is simpler:
                    break


def simpler_object(plain: JsonObject) -> Iterator[JsonObject]:
    """Simplify an object: drop its status, or parts of its spec or metadata, but not its names.

    Example:
        >>> [it for it in simpler_object({"kind": "A", "metadata": {"name": "a"}, "spec": {"n": 2}})]
        [{'kind': 'A', 'metadata': {'name': 'a'}}, {'kind': 'A', 'metadata': {'name': 'a'}, 'spec': {}}, \
{'kind': 'A', 'metadata': {'name': 'a'}, 'spec': {'n': 1}}]
    """
    for field in sorted(plain, key=lambda json_value: json_value != "status"):
        if field not in _IDENTITY:
            yield {name: json_value for name, json_value in plain.items() if name != field}
            for simpler in _simpler_value(plain[field]):
                yield {**plain, field: simpler}
    metadata = plain.get("metadata")
    for field, value in metadata.items() if isinstance(metadata, dict) else ():
        if field not in _NAMES:
            yield {**plain, "metadata": {name: json_value for name, json_value in metadata.items() if name != field}}  # type: ignore[union-attr]
            for simpler in _simpler_value(value):
                yield {**plain, "metadata": {**metadata, field: simpler}}  # type: ignore[dict-item]


def simpler(value: JsonObject) -> Iterator[JsonObject]:
    """Simplify a mapping: drop a field, or simplify its value."""
    for name, inner in value.items():
        yield {key: row for key, row in value.items() if key != name}
        for less in _simpler_value(inner):
            yield {**value, name: less}


def _simpler_value(value: JsonValue) -> Iterator[JsonValue]:
    if isinstance(value, dict):
        yield from simpler(value)
    elif isinstance(value, list):
        for index in range(len(value)):
            if len(value) > 1:
                yield value[:index] + value[index + 1 :]
            for less in _simpler_value(value[index]):
                yield [*value[:index], less, *value[index + 1 :]]
    elif isinstance(value, int) and not isinstance(value, bool) and value > 1:
        yield from sorted({1, value // 2, *([value - 1] if value <= _MAX_BY_ONE else [])})
