"""Quota and usage of ClusterQueues and cohorts over time, and waiting jobs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kueuecore.results.table import Column, Table
from kueuecore.results.usage_log import Codes, Ints, UsageLog
from kueuecore.simulation.run import Run, StepKind
from kueuecore.times import SECOND_NS

__all__ = ["node_table", "nominal_seconds"]

_KINDS = list(StepKind)
_NUMBERS = ("nominal", "usage", "borrowed", "lent", "pending", "share")


def node_table(run: Run, log: UsageLog, *, is_queue: bool, step_seconds: float | None) -> Table:
    """Return a row per time, ClusterQueue (or cohort), flavor and resource; docs/simulate.md defines the columns."""
    if step_seconds is not None and not 0 < step_seconds < 2**33:
        raise ValueError(f"step_seconds must be greater than 0, not {step_seconds}")
    every = None if step_seconds is None else max(1, round(step_seconds * SECOND_NS))
    nodes, columns = run._core.series(is_queue, run.start, run.end, every, _waiting(run, log))
    columns.reverse()
    time = np.frombuffer(columns.pop(), "<i8")
    node, pair = (np.frombuffer(columns.pop(), "<u4").astype(np.int64) for _ in range(2))
    flavors, resources = (tuple(pair_name[part] for pair_name in log.pair_names) for part in (0, 1))
    # Changes at the same time are sorted by name.
    order = np.lexsort((_rank(resources)[pair], _rank(flavors)[pair], _rank(tuple(nodes))[node], time))
    # Each unsorted column is freed before the next is sorted.
    numbers = {name: Column(values=np.frombuffer(columns.pop(), "<i8")[order]) for name in _NUMBERS}
    return Table(
        {
            "time": Column(values=time[order].astype("datetime64[ns]")),
            "cluster_queue" if is_queue else "cohort": Column(values=node[order], words=tuple(nodes)),
            "flavor": Column(values=pair[order], words=flavors),
            "resource": Column(values=pair[order], words=resources),
            **numbers,
        }
    )


def nominal_seconds(run: Run, log: UsageLog) -> dict[tuple[str, str], float]:
    """Return the nominal quota of all nodes times seconds over the run, by flavor and resource."""
    now: dict[int, list[tuple[int, int]]] = {}
    sums = np.zeros(len(log.pair_names))
    rates = np.zeros(len(log.pair_names))
    before = run.start
    for time, node, is_gone, quotas in run._core.nominal_changes():
        sums += rates * ((time - before) / SECOND_NS)
        before = time
        for sign, changed in ((-1, now.get(node, [])), (1, [] if is_gone else quotas)):
            for pair, amount in changed:
                rates[pair] += sign * amount
        now[node] = [] if is_gone else quotas
    sums += rates * (max(run.end - before, 0) / SECOND_NS)
    return dict(zip(log.pair_names, sums.tolist(), strict=True))


def _rank(names: tuple[str, ...]) -> Ints:
    """Return the rank of each name among all, the same for equal names."""
    places = {name: place for place, name in enumerate(sorted(set(names)))}
    return np.array([places[name] for name in names], np.int64)


def _waiting(run: Run, log: UsageLog) -> tuple[bytes, bytes, bytes]:
    """Return time, ClusterQueue and change of the number of waiting jobs: they exist, have not ended, hold no quota."""
    time, queue, change = _waiting_rows(run, log)
    known = queue >= 0
    if not known.all():
        # Jobs without a ClusterQueue wait nowhere.
        time, queue, change = time[known], queue[known], change[known]
    order = np.argsort(time, kind="stable")
    columns = ((time, "<i8"), (queue, "<u4"), (change, "i1"))
    times, queues, changes = (column[order].astype(kind, copy=False).tobytes() for column, kind in columns)
    return times, queues, changes


def _waiting_rows(run: Run, log: UsageLog) -> tuple[Ints, Codes, npt.NDArray[np.int8]]:
    """Return the same unsorted, as numpy's i8, i4 (-1 for no ClusterQueue) and i1."""
    steps = run.step_table
    created = steps[steps["kind"] == _KINDS.index(StepKind.CREATED)]
    over = steps[np.isin(steps["kind"], [_KINDS.index(StepKind.FINISHED), _KINDS.index(StepKind.DELETED)])]
    # A finished job may be deleted later.
    over = over[np.unique(over["workload"], return_index=True)[1]]
    has_come = np.zeros(len(log.home), np.bool_)
    has_come[created["workload"]] = True
    present = np.frombuffer(run._core.present_columns()[0], "<u4")
    present = present[~has_come[present]]
    has_come[present] = True
    over = over[has_come[over["workload"]]]
    counts = has_come[log.workload]
    begun = np.concatenate([present, created["workload"]])
    began = np.concatenate([np.full(len(present), run.start), created["time"]])
    queue = np.concatenate([log.first_queue[begun], log.home[over["workload"]], log.next_queue[counts]])
    time = np.concatenate([began, over["time"], log.time[counts]])
    takes = np.where(log.adds[counts], np.int8(-1), np.int8(1))
    return time, queue, np.concatenate([np.ones(len(begun), np.int8), np.full(len(over), -1, np.int8), takes])
