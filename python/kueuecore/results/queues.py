"""Usage, what of it is borrowed, and how many jobs wait, per ClusterQueue and per cohort over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kueuecore._quantities import number
from kueuecore.results.table import Column, Table
from kueuecore.results.usage_log import Ints, UsageLog
from kueuecore.simulation.run import Run, StepKind
from kueuecore.states import QuotaRow

__all__ = ["Quotas", "cluster_queue_table", "cohort_table", "units"]

_SECOND = 10**9
_KINDS = list(StepKind)
_Pair = tuple[str, str]


@dataclass
class Quotas:
    """The quotas at the end of a run.

    Args:
        nominal: Nominal quota by node, flavor and resource, in units; a node is a kind and a name.
        cohort: The cohort above a node, if there is one.
    """

    nominal: dict[tuple[_Pair, _Pair], int] = field(default_factory=dict)
    cohort: dict[_Pair, str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[QuotaRow]) -> Quotas:
        """From the quotas of an engine."""
        quotas = cls()
        for row in rows:
            node = (row.kind, row.name)
            quotas.nominal[node, (row.flavor, row.resource)] = units(row.nominal, row.resource)
            quotas.cohort[node] = row.parent
        return quotas

    def cohorts_above(self, cluster_queue: str) -> list[str]:
        """The cohorts above a ClusterQueue, from the nearest to the root."""
        above: list[str] = []
        parent = self.cohort.get(("ClusterQueue", cluster_queue))
        while parent is not None and parent not in above:
            above.append(parent)
            parent = self.cohort.get(("Cohort", parent))
        return above

    def below(self) -> dict[str, list[str]]:
        """The ClusterQueues below each cohort, near or far."""
        below: dict[str, list[str]] = {}
        for kind, name in sorted(self.cohort):
            if kind == "ClusterQueue":
                for cohort in self.cohorts_above(name):
                    below.setdefault(cohort, []).append(name)
        return below

    def subtree(self, cohort: str) -> dict[_Pair, int]:
        """The nominal quota of a cohort and all that is below it."""
        sums: dict[_Pair, int] = {}
        for (node, pair), amount in self.nominal.items():
            is_in = node == ("Cohort", cohort) or cohort in self._above(node)
            if is_in:
                sums[pair] = sums.get(pair, 0) + amount
        return sums

    def _above(self, node: _Pair) -> list[str]:
        above: list[str] = []
        while (parent := self.cohort.get(node)) is not None and parent not in above:
            above.append(parent)
            node = ("Cohort", parent)
        return above


def units(quantity: str | None, resource: str) -> int:
    """A quantity in the units of usage: cpu in thousandths; what is no limit, and what does not fit, is the most.

    Example:
        >>> units("1500m", "cpu"), units("2Ki", "memory")
        (1500, 2048)
    """
    value = number(quantity)
    most = 2**63 - 1
    return most if value is None else min(most, int(value * (1000 if resource == "cpu" else 1)))


def cluster_queue_table(run: Run, log: UsageLog, quotas: Quotas, step_seconds: float | None) -> Table:
    """A row per time, ClusterQueue, flavor and resource; docs/simulate.md defines the columns."""
    queues = sorted({name for kind, name in quotas.cohort if kind == "ClusterQueue"} | set(log.queue_names))
    groups = {queue: [queue] for queue in queues}
    quota = _quota_by_queue(quotas)
    borrowers = {name for (_, name), cohort in quotas.cohort.items() if cohort is not None}
    return _node_table("cluster_queue", run, log, groups, quota, borrowers, step_seconds)


def cohort_table(run: Run, log: UsageLog, quotas: Quotas, step_seconds: float | None) -> Table:
    """A row per time, cohort, flavor and resource: the sums over its ClusterQueues, near and far."""
    groups = quotas.below()
    quota = {cohort: quotas.subtree(cohort) for cohort in groups}
    borrowers = {cohort for cohort in groups if quotas.cohort.get(("Cohort", cohort)) is not None}
    return _node_table("cohort", run, log, groups, quota, borrowers, step_seconds)


def _quota_by_queue(quotas: Quotas) -> dict[str, dict[_Pair, int]]:
    by_queue: dict[str, dict[_Pair, int]] = {}
    for ((kind, name), pair), amount in quotas.nominal.items():
        if kind == "ClusterQueue":
            by_queue.setdefault(name, {})[pair] = amount
    return by_queue


def _node_table(
    kind: str,
    run: Run,
    log: UsageLog,
    groups: Mapping[str, list[str]],
    quota: Mapping[str, Mapping[_Pair, int]],
    borrowers: set[str],
    step_seconds: float | None,
) -> Table:
    series = _Series(run, log)
    names = sorted(groups)
    pairs = sorted({*log.pair_names, *(pair for of_node in quota.values() for pair in of_node)})
    grid = _grid(run, step_seconds)
    parts: list[tuple[Ints, ...]] = []
    for node, name in enumerate(names):
        for cell, pair in enumerate(pairs):
            limit = quota.get(name, {}).get(pair)
            used_at, used = series.usage(groups[name], pair)
            if limit is None and not len(used_at):
                continue
            waits_at, waits = series.pending(groups[name])
            times = np.unique(np.concatenate([[run.start], used_at, waits_at])) if grid is None else grid
            usage = _at(times, used_at, used)
            over = usage - (limit or 0) if name in borrowers else np.zeros_like(usage)
            size = len(times)
            columns = (np.full(size, node), np.full(size, cell), np.full(size, limit or 0))
            parts.append((times, *columns, usage, np.maximum(over, 0), _at(times, waits_at, waits)))
    empty = tuple(np.zeros(0, np.int64) for _ in range(7))
    time, owner, cell_of, limits, usages, borrowed, pending = (
        np.concatenate(columns) for columns in zip(*(parts or [empty]), strict=True)
    )
    order = np.argsort(time, kind="stable")
    return Table(
        {
            "time": Column(values=time[order].astype("datetime64[ns]")),
            kind: Column(values=owner[order], words=tuple(names)),
            "flavor": _words([pair[0] for pair in pairs], cell_of[order]),
            "resource": _words([pair[1] for pair in pairs], cell_of[order]),
            "nominal": Column(values=limits[order]),
            "usage": Column(values=usages[order]),
            "borrowed": Column(values=borrowed[order]),
            "pending": Column(values=pending[order]),
        }
    )


class _Series:
    """What changed when, per ClusterQueue."""

    def __init__(self, run: Run, log: UsageLog) -> None:
        self._queues = {name: index for index, name in enumerate(log.queue_names)}
        self._pairs = {pair: index for index, pair in enumerate(log.pair_names)}
        signs = np.where(log.adds, 1, -1)
        cells = log.queue[log.change] * max(len(self._pairs), 1) + log.pair
        self._usage = _Grouped(cells, log.time[log.change], log.amount * signs[log.change])
        self._pending = _Grouped(*_waiting(run, log, signs))

    def usage(self, queues: list[str], pair: _Pair) -> tuple[Ints, Ints]:
        column = self._pairs.get(pair)
        if column is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        known = [self._queues[queue] for queue in queues if queue in self._queues]
        return self._usage.sums([queue * len(self._pairs) + column for queue in known])

    def pending(self, queues: list[str]) -> tuple[Ints, Ints]:
        return self._pending.sums([self._queues[queue] for queue in queues if queue in self._queues])


def _waiting(run: Run, log: UsageLog, signs: Ints) -> tuple[Ints, Ints, Ints]:
    """ClusterQueue, time and change of the number of jobs that wait: they exist, are not over, and hold no quota."""
    steps = run.step_table
    created = steps[steps["kind"] == _KINDS.index(StepKind.CREATED)]
    over = steps[np.isin(steps["kind"], [_KINDS.index(StepKind.FINISHED), _KINDS.index(StepKind.DELETED)])]
    # A job that has finished may be deleted later.
    over = over[np.unique(over["workload"], return_index=True)[1]]
    has_come = np.zeros(len(log.home), np.bool_)
    has_come[created["workload"]] = True
    over = over[has_come[over["workload"]]]
    counts = has_come[log.workload]
    queue = np.concatenate([log.home[created["workload"]], log.home[over["workload"]], log.queue[counts]])
    time = np.concatenate([created["time"], over["time"], log.time[counts]])
    change = np.concatenate([np.ones(len(created)), -np.ones(len(over)), -signs[counts]]).astype(np.int64)
    return queue, time, change


class _Grouped:
    """Changes at times by group."""

    def __init__(self, group: Ints, time: Ints, change: Ints) -> None:
        order = np.lexsort((time, group))
        self._group, self._time, self._change = group[order], time[order], change[order]

    def sums(self, groups: list[int]) -> tuple[Ints, Ints]:
        """The times of changes, and the sum after each, over some groups."""
        cuts = [(np.searchsorted(self._group, it), np.searchsorted(self._group, it, "right")) for it in groups]
        none = [np.zeros(0, np.int64)]
        times = np.concatenate(none + [self._time[a:b] for a, b in cuts])
        changes = np.concatenate(none + [self._change[a:b] for a, b in cuts])
        distinct, place = np.unique(times, return_inverse=True)
        sums = np.zeros(len(distinct), np.int64)
        np.add.at(sums, place, changes)
        return distinct, np.cumsum(sums)


def _at(times: Ints, changed_at: Ints, values: Ints) -> Ints:
    """The values as they stand at some times: 0 before the first change."""
    place = np.searchsorted(changed_at, times, "right")
    result: Ints = np.concatenate([[0], values])[place]
    return result


def _grid(run: Run, step_seconds: float | None) -> Ints | None:
    if step_seconds is None:
        return None
    if not 0 < step_seconds < 2**33:
        raise ValueError(f"step_seconds must be a time above 0, not {step_seconds}")
    return np.arange(run.start, run.end + 1, max(1, round(step_seconds * _SECOND)), dtype=np.int64)


def _words(texts: list[str], rows: npt.NDArray[np.int64]) -> Column:
    distinct = sorted(set(texts))
    codes = np.array([distinct.index(text) for text in texts], np.int64)
    return Column(values=codes[rows], words=tuple(distinct))
