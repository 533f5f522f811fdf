"""Jobs that arrive more often at some hours of the day and on some days of the week."""

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
    """A Poisson process with a different rate for each hour of the week, in UTC.

    Args:
        per_hour: Average arrivals per hour over a week.
        until: No job arrives at this time or later, in seconds from the start of the scenario.
        start: The start of the scenario, in nanoseconds since 1970, which determines hour and weekday.
        by_hour: Relative weights of the hours of a day, from midnight; empty: all equal.
        by_weekday: Relative weights of the days, from Monday; empty: all equal.

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
        """The expected number of jobs, if they arrive from the start of the scenario."""
        return fsum((end - begin) * rate for begin, end, rate in self._stretches(0.0))

    def times(self, random: Random, begin: float) -> Iterator[float]:
        """Yield arrival times in seconds from the start of the scenario, to the millisecond.

        Args:
            random: The random source.
            begin: The earliest arrival, in seconds from the start of the scenario.
        """
        # In time stretched by the rate, jobs arrive at a constant rate: draw an interval there, and use it up by hours.
        left, first = random.expovariate(1.0), begin
        for time, end, rate in self._stretches(begin):
            while left < (end - time) * rate:
                time += left / rate
                left = random.expovariate(1.0)
                # Round down to stay within the hour.
                yield max(first, int(time * 1000) / 1000)
            left -= (end - time) * rate

    def _stretches(self, begin: float) -> Iterator[tuple[float, float, float]]:
        """Yield start, end and rate per second of each stretch of time within one hour."""
        hour, into_ns = divmod(self.start, _HOUR_NS)
        into = into_ns / 1e9
        skipped = int((begin + into) // _HOUR)
        hour, end = hour + skipped, (skipped + 1) * _HOUR - into
        while begin < self.until:
            yield begin, min(end, self.until), self._rate(hour)
            hour, begin, end = hour + 1, end, end + _HOUR

    def _rate(self, hour: int) -> float:
        """Return the jobs per second in an hour, counted from 1970."""
        rate = self.per_hour / _HOUR
        if self.by_hour:
            rate *= self.by_hour[hour % HOURS] * HOURS / fsum(self.by_hour)
        if self.by_weekday:
            rate *= self.by_weekday[(hour // HOURS + _FIRST_DAY) % DAYS] * DAYS / fsum(self.by_weekday)
        return rate
