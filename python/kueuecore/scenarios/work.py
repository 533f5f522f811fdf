"""The work of a scenario: jobs that arrive one after the other and run for a while, drawn from a seed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, repeat, tee
from math import inf
from random import Random

import numpy as np
import numpy.typing as npt

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest
from kueuecore.scenarios.distributions import Span, Spans
from kueuecore.scenarios.early_ends import EarlyEnds
from kueuecore.scenarios.hourly_arrivals import HourlyArrivals
from kueuecore.scenarios.job_variants import Variation, numbered
from kueuecore.simulation import JobPlan, NodeLoss
from kueuecore.world import DEFAULT_NAMESPACE

__all__ = ["Arrival", "DrawnJobs", "Span", "Work", "arrivals_of"]

_AT_ONCE = Span()
_STARTS_OVER = JobPlan(node_loss=NodeLoss.STARTS_OVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A job that arrives.

    Args:
        job: The job or the Workload.
        at: When, in seconds from the start.
        plan: What it does.
        work: The name of the work that it belongs to.
    """

    job: Manifest
    at: float = 0.0
    plan: JobPlan = _STARTS_OVER
    work: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """The job's kind, namespace and name."""
        plain = self.job.object
        return text_at(plain, "kind"), text_at(plain, "metadata", "namespace"), text_at(plain, "metadata", "name")


@dataclass(frozen=True, slots=True, eq=False)
class DrawnJobs:
    """What is drawn for a work's jobs, in order. Arrays have the shape (n,).

    Args:
        at: When each arrives, in seconds from the start.
        runs: How long each runs, in seconds; infinite: forever.
        fails: Whether it then fails.
        variant: Which combination of the values of `Work.varies` it has.
    """

    at: npt.NDArray[np.float64]
    runs: npt.NDArray[np.float64]
    fails: npt.NDArray[np.bool_]
    variant: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A series of similar jobs.

    Args:
        name: The name of the work and of its job; several jobs get numbers: `small-1`, `small-2`.
        job: The job or the Workload.
        count: How many.
        at: When the first arrives, in seconds from the start.
        every: The time from one arrival to the next.
        runs: How long each runs; None: forever.
        plan: What each does, apart from how long it runs and whether it fails.
        by_hour: How often they arrive at which hour of the week, instead of `count` and `every`.
        fails: Which of them fail; None: none.
        varies: The fields in which they differ, besides the number that replaces `{index}` in texts.
    """

    name: str
    job: Manifest
    count: int = 1
    at: float = 0.0
    every: Spans = _AT_ONCE
    runs: Spans | None = None
    plan: JobPlan = _STARTS_OVER
    by_hour: HourlyArrivals | None = None
    fails: EarlyEnds | None = None
    varies: tuple[Variation, ...] = ()
    _drawn: dict[int, DrawnJobs] = field(default_factory=dict, init=False, repr=False, compare=False)
    _variants: dict[int, Manifest] = field(default_factory=dict, init=False, repr=False, compare=False)

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        """Yield the jobs in order. They do not depend on other work of the scenario."""
        drawn = self.drawn(seed)
        columns = (column.tolist() for column in (drawn.at, drawn.runs, drawn.fails, drawn.variant))
        for index, (time, runs, fails, variant) in enumerate(zip(*columns, strict=True)):
            plan = replace(self.plan, run_seconds=None if runs == inf else runs, ends_failed=fails)
            yield Arrival(job=self.job_at(index, variant), at=time, plan=plan, work=self.name)

    def times(self, seed: int) -> Iterator[tuple[float, float | None, bool]]:
        """Yield when each job arrives and how long it runs (None: forever), in seconds, and whether it then fails."""
        times = self._times(seed)
        if self.fails is None:
            yield from ((at, runs, False) for at, runs in times)
            return
        # Failures have their own random source, so that they change nothing else.
        at, runs = tee(times)
        spans = self.fails.run_spans((run[1] for run in runs), Random(f"{seed}/{self.name}/fails"))
        yield from ((entry[0], *span) for entry, span in zip(at, spans, strict=True))

    def drawn(self, seed: int) -> DrawnJobs:
        """Return the draws of all jobs as columns; those of the last seed are kept, as several steps need them."""
        drawn = self._drawn.get(seed)
        if drawn is None:
            rows = ((at, inf if runs is None else runs, fails) for at, runs, fails in self.times(seed))
            table = np.fromiter(rows, [("at", "f8"), ("runs", "f8"), ("fails", "?")])
            variant = np.zeros(len(table), np.int64)
            for each in self.varies:
                # Each field has its own random source, so that it changes no other.
                places = each.draw(Random(f"{seed}/{self.name}/varies/{each.field}"), len(table))
                variant = variant * len(each.values) + np.asarray(places, np.int64)
            drawn = DrawnJobs(table["at"], table["runs"], table["fails"], variant)
            self._drawn.clear()
            self._drawn[seed] = drawn
        return drawn

    def _times(self, seed: int) -> Iterator[tuple[float, float | None]]:
        random, time = Random(f"{seed}/{self.name}"), self.at
        runs: Iterator[float | None] = repeat(None) if self.runs is None else self.runs.draws(random)
        if self.by_hour is not None:
            for time in self.by_hour.times(random, self.at):
                yield time, next(runs)
            return
        every = self.every.draws(random)
        for _ in range(self.count):
            yield time, next(runs)
            time = round(time + next(every), 3)

    def job_named(self, name: str, seed: int) -> Manifest | None:
        """Return the job with this name, whenever it arrives, or None."""
        prefix, _, number = name.rpartition("-")
        if name == self.name and self.count == 1 and self.by_hour is None:
            index = 0
        elif prefix == self.name and re.fullmatch("[1-9][0-9]{0,8}", number):
            index = int(number) - 1
            if self.by_hour is None and not 1 < self.count > index:
                return None
        else:
            return None
        variant = self.drawn(seed).variant[index : index + 1].tolist() if self.varies else []
        return self.job_at(index, *variant)

    @property
    def n_expected(self) -> int:
        """The number of jobs; the expected number if it is random."""
        return self.count if self.by_hour is None else round(self.by_hour.n_expected)

    def job_name(self, index: int) -> str:
        """Return the name of a job, counted from 0."""
        return self.name if self.count == 1 and self.by_hour is None else f"{self.name}-{index + 1}"

    def job_at(self, index: int, variant: int = 0, *, number: int | None = None) -> Manifest:
        """Return a job, counted from 0.

        Args:
            index: Its index, which gives its name.
            variant: Which combination of drawn values it has.
            number: What replaces `{index}` in its texts; by default the number in its name.
        """
        job = self.job_of(variant)
        metadata = object_at(job.object, "metadata")
        placed: JsonObject = {"namespace": DEFAULT_NAMESPACE, **metadata, "name": self.job_name(index)}
        plain = numbered({**job.object, "metadata": placed}, index + 1 if number is None else number)
        return replace(job, object=plain)

    def job_of(self, variant: int) -> Manifest:
        """Return what the jobs with a combination of drawn values have in common."""
        made = self._variants.get(variant)
        if made is None:
            plain, rest = self.job.object, variant
            for each in reversed(self.varies):
                rest, place = divmod(rest, len(each.values))
                plain = each.applied(plain, place)
            made = self._variants[variant] = replace(self.job, object=plain)
        return made


def arrivals_of(work: Iterable[Work], seed: int) -> tuple[Arrival, ...]:
    """Return the jobs of all work in order of arrival.

    Args:
        work: The work.
        seed: The seed of all random draws.

    Raises:
        ManifestError: Two jobs have the same name.
    """
    arrivals = sorted(chain.from_iterable(each.arrivals(seed) for each in work), key=lambda work: work.at)
    taken: dict[tuple[str, str, str], str] = {}
    for arrival in arrivals:
        other = taken.setdefault(arrival.key, arrival.work)
        if other != arrival.work:
            detail = f"work {other} and work {arrival.work} both have a job of this name"
            raise ManifestError([arrival.job.problem(detail, field="metadata.name", remedy="rename one of them")])
    return tuple(arrivals)
