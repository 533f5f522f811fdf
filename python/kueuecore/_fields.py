"""Reads a user's file field by field; it records each problem with its line and goes on reading."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kueuecore._json import JsonObject, JsonValue
from kueuecore._near_names import near_names
from kueuecore._text import quoted, shortened
from kueuecore.errors import Problem
from kueuecore.manifests import Manifest
from kueuecore.times import SECOND_NS, duration_ns, span_ns

__all__ = ["Fields", "seconds_of", "shown"]

_DAY_NS = 86400 * SECOND_NS
_MAX_NS = 2**63 - 1
# Go has no days. Six digits are enough for 64-bit time.
_DAYS = re.compile(r"([0-9]{1,6})d((?![-+]).*)")
_SPAN = "write seconds such as 90, or a duration such as 1m30s, from 0 to 292 years (2562047h)"


@dataclass(slots=True)
class Fields:
    """One mapping of the file.

    Args:
        document: Its document, for line numbers.
        plain: The mapping.
        path: Its field path, empty for the document itself.
        problems: The list to append problems to.
        folder: The folder that file names in it are relative to.
    """

    document: Manifest
    plain: JsonObject
    path: str
    problems: list[Problem]
    folder: Path = Path()
    _known: list[str] = field(default_factory=list)

    def complain(self, name: str, message: str, remedy: str) -> None:
        """Record a problem with a field, or with the mapping itself if `name` is empty."""
        path = ".".join(filter(None, (self.path, name)))
        line = self.document.source.line_of(path) or None
        value = self.plain.get(name)
        shown = value if isinstance(value, str | int | float | bool) else None
        file = self.document.source.file
        self.problems.append(Problem(message, field=path, value=shown, remedy=remedy, file=file, line=line))

    def value(self, name: str) -> JsonValue:
        """Return a field's value, or None."""
        self._known.append(name)
        return self.plain.get(name)

    def has(self, name: str, remedy: str) -> bool:
        """Return whether a required field is set; record a problem if not."""
        if self.plain.get(name) is None:
            self.complain(name, "Required value", remedy)
            return False
        return True

    def text(self, name: str, default: str = "", *, one_of: Sequence[str] = ()) -> str:
        """Read a string, one of `one_of` if given."""
        value = self.value(name)
        if value is None:
            return default
        if not isinstance(value, str):
            self.complain(name, f"must be a string, not {_what(value)}", "put it in quotes")
            return default
        if one_of and value not in one_of:
            near = near_names(value, one_of)
            remedy = f"write {near[0]}" if near else f"write one of {', '.join(one_of)}"
            self.complain(name, f"Unsupported value: {shown(value)}", remedy)
            return default
        return value

    def whole(self, name: str, default: int, *, least: int = 0, most: int = 2**53) -> int:
        """Read a whole number."""
        value = self.value(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.complain(name, f"Invalid value: {shown(value)}", f"write a whole number from {least} to {most}")
            return default
        return value

    def number(self, name: str, default: float = 0.0) -> float:
        """Read a number."""
        value = self.value(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                return float(value)
            except OverflowError:
                self.complain(name, f"Invalid value: {shown(value)}", "write a number below 1.7e308")
        elif value is not None:
            self.complain(name, f"must be a number, not {_what(value)}", "write a number without quotes")
        return default

    def truth(self, name: str, *, default: bool) -> bool:
        """Read a boolean."""
        value = self.value(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self.complain(name, f"must be a boolean, not {_what(value)}", "write true or false")
        return default

    def seconds(self, name: str, default: float | None = None) -> float | None:
        """Read a duration in seconds."""
        value = self.value(name)
        if value is None:
            return default
        seconds = seconds_of(value)
        if seconds is None:
            self.complain(name, f"not a duration: {shown(value)}", _SPAN)
            return default
        return seconds

    def entries(self, name: str) -> list[JsonValue]:
        """Read a list."""
        value = self.value(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.complain(name, f"must be a list, not {_what(value)}", "start each entry with a dash")
            return []
        return value

    def part(self, name: str) -> Fields | None:
        """Read a mapping; None if it is absent."""
        value = self.value(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.complain(name, f"must be a mapping, not {_what(value)}", "write `name: value` below it")
            return None
        return self.below(value, name)

    def parts(self, name: str) -> Iterator[Fields]:
        """Read a list of mappings."""
        for index, value in enumerate(self.entries(name)):
            if isinstance(value, dict):
                yield self.below(value, f"{name}[{index}]")
            else:
                self.complain(f"{name}[{index}]", f"must be a mapping, not {_what(value)}", "write `name: value`")

    def named_parts(self, name: str) -> Iterator[tuple[str, Fields]]:
        """Read a mapping of mappings."""
        section = self.part(name)
        for key in section.plain if section is not None else ():
            if section is not None and section.has(key, "write `name: value` below it, or {}"):
                part = section.part(key)
                if part is not None:
                    yield key, part

    def below(self, plain: JsonObject, name: str) -> Fields:
        """Return the Fields of a value in this mapping."""
        return replace(self, plain=plain, path=".".join(filter(None, (self.path, name))), _known=[])

    def end(self) -> None:
        """Report every field that was never read as unknown."""
        self.end_with(self._known)

    def end_with(self, known: Sequence[str]) -> None:
        """Report every field that is not in `known` as unknown."""
        for name in self.plain:
            if name not in known:
                near = near_names(name, known)
                remedy = f"write {near[0]}" if near else f"the known fields are {', '.join(known)}"
                self.complain(name, "unknown field", remedy)


def seconds_of(value: JsonValue) -> float | None:
    """Read seconds, or a Go duration that may also have days, up to 292 years; None if it is neither.

    Example:
        >>> seconds_of(90), seconds_of("1m30s"), seconds_of("1d12h"), seconds_of("soon"), seconds_of(-1)
        (90.0, 90.0, 129600.0, None, None)
    """
    try:
        if isinstance(value, str):
            days, rest = match.groups() if (match := _DAYS.fullmatch(value)) else ("0", value)
            spent = int(days) * _DAY_NS + (duration_ns(rest) if rest or not match else 0)
            return spent / SECOND_NS if 0 <= spent <= _MAX_NS else None
        span_ns(value, "the span")
    except (TypeError, ValueError):
        return None
    return float(value)  # type: ignore[arg-type]  # `span_ns` takes only numbers


def shown(value: JsonValue) -> str:
    """Format a value for an error: short and on one line."""
    if isinstance(value, str):
        return quoted(value)
    return shortened(json.dumps(value)) if isinstance(value, int | float) else _what(value)


def _what(value: JsonValue) -> str:
    match value:
        case None:
            return "nothing"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str():
            return "a string"
        case bool():
            return "a boolean"
        case _:
            return "a number"
