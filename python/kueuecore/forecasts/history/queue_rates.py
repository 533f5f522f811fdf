"""What counters and histograms know of ClusterQueues without knowing their jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Self

__all__ = ["QueueRates", "RateWindow", "SpanHistogram"]


@dataclass(frozen=True, slots=True)
class SpanHistogram:
    """How many spans of time were at most so long.

    Args:
        bounds: The upper bounds of its buckets in seconds, ascending; the last is infinite.
        counts: How many spans fell into each bucket alone; fractions where a count was spread over windows.
    """

    bounds: tuple[float, ...] = ()
    counts: tuple[float, ...] = ()

    @property
    def total(self) -> float:
        """How many spans it has."""
        return sum(self.counts)

    def bound(self, share: float) -> float:
        """Return the bound of a bucket by which at least this share of the spans had ended; infinite: beyond all.

        Example:
            >>> waits = SpanHistogram((1.0, 60.0, inf), (50.0, 45.0, 5.0))
            >>> waits.bound(0.5), waits.bound(0.9), waits.bound(0.99)
            (1.0, 60.0, inf)
        """
        needed, so_far = share * self.total, 0.0
        for bound, count in zip(self.bounds, self.counts, strict=True):
            so_far += count
            if so_far >= needed and so_far > 0:
                return bound
        return inf

    @classmethod
    def sum_of(cls, histograms: Iterable[Self]) -> SpanHistogram:
        """Add up histograms, which may have different bounds: releases of Kueue do.

        Example:
            >>> SpanHistogram.sum_of([SpanHistogram((1.0, inf), (2.0, 1.0)), SpanHistogram((5.0, inf), (3.0, 0.0))])
            SpanHistogram(bounds=(1.0, 5.0, inf), counts=(2.0, 3.0, 1.0))
        """
        counts: dict[float, float] = {}
        for histogram in histograms:
            for bound, count in zip(histogram.bounds, histogram.counts, strict=True):
                counts[bound] = counts.get(bound, 0.0) + count
        bounds = sorted(counts)
        return SpanHistogram(tuple(bounds), tuple(counts[bound] for bound in bounds))


@dataclass(frozen=True, slots=True, kw_only=True)
class RateWindow:
    """What happened to a ClusterQueue within a window: an hour, or longer if there are fewer samples.

    Args:
        begin: When it begins, in nanoseconds since 1970.
        end: When it ends.
        admitted: How many workloads were admitted, again after evictions too; None: unknown. Counts are fractions where
            samples do not fall on the hour.
        arrivals: How many arrived; None: unknown.
        finished: How many finished; None: unknown.
        mean_pending: How many waited, on average; None: unknown.
        mean_running: How many held quota, on average; None: unknown.
        waits: How long those that were admitted had waited.
        runs: How long those that finished had run, with runs before an eviction.
    """

    begin: int
    end: int
    admitted: float | None = None
    arrivals: float | None = None
    finished: float | None = None
    mean_pending: float | None = None
    mean_running: float | None = None
    waits: SpanHistogram = SpanHistogram()
    runs: SpanHistogram = SpanHistogram()

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end - self.begin) / 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRates:
    """What is known of a ClusterQueue's past.

    Args:
        cluster_queue: Its name.
        windows: What happened within each window, in order, without gaps but where samples are missing.
        waits: How long workloads waited in all.
        runs: How long workloads ran in all.
    """

    cluster_queue: str
    windows: tuple[RateWindow, ...]
    waits: SpanHistogram = SpanHistogram()
    runs: SpanHistogram = SpanHistogram()

    @property
    def arrivals_per_hour(self) -> float | None:
        """The average number of arrivals per hour; None: unknown."""
        known = [(window.arrivals, window.seconds) for window in self.windows if window.arrivals is not None]
        seconds = sum(length for _, length in known)
        return sum(arrivals for arrivals, _ in known) * 3600 / seconds if seconds else None

    @property
    def mean_run_seconds(self) -> float | None:
        """How long an admission lasts on average, by Little's law; None: unknown, or nothing was admitted."""
        known = [
            (window.mean_running * window.seconds, window.admitted)
            for window in self.windows
            if window.mean_running is not None and window.admitted is not None
        ]
        admitted = sum(count for _, count in known)
        return sum(held for held, _ in known) / admitted if admitted else None
