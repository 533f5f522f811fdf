"""Draws the workloads that will arrive at a cluster from those that have arrived so far."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from kueuecore.forecasts.past_jobs import PastJob
from kueuecore.forecasts.present_workloads import LocalQueueName
from kueuecore.manifests import Manifest

__all__ = ["ArrivalBlock", "Arrivals", "arrivals_of", "arrivals_since"]

_HOUR = 3600.0
_DAY = 24 * _HOUR
_WEEK = 7 * _DAY
# Long enough to keep bursts and the work of one person together, short enough that futures differ.
_BLOCK_SECONDS = 12 * _HOUR
# With this probability a block is from the last week (or day) that it can be from, and so on.
_NEWEST_SHARE = 0.15
# A window must show this many weeks, or days, to say how arrivals follow them.
_LEAST_PERIODS = 2
# Times have whole seconds: a shorter window says nothing about a rate.
_LEAST_WINDOW_SECONDS = 1.0
_LARGE_PART = 0.25
# A short window is drawn in spans of its own length, but not of many more arrivals than a future looks at.
_BATCHES_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class ArrivalBlock:
    """Arrivals in a span of a future.

    Args:
        begin: Where the span begins, in seconds from now.
        end: Where it ends.
        at: When each arrives, in seconds from now, ascending; shape (n,).
        rows: Which arrival of the past each is like, by index in `Arrivals`; shape (n,).
    """

    begin: float
    end: float
    at: npt.NDArray[np.float64]
    rows: npt.NDArray[np.intp]


def _no_floats() -> npt.NDArray[np.float64]:
    return np.empty(0)


def _no_indices() -> npt.NDArray[np.intp]:
    return np.empty(0, np.intp)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arrivals:
    """The workloads that arrived within a window, in order of time. Arrays have the shape (n,).

    Args:
        at: When each arrived, in seconds from now: 0 or less, ascending.
        jobs: Which past job each is, by index.
        template: The index of each one's template.
        templates: Workloads without names and statuses, to copy for new ones.
        window_seconds: How long ago the window began.
        n_by_queue: How many arrived at each LocalQueue, by namespace and name.
    """

    at: npt.NDArray[np.float64] = field(default_factory=_no_floats)
    jobs: npt.NDArray[np.intp] = field(default_factory=_no_indices)
    template: npt.NDArray[np.intp] = field(default_factory=_no_indices)
    templates: tuple[Manifest, ...] = ()
    window_seconds: float = 0.0
    n_by_queue: Sequence[tuple[LocalQueueName, int]] = ()

    @property
    def hole(self) -> tuple[float, float] | None:
        """Where nothing arrived for a large part of the window, in seconds from now; None: nowhere.

        The past may be known from two sources with nothing between them.
        """
        edges = np.concatenate([[-self.window_seconds], self.at, [0.0]])
        longest = int(np.argmax(np.diff(edges)))
        begin, end = float(edges[longest]), float(edges[longest + 1])
        return (begin, end) if end - begin >= max(_WEEK, _LARGE_PART * self.window_seconds) else None

    def seen(self, seconds_ago: float, *, longest: float | None = None) -> Arrivals:
        """Return those that had arrived at an earlier moment, with times from then on.

        Args:
            seconds_ago: How long ago that was.
            longest: The longest window before that moment.
        """
        window_seconds = max(self.window_seconds - seconds_ago, 0.0)
        first, n = 0, int(np.searchsorted(self.at, -seconds_ago, side="right"))
        if longest is not None and longest < window_seconds:
            window_seconds = longest
            first = min(int(np.searchsorted(self.at, -seconds_ago - longest, side="right")), n)
        return replace(
            self,
            at=self.at[first:n] + seconds_ago,
            jobs=self.jobs[first:n],
            template=self.template[first:n],
            window_seconds=window_seconds,
        )

    def blocks(self, random: np.random.Generator) -> Iterator[ArrivalBlock]:
        """Yield one possible future, span by span, without an end.

        From two weeks on, what arrives in a span is what arrived in the same hours of an earlier week, mostly a recent
        one (a block bootstrap); from two days on, of an earlier day. In a shorter window arrivals are steady.

        Args:
            random: Where the draws come from.
        """
        if not len(self.at):
            return iter(())
        for period in (_WEEK, _DAY):
            if self.window_seconds >= _LEAST_PERIODS * period:
                return self._recurring(random, period)
        return self._steady(random)

    def _recurring(self, random: np.random.Generator, period: float) -> Iterator[ArrivalBlock]:
        begin = 0.0
        while True:
            length = _BLOCK_SECONDS * (0.5 + random.random())
            # The first period that is over, and the first one that the window shows.
            newest = 1 + int((begin + length) // period)
            oldest = int((begin + self.window_seconds) // period)
            back = newest + min(int(random.geometric(_NEWEST_SHARE)) - 1, max(oldest - newest, 0))
            source = max(begin - back * period, -self.window_seconds)
            first, end = np.searchsorted(self.at, [source, min(source + length, 0.0)], side="right")
            rows = np.arange(first, end)
            yield ArrivalBlock(begin, begin + length, self.at[rows] - source + begin, rows)
            begin += length

    def _steady(self, random: np.random.Generator) -> Iterator[ArrivalBlock]:
        """Draw batches as a Poisson process: what arrived in the same second arrives together.

        Its rate and the frequency of each batch are drawn first, because a short window does not determine them.
        """
        starts = np.flatnonzero(np.diff(self.at, prepend=-np.inf) > 0)
        ends = np.append(starts[1:], len(self.at))
        # The posterior of a rate after so many events in a window, with Jeffreys' prior.
        rate = random.gamma(len(starts) + 0.5, 1 / max(self.window_seconds, _LEAST_WINDOW_SECONDS))
        shares = np.cumsum(random.standard_exponential(len(starts)))
        shares /= shares[-1]
        begin = 0.0
        while True:
            gaps = random.standard_exponential(_BATCHES_AT_ONCE) / rate
            times = begin + np.cumsum(gaps)
            batches = np.searchsorted(shares, random.random(_BATCHES_AT_ONCE))
            sizes = ends[batches] - starts[batches]
            rows = np.concatenate([np.arange(starts[batch], ends[batch]) for batch in batches])
            end = float(times[-1])
            yield ArrivalBlock(begin, float(np.nextafter(end, np.inf)), np.repeat(times, sizes), rows)
            begin = end


def arrivals_since(jobs: Sequence[PastJob], *, now: int, window_seconds: float | None = None) -> int:
    """Return since when all arrivals are known, in nanoseconds since 1970.

    Kueue deletes finished Workloads after a while (`objectRetentionPolicies`). All that arrived after the first end
    still on record are present, so the window starts there; without any end, at the first creation.

    Args:
        jobs: The jobs.
        now: When they were seen, in nanoseconds since 1970.
        window_seconds: The longest window.
    """
    ended = [job.ended for job in jobs if job.ended is not None]
    created = [job.created for job in jobs if job.created is not None]
    begin = min(ended or created, default=now)
    if window_seconds is not None:
        begin = max(begin, now - round(window_seconds * 1e9))
    return min(begin, now)


def arrivals_of(jobs: Sequence[PastJob], *, now: int, window_seconds: float | None = None) -> Arrivals:
    """Return the workloads that arrived at a cluster by a moment.

    Args:
        jobs: Its past jobs; those without a template do not arrive again.
        now: The moment, in nanoseconds since 1970.
        window_seconds: The longest window.
    """
    begin = arrivals_since(jobs, now=now, window_seconds=window_seconds)
    came = sorted(
        (job.created, place)
        for place, job in enumerate(jobs)
        if job.created is not None and begin < job.created <= now and job.template is not None
    )
    templates: dict[str, int] = {}
    manifests: list[Manifest] = []
    numbers: list[int] = []
    known: dict[int, int] = {}
    for _, place in came:
        template = jobs[place].template or {}
        number = known.get(id(template))
        if number is None:
            number = templates.setdefault(json.dumps(template, sort_keys=True), len(templates))
            known[id(template)] = number
            if number == len(manifests):
                manifests.append(Manifest(template))
        numbers.append(number)
    queues = Counter((jobs[place].namespace, jobs[place].local_queue) for _, place in came)
    return Arrivals(
        at=np.array([(created - now) / 1e9 for created, _ in came], np.float64),
        jobs=np.array([place for _, place in came], np.intp),
        template=np.array(numbers, np.intp),
        templates=tuple(manifests),
        window_seconds=(now - begin) / 1e9,
        n_by_queue=sorted(queues.items()),
    )
