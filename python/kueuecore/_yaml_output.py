"""Writes objects as YAML, so that every parser reads the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import yaml

from kueuecore._json import JsonObject, JsonValue
from kueuecore._yaml_scalars import plain_value

__all__ = ["yaml_document"]

_WIDEST = 2**31  # lines are not wrapped
_NUMBER = re.compile(r"[-+]?[._]*\d[.\d_]*([eE][-+]?\d+)?")
# What differs in each object: names and UIDs, plain unless they mean something else, and times, which need quotes.
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-./_][A-Za-z0-9]+)*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?Z")
_OPEN = "..."


def yaml_document(plain: JsonObject, *, is_ascii: bool) -> str:
    """Return one object as YAML, in the style of PyYAML, which writes keys and scalars.

    Args:
        plain: The object.
        is_ascii: Escape everything outside ASCII?
    """
    text = _Lines(is_ascii=is_ascii).text_of(plain)
    # Raw line separators would be read back as line ends, and control characters would reach the terminal.
    return text if is_ascii or text.replace("\n", "").isprintable() else yaml_document(plain, is_ascii=True)


class _Lines:
    """The lines of a document.

    Args:
        is_ascii: Escape everything outside ASCII?
    """

    def __init__(self, *, is_ascii: bool) -> None:
        self._lines: list[str] = []
        self._is_ascii = is_ascii
        self._is_open = False

    def text_of(self, value: JsonObject) -> str:
        """Return the text of a document."""
        self._add("", value, "")
        # A last scalar that ends with empty lines might go on.
        return "\n".join([*self._lines, *([_OPEN] if self._is_open else []), ""])

    def _add(self, head: str, value: JsonValue, indent: str) -> None:
        """Add a value.

        Args:
            head: What its first line begins with, as wide as `indent`.
            value: The value.
            indent: What its other lines begin with.
        """
        if isinstance(value, dict) and value:
            for name, each in value.items():
                self._add_entry(head, name, each, indent)
                head = indent
        elif isinstance(value, list) and value:
            for each in value:
                self._add(f"{head}- ", each, f"{indent}  ")
                head = indent
        else:
            self._add_scalar(head, value, indent)

    def _add_entry(self, head: str, name: str, value: JsonValue, indent: str) -> None:
        first, *rest = _key(name, self._is_ascii)
        if first.startswith("? "):
            # A key that is empty, long or of several lines.
            self._add_lines(f"{head}{first}", rest, indent)
            self._add(f"{indent}: ", value, f"{indent}  ")
        elif value and isinstance(value, dict | list):
            self._lines.append(f"{head}{first}:")
            # A list has the indent of its key.
            inner = f"{indent}  " if isinstance(value, dict) else indent
            self._add(inner, value, inner)
        else:
            self._add_scalar(f"{head}{first}: ", value, f"{indent}  ")

    def _add_scalar(self, head: str, value: JsonValue, indent: str) -> None:
        first, *rest = (str(value),) if type(value) is int else _scalar(value, self._is_ascii)
        self._is_open = rest[-1:] == [_OPEN]
        if self._is_open:
            rest.pop()
        self._add_lines(f"{head}{first}", rest, indent)

    def _add_lines(self, first: str, rest: Sequence[str], indent: str) -> None:
        self._lines.append(first)
        self._lines += (f"{indent}{line}" if line else "" for line in rest)


def _scalar(value: JsonValue, is_ascii: bool) -> tuple[str, ...]:
    """Return the lines of a scalar, an empty object or an empty list; the last one says if it might go on."""
    if not isinstance(value, str):
        return (_dumped({"k": value}, is_ascii)[0].removeprefix("k: "),)
    if _TIME.fullmatch(value):
        return (f"'{value}'",)
    if _WORD.fullmatch(value) and isinstance(plain_value(value), str):
        return (value,)
    return _other_text(value, is_ascii)


@lru_cache(maxsize=4096)
def _key(name: str, is_ascii: bool) -> tuple[str, ...]:
    """Return the lines of a key: one without a colon, or several that begin with a question mark."""
    lines = _dumped({name: 0}, is_ascii)
    return lines[:-1] if len(lines) > 1 else (lines[0].removesuffix(": 0"),)


@lru_cache(maxsize=4096)
def _other_text(value: str, is_ascii: bool) -> tuple[str, ...]:
    first, *rest = _dumped({"k": value}, is_ascii)
    return first.removeprefix("k: "), *(line.removeprefix("  ") for line in rest)


def _dumped(plain: JsonObject, is_ascii: bool) -> tuple[str, ...]:
    text = yaml.dump(plain, Dumper=_Dumper, allow_unicode=not is_ascii, width=_WIDEST)
    return tuple(text.removesuffix("\n").split("\n"))


class _Dumper(yaml.SafeDumper):
    """Quotes strings that another YAML parser might read as numbers."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    is_odd = _NUMBER.fullmatch(value) or not isinstance(plain_value(value), str)
    style = '"' if is_odd else "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)
