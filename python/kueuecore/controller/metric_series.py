"""Counters, gauges and histograms, series by series."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from kueuecore.controller.metric_families import FAMILIES
from kueuecore.controller.metric_objects import Owner

__all__ = ["Histogram", "Labels", "MetricSeries"]

Labels = tuple[str, ...]
"""The values of labels: the family's own in its order, then the custom ones."""


class Histogram:
    """Counts durations in buckets.

    Args:
        bounds: Upper bounds of the buckets, except the last, which has none.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.total = 0.0
        self.counts = [0] * (len(bounds) + 1)

    def observe(self, seconds: float) -> None:
        """Add one duration."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds


class MetricSeries:
    """Stores counters, histograms, and gauges that keep their last value."""

    def __init__(self) -> None:
        # By family and owner, so that an owner's series are found when it is deleted.
        self._values: dict[str, dict[Labels, dict[Labels, float]]] = {}
        self._timed: dict[str, dict[Labels, dict[Labels, Histogram]]] = {}

    def add(self, family: str, labels: Labels, n: float = 1) -> None:
        """Add `n` to a counter."""
        of_owner = self._values.setdefault(family, {}).setdefault(labels[: FAMILIES[family].n_owner_labels], {})
        of_owner[labels] = of_owner.get(labels, 0) + n

    def put(self, family: str, labels: Labels, value: float) -> None:
        """Set a gauge."""
        self._values.setdefault(family, {}).setdefault(labels[: FAMILIES[family].n_owner_labels], {})[labels] = value

    def observe(self, family: str, labels: Labels, seconds: float) -> None:
        """Add one duration."""
        it = FAMILIES[family]
        of_owner = self._timed.setdefault(family, {}).setdefault(labels[: it.n_owner_labels], {})
        if (found := of_owner.get(labels)) is None:
            found = of_owner[labels] = Histogram(it.bounds)
        found.observe(seconds)

    def put_histogram(self, family: str, labels: Labels, histogram: Histogram) -> None:
        """Set a histogram that was counted elsewhere."""
        self._timed.setdefault(family, {}).setdefault(labels[: FAMILIES[family].n_owner_labels], {})[labels] = histogram

    def clear(self, owner: Owner) -> None:
        """Drop all series of an owner."""
        kind, labels = owner
        for family in self._values:
            if FAMILIES[family].owner == kind:
                self._values[family].pop(labels, None)
        for family in self._timed:
            if FAMILIES[family].owner == kind:
                self._timed[family].pop(labels, None)

    def values(self, family: str) -> Iterator[tuple[Labels, float]]:
        """Yield the series of a counter or gauge."""
        for of_owner in self._values.get(family, {}).values():
            yield from of_owner.items()

    def histograms(self, family: str) -> Iterator[tuple[Labels, Histogram]]:
        """Yield the series of a histogram."""
        for of_owner in self._timed.get(family, {}).values():
            yield from of_owner.items()
