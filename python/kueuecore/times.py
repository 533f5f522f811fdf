"""Points in time as the engine counts them: nanoseconds since 1970-01-01T00:00:00Z."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

__all__ = ["TimeLike", "duration_ns", "format_time", "nanoseconds", "newest_time"]

TimeLike: TypeAlias = datetime | str | int
"""A time: a datetime that knows its zone, an RFC 3339 text, or nanoseconds since 1970."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_LIMIT = 2**63
_UNITS_NS = {"h": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000, "ms": 1_000_000}


def nanoseconds(time: TimeLike) -> int:
    """A time in nanoseconds since 1970.

    Args:
        time: A datetime that knows its zone, an RFC 3339 text, or nanoseconds.

    Raises:
        ValueError: A text of another form, a datetime without a zone, or a time beyond what 64 bits hold (year 2262).

    Example:
        >>> nanoseconds("2026-01-01T00:00:00Z")
        1767225600000000000
        >>> nanoseconds("2026-01-01T01:00:00.5+01:00") - nanoseconds("2026-01-01T00:00:00Z")
        500000000
    """
    # Most often it is a plain number, and a cycle that has nothing to do is short.
    if type(time) is int and -_LIMIT < time < _LIMIT:
        return time
    if isinstance(time, bool) or not isinstance(time, datetime | str | int):
        raise TypeError(f"a time is a datetime, an RFC 3339 text or nanoseconds, not {type(time).__name__}")
    if isinstance(time, str):
        match = _RFC3339.fullmatch(time)
        if match is None:
            raise ValueError(f'{time!r} is no time: write RFC 3339, such as "2026-01-01T00:00:00Z"')
        day, clock, fraction, zone = match.groups()
        try:
            whole = datetime.fromisoformat(f"{day}T{clock}{zone.upper().replace('Z', '+00:00')}")
        except ValueError as error:
            raise ValueError(f"{time!r} is no time: {error}") from None
        result = _of_datetime(whole) + int((fraction or "0").ljust(9, "0"))
    elif isinstance(time, datetime):
        if time.tzinfo is None:
            raise ValueError(f"{time!r} is no time without a zone: give tzinfo=datetime.UTC, for example")
        result = _of_datetime(time)
    else:
        # Of a class that is derived from int, the int.
        result = int.__pos__(time)
    if not -_LIMIT < result < _LIMIT:
        raise ValueError(f"{time!r} is beyond what 64 bits of nanoseconds hold")
    return result


def _of_datetime(time: datetime) -> int:
    return (time - _EPOCH) // _MICROSECOND * 1000


def format_time(time_ns: int) -> str:
    """A time as RFC 3339 in UTC, with a fraction only if there is one.

    Example:
        >>> format_time(1767225600000000000)
        '2026-01-01T00:00:00Z'
    """
    seconds, fraction = divmod(time_ns, 1_000_000_000)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction:09d}".rstrip("0") + "Z" if fraction else f"{text}Z"


def newest_time(value: object) -> int | None:
    """The newest RFC 3339 time anywhere in plain JSON data, in nanoseconds; `None` if there is none."""
    newest: int | None = None
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
        elif isinstance(item, str) and _RFC3339.fullmatch(item):
            try:
                time = nanoseconds(item)
            except ValueError:
                continue
            newest = time if newest is None or time > newest else newest
    return newest


def duration_ns(text: str) -> int:
    """A duration as a Configuration tells it, in nanoseconds.

    Example:
        >>> duration_ns("5m0.5s")
        300500000000
    """
    parts = re.findall(r"([0-9.]+)(h|ms|m|s)", text)
    return int(sum(float(number) * _UNITS_NS[unit] for number, unit in parts))
