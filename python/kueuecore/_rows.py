"""Dataclasses from rows of the extension, and as rows of JSON: their fields are the only description in Python.

A row is a dict whose keys are the names of the fields in camelCase. The types of the fields say how values are read:
enums, other dataclasses, tuples of them, and mappings from tuples, which are lists of a key's parts and the value.
JSON has no infinity, so null is one where a field is a plain `float`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, partial
from math import inf
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from kueuecore._json import JsonObject, JsonValue

__all__ = ["json_name", "read_row", "read_rows", "row_of"]

_T = TypeVar("_T")


def read_row(cls: Callable[..., _T], row: Mapping[str, Any]) -> _T:
    """Read a row of the extension."""
    return cls(**{name: row[key] if read is None else read(row[key]) for name, key, read in _readers(cls)})


def read_rows(cls: Callable[..., _T], rows: Iterable[Mapping[str, Any]]) -> tuple[_T, ...]:
    """Read rows of the extension."""
    return tuple(read_row(cls, row) for row in rows)


def row_of(value: Any) -> JsonObject:
    """Return a dataclass as a row of JSON, nested ones included."""
    return {key: _plain(getattr(value, name)) for name, key, _ in _readers(value.__class__)}


def _plain(value: Any) -> JsonValue:
    if isinstance(value, tuple):
        return [_plain(row) for row in value]
    found: JsonValue = row_of(value) if is_dataclass(value) else value
    return found


def json_name(name: str) -> str:
    """Return the name of a field in JSON.

    Example:
        >>> json_name("borrowing_limit")
        'borrowingLimit'
    """
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


@cache
def _readers(cls: Any) -> tuple[tuple[str, str, Callable[[Any], Any] | None], ...]:
    """Return name, key and reader of each field."""
    types = get_type_hints(cls)
    return tuple((field.name, json_name(field.name), _reader(types[field.name])) for field in fields(cls))


def _reader(type_: Any) -> Callable[[Any], Any] | None:
    """Return what reads values of a type; `None`: they stay as they are."""
    origin, parts = get_origin(type_), get_args(type_)
    if origin is UnionType:
        (known,) = (_reader(part) for part in parts if part is not NoneType)
        return known and (lambda value: None if value is None else known(value))
    if origin is tuple:
        each = _reader(parts[0])
        return tuple if each is None else lambda values: tuple(map(each, values))
    if origin is Mapping and get_origin(parts[0]) is tuple:
        return lambda rows: {tuple(key): value for *key, value in rows}
    if type_ is float:
        return lambda value: inf if value is None else value
    if isinstance(type_, type) and is_dataclass(type_):
        return partial(read_row, type_)
    return type_ if isinstance(type_, type) and issubclass(type_, Enum) else None
