"""How jobs arrive and fail, as written in the file."""

from __future__ import annotations

from kueuecore._fields import Fields
from kueuecore.scenarios.early_ends import EarlyEnds
from kueuecore.scenarios.hourly_arrivals import DAYS, HOURS, HourlyArrivals
from kueuecore.scenarios.spans import checked_number, read_spans, read_weights

__all__ = ["read_early_ends", "read_hourly_arrivals"]

_MOST_PER_HOUR = 1e6


def read_hourly_arrivals(section: Fields, *, start: int, until: float | None, most: int) -> HourlyArrivals | None:
    """How often jobs come at which hour; None if there is nothing about it, or it is noted to be wrong.

    Args:
        section: The work.
        start: The beginning of the scenario, in nanoseconds since 1970.
        until: The end of the scenario, in seconds from its beginning, if it has one.
        most: How many jobs may come.
    """
    fields = section.part("arrivals")
    if fields is None:
        return None
    n_problems = len(fields.problems)
    for name in ("count", "every"):
        if section.value(name) is not None:
            section.complain(name, f"both {name} and arrivals are given", "remove one of them")
    per_hour = checked_number(fields, "perHour", 0.0, _MOST_PER_HOUR)
    fields.has("perHour", "write how many jobs come in an hour, in the mean")
    by_hour = read_weights(fields, "byHour", HOURS, remedy="write 24, one for each hour from midnight in UTC")
    by_weekday = read_weights(fields, "byWeekday", DAYS, remedy="write 7, one for each day from Monday")
    ends = fields.seconds("until", until)
    fields.end()
    if ends is None and fields.plain.get("until") is None:
        fields.complain("until", "Required value", "write until when jobs come, here or for the whole scenario")
    if len(fields.problems) > n_problems or per_hour is None or ends is None:
        return None
    # What comes after the end of the scenario is not asked for.
    ends = ends if until is None else min(ends, until)
    found = HourlyArrivals(per_hour=per_hour, until=ends, start=start, by_hour=by_hour, by_weekday=by_weekday)
    if found.n_expected > most:
        fields.complain("perHour", f"{found.n_expected:.0f} jobs are too many", f"write less, for up to {most} of them")
        return None
    return found


def read_early_ends(section: Fields) -> EarlyEnds | None:
    """Which jobs fail; None if there is nothing about it, or it is noted to be wrong."""
    fields = section.part("fails")
    if fields is None:
        return None
    share, after = checked_number(fields, "share", 0.0, 1.0), read_spans(fields, "after")
    fields.has("share", "write which share of the jobs fails, from 0 to 1")
    fields.end()
    if fields.plain.get("after") is None and section.plain.get("runs") is None:
        fields.complain("after", "Required value", "write after how long they fail: the jobs run for ever")
    return None if share is None else EarlyEnds(share=share, after=after)
