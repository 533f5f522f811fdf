"""Converts dataclass fields to manifest fields and back.

The classes of this package are declarations: names, types and defaults. A field's name in a manifest follows from its
Python name (`node_labels` is `nodeLabels`), its position from `at(...)`, and the checks and format of its value from
its type hint.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar, Self, TypeAlias

from kueuecore._arguments import one, shown
from kueuecore._json import JsonObject, JsonValue
from kueuecore.errors import ManifestError, Problem

__all__ = ["Quantity", "Value", "at"]

Quantity: TypeAlias = str | int | Decimal
"""An amount: a string such as `500m` or `10Gi`, a whole number, or a Decimal. Stored as a string; never a float."""

# In a whole number or a Decimal: no float64 has more.
_MAX_DIGITS = 309
_QUANTITY = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?\Z")


def at(place: str, *, key: str = "", rest: bool = False) -> dict[str, Any]:
    """Return the metadata of a dataclass field located at `place`, such as `spec.admissionChecksStrategy`.

    Args:
        place: The mapping in the manifest that has the field as a key; `/` is the object itself.
        key: The key, if it does not follow from the field's name.
        rest: Whether this field keeps everything at `place` that no other field takes.
    """
    return {"at": place, "key": key, "rest": rest}


class _Mismatch(Exception):  # noqa: N818  # it never leaves this module
    """A value in a manifest does not fit its field."""

    def __init__(self, path: str, message: str, value: JsonValue = None, remedy: str = "") -> None:
        self.problem = Problem(
            message,
            field=path.lstrip("."),
            value=value if isinstance(value, (str, int, float)) else None,
            remedy=remedy,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class _Kind:
    """How to take values of one type from callers, read them from manifests, and write them."""

    take: Callable[[Any, str], Any]  # a caller's value, and the name of the field for messages
    read: Callable[[JsonValue, str], Any]  # a manifest's value, and its path
    write: Callable[[Any], JsonValue]
    blank_is_absent: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    name: str
    key: str
    place: tuple[str, ...]
    kind: _Kind
    optional: bool
    required: bool
    rest: bool
    default: Any


class Value:
    """The base of every class here: checks and copies its values, and converts to and from manifests."""

    __slots__ = ()
    _place: ClassVar[str] = ""  # the default place of fields
    _ignored: ClassVar[tuple[str, ...]] = ()  # manifest fields that the class ignores

    def __post_init__(self) -> None:
        for field in _fields(type(self)):
            value = getattr(self, field.name)
            if not (value is None and field.optional):
                # Frozen means frozen for callers: lists become tuples, mappings are copied, quantities become strings.
                object.__setattr__(self, field.name, field.kind.take(value, f"{type(self).__name__}.{field.name}"))

    def _to_json(self) -> JsonObject:
        result: JsonObject = {}
        for field in _fields(type(self)):
            value = getattr(self, field.name)
            if value is None or (value == field.default and value in ("", (), {})):
                continue
            parent = result
            for key in field.place:
                parent = typing.cast(JsonObject, parent.setdefault(key, {}))  # only this loop sets it
            if field.rest:
                parent.update(field.kind.write(value))  # type: ignore[arg-type]  # a rest is a JSON object
            else:
                parent[field.key] = field.kind.write(value)
        return result

    @classmethod
    def _from_json(cls, value: JsonValue, path: str, known: Sequence[str] = ()) -> Self:
        if not isinstance(value, dict):
            raise _Mismatch(path, f"must be a mapping, not {_describe(value)}", value)
        arguments: dict[str, Any] = {}
        taken: dict[tuple[str, ...], set[str]] = {(): {*known, *(name for name in cls._ignored if "." not in name)}}
        rests = []
        for field in _fields(cls):
            for depth, key in enumerate(field.place):
                taken.setdefault(field.place[:depth], set()).add(key)
            here = taken.setdefault(field.place, set())
            if field.rest:
                rests.append(field)
                continue
            here.add(field.key)
            parent = _parent(value, field.place, path)
            found = parent.get(field.key)
            field_path = ".".join([path, *field.place, field.key])
            is_empty = isinstance(found, str) and not found
            blank = found is None or (is_empty and field.optional and field.kind.blank_is_absent)
            if not blank:
                arguments[field.name] = field.kind.read(found, field_path)
            elif field.required:
                raise _Mismatch(field_path, "Required value")
        for field in rests:
            parent, known_here = _parent(value, field.place, path), taken.pop(field.place)
            arguments[field.name] = {key: entry for key, entry in parent.items() if key not in known_here}
            if any(not isinstance(key, str) for key in parent):
                raise _Mismatch(".".join([path, *field.place]), "a key is not a string")
        for place, keys in taken.items():
            if ".".join(place) in cls._ignored:
                continue
            for key in _parent(value, place, path):
                if not isinstance(key, str):
                    raise _Mismatch(".".join([path, *place]), f"a key is not a string: {shown(key)}")
                if key not in keys:
                    remedy = f"the known fields are {', '.join(sorted(keys))}"
                    raise _Mismatch(".".join([path, *place, key]), f"unknown field of {cls.__name__}", remedy=remedy)
        try:
            return cls(**arguments)
        except (TypeError, ValueError) as error:
            raise _Mismatch(path, f"Invalid value: {error}") from error


def read(cls: type[Value], manifest: Mapping[str, JsonValue], known: Sequence[str]) -> Any:
    """Make an object of `cls` from a manifest.

    Raises:
        ManifestError: A field is missing, unknown or of the wrong type.
    """
    try:
        return cls._from_json(dict(manifest), "", known)
    except _Mismatch as mismatch:
        raise ManifestError([mismatch.problem]) from None


_FIELDS: dict[type[Value], tuple[_Field, ...]] = {}  # a cache by class: type hints are slow to evaluate


def _fields(cls: type[Value]) -> tuple[_Field, ...]:
    if cls not in _FIELDS:
        _FIELDS[cls] = _look_up_fields(cls)
    return _FIELDS[cls]


def _look_up_fields(cls: type[Value]) -> tuple[_Field, ...]:
    hints = typing.get_type_hints(cls)
    result = []
    for field in dataclasses.fields(typing.cast(Any, cls)):  # every subclass is a dataclass
        kind, optional = _kind(hints[field.name])
        place = str(field.metadata.get("at") or cls._place)
        missing = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        first, *others = field.name.rstrip("_").split("_")
        result.append(
            _Field(
                name=field.name,
                key=field.metadata.get("key") or first + "".join(word.capitalize() for word in others),
                place=tuple(place.split(".")) if place and place != "/" else (),
                kind=kind,
                optional=optional,
                required=missing,
                rest=bool(field.metadata.get("rest")),
                default=() if default == [] else default,
            )
        )
    return tuple(result)


def _kind(hint: Any) -> tuple[_Kind, bool]:
    """Return the kind of a type hint, and whether None is allowed."""
    optional = False
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(hint) if member is not type(None)]
        optional = len(members) < len(typing.get_args(hint))
        if set(members) == set(typing.get_args(Quantity)):
            return _Kind(_take_quantity, _read_quantity, lambda value: value), optional
        if len(members) != 1:
            return _Kind(lambda value, _: value, lambda value, _: value, lambda value: value), optional
        hint = members[0]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is dict:
        return _plain(dict, "a mapping"), optional
    if origin is Mapping:
        return _mapping_kind(_kind(arguments[1])[0]), optional
    if origin is Sequence:
        return _sequence_kind(_kind(arguments[0])[0]), optional
    if issubclass(hint, StrEnum):
        return _enum_kind(hint), optional
    if issubclass(hint, Value):
        return _value_kind(hint), optional
    return _plain(hint, {str: "a string", int: "a whole number", bool: "true or false"}[hint]), optional


def _plain(cls: type, what: str) -> _Kind:
    def fits(value: object) -> bool:
        return isinstance(value, cls) and (cls is bool or not isinstance(value, bool))

    def take(value: object, name: str) -> object:
        if not fits(value):
            raise TypeError(f"{name} must be {what}, not {shown(value)}")
        return value

    def read_plain(value: JsonValue, path: str) -> object:
        if not fits(value):
            raise _Mismatch(path, f"must be {what}, not {_describe(value)}", value)
        return value

    return _Kind(take, read_plain, lambda value: value)


def _member(cls: type[StrEnum], value: object) -> StrEnum:
    if not isinstance(value, str):
        raise ValueError("not a string")
    return cls(value)


def _enum_kind(cls: type[StrEnum]) -> _Kind:
    def take(value: object, name: str) -> StrEnum:
        try:
            return _member(cls, value)
        except ValueError:
            supported = ", ".join(f'"{member}"' for member in cls)
            raise ValueError(f"{name}: Unsupported value: {_show(value)}: supported values: {supported}") from None

    def read_enum(value: JsonValue, path: str) -> StrEnum:
        try:
            return _member(cls, value)
        except ValueError:
            supported = ", ".join(f'"{member}"' for member in cls)
            message = f"Unsupported value: {_show(value)}: supported values: {supported}"
            raise _Mismatch(path, message, value) from None

    return _Kind(take, read_enum, str, blank_is_absent=True)


def _value_kind(cls: type[Value]) -> _Kind:
    def take(value: object, name: str) -> Value:
        if not isinstance(value, cls):
            raise TypeError(f"{name} must be {one(cls)}, not {shown(value)}")
        return value

    return _Kind(take, cls._from_json, cls._to_json)


def _sequence_kind(entry: _Kind) -> _Kind:
    def take(value: object, name: str) -> tuple[object, ...]:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise TypeError(f"{name} must be a list, not {shown(value)}")
        return tuple(entry.take(item, f"{name}[{index}]") for index, item in enumerate(value))

    def read_sequence(value: JsonValue, path: str) -> list[object]:
        if not isinstance(value, list):
            raise _Mismatch(path, f"must be a list, not {_describe(value)}", value)
        return [entry.read(item, f"{path}[{index}]") for index, item in enumerate(value)]

    return _Kind(take, read_sequence, lambda value: [entry.write(item) for item in value])


def _mapping_kind(entry: _Kind) -> _Kind:
    def take(value: object, name: str) -> dict[str, object]:
        if not isinstance(value, Mapping):
            raise TypeError(f"{name} must be a mapping, not {shown(value)}")
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{name} must have strings as keys, not {shown(key)}")
        return {key: entry.take(item, f"{name}[{shown(key)}]") for key, item in value.items()}

    def read_mapping(value: JsonValue, path: str) -> dict[str, object]:
        if not isinstance(value, dict):
            raise _Mismatch(path, f"must be a mapping, not {_describe(value)}", value)
        return {key: entry.read(item, f"{path}[{key}]") for key, item in value.items()}

    return _Kind(take, read_mapping, lambda value: {key: entry.write(item) for key, item in value.items()})


def _take_quantity(value: object, name: str) -> str:
    if isinstance(value, float):
        raise TypeError(f"{name}: a float is not exact; write Decimal({str(value)!r}) or {str(value)!r}, not {value!r}")
    if isinstance(value, bool) or not isinstance(value, (str, int, Decimal)):
        raise TypeError(f"{name} must be a quantity (a string, a whole number or a Decimal), not {shown(value)}")
    if _n_digits(value) > _MAX_DIGITS:
        raise ValueError(f"{name}: a quantity has at most {_MAX_DIGITS} digits")
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    if not _QUANTITY.match(text):
        raise ValueError(f"{name}: {shown(text)} is not a quantity; write one such as '2', '500m' or '10Gi'")
    return text


def _n_digits(value: str | int | Decimal) -> int:
    """Return a lower bound of a number's digits when written out: Decimal("1e999999999") would be a gigabyte."""
    if isinstance(value, Decimal):
        return abs(value.adjusted()) + 1 if value.is_finite() else 0
    # A digit is a little more than three bits.
    return value.bit_length() // 4 if isinstance(value, int) else 0


def _read_quantity(value: JsonValue, path: str) -> str:
    try:
        return _take_quantity(value, path)
    except (TypeError, ValueError):
        # The API server accepts strings and whole numbers, not a bare 0.5.
        remedy = f'write "{value}"' if isinstance(value, float) else 'write one such as "2", "500m" or "10Gi"'
        raise _Mismatch(path, f"Invalid value: {_show(value)}: not a quantity", value, remedy) from None


def _parent(value: JsonObject, place: Sequence[str], path: str) -> JsonObject:
    for depth, key in enumerate(place):
        found = value.get(key)
        if found is None:
            return {}
        if not isinstance(found, dict):
            where = ".".join([path, *place[: depth + 1]])
            raise _Mismatch(where, f"must be a mapping, not {_describe(found)}", found)
        value = found
    return value


def _describe(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else _show(value)


def _show(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return shown(value)
