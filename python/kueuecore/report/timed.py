"""The time of a run, as charts and sentences show it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

from kueuecore.report.dates import date_ticks, day_and_time
from kueuecore.scenarios.scenario import DEFAULT_START
from kueuecore.times import SECOND_NS, nanoseconds

__all__ = ["Timed", "clock"]

_STEPS = 160
# Below, the time since the start says more than dates.
_DATED = 2 * 86400


class Timed(ABC):
    """Something that has a start and an end."""

    @property
    @abstractmethod
    def start(self) -> int:
        """When it starts, in nanoseconds since 1970."""

    @property
    @abstractmethod
    def end(self) -> int:
        """When it ends."""

    @property
    def seconds(self) -> float:
        """The length of the run."""
        return (self.end - self.start) / SECOND_NS

    @property
    def has_dates(self) -> bool:
        """Whether days have a meaning: the run is long, and somebody has chosen its start."""
        return self.seconds > _DATED and self.start != nanoseconds(DEFAULT_START)

    @cached_property
    def dates(self) -> list[tuple[float, str]]:
        """The ticks of an axis with dates; none if the run has no dates."""
        return date_ticks(self.start, self.seconds) if self.has_dates else []

    def when(self, seconds: float) -> str:
        """Format a moment: a date, or the time since the start."""
        return day_and_time(self.start, seconds) if self.has_dates else clock(seconds)

    def happens(self, seconds: float) -> str:
        """Return when something happens, in words."""
        return f"{'on' if self.has_dates else 'after'} {self.when(seconds)}"

    @cached_property
    def step(self) -> float:
        """The time between two points on a curve, in seconds."""
        return max(self.seconds / _STEPS, 0.001)


def clock(seconds: float) -> str:
    """Format a time of the run.

    Example:
        >>> clock(90), clock(7200), clock(200000), clock(0.25)
        ('1m30s', '2h00m', '2d7h', '0.2s')
    """
    if round(seconds, 1) < 60:
        return f"{round(seconds, 1):g}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes}m{rest:02}s"
    days, hours = divmod(hours, 24)
    return f"{days}d{hours}h" if days else f"{hours}h{minutes:02}m"
