"""Jobs that come more often at some hours of the day, and on some days of the week."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum
from random import Random

__all__ = ["DAYS", "HOURS", "HourlyArrivals"]

HOURS = 24
DAYS = 7
_HOUR = 3600.0
_HOUR_NS = 3_600_000_000_000
# 1970 began on a Thursday.
_FIRST_DAY = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyArrivals:
    """A Poisson process whose rate is another in each hour of the week, in UTC.

    Args:
        per_hour: How many jobs come in an hour, in the mean over a week.
        until: No job comes at this time or later, in seconds from the beginning of the scenario.
        start: The beginning of the scenario, in nanoseconds since 1970: it says which hour of which day it is.
        by_hour: How many come in each hour of a day in relation to the others, from midnight; none: all alike.
        by_weekday: How many come on each day in relation to the others, from Monday; none: all alike.

    Example:
        >>> nine_to_five = HourlyArrivals(
        ...     per_hour=1, until=86400, start=0, by_hour=(*[0] * 9, *[1] * 8, *[0] * 7)
        ... )
        >>> [round(it / 3600, 2) for it in nine_to_five.times(Random(1), 0)][:4]
        [9.05, 9.67, 10.16, 10.25]
    """

    per_hour: float
    until: float
    start: int
    by_hour: tuple[float, ...] = ()
    by_weekday: tuple[float, ...] = ()

    @property
    def n_expected(self) -> float:
        """How many jobs come in the mean, if they begin to with the scenario."""
        return fsum((end - begin) * rate for begin, end, rate in self._stretches(0.0))

    def times(self, random: Random, begin: float) -> Iterator[float]:
        """When jobs come, in seconds from the beginning of the scenario, to the millisecond.

        Args:
            random: Where they are drawn from.
            begin: None comes earlier, in seconds from the beginning of the scenario.
        """
        # In time that is stretched by the rate, jobs come evenly: an interval is drawn there, and used up hour by hour.
        left, first = random.expovariate(1.0), begin
        for time, end, rate in self._stretches(begin):
            while left < (end - time) * rate:
                time += left / rate
                left = random.expovariate(1.0)
                # Rounded down, so that it stays in its hour.
                yield max(first, int(time * 1000) / 1000)
            left -= (end - time) * rate

    def _stretches(self, begin: float) -> Iterator[tuple[float, float, float]]:
        """Begin, end and rate in a second of each stretch of time within one hour."""
        hour, into_ns = divmod(self.start, _HOUR_NS)
        into = into_ns / 1e9
        skipped = int((begin + into) // _HOUR)
        hour, end = hour + skipped, (skipped + 1) * _HOUR - into
        while begin < self.until:
            yield begin, min(end, self.until), self._rate(hour)
            hour, begin, end = hour + 1, end, end + _HOUR

    def _rate(self, hour: int) -> float:
        """Jobs a second in an hour, counted from 1970."""
        rate = self.per_hour / _HOUR
        if self.by_hour:
            rate *= self.by_hour[hour % HOURS] * HOURS / fsum(self.by_hour)
        if self.by_weekday:
            rate *= self.by_weekday[(hour // HOURS + _FIRST_DAY) % DAYS] * DAYS / fsum(self.by_weekday)
        return rate
