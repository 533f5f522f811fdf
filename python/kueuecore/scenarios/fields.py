"""A file that people write, read field by field: what is wrong is noted with its line, and reading goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from kueuecore._json import JsonObject, JsonValue
from kueuecore.errors import Problem
from kueuecore.manifests import Manifest
from kueuecore.times import duration_ns

__all__ = ["Fields", "seconds_of"]


@dataclass(slots=True)
class Fields:
    """One mapping of the file.

    Args:
        document: The document that it is in, for lines.
        plain: The mapping.
        path: Its field path, empty for the document itself.
        problems: Where problems are noted.
    """

    document: Manifest
    plain: JsonObject
    path: str
    problems: list[Problem]
    _known: list[str] = field(default_factory=list)

    def complain(self, name: str, message: str, remedy: str) -> None:
        """Note a problem with a field, or with the mapping itself if `name` is empty."""
        path = ".".join(filter(None, (self.path, name)))
        line = self.document.source.line_of(path) or None
        value = self.plain.get(name)
        shown = value if isinstance(value, str | int | float | bool) else None
        file = self.document.source.file
        self.problems.append(Problem(message, field=path, value=shown, remedy=remedy, file=file, line=line))

    def value(self, name: str) -> JsonValue:
        """Whatever stands there; None if nothing does."""
        self._known.append(name)
        return self.plain.get(name)

    def text(self, name: str, default: str = "", *, one_of: Sequence[str] = ()) -> str:
        """A text, one of some if they are given."""
        value = self.value(name)
        if value is None:
            return default
        if not isinstance(value, str):
            self.complain(name, f"a text is needed, not {_what(value)}", "put it in quotes")
            return default
        if one_of and value not in one_of:
            self.complain(name, f'Unsupported value: "{value}"', f"write one of {', '.join(one_of)}")
            return default
        return value

    def whole(self, name: str, default: int, *, least: int = 0, most: int = 2**53) -> int:
        """A whole number."""
        value = self.value(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            what = value if isinstance(value, int | float) else _what(value)
            self.complain(name, f"Invalid value: {what}", f"write a whole number from {least} to {most}")
            return default
        return value

    def number(self, name: str, default: float = 0.0) -> float:
        """A number."""
        value = self.value(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if value is not None:
            self.complain(name, f"a number is needed, not {_what(value)}", "write a number without quotes")
        return default

    def truth(self, name: str, *, default: bool) -> bool:
        """A truth value."""
        value = self.value(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self.complain(name, f"a truth value is needed, not {_what(value)}", "write true or false")
        return default

    def seconds(self, name: str, default: float | None = None) -> float | None:
        """A span of time in seconds."""
        value = self.value(name)
        if value is None:
            return default
        seconds = seconds_of(value)
        if seconds is None:
            self.complain(name, "no span of time", "write seconds such as 90, or a duration such as 1m30s")
            return default
        return seconds

    def entries(self, name: str) -> list[JsonValue]:
        """A list."""
        value = self.value(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.complain(name, f"a list is needed, not {_what(value)}", "start each entry with a dash")
            return []
        return value

    def part(self, name: str) -> Fields | None:
        """A mapping; None if there is none."""
        value = self.value(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.complain(name, f"a mapping is needed, not {_what(value)}", "write `name: value` below it")
            return None
        return self.below(value, name)

    def parts(self, name: str) -> Iterator[Fields]:
        """A list of mappings."""
        for index, value in enumerate(self.entries(name)):
            if isinstance(value, dict):
                yield self.below(value, f"{name}[{index}]")
            else:
                self.complain(f"{name}[{index}]", f"a mapping is needed, not {_what(value)}", "write `name: value`")

    def named_parts(self, name: str) -> Iterator[tuple[str, Fields]]:
        """A mapping of mappings."""
        section = self.part(name)
        for key in section.plain if section is not None else ():
            if section is not None and (part := section.part(key)) is not None:
                yield key, part

    def below(self, plain: JsonObject, name: str) -> Fields:
        """What stands at a field of this mapping."""
        return replace(self, plain=plain, path=".".join(filter(None, (self.path, name))), _known=[])

    def end(self) -> None:
        """All fields that there are were asked for: what is left over is not known."""
        for name in self.plain:
            if name not in self._known:
                near = get_close_matches(name, self._known, n=1)
                remedy = f"write {near[0]}" if near else f"the fields here are {', '.join(self._known)}"
                self.complain(name, "unknown field", remedy)


def seconds_of(value: JsonValue) -> float | None:
    """A number of seconds, or a duration as Kubernetes writes them; None if it is neither.

    Example:
        >>> seconds_of(90), seconds_of("1m30s"), seconds_of("soon"), seconds_of(-1)
        (90.0, 90.0, None, None)
    """
    if isinstance(value, str):
        seconds = duration_ns(value) / 1e9
        # `duration_ns` reads what a Configuration has had checked.
        return seconds if value and not value.strip("0123456789.hms") and (seconds or value.startswith("0")) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 1e9 else None  # type: ignore[arg-type, operator]


def _what(value: JsonValue) -> str:
    match value:
        case None:
            return "nothing"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str():
            return "a text"
        case bool():
            return "a truth value"
        case _:
            return "a number"
