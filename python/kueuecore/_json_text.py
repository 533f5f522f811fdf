"""Parses JSON text, and reports what JSON forbids or no float64 holds, with field, line and column."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kueuecore._json import JsonObject, JsonValue
from kueuecore._text import join
from kueuecore.errors import Problem

__all__ = ["MAX_DIGITS", "Document", "json_documents", "syntax_problem", "unwritable_field"]

MAX_DIGITS = 309
"""In a whole number: no float64 has more."""

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_DEEPEST = 200  # levels to search for a problem
_DUPLICATE = "duplicate key"
_CONSTANTS = ("NaN", "Infinity", "-Infinity")


@dataclass(frozen=True, slots=True)
class Document:
    """One value in a text that may hold several.

    Args:
        value: The value.
        text: Its text.
        line: The line on which it starts, from 1.
        problems: What is wrong with it.
        duplicates: Duplicate keys, of which the last one counts.
    """

    value: JsonValue
    text: str
    line: int
    problems: tuple[Problem, ...] = ()
    duplicates: tuple[Problem, ...] = ()


def json_documents(text: str, *, allows_constants: bool) -> Iterator[Document]:
    """Yield the values in a text, in order.

    Args:
        text: The text.
        allows_constants: Whether to read `NaN` and `Infinity`, to report each with its position. If not, they are
            syntax errors.

    Raises:
        json.JSONDecodeError: The rest is not JSON, or is nested too deeply.
    """
    is_odd = False

    def pairs(entries: list[tuple[str, JsonValue]]) -> JsonObject:
        nonlocal is_odd
        result = dict(entries)
        is_odd = is_odd or len(result) < len(entries)
        return result

    def constant(name: str) -> JsonValue:
        nonlocal is_odd
        if not allows_constants:
            raise json.JSONDecodeError(f"{name} is not JSON", text, position)
        is_odd = True
        return None

    def integer(digits: str) -> JsonValue:
        nonlocal is_odd
        if len(digits) <= MAX_DIGITS:
            return int(digits)
        is_odd = True
        return None

    def real(digits: str) -> float:
        nonlocal is_odd
        number = float(digits)
        is_odd = is_odd or math.isinf(number)
        return number

    decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_constant=constant, parse_int=integer, parse_float=real)
    position = len(text) - len(text.lstrip())
    line, counted = 1, 0
    while position < len(text):
        line += text.count("\n", counted, position)
        counted, is_odd = position, False
        try:
            value, end = decoder.raw_decode(text, position)
        except RecursionError:
            raise json.JSONDecodeError("it is nested too deeply", text, position) from None
        # Scan again only if something is or may be wrong.
        may_be_wrong = is_odd or _SURROGATE.search(text, position, end)
        found = tuple(_problems(text, position, end, line)) if may_be_wrong else ()
        problems = tuple(problem for problem in found if problem.message != _DUPLICATE)
        duplicates = tuple(problem for problem in found if problem.message == _DUPLICATE)
        yield Document(value, text[position:end], line, problems, duplicates)
        position = end
        while position < len(text) and text[position].isspace():
            position += 1


def syntax_problem(error: json.JSONDecodeError) -> Problem:
    """Turn a JSON syntax error into a problem with its position and a remedy."""
    remedy = "check the quotes, the commas and the brackets here"
    return Problem(f"this is not JSON: {error.msg}", line=error.lineno, column=error.colno, remedy=remedy)


@dataclass(slots=True)
class _Open:
    """An object or list that has not ended yet."""

    keys: dict[str, int] | None  # for an object: the line of each key
    index: int = 0
    key: str = ""
    expects_key: bool = field(default=True)


def _problems(text: str, start: int, end: int, line: int) -> Iterator[Problem]:
    """Yield the problems in a value that starts on `line` and is valid JSON otherwise."""
    stack: list[_Open] = []
    line_start = text.rfind("\n", 0, start) + 1
    seen = start
    for match in _TOKEN.finditer(text, start, end):
        token, at = match[0], match.start()
        n_lines = text.count("\n", seen, at)
        if n_lines:
            line, line_start = line + n_lines, text.rfind("\n", seen, at) + 1
        seen = at
        top = stack[-1] if stack else None
        complaint: tuple[str, str] | None = None
        if token in "{[":
            stack.append(_Open({} if token == "{" else None))
        elif token in "}]":
            stack.pop()
        elif token == "," and top is not None:
            top.index, top.expects_key = top.index + 1, True
        elif token == ":" and top is not None:
            top.expects_key = False
        elif top is not None and top.keys is not None and top.expects_key:
            top.key = json.loads(token)
            complaint = _key_complaint(top.key, top.keys.get(top.key))
            top.keys.setdefault(top.key, line)
        else:
            complaint = _complaint(token)
        if complaint is not None:
            message, remedy = complaint
            yield Problem(message, field=_path(stack), line=line, column=at - line_start + 1, remedy=remedy)


def _key_complaint(key: str, first_line: int | None) -> tuple[str, str] | None:
    if first_line is not None:
        return _DUPLICATE, f"remove one of them: the first is on line {first_line}"
    return None if _is_unicode(key) else ("the key has an unpaired surrogate", "write both halves")


def _complaint(token: str) -> tuple[str, str] | None:
    short = token if len(token) <= 40 else f"{token[:37]}..."
    if token.startswith('"'):
        return None if _is_unicode(json.loads(token)) else ("unpaired surrogate", "write both halves")
    if token in _CONSTANTS:
        return f"{token} is not valid JSON", f'write a number, or "{token}" for a string'
    is_whole = token.lstrip("-").isdigit()
    if (is_whole and len(token) > MAX_DIGITS) or (token[-1].isdigit() and not is_whole and math.isinf(float(token))):
        return f"the number {short} is too large", "quote it if it is a string"
    return None


def _is_unicode(text: str) -> bool:
    return text.isascii() or not _SURROGATE.search(text)


def _path(stack: list[_Open]) -> str:
    path = ""
    for open_ in stack:
        path = f"{path}[{open_.index}]" if open_.keys is None else join(path, open_.key)
    return path


def unwritable_field(value: object, path: str = "", depth: int = 0) -> str:
    """Return the field that JSON cannot represent; empty if it is the whole object."""
    if depth > _DEEPEST:
        return ""
    if isinstance(value, dict):
        if not all(isinstance(key, str | int | float | None) for key in value):
            return path
        entries = ((join(path, str(key)), entry) for key, entry in value.items())
    elif isinstance(value, list | tuple):
        entries = ((f"{path}[{index}]", entry) for index, entry in enumerate(value))
    else:
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            return path
        return ""
    return next(filter(None, (unwritable_field(entry, field, depth + 1) for field, entry in entries)), "")
