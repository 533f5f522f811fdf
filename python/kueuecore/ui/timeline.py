"""A simulated run, step by step: usage and queues at each, and what has happened since the step before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kueuecore._spans import span
from kueuecore.answers.amounts import quantity_of
from kueuecore.errors import ManifestError
from kueuecore.results import Results
from kueuecore.results.table import Table
from kueuecore.scenarios import Scenario, run_scenario
from kueuecore.simulation.run import Run, StepKind
from kueuecore.times import SECOND_NS, format_time

__all__ = ["Moment", "QueueAt", "Timeline"]

Ints = npt.NDArray[np.int64]

_STEPS = 160
_MOST_EVENTS = 12
_UNLIMITED = np.iinfo(np.int64).max
_KINDS = list(StepKind)


@dataclass(frozen=True, slots=True)
class QueueAt:
    """A ClusterQueue at one moment, for one flavor and resource; amounts are quantities.

    Args:
        name: Its name.
        flavor: The flavor.
        resource: The resource.
        nominal: Its nominal quota.
        usage: What it uses.
        borrowed: What it uses beyond its quota.
        pending: How many of its jobs wait.
        within: The part of the bar within its quota, in thousandths.
        beyond: The part of the bar that is borrowed.
        limit: Where the quota ends on the bar.
    """

    name: str
    flavor: str
    resource: str
    nominal: str
    usage: str
    borrowed: str
    pending: int
    within: int
    beyond: int
    limit: int


@dataclass(frozen=True, slots=True)
class Moment:
    """One step of the timeline.

    Args:
        index: Its number, from 0.
        after: How long after the start.
        time: When that is.
        queues: The ClusterQueues.
        pending: How many jobs wait in all of them.
        happened: What has happened since the step before, and how often.
        events: The first workloads to which it happened, with what.
        n_more: How many more there are.
    """

    index: int
    after: str
    time: str
    queues: Sequence[QueueAt]
    pending: int
    happened: Sequence[tuple[str, int]]
    events: Sequence[tuple[str, str]]
    n_more: int


class Timeline:
    """A run at regular intervals.

    Args:
        run: The run.
        title: What was run.
        command: The command that runs it.
        notes: What a reader should know of it.
    """

    def __init__(self, run: Run, *, title: str, command: str, notes: Sequence[str] = ()) -> None:
        self.run, self.title, self.command, self.notes = run, title, command, notes
        # Times are in milliseconds, so the last step is the end.
        step = max((run.end - run.start) // _STEPS, 1)
        self._table: Table = Results.of(run).cluster_queues(step_seconds=step / SECOND_NS)
        # Of a queue without quota there are no rows, so a run may have none.
        self._times, self._place = np.unique(self._table["time"].values.astype("i8"), return_inverse=True)

    @classmethod
    def of_scenario(cls, scenario: Scenario, *, title: str, command: str) -> Timeline:
        """Run a scenario.

        Raises:
            ManifestError: It is a fleet, or something is wrong with it.
        """
        if scenario.fleet is not None:
            message, remedy = (
                "the page shows runs of one cluster, and this is a fleet",
                "run it with kueuecore simulate",
            )
            raise ManifestError.of(message, field="fleet", remedy=remedy)
        outcome = run_scenario(scenario)
        assert outcome.run is not None, "a cluster has a run"
        title = "; ".join([title, *scenario.experiment_notices])
        return cls(outcome.run, title=title, command=command, notes=(*outcome.warnings, *outcome.notes))

    @property
    def last(self) -> int:
        """The number of the last step."""
        return max(0, len(self._times) - 1)

    def at(self, index: int) -> Moment:
        """Return a step; the last one if there are fewer."""
        index = min(max(index, 0), self.last)
        time = int(self._times[index]) if len(self._times) else self.run.start
        before = int(self._times[index - 1]) if index else self.run.start - 1
        rows = np.flatnonzero(self._place == index)
        queues = [self._queue(int(row)) for row in rows]
        queues.sort(key=lambda queue: (-self._rank[queue.name], queue.name, queue.flavor, queue.resource))
        pending = {queue.name: queue.pending for queue in queues}
        steps = self._steps
        happened = steps[(steps["time"] > before) & (steps["time"] <= time)]
        kinds = [(str(kind), int((happened["kind"] == code).sum())) for code, kind in enumerate(_KINDS)]
        keys = self.run.workload_keys if len(happened) else ()
        events = [
            (keys[int(step["workload"])] or "", str(_KINDS[int(step["kind"])]))
            for step in happened[:_MOST_EVENTS]
            if int(step["workload"]) < len(keys)
        ]
        return Moment(
            index,
            span(time - self.run.start),
            format_time(round(time / SECOND_NS) * SECOND_NS),
            queues,
            sum(pending.values()),
            [(kind, n) for kind, n in kinds if n],
            events,
            max(0, len(happened) - _MOST_EVENTS),
        )

    @cached_property
    def curves(self) -> list[tuple[str, str, str]]:
        """Curves of jobs that wait and of usage: title, points of a polyline in a box of 1000 by 100, and the most."""
        found = []
        table, n_steps = self._table, len(self._times)
        queue = table["cluster_queue"].values
        flavors, resources = table["flavor"].words or (), table["resource"].words or ()
        pair = table["flavor"].values
        # A queue has the same number of jobs in each of its rows.
        is_first = np.unique(self._place * (int(queue.max(initial=0)) + 1) + queue, return_index=True)[1]
        waiting = np.bincount(self._place[is_first], table["pending"].values[is_first], n_steps)
        found.append(("Waiting jobs", _points(waiting), f"{int(waiting.max(initial=0)):,}"))
        for code in np.unique(pair).tolist()[:4]:
            rows = pair == code
            usage = np.bincount(self._place[rows], table["usage"].values[rows].astype(np.float64), n_steps)
            most = quantity_of(resources[code], int(usage.max(initial=0)))
            found.append((f"{resources[code]} in {flavors[code]}", _points(usage), most))
        return found

    @cached_property
    def _rank(self) -> dict[str, float]:
        """How busy each ClusterQueue is over the whole run."""
        names, queue = self._table["cluster_queue"].words or (), self._table["cluster_queue"].values
        busy = np.bincount(queue, self._table["usage"].values.astype(np.float64), len(names))
        waits = np.bincount(queue, self._table["pending"].values.astype(np.float64), len(names))
        order = np.lexsort((-waits, -busy))
        return {names[place]: float(-rank) for rank, place in enumerate(order.tolist())}

    @cached_property
    def _steps(self) -> Any:
        return self.run.step_table

    def _queue(self, row: int) -> QueueAt:
        table = self._table
        flavor, resource = ((table[name].words or ())[int(table[name].values[row])] for name in ("flavor", "resource"))
        nominal, usage, borrowed, pending = (
            int(table[name].values[row]) for name in ("nominal", "usage", "borrowed", "pending")
        )
        is_limited = nominal != _UNLIMITED
        scale = max(nominal if is_limited else 2 * usage, usage, 1)
        return QueueAt(
            (table["cluster_queue"].words or ())[int(table["cluster_queue"].values[row])],
            flavor,
            resource,
            quantity_of(resource, nominal) if is_limited else "no limit",
            quantity_of(resource, usage),
            quantity_of(resource, borrowed),
            pending,
            (usage - borrowed) * 1000 // scale,
            usage * 1000 // scale - (usage - borrowed) * 1000 // scale,
            min(1000, nominal * 1000 // scale) if is_limited else 1000,
        )


def _points(values: Any) -> str:
    """The points of a curve in steps."""
    most, n = float(values.max(initial=0)) or 1.0, max(len(values) - 1, 1)
    points, before = [], None
    for index, value in enumerate(values.tolist()):
        x, y = 1000 * index / n, 100 - 96 * value / most
        if before is not None:
            points.append(f"{x:.1f},{before:.1f}")
        points.append(f"{x:.1f},{y:.1f}")
        before = y
    return " ".join(points)
