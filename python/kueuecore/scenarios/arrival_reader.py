"""Reads how jobs arrive and fail, and checks what an arrival rewrites."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore._fields import Fields
from kueuecore._json import object_at
from kueuecore.errors import Problem
from kueuecore.manifests import Manifest
from kueuecore.scenarios.early_ends import EarlyEnds
from kueuecore.scenarios.hourly_arrivals import DAYS, HOURS, HourlyArrivals
from kueuecore.scenarios.spans import checked_number, read_spans, read_weights

__all__ = ["metadata_problems", "read_early_ends", "read_hourly_arrivals"]

_MAX_PER_HOUR = 1e6


def read_hourly_arrivals(section: Fields, *, start: int, until: float | None, most: int) -> HourlyArrivals | None:
    """Read how often jobs arrive at which hour; None if absent, or if wrong, which is recorded.

    Args:
        section: The work.
        start: The start of the scenario, in nanoseconds since 1970.
        until: The end of the scenario, in seconds from its start, if it has one.
        most: The most jobs that may arrive.
    """
    fields = section.part("arrivals")
    if fields is None:
        return None
    n_problems = len(fields.problems)
    for name in ("count", "every"):
        if section.value(name) is not None:
            section.complain(name, f"both {name} and arrivals are given", "remove one of them")
    per_hour = checked_number(fields, "perHour", 0.0, _MAX_PER_HOUR)
    fields.has("perHour", "write how many jobs arrive per hour on average")
    by_hour = read_weights(fields, "byHour", HOURS, remedy="write 24, one for each hour from midnight in UTC")
    by_weekday = read_weights(fields, "byWeekday", DAYS, remedy="write 7, one for each day from Monday")
    ends = fields.seconds("until", until)
    fields.end()
    if ends is None and fields.plain.get("until") is None:
        fields.complain("until", "Required value", "write until when jobs arrive, here or for the whole scenario")
    if len(fields.problems) > n_problems or per_hour is None or ends is None:
        return None
    # Jobs after the end of the scenario do not matter.
    ends = ends if until is None else min(ends, until)
    found = HourlyArrivals(per_hour=per_hour, until=ends, start=start, by_hour=by_hour, by_weekday=by_weekday)
    if found.n_expected > most:
        fields.complain("perHour", f"{found.n_expected:.0f} jobs are too many", f"write a rate for at most {most} jobs")
        return None
    return found


def read_early_ends(section: Fields) -> EarlyEnds | None:
    """Read which jobs fail; None if absent, or if wrong, which is recorded."""
    fields = section.part("fails")
    if fields is None:
        return None
    share, after = checked_number(fields, "share", 0.0, 1.0), read_spans(fields, "after")
    fields.has("share", "write the share of jobs that fail, from 0 to 1")
    fields.end()
    if fields.plain.get("after") is None and section.plain.get("runs") is None:
        fields.complain("after", "Required value", "write after how long they fail: the jobs run forever")
    return None if share is None else EarlyEnds(share=share, after=after)


def metadata_problems(job: Manifest) -> Iterator[Problem]:
    """Yield problems with the part of a job that is rewritten for each arrival."""
    metadata = job.object.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        yield job.problem("must be a mapping", field="metadata", remedy="write `name: value` below it")
    for name in ("name", "namespace"):
        if not isinstance(object_at(metadata).get(name), str | None):
            yield job.problem("must be a string", field=f"metadata.{name}", remedy="put it in quotes")
