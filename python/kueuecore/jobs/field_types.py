"""Checks the types of the fields that are read of an object, and reports what is wrong with a manifest.

Call `field_problems` before reading a job. After that a field either has the type in its shape or is missing, and the
functions of `kueuecore._json` use their defaults for missing fields.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import TypeAlias

from kueuecore._json import JsonObject, JsonValue, object_at
from kueuecore._json_text import MAX_DIGITS
from kueuecore._text import quoted
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.jobs.field_paths import Key, Path, path_text
from kueuecore.jobs.rejections import invalid
from kueuecore.times import nanoseconds

__all__ = [
    "Each",
    "Exactly",
    "Items",
    "Shape",
    "Type",
    "check_fields",
    "field_problems",
    "unknown_fields",
    "without_unknown_fields",
]


class Type(StrEnum):
    """The type of a single value."""

    TEXT = "string"
    BOOL = "boolean"
    WHOLE = "integer"
    """A 64-bit integer."""
    COUNT = "count"
    """An integer of 32 bits, from 0."""
    TIME = "date-time"
    AMOUNT = "quantity"
    """A number or a text; the engine parses it."""
    OBJECT = "object"
    """An object with any content."""
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Items:
    """A list.

    Args:
        item: The shape of its items.
    """

    item: Shape


@dataclass(frozen=True, slots=True)
class Each:
    """A map with arbitrary keys.

    Args:
        value: The shape of its values.
    """

    value: Shape


@dataclass(frozen=True, slots=True)
class Exactly:
    """An object whose fields are all known: `unknown_fields` reports any others.

    Args:
        fields: Their shapes.
    """

    fields: Mapping[str, Shape]


Shape: TypeAlias = "Type | Items | Each | Exactly | Mapping[str, Shape]"
"""The shape of a value; a mapping is an object with the fields that are read of it, and any others."""

_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_REMEDIES = {
    "string": "write it in quotes",
    "boolean": "write true or false, without quotes",
    "integer": "write a whole number, without quotes",
    "array": "write a list: start each item with a dash",
    "object": "write name: value, without a dash",
}
# The engine's JSON reader takes nothing deeper, once a template is part of a Workload.
_DEEPEST = 120
_TOO_DEEP = "it is nested too deep"
_LARGEST: int = 10**MAX_DIGITS
_MAX_WARNINGS = 100


def field_problems(value: JsonValue, shape: Shape, path: Path = ()) -> list[Problem]:
    """Return what in an object is not plain data, or not of the type in its shape; a null is a missing field.

    Args:
        value: The object, or a part of one.
        shape: What it should be.
        path: Its path.

    Example:
        >>> print(field_problems({"spec": {"replicas": "9"}}, {"spec": {"replicas": Type.COUNT}})[0])
        spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"; write a whole \
number, without quotes
    """
    odd: list[Problem] = []
    for problem in () if _is_plain(value, len(path)) else _not_plain(value, path):
        if problem.message == _TOO_DEEP:
            # A value that contains itself twice would never end.
            return [problem]
        odd.append(problem)
    return odd or list(_misfits(value, shape, path))


def check_fields(value: JsonValue, shape: Shape, ref: ObjectRef, path: Path = ()) -> None:
    """Refuse an object that has any of these problems.

    Raises:
        ManifestError: All of them.
    """
    problems = [_wrong_type(None, "object", path)] if value is None else field_problems(value, shape, path)
    if problems:
        raise ManifestError(replace(problem, object=ref) for problem in problems)


def unknown_fields(value: JsonValue, shape: Shape) -> list[Problem]:
    """Return fields that an API server drops, where all are known: they may be misspelt. If many, with their number."""
    unknown = _unknown_fields(value, shape, ())
    found = [Problem(f"unknown field {quoted(field)}", field=field) for field in islice(unknown, _MAX_WARNINGS)]
    if n_more := sum(1 for _ in unknown):
        found.append(Problem(f"{n_more} more unknown fields"))
    return found


def _unknown_fields(value: JsonValue, shape: Shape, path: Path) -> Iterator[str]:
    fields = shape.fields if isinstance(shape, Exactly) else shape
    if not isinstance(fields, Mapping) or not isinstance(value, dict):
        return
    for name, row in value.items():
        if name in fields:
            yield from _unknown_fields(row, fields[name], (*path, name))
        elif isinstance(shape, Exactly):
            yield path_text((*path, name))


def without_unknown_fields(value: JsonObject, shape: Mapping[str, Shape]) -> JsonObject:
    """Return an object without the fields that `unknown_fields` reports."""
    return object_at(_pruned(value, shape))


def _pruned(value: JsonValue, shape: Shape) -> JsonValue:
    fields = shape.fields if isinstance(shape, Exactly) else shape
    if not isinstance(fields, Mapping) or not isinstance(value, dict):
        return value
    kept = {name: row for name, row in value.items() if name in fields or not isinstance(shape, Exactly)}
    return {name: _pruned(quota, fields[name]) if name in fields else quota for name, quota in kept.items()}


def _is_plain(value: object, depth: int) -> bool:
    """Return whether `_not_plain` would yield nothing: nearly always so, and quicker to check."""
    if isinstance(value, str):
        return value.isascii() or _is_unicode(value)
    if isinstance(value, dict):
        if depth >= _DEEPEST or not all(isinstance(key, str) and (key.isascii() or _is_unicode(key)) for key in value):
            return False
        return all(_is_plain(row, depth + 1) for row in value.values())
    if isinstance(value, list):
        return depth < _DEEPEST and all(_is_plain(row, depth + 1) for row in value)
    if isinstance(value, int):
        return -_LARGEST < value < _LARGEST
    return value is None or (isinstance(value, float) and math.isfinite(value))


def _not_plain(value: object, path: Path) -> Iterator[Problem]:
    """Yield what JSON, or an API server, cannot hold."""
    if len(path) > _DEEPEST:
        yield Problem(_TOO_DEEP)
    elif isinstance(value, dict):
        for key, row in value.items():
            if not isinstance(key, str) or not _is_unicode(key):
                yield Problem("a key is not a string", field=path_text(path), remedy="write it in quotes")
            else:
                yield from _not_plain(row, (*path, key))
    elif isinstance(value, list):
        for index, row in enumerate(value):
            yield from _not_plain(row, (*path, index))
    elif isinstance(value, str):
        if not _is_unicode(value):
            message = "Invalid value: unpaired surrogate"
            yield Problem(message, field=path_text(path), remedy="write whole characters")
    elif isinstance(value, int):
        if abs(value) >= _LARGEST:
            message = f"Invalid value: a number of more than {MAX_DIGITS} digits"
            yield Problem(message, field=path_text(path), remedy="write a smaller one")
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield Problem(f"Invalid value: {value} is no JSON", field=path_text(path), remedy="write a number")
    elif value is not None:
        message = f"Invalid value: a {type(value).__name__} is no plain data"
        yield Problem(message, field=path_text(path), remedy="write what JSON can hold")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _misfits(value: JsonValue, shape: Shape, path: Path) -> Iterator[Problem]:
    if value is None or shape is Type.ANY:
        return
    if isinstance(shape, Type):
        yield from _scalar_misfits(value, shape, path)
    elif isinstance(shape, Items):
        if not isinstance(value, list):
            yield _wrong_type(value, "array", path)
            return
        for index, row in enumerate(value):
            if row is None:
                yield _wrong_type(row, _json_type(shape.item), (*path, index))
            yield from _misfits(row, shape.item, (*path, index))
    elif not isinstance(value, dict):
        yield _wrong_type(value, "object", path)
    elif isinstance(shape, Each):
        for key, row in value.items():
            if shape.value is not Type.TEXT or not isinstance(row, str):
                yield from _misfits(row, shape.value, (*path, Key(key)))
    else:
        fields = shape.fields if isinstance(shape, Exactly) else shape
        for name, wanted in fields.items():
            if value.get(name) is not None:
                yield from _misfits(value[name], wanted, (*path, name))


def _scalar_misfits(value: JsonValue, shape: Type, path: Path) -> Iterator[Problem]:
    wanted = _json_type(shape)
    found = _found(value)
    if found != wanted and not (shape is Type.AMOUNT and found in ("integer", "number")):
        yield _wrong_type(value, wanted, path)
    elif shape is Type.TIME and isinstance(value, str) and not _is_time(value):
        detail = f"{path_text(path)} in body must be of type date-time: {quoted(value)}"
        yield invalid(path_text(path), value, detail, remedy='write RFC 3339, such as "2026-01-01T00:00:00Z"')
    elif wanted == "integer" and isinstance(value, int):
        bits = 32 if shape is Type.COUNT else 64
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            detail = f"Checked value must be of type integer with format int{bits} in {path_text(path)}"
            yield invalid(path_text(path), value, detail, remedy="write a smaller one")
        elif shape is Type.COUNT and value < 0:
            yield invalid(path_text(path), value, "must be greater than or equal to 0")


def _wrong_type(value: JsonValue, wanted: str, path: Path) -> Problem:
    field, found = path_text(path), _found(value)
    message = f'Invalid value: "{found}": {field or "it"} in body must be of type {wanted}: "{found}"'
    shown = value if isinstance(value, str | int | float) else None
    return Problem(message, field=field, value=shown, remedy=_REMEDIES[wanted])


def _found(value: JsonValue) -> str:
    """Return the type of a value in the API server's words."""
    return "null" if value is None else next(name for kind, name in _JSON_TYPES.items() if isinstance(value, kind))


def _json_type(shape: Shape) -> str:
    if isinstance(shape, Items):
        return "array"
    if not isinstance(shape, Type):
        return "object"
    return {Type.COUNT: "integer", Type.TIME: "string", Type.AMOUNT: "string", Type.ANY: "object"}.get(
        shape, shape.value
    )


def _is_time(text: str) -> bool:
    try:
        nanoseconds(text)
    except ValueError:
        return False
    return True
