"""Structural schemas of CustomResourceDefinitions: pruning, defaults, and validation of shapes and bounds.

Unlike an API server: when all schemas of an `anyOf` or `oneOf` fail, the errors of the first are reported, where a
server reports those of the best match; formats that [`formats`][kueuecore_apiserver.schemas.go_patterns.formats] does
not have are ignored; and the `metadata` of embedded resources (`x-kubernetes-embedded-resource`) is kept, but not
checked.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kueuecore._json import JsonObject, JsonValue
from kueuecore._text import quoted
from kueuecore_apiserver.schemas.field_errors import ErrorKind, FieldError, rendered, supported

__all__ = ["ABSENT", "INTEGERS", "PYTHON_TYPES", "Bounds", "Node", "Place", "path_of"]

# The values that are checked are JSON of any shape.
_Json: TypeAlias = Any
Place: TypeAlias = "tuple[Place, str] | None"
"""The position of a value: the place above, and the last step, `.name` or `[0]`. None is the object itself."""

ABSENT = object()
"""Marks that there is nothing to compare with."""

PYTHON_TYPES = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
INTEGERS = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}
_INT64 = INTEGERS["int64"]
# Up to here, floats represent every whole number exactly.
_EXACT = 2**53
_META = ("apiVersion", "kind", "metadata")


def _same(one: _Json, other: _Json) -> bool:
    """Return whether two values are the same, including the types of numbers."""
    return one is other or (one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


def path_of(place: Place) -> str:
    """Return a place as a field path; empty for the object itself."""
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(step)
    return "".join(reversed(steps)).removeprefix(".")


@dataclass(slots=True)
class Node:
    """The schema of a value and of everything in it."""

    types: tuple[str, ...] = ()
    python_types: tuple[type, ...] = ()
    nullable: bool = False
    default: JsonValue = None
    preserves: bool = False
    is_resource: bool = False
    properties: dict[str, tuple[Node, str]] = field(default_factory=dict)
    extra: Node | None = None
    is_extra_forbidden: bool = False
    required: tuple[str, ...] = ()
    items: Node | None = None
    list_type: str = "atomic"
    keys: tuple[str, ...] = ()
    format: str = ""
    is_of_format: Callable[[str], bool] | None = None
    pattern: str = ""
    matches: Callable[[str], object] | None = None
    enum: tuple[JsonValue, ...] = ()
    lengths: tuple[float, float] | None = None
    numbers: Bounds | None = None
    counts: tuple[float, float] | None = None
    sizes: tuple[float, float] | None = None
    is_unique: bool = False
    all_of: tuple[Node, ...] = ()
    any_of: tuple[Node, ...] = ()
    one_of: tuple[Node, ...] = ()
    none_of: Node | None = None
    rules: tuple[Mapping[str, _Json], ...] = ()
    defaulted: tuple[tuple[str, JsonValue], ...] = ()
    has_schemas: bool = False
    # The only schemas in it are the two that allow an integer or a string.
    is_int_or_text: bool = False
    has_lists: bool = False
    has_unknown: bool = False
    # A value of the right type needs no further checks.
    is_plain: bool = False

    def prepared(self, value: _Json) -> _Json:
        """Return a copy without unknown fields and nulls, and with defaults."""
        if type(value) is dict:
            return self._prepared_object(value)
        if type(value) is list:
            items = self.items
            if items is None:
                return [_emptied(row) for row in value] if not self.preserves else copy.deepcopy(value)
            return [items.prepared(items._or_default(row)) for row in value]
        return value

    def _prepared_object(self, value: JsonObject) -> JsonObject:
        properties, extra = self.properties, self.extra
        found: JsonObject = {}
        for name, part in value.items():
            if self.is_resource and name in _META:
                # No schema describes these fields.
                found[name] = part if name != "metadata" else copy.deepcopy(part)
                continue
            known = properties.get(name)
            if known is not None:
                node = known[0]
                if part is None and not node.nullable:
                    continue
                found[name] = node.prepared(part) if type(part) is dict or type(part) is list else part
            elif extra is not None:
                part = extra._or_default(part)
                if part is not None or extra.nullable:
                    found[name] = extra.prepared(part)
            elif self.preserves:
                found[name] = copy.deepcopy(part)
        for name, default in self.defaulted:
            if name not in found:
                found[name] = properties[name][0].prepared(copy.deepcopy(default))
        return found

    def _or_default(self, value: _Json) -> _Json:
        return copy.deepcopy(self.default) if value is None and not self.nullable else value

    def check(self, value: _Json, place: Place, errors: list[FieldError], old: _Json = ABSENT) -> None:
        """Collect what is wrong with a value; what is unchanged since `old`, before an update, may stay invalid."""
        if old is not ABSENT and self.stays(value, old):
            return
        kind = type(value)
        if kind not in self.python_types or kind is float or (kind is int and value not in _INT64):
            self._check_type(value, place, errors)
        if value is None:
            self._check_enum(value, place, errors)
        elif not self.is_plain:
            self._check_value(value, place, errors, old)

    def _check_value(self, value: _Json, place: Place, errors: list[FieldError], old: _Json) -> None:
        kind = type(value)
        if self.has_schemas and not (self.is_int_or_text and (kind is str or (kind is int and value in _INT64))):
            self._check_schemas(value, place, errors)
        if kind is str:
            if self.lengths is not None or self.matches is not None or self.is_of_format is not None:
                self._check_text(value, place, errors)
        elif kind is dict:
            if self.properties or self.extra is not None or self.required or self.sizes is not None:
                if self.enum:
                    self._check_enum(value, place, errors)
                self._check_object(value, place, errors, old)
                return
        elif kind is list:
            self._check_list(value, place, errors, old)
        elif kind is not bool and self.numbers is not None:
            self.numbers.check(value, place, errors)
        if self.enum:
            self._check_enum(value, place, errors)

    def _check_object(self, value: JsonObject, place: Place, errors: list[FieldError], old: _Json) -> None:
        before = old if type(old) is dict else None
        if self.sizes is not None:
            least, most = self.sizes
            if len(value) < least:
                errors.append(_invalid(place, rendered(len(value)), f"should have at least {least:.0f} properties"))
            if len(value) > most:
                errors.append(_too_many(place, len(value), most))
        properties, extra = self.properties, self.extra
        for name, part in value.items():
            known = properties.get(name)
            if known is not None:
                node, step = known
                if node.is_plain and type(part) in node.python_types:
                    continue
            elif extra is not None:
                node, step = extra, f".{name}"
            else:
                if self.is_extra_forbidden:
                    path = path_of(place)
                    detail = f"{path}.{name} in body is a forbidden property"
                    errors.append(FieldError(path, ErrorKind.INVALID, detail, rendered(name)))
                continue
            node.check(part, (place, step), errors, ABSENT if before is None else before.get(name, ABSENT))
        missing = (name for name in self.required if name not in value)
        errors += (FieldError(path_of((place, f".{name}")), ErrorKind.REQUIRED) for name in missing)

    def _check_list(self, value: list[_Json], place: Place, errors: list[FieldError], old: _Json) -> None:
        items = self.items
        if items is not None:
            before = self.by_keys(old) if type(old) is list else None
            plain = items.is_plain
            for i, item in enumerate(value):
                if plain and type(item) in items.python_types:
                    continue
                at = ABSENT if before is None else before.get(self.key_of(item), ABSENT)
                items.check(item, (place, f"[{i}]"), errors, at)
        if self.counts is not None:
            least, most = self.counts
            if len(value) < least:
                errors.append(_invalid(place, rendered(len(value)), f"should have at least {least:.0f} items"))
            if len(value) > most:
                errors.append(_too_many(place, len(value), most))
        if self.is_unique and any(other in value[:i] for i, other in enumerate(value)):
            errors.append(_invalid(place, rendered(""), "shouldn't contain duplicates"))

    def _check_text(self, value: str, place: Place, errors: list[FieldError]) -> None:
        """Check first length and pattern, of which only the first error is reported, then the format."""
        least, most = self.lengths or (0, len(value))
        if len(value) > most:
            # Characters are counted, whatever the message says.
            detail = f"may not be more than {most:.0f} byte{'' if most == 1 else 's'}"
            errors.append(FieldError(path_of(place), ErrorKind.TOO_LONG, detail))
        elif len(value) < least:
            errors.append(_invalid(place, rendered(value), f"should be at least {least:.0f} chars long"))
        elif self.matches is not None and not self.matches(value):
            errors.append(_invalid(place, rendered(value), f"should match '{self.pattern}'"))
        if self.is_of_format is not None and not self.is_of_format(value):
            errors.append(_wrong_type(place, self.format, value))

    def _check_enum(self, value: _Json, place: Place, errors: list[FieldError]) -> None:
        if not self.enum or any(
            value == allowed and isinstance(value, bool) == isinstance(allowed, bool) for allowed in self.enum
        ):
            return
        errors.append(FieldError(path_of(place), ErrorKind.NOT_SUPPORTED, supported(self.enum), rendered(value)))

    def _check_type(self, value: _Json, place: Place, errors: list[FieldError]) -> None:
        types = self.types
        if value is None:
            if types and not self.nullable:
                errors.append(_wrong_type(place, ",".join(types), "null"))
            return
        found, form = _type_of(value)
        is_whole = found == "number" and "integer" in types and -_EXACT <= value < _EXACT and value == int(value)
        fits = found in types or is_whole or (found == "integer" and "number" in types)
        if self.format and found not in ("string", "array"):
            if not fits and form != self.format:
                errors.append(_wrong_type(place, self.format, form))
        elif self.format and types == ("string",):
            # Servers do so: where a string with a format is expected, they accept any list.
            return
        elif types and not fits:
            errors.append(_wrong_type(place, ",".join(types), found))

    def _check_schemas(self, value: _Json, place: Place, errors: list[FieldError]) -> None:
        path = path_of(place)

        def failed(node: Node) -> list[FieldError]:
            found: list[FieldError] = []
            node.check(value, place, found)
            return found

        if self.any_of:
            failures: list[FieldError] = []
            for node in self.any_of:
                found = failed(node)
                if not found:
                    break
                failures = failures or found
            else:
                errors.append(_of_whole(f"{quoted(path)} must validate at least one schema (anyOf)"))
                errors += failures
        if self.one_of:
            results = [failed(node) for node in self.one_of]
            n_valid = sum(not found for found in results)
            if n_valid != 1:
                found_valid = f"Found {n_valid} valid alternatives" if n_valid else "Found none valid"
                errors.append(_of_whole(f"{quoted(path)} must validate one and only one schema (oneOf). {found_valid}"))
                errors += results[0] if not n_valid else ()
        if self.all_of:
            results = [failed(node) for node in self.all_of]
            errors += (error for found in results for error in found)
            if any(results):
                none = "" if not all(results) else ". None validated"
                errors.append(_of_whole(f"{quoted(path)} must validate all the schemas (allOf){none}"))
        if self.none_of is not None and not failed(self.none_of):
            errors.append(_of_whole(f"{quoted(path)} must not validate the schema (not)"))

    def check_lists(self, value: _Json, place: Place, errors: list[FieldError]) -> None:
        """Collect duplicate entries of lists."""
        if type(value) is dict:
            for name, part in value.items():
                known = self.properties.get(name)
                if known is not None:
                    if known[0].has_lists:
                        known[0].check_lists(part, (place, known[1]), errors)
                elif self.extra is not None and self.extra.has_lists:
                    self.extra.check_lists(part, (place, f"[{name}]"), errors)
        elif type(value) is list:
            if self.list_type != "atomic":
                self._check_entries(value, place, errors)
            if self.items is not None and self.items.has_lists:
                for i, item in enumerate(value):
                    self.items.check_lists(item, (place, f"[{i}]"), errors)

    def _check_entries(self, items: list[_Json], place: Place, errors: list[FieldError]) -> None:
        """Check entries: a list by keys holds only objects; of equal entries the second is reported."""
        if self.list_type == "map":
            for i, item in enumerate(items):
                if type(item) is not dict and item is not None:
                    detail = "must be an object for an array of list-type map"
                    at = path_of((place, f"[{i}]"))
                    errors.append(FieldError(at, ErrorKind.INVALID, detail, rendered(item)))
                    return
        if len(items) < 2:
            return
        seen: dict[object, int] = {}
        for i, item in enumerate(items):
            key = self.key_of(item)
            n_seen = seen[key] = seen.get(key, 0) + 1
            if n_seen == 2:
                entry = (
                    item if self.list_type == "set" else {key: item[key] for key in self.keys if key in (item or {})}
                )
                errors.append(FieldError(path_of((place, f"[{i}]")), ErrorKind.DUPLICATE, value=rendered(entry)))

    def stays(self, value: _Json, old: _Json) -> bool:
        """Return whether a value is what it was before an update.

        Items of a list by keys may be reordered, and without keys they cannot be matched. Neither can unknown fields.
        """
        if not self.has_lists and not self.has_unknown:
            return _same(value, old)
        if type(value) is dict and type(old) is dict:
            parts = [(part, *self._part(name), old.get(name, ABSENT)) for name, part in value.items()]
            return len(value) == len(old) and all(
                node is not None and was is not ABSENT and node.stays(part, was) for part, node, _, was in parts
            )
        if type(value) is list and type(old) is list and self.items is not None:
            entries = self.by_keys(old)
            if entries is None:
                return _same(value, old)
            found = [(row, entries.get(self.key_of(row), ABSENT)) for row in value]
            return len(value) == len(old) and all(
                was is not ABSENT and type(row) is dict and self.items.stays(row, was) for row, was in found
            )
        return _same(value, old)

    def _part(self, name: str) -> tuple[Node | None, str]:
        return self.properties.get(name, (self.extra, ""))

    def key_of(self, item: _Json) -> object:
        """Return what identifies an entry of this list."""
        if self.list_type == "map":
            if type(item) is not dict:
                return ()
            return tuple(_hashable(item[key]) if key in item else ABSENT for key in self.keys)
        return _hashable(item)

    def _has_keys(self, item: _Json) -> bool:
        """Return whether an entry has all its keys, none of them with fields of its own."""
        return type(item) is dict and not any(isinstance(item.get(key, []), dict | list) for key in self.keys)

    def by_keys(self, items: list[_Json]) -> dict[object, _Json] | None:
        """Return the entries of a list by their keys; None if keys do not identify them."""
        if self.list_type != "map":
            return None
        return {self.key_of(item): item for item in reversed(items) if self._has_keys(item)}

    def parts(self) -> Iterator[Node]:
        """Yield the nodes directly below, in the main part of a structural schema."""
        yield from (node for node, _ in self.properties.values())
        yield from (entry for entry in (self.extra, self.items) if entry is not None)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a number."""

    type: str
    format: str
    least: float | None
    most: float | None
    is_least_excluded: bool
    is_most_excluded: bool
    factor: float | None

    def check(self, value: float, place: Place, errors: list[FieldError]) -> None:
        """Check the range of the format, then the bounds, for any kind of number."""
        if self.type == "integer":
            whole = value if isinstance(value, int) else int(value) if value == value // 1 else None
            if whole is None or whole not in INTEGERS.get(self.format, _INT64):
                form = f"with format {self.format}" if self.format else "(default format)"
                detail = f"Checked value must be of type integer {form} in {path_of(place)}"
                errors.append(_of_whole(detail))
        if self.factor is not None and value / self.factor % 1:
            errors.append(_invalid(place, rendered(value), f"should be a multiple of {rendered(self.factor)}"))
        if self.most is not None and (value > self.most or (self.is_most_excluded and value == self.most)):
            words = "less than" if self.is_most_excluded else "less than or equal to"
            errors.append(_invalid(place, rendered(value), f"should be {words} {rendered(self.most)}"))
        if self.least is not None and (value < self.least or (self.is_least_excluded and value == self.least)):
            words = "greater than" if self.is_least_excluded else "greater than or equal to"
            errors.append(_invalid(place, rendered(value), f"should be {words} {rendered(self.least)}"))


def _type_of(value: _Json) -> tuple[str, str]:
    """Return the type of a value, and its format: only numbers have one."""
    match value:
        case bool():
            return "boolean", ""
        case int() if value in _INT64:
            return "integer", "int64"
        case int() | float():
            return "number", "float64"
        case str():
            return "string", ""
        case list():
            return "array", ""
        case _:
            return "object", ""


def _hashable(value: _Json) -> object:
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True)
    # True is not 1.
    return (type(value), value)


def _emptied(value: _Json) -> _Json:
    """Return a value without fields, as none are known."""
    if isinstance(value, dict):
        return {}
    return [_emptied(row) for row in value] if isinstance(value, list) else value


def _invalid(place: Place, value: str, detail: str) -> FieldError:
    path = path_of(place)
    return FieldError(path, ErrorKind.INVALID, f"{path} in body {detail}", value)


def _wrong_type(place: Place, wanted: str, found: str) -> FieldError:
    path, shown = path_of(place), rendered(found)
    return FieldError(path, ErrorKind.TYPE_INVALID, f"{path} in body must be of type {wanted}: {quoted(found)}", shown)


def _too_many(place: Place, n: int, most: float) -> FieldError:
    detail = f"must have at most {most:.0f} item{'' if most == 1 else 's'}"
    return FieldError(path_of(place), ErrorKind.TOO_MANY, detail, str(n))


def _of_whole(detail: str) -> FieldError:
    return FieldError("", ErrorKind.INVALID, detail, rendered(""))
