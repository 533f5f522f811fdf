"""What the pictures are of: a run in seconds from its beginning, with the queues that matter."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kueuecore.report.figure import OTHERS
from kueuecore.results import Results
from kueuecore.results.table import Table
from kueuecore.results.usage_log import UsageLog
from kueuecore.simulation.run import Run, StepKind

__all__ = ["Facts", "amount", "clock", "counted", "steps_until_next", "unit_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


_SECOND = 10**9
# Nobody can distinguish more bands than these.
_MOST_QUEUES = 8
_STEPS = 160


@dataclass(frozen=True)
class Facts:
    """A run and its results.

    Args:
        run: The run.
        results: Its results.
    """

    run: Run
    results: Results

    @property
    def seconds(self) -> float:
        """How long the run is."""
        return (self.run.end - self.run.start) / _SECOND

    @cached_property
    def step(self) -> float:
        """The time between two points of a curve, in seconds."""
        return max(self.seconds / _STEPS, 0.001)

    @cached_property
    def table(self) -> Table:
        """The ClusterQueues at even distances."""
        return self.results.cluster_queues(step_seconds=self.step)

    def numbers(self, name: str) -> Floats:
        """A column of the table."""
        return self.table[name].values.astype(np.float64)

    @cached_property
    def moments(self) -> tuple[Floats, Ints]:
        """The times of the table in seconds, each once, and the place of each row among them."""
        times, place = np.unique(self.table["time"].values.astype("i8"), return_inverse=True)
        return (times - self.run.start) / _SECOND, place

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Flavors and resources by the codes in the table."""
        flavors, resources = self.table["flavor"].words, self.table["resource"].words
        return tuple(zip(flavors or (), resources or (), strict=True))

    @cached_property
    def queues(self) -> tuple[str, ...]:
        """The ClusterQueues with pictures of their own, those with most usage and most who wait; the rest are one."""
        codes, names = self.table["cluster_queue"].values, np.array(self.table["cluster_queue"].words)
        there = np.unique(codes)
        weights = np.zeros(len(names))
        for name in ("usage", "pending"):
            sums = np.bincount(codes, self.numbers(name), len(names))
            weights += sums / max(sums.max(initial=0), 1)
        order = np.lexsort((names[there], -weights[there]))[:_MOST_QUEUES]
        return tuple(sorted(names[there][order].tolist()))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The bands of pictures: these ClusterQueues, and the others if there are any."""
        return (*self.queues, OTHERS) if self.left_out else self.queues

    @cached_property
    def job_names(self) -> tuple[str, ...]:
        """Those of `names` that jobs may have: one without a ClusterQueue is with the others."""
        return (*self.queues, OTHERS) if self.left_out or OTHERS in self.homes else self.queues

    @cached_property
    def band(self) -> Ints:
        """The place of each row's ClusterQueue in `names`."""
        places = {name: place for place, name in enumerate(self.queues)}
        words = self.table["cluster_queue"].words or ()
        of_code = np.array([places.get(word, len(places)) for word in words], np.int64)
        band: Ints = of_code[self.table["cluster_queue"].values]
        return band

    def sums(self, values: Floats, rows: npt.NDArray[np.bool_] | None = None) -> Floats:
        """Values of rows added up by time and by `names`, shape (times, names)."""
        shape = (len(self.moments[0]), len(self.names))
        cells = self.moments[1] * shape[1] + self.band
        chosen = slice(None) if rows is None else rows
        sums = np.bincount(cells[chosen], values[chosen], shape[0] * shape[1])
        return sums.astype(np.float64).reshape(shape)

    @cached_property
    def homes(self) -> list[str]:
        """The ClusterQueue of each workload by number, as it is shown."""
        log = UsageLog.of(self.run)
        return [self.shown(log.queue_names[home]) if home >= 0 else OTHERS for home in log.home.tolist()]

    @cached_property
    def n_queues(self) -> int:
        """How many ClusterQueues there were."""
        return len(np.unique(self.table["cluster_queue"].values))

    def shown(self, queue: str) -> str:
        """A ClusterQueue, or `OTHERS` if it has no picture of its own."""
        return queue if queue in self.queues else OTHERS

    @property
    def left_out(self) -> str:
        """That some queues have none, in a sentence; empty if all have."""
        n = self.n_queues - len(self.queues)
        return f"{len(self.queues)} of {self.n_queues} ClusterQueues by name, the other {n} together." if n else ""


def steps_until_next(run: Run, kinds: Collection[StepKind]) -> tuple[Any, Ints]:
    """Steps of some kinds, workload by workload, and when the next of them comes: the end of the run after the last.

    Args:
        run: The run.
        kinds: The kinds of steps.
    """
    steps = run.step_table
    steps = steps[np.isin(steps["kind"], [code for code, kind in enumerate(StepKind) if kind in kinds])]
    steps = steps[np.argsort(steps["workload"], kind="stable")]
    is_last = np.append(steps["workload"][1:] != steps["workload"][:-1], True)[: len(steps)]
    return steps, np.where(is_last, run.end, np.append(steps["time"][1:], run.end)[: len(steps)])


def clock(seconds: float) -> str:
    """A time of the run as people say it.

    Example:
        >>> clock(90), clock(7200), clock(200000), clock(0.25)
        ('1m30s', '2h00m', '2d7h', '0.2s')
    """
    if seconds < 60:
        return f"{seconds:.3g}s" if seconds >= 1 or seconds == 0 else f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes}m{rest:02}s"
    days, hours = divmod(hours, 24)
    return f"{days}d{hours}h" if days else f"{hours}h{minutes:02}m"


def counted(n: int, what: str) -> str:
    """So many of something.

    Example:
        >>> counted(1, "job"), counted(2000, "job")
        ('1 job', '2,000 jobs')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def unit_of(resource: str) -> tuple[float, str]:
    """How many of the engine's units make one as people read it, and what follows a number of them.

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
    """An amount, as exact as anybody reads.

    Example:
        >>> amount(3.14159), amount(17143.2)
        ('3.14', '17,143')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
