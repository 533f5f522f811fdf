"""Predicts how long jobs run from past jobs that are like them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kueuecore.forecasts.job_likeness import LEVELS, Level
from kueuecore.forecasts.past_jobs import PastJob

__all__ = ["JobsAt", "SimilarJobs", "Spread"]

_Floats = npt.NDArray[np.float64]
_Bools = npt.NDArray[np.bool_]
_Ints = npt.NDArray[np.intp]

# This many alike jobs weigh as much as all less alike ones together.
_HALF = 3.0
# Less alike jobs are ignored once no more than this weight is left for them.
_LEAST_WEIGHT = 0.01
# Of alike jobs, the newest count: this many times the memory of their level.
_MEMORIES = 4
# A job without a limit that has run longer than all like it runs on for half as long again, on average.
_MORE = 0.5
_LEAST_MORE = 60.0
# Without any that has ended, and without a limit.
_UNKNOWN = 3600.0
# No real job has run for longer, but a time in a status may be anything.
_MAX_ELAPSED = 50 * 366 * 86400.0
_NONE = np.empty(0, np.intp)
_NO_TIMES = np.empty(0)
_TAIL = (np.arange(16) + 0.5) / 16


@dataclass(frozen=True, slots=True)
class Spread:
    """A distribution of run times.

    Args:
        seconds: The possible run times in seconds, ascending.
        shares: The probability of each of them or a lower one, ascending to 1.
    """

    seconds: _Floats
    shares: _Floats

    @classmethod
    def of(cls, seconds: _Floats, weights: _Floats, has_ended: _Bools, *, limit: float | None = None) -> Spread:
        """Return the distribution of weighted run times, in any order.

        Args:
            seconds: How long each job ran; at least one has ended.
            weights: How much it counts.
            has_ended: False: it runs on.
            limit: When such a job is stopped.
        """
        order = np.lexsort((~has_ended, seconds))
        seconds, weights, has_ended = seconds[order], weights[order], has_ended[order]
        at_risk = np.cumsum(weights[::-1])[::-1]
        left = np.cumprod(np.where(has_ended, 1 - weights / np.maximum(at_risk, weights), 1.0))
        ends, shares = seconds[has_ended], 1 - left[has_ended]
        if shares[-1] > 1 - 1e-9:
            return cls(ends, shares / shares[-1])
        # Some have run longer than all that have ended.
        tail = _longer_than(float(seconds[-1]), limit)
        more = shares[-1] + (1 - shares[-1]) * np.arange(1, len(tail) + 1) / len(tail)
        return cls(np.concatenate([ends, tail]), np.concatenate([shares, more]))

    def beyond(self, elapsed: float, limit: float | None = None) -> Spread:
        """Return the distribution for a job that has run for some time.

        Args:
            elapsed: For how long, in seconds.
            limit: When it will be stopped.
        """
        if elapsed <= 0:
            return self
        first = int(np.searchsorted(self.seconds, elapsed, side="right"))
        done = float(self.shares[first - 1]) if first else 0.0
        if first < len(self.seconds) and 1 - done > 1e-4:
            return Spread(self.seconds[first:], (self.shares[first:] - done) / (1 - done))
        # It has run longer than all like it.
        tail = _longer_than(elapsed, limit)
        return Spread(tail, np.arange(1, len(tail) + 1) / len(tail))


def _longer_than(elapsed: float, limit: float | None) -> _Floats:
    """Return how long jobs run that have run longer than all like them: evenly likely run times, ascending."""
    if limit is not None and limit > elapsed:
        return elapsed + (limit - elapsed) * _TAIL
    return elapsed - np.log1p(-_TAIL) * max(_MORE * elapsed, _LEAST_MORE)


@dataclass(frozen=True, slots=True)
class _Alike:
    """Jobs that are alike to some degree.

    Args:
        level: To which degree.
        share: The weight of all of them.
        ended: Those that have ended, by index.
        weights: What each of these counts.
        running: Those that run; each counts 1.
    """

    level: Level
    share: float
    ended: _Ints
    weights: _Floats
    running: _Ints


class SimilarJobs:
    """Past jobs, by how alike they are.

    Args:
        jobs: The jobs: ended, running and waiting ones.
    """

    def __init__(self, jobs: Sequence[PastJob]) -> None:
        self.limits = np.array([np.nan if job.limit_seconds is None else job.limit_seconds for job in jobs])
        self.created = _seconds([job.created for job in jobs])
        self.started = _seconds([job.started for job in jobs])
        self.ended = _seconds([job.ended for job in jobs])
        self.runs = np.array([np.nan if job.run_seconds is None else job.run_seconds for job in jobs])
        rows = np.flatnonzero(~np.isnan(self.runs))
        ended_rows = rows[np.argsort(self.ended[rows], kind="stable")]
        self.keys = [_codes([level.key(job) for job in jobs]) for level in LEVELS]
        self.members = [
            {key: (group, self.ended[group]) for key, group in _groups(keys, ended_rows).items()} for keys in self.keys
        ]

    def __len__(self) -> int:
        return len(self.runs)

    def at(self, now: float) -> JobsAt:
        """Return what was known at a moment.

        Args:
            now: The moment, in seconds since 1970.
        """
        return JobsAt(self, now)


class JobsAt:
    """Past jobs as they were known at a moment.

    The run time of a job is drawn from those that are most like it, with a weight that grows with their number; what is
    left is drawn from those that are less alike, and so on. Newer ones weigh more. Jobs that run count as censored
    (E. Kaplan & P. Meier 1958), so that a queue in which only short jobs have ended does not look fast.

    Args:
        jobs: The jobs.
        now: The moment, in seconds since 1970.
    """

    def __init__(self, jobs: SimilarJobs, now: float) -> None:
        self._jobs, self._now = jobs, now
        running = np.flatnonzero((jobs.started <= now) & (jobs.ended > now))
        self._running = [_groups(keys, running) for keys in jobs.keys]
        self._elapsed = np.maximum(now - jobs.started, 0.0)
        self._spreads: dict[int, Spread] = {}

    @cached_property
    def n_ended(self) -> int:
        """How many had ended, as far as it is known how long they ran."""
        return int(np.count_nonzero((self._jobs.ended <= self._now) & ~np.isnan(self._jobs.runs)))

    def run_seconds(self) -> _Floats:
        """Return how long each job ran; not a number: it had not ended."""
        return np.where(self._jobs.ended <= self._now, self._jobs.runs, np.nan)

    def kind_of(self, job: int) -> int:
        """Return a number that jobs with the same prospects share."""
        return int(self._jobs.keys[0][job])

    def elapsed(self, job: int) -> float:
        """Return for how long a job had run; 0: it had not started, or that is unknown."""
        return min(float(self._elapsed[job]), _MAX_ELAPSED)

    def spread(self, job: int) -> Spread:
        """Return how long a job may run in total.

        Args:
            job: Its index.
        """
        kind = self.kind_of(job)
        if kind not in self._spreads:
            self._spreads[kind] = self._fitted(job)
        return self._spreads[kind].beyond(self.elapsed(job), self._limit(job))

    def source(self, job: int) -> str:
        """Return the `Level.source` of the jobs that weigh most in a job's run time; empty: none has ended."""
        weights: dict[str, float] = defaultdict(float)
        for alike in self._alike(job):
            weights[alike.level.source] += alike.share
        return max(weights, key=lambda source: weights[source], default="")

    def of_queue(self, job: int) -> tuple[_Floats, _Floats]:
        """Return how long the ended jobs of a job's LocalQueue ran, and for how long those that run have run."""
        level = next(place for place, level in enumerate(LEVELS) if level.source == "LocalQueue" and level.is_scaled)
        key = int(self._jobs.keys[level][job])
        group, ended = self._jobs.members[level].get(key, (_NONE, _NO_TIMES))
        n = int(np.searchsorted(ended, self._now, side="right"))
        return self._jobs.runs[group[:n]], self._elapsed[self._running[level].get(key, _NONE)]

    def _alike(self, job: int) -> Iterator[_Alike]:
        """Yield the jobs of each level that has some, until what is left weighs nothing."""
        left = 1.0
        columns = zip(LEVELS, self._jobs.keys, self._jobs.members, self._running, strict=True)
        for level, keys, members, running in columns:
            key = int(keys[job])
            group, ended = members.get(key, (_NONE, _NO_TIMES))
            n = int(np.searchsorted(ended, self._now, side="right"))
            if not n:
                continue
            near = group[max(n - int(_MEMORIES * level.memory), 0) : n]
            weights = np.exp((np.arange(len(near)) - (len(near) - 1)) / level.memory)
            n_alike = float(weights.sum())
            share = left if level is LEVELS[-1] else left * n_alike / (n_alike + _HALF)
            yield _Alike(level, share, near, weights, running.get(key, _NONE))
            left -= share
            if left < _LEAST_WEIGHT:
                return

    def _fitted(self, job: int) -> Spread:
        seconds: list[_Floats] = []
        weights: list[_Floats] = []
        has_ended: list[_Bools] = []
        for alike in self._alike(job):
            rows = np.concatenate([alike.ended, alike.running])
            values = np.concatenate([self._jobs.runs[alike.ended], self._elapsed[alike.running]])
            counts = np.concatenate([alike.weights, np.ones(len(alike.running))])
            seconds.append(self._scaled(values, rows, job) if alike.level.is_scaled else values)
            weights.append(counts * (alike.share / counts.sum()))
            has_ended.append(np.arange(len(rows)) < len(alike.ended))
        limit = self._limit(job)
        if not seconds:
            return Spread(np.array([_UNKNOWN if limit is None else limit]), np.ones(1))
        return Spread.of(np.concatenate(seconds), np.concatenate(weights), np.concatenate(has_ended), limit=limit)

    def _limit(self, job: int) -> float | None:
        limit = float(self._jobs.limits[job])
        return None if np.isnan(limit) else limit

    def _scaled(self, seconds: _Floats, rows: _Ints, job: int) -> _Floats:
        """Return run times as shares of their limits, for the limit of a job."""
        limits, limit = self._jobs.limits[rows], self._jobs.limits[job]
        has_none = np.isnan(limits) | np.isnan(limit) | (limits <= 0)
        return np.where(has_none, seconds, seconds / np.where(has_none, 1.0, limits) * limit)


def _seconds(times: Sequence[int | None]) -> _Floats:
    return np.array([np.inf if time is None else time / 1e9 for time in times], np.float64)


def _codes(keys: Sequence[Hashable]) -> _Ints:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.intp)


def _groups(keys: _Ints, rows: _Ints) -> dict[int, _Ints]:
    """Return those of some rows that have each key, in their order."""
    order = rows[np.argsort(keys[rows], kind="stable")]
    found, first = np.unique(keys[order], return_index=True)
    return dict(zip(found.tolist(), np.split(order, first[1:]), strict=True)) if len(rows) else {}
