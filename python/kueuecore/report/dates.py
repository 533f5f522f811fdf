"""Dates for people: on the axes of long runs, and in sentences."""

from __future__ import annotations

from datetime import UTC, datetime

from kueuecore.times import SECOND_NS

__all__ = ["date_ticks", "day_and_time"]

_DAY = 86400
# Not strftime: it follows the locale, and the same run gives the same bytes.
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_STEPS = (1, 2, 7, 14, 28, 56, 91, 182, 364)
_MAX_TICKS = 10
# 1970-01-01 was a Thursday: weeks begin on Mondays.
_MONDAY = 3


def date_ticks(start: int, seconds: float) -> list[tuple[float, str]]:
    """Return midnights (UTC) for an axis, in seconds from the start, with their labels.

    Args:
        start: The start of the run, in nanoseconds since 1970.
        seconds: How long it lasts.

    Example:
        >>> date_ticks(1_772_452_800 * 10**9, 3 * 86400)
        [(43200.0, 'Tue 3 Mar'), (129600.0, 'Wed 4 Mar'), (216000.0, 'Thu 5 Mar')]
    """
    begin = start / SECOND_NS
    last = int((begin + seconds) // _DAY)
    days = range(-int(-begin // _DAY), last + 1)
    step = next((step for step in _STEPS if len(days) <= step * _MAX_TICKS), _STEPS[-1] * -(-len(days) // 3640))
    shown = [
        day for day in days if (step < 7 and (day - days[0]) % step == 0) or (day + _MONDAY) % step == 0 < step - 6
    ]
    has_years = len(days) > 300
    return [(day * _DAY - begin, _day(day * _DAY, has_weekday=step < 7, has_year=has_years)) for day in shown]


def day_and_time(start: int, seconds: float) -> str:
    """Format a moment of a run.

    Args:
        start: The start of the run, in nanoseconds since 1970.
        seconds: The moment, in seconds from there.

    Example:
        >>> day_and_time(1_772_452_800 * 10**9, 90_000.0)
        'Tue 3 Mar, 13:00'
    """
    second = round(start / SECOND_NS + seconds)
    return f"{_day(second)}, {second % _DAY // 3600:02}:{second % 3600 // 60:02}"


def _day(second: float, *, has_weekday: bool = True, has_year: bool = False) -> str:
    date = datetime.fromtimestamp(second, UTC)
    weekday = f"{_DAYS[date.weekday()]} " if has_weekday else ""
    return f"{weekday}{date.day} {_MONTHS[date.month - 1]}" + (f" {date.year}" if has_year else "")
