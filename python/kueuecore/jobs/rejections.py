"""Formats rejections as the API server does, and parses texts as Go does."""

from __future__ import annotations

import json
import re

from kueuecore._json import JsonValue
from kueuecore._text import quoted, shortened
from kueuecore.errors import Problem

__all__ = [
    "forbidden",
    "go_bool",
    "go_error",
    "go_int",
    "immutable",
    "invalid",
    "required",
]

_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")


def invalid(field: str, value: str | int | None, detail: str, *, remedy: str = "") -> Problem:
    """Return the API server's `Invalid value`; without the value if it is None."""
    shown = "" if value is None else f": {quoted(value) if isinstance(value, str) else value}"
    return Problem(f"Invalid value{shown}: {detail}", field=field, value=value, remedy=remedy)


def forbidden(field: str, detail: str, *, remedy: str = "") -> Problem:
    """Return the API server's `Forbidden`."""
    return Problem(f"Forbidden: {detail}", field=field, remedy=remedy)


def immutable(field: str, new: JsonValue, old: JsonValue) -> list[Problem]:
    """Return the API server's error for a change of an immutable value, if it changed."""
    if new == old:
        return []
    if new is None or isinstance(new, bool | list | dict):
        found = shortened(json.dumps(new, separators=(",", ":")))
        message = f"Invalid value: {found}: field is immutable"
        return [Problem(message, field=field)]
    assert isinstance(new, str | int)
    return [invalid(field, new, "field is immutable")]


def required(field: str, detail: str = "") -> Problem:
    """Return the API server's `Required value`."""
    return Problem(f"Required value: {detail}" if detail else "Required value", field=field)


def go_int(text: str, *, bits: int = 64) -> tuple[int | None, str]:
    """Return the integer that Go's strconv parses, or None and why not: `invalid syntax`, `value out of range`."""
    if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        return None, "invalid syntax"
    # Longer than Go's largest integers; Python would refuse to parse thousands of digits.
    if len(text.lstrip("+-").lstrip("0")) > 19:
        return None, "value out of range"
    value = int(text)
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        return None, "value out of range"
    return value, ""


def go_bool(text: str) -> bool | None:
    """Return the boolean that Go's strconv parses, or None."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None


def go_error(function: str, text: str, why: str) -> str:
    """Return the error message of Go's strconv."""
    return f"strconv.{function}: parsing {quoted(text)}: {why}"
