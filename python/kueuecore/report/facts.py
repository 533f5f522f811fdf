"""The data behind the charts: a run in seconds from its start, with the queues that matter."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kueuecore.report.figure import OTHERS
from kueuecore.report.timed import Timed, clock
from kueuecore.results import Results
from kueuecore.results.table import Table
from kueuecore.results.usage_log import UsageLog
from kueuecore.simulation.run import Run, StepKind
from kueuecore.times import SECOND_NS

__all__ = ["Facts", "amount", "clock", "counted", "steps_until_next", "unit_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


# People cannot distinguish more bands.
_MAX_QUEUES = 8


@dataclass(frozen=True)
class Facts(Timed):
    """A run and its results, as the charts need them.

    Args:
        run: The run.
        results: Its results.
    """

    run: Run
    results: Results

    @property
    def start(self) -> int:
        """When the run starts."""
        return self.run.start

    @property
    def end(self) -> int:
        """When it ends."""
        return self.run.end

    @cached_property
    def table(self) -> Table:
        """The ClusterQueues at regular intervals."""
        return self.results.cluster_queues(step_seconds=self.step)

    def numbers(self, name: str) -> Floats:
        """Return a column of the table."""
        return self.table[name].values.astype(np.float64)

    @cached_property
    def moments(self) -> tuple[Floats, Ints]:
        """The distinct times of the table in seconds, and each row's index among them."""
        times, place = np.unique(self.table["time"].values.astype("i8"), return_inverse=True)
        return (times - self.run.start) / SECOND_NS, place

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The flavors and resources by their codes in the table."""
        flavors, resources = self.table["flavor"].words, self.table["resource"].words
        return tuple(zip(flavors or (), resources or (), strict=True))

    @cached_property
    def queues(self) -> tuple[str, ...]:
        """The ClusterQueues shown by name: those with the most usage and the most waiting jobs."""
        codes, names = self.table["cluster_queue"].values, np.array(self.table["cluster_queue"].words)
        there = np.unique(codes)
        weights = np.zeros(len(names))
        for name in ("usage", "pending"):
            sums = np.bincount(codes, self.numbers(name), len(names))
            weights += sums / max(sums.max(initial=0), 1)
        order = np.lexsort((names[there], -weights[there]))[:_MAX_QUEUES]
        return tuple(sorted(names[there][order].tolist()))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The bands in the charts: these ClusterQueues, and the others if there are any."""
        return (*self.queues, OTHERS) if self.left_out else self.queues

    @cached_property
    def job_names(self) -> tuple[str, ...]:
        """The bands for jobs: a job without a ClusterQueue is among the others."""
        return (*self.queues, OTHERS) if self.left_out or OTHERS in self.homes else self.queues

    @cached_property
    def band(self) -> Ints:
        """The index in `names` of each row's ClusterQueue."""
        places = {name: place for place, name in enumerate(self.queues)}
        words = self.table["cluster_queue"].words or ()
        of_code = np.array([places.get(word, len(places)) for word in words], np.int64)
        band: Ints = of_code[self.table["cluster_queue"].values]
        return band

    def sums(self, values: Floats, rows: npt.NDArray[np.bool_] | None = None) -> Floats:
        """Sum the values of rows by time and band, shape (times, names)."""
        shape = (len(self.moments[0]), len(self.names))
        cells = self.moments[1] * shape[1] + self.band
        chosen = slice(None) if rows is None else rows
        sums = np.bincount(cells[chosen], values[chosen], shape[0] * shape[1])
        return sums.astype(np.float64).reshape(shape)

    @cached_property
    def homes(self) -> list[str]:
        """The band of each workload, by its number."""
        log = UsageLog.of(self.run)
        return [self.shown(log.queue_names[home]) if home >= 0 else OTHERS for home in log.home.tolist()]

    @cached_property
    def n_queues(self) -> int:
        """The number of ClusterQueues."""
        return len(np.unique(self.table["cluster_queue"].values))

    def shown(self, queue: str) -> str:
        """Return a ClusterQueue's name, or `OTHERS` if it is not shown by name."""
        return queue if queue in self.queues else OTHERS

    @property
    def left_out(self) -> str:
        """A sentence if some queues are not shown by name; empty if all are."""
        n = self.n_queues - len(self.queues)
        return f"{len(self.queues)} of {self.n_queues} ClusterQueues are shown by name, {n} together." if n else ""


def steps_until_next(run: Run, kinds: Collection[StepKind]) -> tuple[Any, Ints]:
    """Return the steps of some kinds, by workload, and the time of the next one; after the last, the end of the run.

    Args:
        run: The run.
        kinds: The kinds of steps.
    """
    steps = run.step_table
    steps = steps[np.isin(steps["kind"], [code for code, kind in enumerate(StepKind) if kind in kinds])]
    steps = steps[np.argsort(steps["workload"], kind="stable")]
    is_last = np.append(steps["workload"][1:] != steps["workload"][:-1], True)[: len(steps)]
    return steps, np.where(is_last, run.end, np.append(steps["time"][1:], run.end)[: len(steps)])


def counted(n: int, what: str) -> str:
    """Format a count of something.

    Example:
        >>> counted(1, "job"), counted(2000, "job")
        ('1 job', '2,000 jobs')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def unit_of(resource: str) -> tuple[float, str]:
    """Return how many of the engine's units make one displayed unit, and the suffix of that unit.

    Args:
        resource: Its name.

    Example:
        >>> unit_of("cpu"), unit_of("memory"), unit_of("example.com/cpu")
        ((1000.0, ''), (1073741824.0, ' GiB'), (1.0, ''))
    """
    if resource == "cpu":
        return 1000.0, ""
    is_bytes = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    return (float(2**30), " GiB") if is_bytes else (1.0, "")


def amount(value: float) -> str:
    """Format an amount, with as many digits as matter to a reader.

    Example:
        >>> amount(3.14159), amount(17143.2)
        ('3.14', '17,143')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
