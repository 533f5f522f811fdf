"""Turns a value into what rules see: the fields that they name, as CEL values; notes what is odd about it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from kueuecore.times import duration_ns, nanoseconds
from kueuecore_apiserver.schemas.cel_names import escaped
from kueuecore_apiserver.schemas.structural_schema import Node

__all__ = ["WRONG_NAME", "Odd", "View", "Wrong", "view"]

_Json: TypeAlias = Any
Odd: TypeAlias = dict[str, str]
"""Values that rules cannot see as stored: the reason, by field name, or by "" without a name."""
View: TypeAlias = Callable[[_Json, Odd], _Json]

# A field with a value of the wrong type gets another name, so that access to it fails.
WRONG_NAME = "__wrong"
# Stands for such values without a name: the only thing that can be done with it is a comparison.
_WRONG_ITEM = ["wrong"]
_WIDE = {" ": ""}
_TIMES = ("datetime", "date")


def view(node: Node, names: frozenset[str] | None, *, is_root: bool = False) -> View:
    """Return a function that yields what rules see of a value: only fields with these names. It notes odd values."""
    if node.items is not None:
        item = view(node.items, names)
        return lambda value, odd: _items(item, value, odd)
    if node.extra is not None and not node.properties:
        entry = view(node.extra, names)
        return lambda value, odd: _entries(entry, value, odd)
    if node.types == ("object",) or is_root:
        fields = {
            name: (escaped(name), view(part, names))
            for name, (part, _) in node.properties.items()
            if (names is None or escaped(name) in names) and escaped(name) and (part.types or part.properties)
        }
        if is_root:
            whole = view(Node(types=("string",)), names)
            metadata = Node(types=("object",), properties={entry: (Node(types=("string",)), "") for entry in _NAMED})
            fields |= {text: (text, whole) for text in ("apiVersion", "kind") if names is None or text in names}
            fields |= {"metadata": ("metadata", view(metadata, names))} if names is None or "metadata" in names else {}
        return lambda value, odd: _fields(fields, value, odd)
    return _scalar(node)


_NAMED = ("name", "generateName")


class Wrong:
    """Stands for a value of the wrong type."""


def _wrong(odd: Odd, why: str) -> Wrong:
    odd[""] = f"invalid data, expected {why}"
    return Wrong()


def _items(item: View, value: _Json, odd: Odd) -> _Json:
    if type(value) is not list:
        return _wrong(odd, "an array for the provided schema with type=array")
    seen = [item(row, odd) for row in value]
    return [_WRONG_ITEM if type(row) is Wrong else row for row in seen] if odd else seen


def _entries(entry: View, value: _Json, odd: Odd) -> _Json:
    if type(value) is not dict:
        return _wrong(odd, _NO_OBJECT)
    seen = {name: entry(row, odd) for name, row in value.items()}
    return {name: _WRONG_ITEM if type(number) is Wrong else number for name, number in seen.items()} if odd else seen


_NO_OBJECT = "a map for the provided schema with type=object"


def _fields(fields: Mapping[str, tuple[str, View]], value: _Json, odd: Odd) -> _Json:
    if type(value) is not dict:
        return _wrong(odd, _NO_OBJECT)
    if len(fields) <= len(value):
        seen = {known[0]: known[1](value[name], odd) for name, known in fields.items() if name in value}
    else:
        seen = {it[0]: it[1](part, odd) for name, part in value.items() if (it := fields.get(name)) is not None}
    for name in [name for name, number in seen.items() if type(number) is Wrong] if odd else ():
        seen[f"{name}{WRONG_NAME}"] = seen.pop(name) and _WRONG_ITEM
        odd[name] = odd[""]
    return seen


def _scalar(node: Node) -> View:
    match node.types:
        case ("integer",):
            return _integer
        case ("number",):
            return _number
        case ("boolean",):
            return _boolean
        case ("string",) if node.format.replace("-", "") in _TIMES:
            return lambda value, odd: _time(_text(value, odd))
        case ("string",) if node.format == "duration":
            return lambda value, odd: _duration(_text(value, odd))
        case ("string",) if node.format == "byte":
            return lambda value, odd: _bytes(_text(value, odd))
        case ("string",):
            return _text
        case _:
            return _mixed


def _integer(value: _Json, odd: Odd) -> _Json:
    return value if type(value) is int else _wrong(odd, f"int, got {_go_type(value)}")


def _number(value: _Json, odd: Odd) -> _Json:
    return float(value) if type(value) in (int, float) else _wrong(odd, f"float, got {_go_type(value)}")


def _boolean(value: _Json, odd: Odd) -> _Json:
    return value if type(value) is bool else _wrong(odd, f"bool, got {_go_type(value)}")


def _text(value: _Json, odd: Odd) -> _Json:
    if type(value) is not str:
        return _wrong(odd, f"string, got {_go_type(value)}")
    if not value.isascii():
        odd |= _WIDE
        # Half of a surrogate pair is not a character.
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _mixed(value: _Json, odd: Odd) -> _Json:
    if type(value) is str:
        return _text(value, odd)
    return value if type(value) is int else _wrong(odd, "XIntOrString value to be either a string or integer")


def _go_type(value: _Json) -> str:
    """Return the type of a value in Go."""
    match value:
        case bool():
            return "bool"
        case int() if -(2**63) <= value < 2**63:
            return "int64"
        case int() | float():
            return "float64"
        case str():
            return "string"
        case list():
            return "[]interface {}"
        case _:
            return "map[string]interface {}"


def _time(value: _Json) -> _Json:
    try:
        text = value if "T" in value.upper() else f"{value}T00:00:00Z"
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds(text) // 1000)
    except (AttributeError, ValueError):
        return value


def _duration(value: _Json) -> _Json:
    try:
        return timedelta(microseconds=duration_ns(value) / 1000)
    except (AttributeError, ValueError, TypeError):
        return value


def _bytes(value: _Json) -> _Json:
    try:
        return base64.b64decode(value)
    except (binascii.Error, TypeError):
        return value
