"""Times as the engine counts them: nanoseconds since 1970-01-01T00:00:00Z."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from kueuecore._arguments import shown

__all__ = [
    "END_NS",
    "SECOND_NS",
    "TimeLike",
    "backoff_ns",
    "beginning_ns",
    "duration_ns",
    "format_time",
    "later",
    "nanoseconds",
    "newest_time",
    "saturated_ns",
    "span_ns",
]

TimeLike: TypeAlias = datetime | str | int
"""A time: a timezone-aware datetime, an RFC 3339 string, or nanoseconds since 1970."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_LIMIT = 2**63
END_NS = _LIMIT - 1
"""The end of time, in April 2262: the engine counts in 64 bits, so nothing happens at this time or later."""
SECOND_NS = 1_000_000_000
"""A second: times and spans are nanoseconds."""
_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5
    "μs": 1_000,  # U+03BC
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_NUMBER_AND_UNIT = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
# A whole number of at least this is beyond the limit in any unit.
_MAX_DIGITS = 19


def nanoseconds(time: TimeLike) -> int:
    """Return a time in nanoseconds since 1970.

    Args:
        time: A timezone-aware datetime, an RFC 3339 string, or nanoseconds.

    Raises:
        ValueError: The string has another format, the datetime has no zone, or the time does not fit into 64 bits
            (year 2262).

    Example:
        >>> nanoseconds("2026-01-01T00:00:00Z")
        1767225600000000000
        >>> nanoseconds("2026-01-01T01:00:00.5+01:00") - nanoseconds("2026-01-01T00:00:00Z")
        500000000
    """
    # A fast path: usually it is a plain number, and an idle cycle is short.
    if type(time) is int and -_LIMIT < time < _LIMIT:
        return time
    if isinstance(time, bool) or not isinstance(time, datetime | str | int):
        raise TypeError(f"a time must be a datetime, an RFC 3339 string or nanoseconds, not {type(time).__name__}")
    if isinstance(time, str):
        match = _RFC3339.fullmatch(time)
        if match is None:
            raise ValueError(f'{shown(time)} is not a time: write RFC 3339, such as "2026-01-01T00:00:00Z"')
        day, clock, fraction, zone = match.groups()
        try:
            whole = datetime.fromisoformat(f"{day}T{clock}{zone.upper().replace('Z', '+00:00')}")
        except ValueError as error:
            raise ValueError(f"{shown(time)} is not a time: {error}") from None
        result = _of_datetime(whole) + int((fraction or "0").ljust(9, "0"))
    elif isinstance(time, datetime):
        if time.tzinfo is None:
            raise ValueError(f"a time needs a zone, and {shown(time)} has none: pass tzinfo=datetime.UTC, for example")
        result = _of_datetime(time)
    else:
        # Turns a subclass of int into an int.
        result = int.__pos__(time)
    if not -_LIMIT < result < _LIMIT:
        raise ValueError(f"a time must fit into 64 bits of nanoseconds, and {shown(time)} does not")
    return result


def saturated_ns(time: str) -> int:
    """Read an RFC 3339 string as an engine does: if 64 bits cannot hold it, return the nearest time that they can.

    Raises:
        ValueError: It is not a time.
    """
    try:
        return nanoseconds(time)
    except ValueError:
        # An API server accepts every four-digit year.
        if _RFC3339.fullmatch(time) is None or "1700" < time[:4] < "2200":
            raise
        return END_NS if time[:4] >= "2200" else -END_NS


def optional_ns(time: TimeLike | None) -> int | None:
    """Return an optional time in nanoseconds since 1970."""
    return None if time is None else nanoseconds(time)


def backoff_ns(n_failed: int, *, first_ns: int, longest_ns: int) -> int:
    """Return how long to wait after `n_failed` failures in a row, from 1: it doubles with each.

    Example:
        >>> [backoff_ns(n, first_ns=60, longest_ns=600) for n in (1, 2, 4, 5)]
        [60, 120, 480, 600]
    """
    # Bound the shift, because the number of failures has no bound.
    return min(first_ns << min(n_failed - 1, 63), longest_ns)


def beginning_ns(now: TimeLike) -> int:
    """Return the start of a run through virtual time, in nanoseconds since 1970.

    Raises:
        ValueError: It is not a time, or not one from 1970 to April 2262.
    """
    start = nanoseconds(now)
    if not 0 <= start < END_NS:
        raise ValueError(f"a time to start at must be from 1970 to April 2262, not {shown(now)}")
    return start


def span_ns(seconds: object, name: str) -> int:
    """Return a span of time in nanoseconds.

    Args:
        seconds: The span in seconds.
        name: Its name in errors.

    Raises:
        TypeError: It is not a number.
        ValueError: It is negative, or longer than 292 years.
    """
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise TypeError(f"{name} must be a number of seconds, not {type(seconds).__name__}")
    # Written so that infinity and NaN fail too.
    if not 0 <= seconds < _LIMIT / SECOND_NS or math.isnan(seconds):
        raise ValueError(f"{name} is {shown(seconds)}; give seconds from 0 to 292 years")
    return round(seconds * SECOND_NS)


def later(time_ns: int, seconds: object, name: str) -> int:
    """Return the time a span after another.

    Args:
        time_ns: The other time, in nanoseconds since 1970.
        seconds: The span in seconds.
        name: The span's name in errors.

    Raises:
        TypeError: The span is not a number.
        ValueError: It is negative, or ends after April 2262.
    """
    after = time_ns + span_ns(seconds, name)
    if after >= END_NS:
        raise ValueError(f"{name} is {shown(seconds)}, which goes past April 2262; shorten it, or start earlier")
    return after


def _of_datetime(time: datetime) -> int:
    return (time - _EPOCH) // _MICROSECOND * 1000


def format_time(time_ns: int) -> str:
    """Format a time as RFC 3339 in UTC, with a fraction only if it has one.

    Example:
        >>> format_time(1767225600000000000)
        '2026-01-01T00:00:00Z'
    """
    seconds, fraction = divmod(time_ns, 1_000_000_000)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction:09d}".rstrip("0") + "Z" if fraction else f"{text}Z"


def newest_time(value: object) -> int | None:
    """Return the newest RFC 3339 time anywhere in plain JSON data, in nanoseconds; `None` if there is none."""
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
    """Parse a duration in Go's syntax, as `time.ParseDuration` does, into nanoseconds.

    A duration is an optional sign, then numbers with a unit each (`ns`, `us` or `µs`, `ms`, `s`, `m`, `h`), or a plain
    `0`. Fractions of a nanosecond are cut off. `rust/wire/src/duration.rs` does the same for a Configuration.

    Args:
        text: The duration.

    Raises:
        ValueError: It is not a duration, or does not fit into 64 bits (292 years); in Go's words.

    Example:
        >>> duration_ns("5m0.5s"), duration_ns("-1.5h"), duration_ns("0")
        (300500000000, -5400000000000, 0)
        >>> duration_ns("5s5")
        Traceback (most recent call last):
        ValueError: time: missing unit in duration "5s5"
    """
    is_negative, rest = text.startswith("-"), text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    invalid = ValueError(f'time: invalid duration "{text}"')
    if not rest:
        raise invalid
    total = 0
    for match in _NUMBER_AND_UNIT.finditer(rest):
        whole, fraction, unit = match[1], match[2] or "", match[3]
        if match.end() == match.start():
            # The end of the text.
            break
        if not whole and not fraction:
            raise invalid
        if not unit:
            raise ValueError(f'time: missing unit in duration "{text}"')
        if unit not in _UNITS_NS:
            raise ValueError(f'time: unknown unit "{unit}" in duration "{text}"')
        digits = whole.lstrip("0")
        if len(digits) > _MAX_DIGITS:
            raise invalid
        total += int(digits or "0") * _UNITS_NS[unit] + _fraction_ns(fraction, _UNITS_NS[unit])
    # The smallest 64-bit number has no positive counterpart.
    if total >= _LIMIT + is_negative:
        raise invalid
    return -total if is_negative else total


def _fraction_ns(digits: str, unit_ns: int) -> int:
    """Return the nanoseconds of a unit's decimals; Go computes them as a double, from as many digits as fit 63 bits."""
    value, scale = 0, 1.0
    for digit in digits:
        longer = 10 * value + int(digit)
        if longer > _LIMIT:
            break
        value, scale = longer, 10 * scale
    return int(value * (unit_ns / scale))
