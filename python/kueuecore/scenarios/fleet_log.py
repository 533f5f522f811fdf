"""Keeps what happens on each cluster of a fleet: where jobs wait and run, and who uses how much quota."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from kueuecore._conditions import condition, is_true
from kueuecore._json import JsonObject, text_at
from kueuecore._quantities import number
from kueuecore.fleet import Node
from kueuecore.multikueue import MANAGER
from kueuecore.results import Column, Table
from kueuecore.scenarios.job_outcomes import Labels
from kueuecore.scenarios.work import Arrival
from kueuecore.times import SECOND_NS

__all__ = ["ON_MANAGER", "FleetLog", "StayEnd", "StayState", "label_column", "outage_table"]

ON_MANAGER = "(manager)"
"""Shown instead of a worker's name for the manager itself."""

_Pair = tuple[str, str, str]
"""ClusterQueue, flavor and resource."""
_Amounts = tuple[int, int, int, int]
"""Nominal quota, usage, what of it is borrowed, and how many workloads wait in the ClusterQueue."""
_UNLIMITED = 2**63 - 1


class StayState(StrEnum):
    """What a job does in a cluster."""

    WAITING = "Waiting"
    """Its Workload or copy is there, and not admitted."""
    RUNNING = "Running"
    """It is admitted there."""


class StayEnd(StrEnum):
    """Why a job no longer does that."""

    ADMITTED = "Admitted"
    """It was admitted, on the manager perhaps to run elsewhere."""
    EVICTED = "Evicted"
    """It lost its quota."""
    FINISHED = "Finished"
    """It ended."""
    FAILED = "Failed"
    """It ended as failed."""
    REMOVED = "Removed"
    """Its Workload or copy was deleted, on a worker usually because another worker was faster."""


@dataclass(frozen=True, slots=True)
class _Stay:
    """A time in which a job waits or runs in a cluster; `end` is None while it lasts."""

    arrival: Arrival
    workload: str
    cluster: str
    queue: str
    state: StayState
    begin: int
    end: int | None = None
    ending: StayEnd | None = None


class FleetLog:
    """Takes note of Workloads and quotas, cluster by cluster.

    Args:
        nodes: The clusters by name.
    """

    def __init__(self, nodes: dict[str, Node]) -> None:
        self._nodes = nodes
        self._stays: list[_Stay] = []
        # The index in `_stays` of the present stay, by cluster and Workload.
        self._open: dict[tuple[str, str], int] = {}
        # The ClusterQueues of Workloads that hold no quota, by cluster and Workload.
        self._waiting: dict[str, dict[str, str]] = {name: {} for name in nodes}
        self._amounts: dict[str, dict[_Pair, _Amounts]] = {name: {} for name in nodes}
        self._changes: list[tuple[int, str, _Pair, _Amounts]] = []
        self._copies = dict.fromkeys(nodes, 0)
        self._wasted = dict.fromkeys(nodes, 0)
        # The copies that have not been admitted so far, by cluster and Workload.
        self._fruitless: set[tuple[str, str]] = set()

    def take(self, cluster: str, happened: str, workload: JsonObject, arrival: Arrival, now: int) -> None:
        """Take note that the Workload of a job, or a copy of it, has changed."""
        key = f"{text_at(workload, 'metadata', 'namespace')}/{text_at(workload, 'metadata', 'name')}"
        self._take_copy(cluster, key, happened, workload)
        queue = self._queue(cluster, workload)
        is_over = happened == "DELETED" or is_true(workload, "Finished")
        if is_over or is_true(workload, "QuotaReserved"):
            self._waiting[cluster].pop(key, None)
        else:
            self._waiting[cluster][key] = queue
        state = None if is_over else _state(cluster, workload)
        at = self._open.get((cluster, key))
        before = None if at is None else self._stays[at]
        if before is not None and before.state is state and before.queue == queue:
            return
        if before is not None and at is not None:
            self._stays[at] = replace(before, end=now, ending=_ending(before, happened, workload))
            del self._open[cluster, key]
        if state is not None:
            self._open[cluster, key] = len(self._stays)
            name = text_at(workload, "metadata", "name")
            self._stays.append(_Stay(arrival, name, cluster or ON_MANAGER, queue, state, now))

    def look(self, cluster: str, now: int) -> None:
        """Take note of the quotas of a cluster in which something has happened."""
        waiting: dict[str, int] = {}
        for queue in self._waiting[cluster].values():
            waiting[queue] = waiting.get(queue, 0) + 1
        amounts: dict[_Pair, _Amounts] = {}
        for row in self._nodes[cluster].controller.engine.quota():
            if row.kind == "ClusterQueue":
                nominal, usage, borrowed = (
                    _units(text, row.resource) for text in (row.nominal, row.usage, row.borrowed)
                )
                amounts[row.name, row.flavor, row.resource] = (nominal, usage, borrowed, waiting.get(row.name, 0))
        before, self._amounts[cluster] = self._amounts[cluster], amounts
        # A deleted queue uses nothing, but rows of it would hide that it is gone.
        changed = (pair for pair in sorted(amounts) if before.get(pair) != amounts[pair])
        self._changes += [(now, cluster or ON_MANAGER, pair, amounts[pair]) for pair in changed]

    def stays(self, end: int) -> Table:
        """Return a row for each time in which a job waits or runs in a cluster, by its beginning.

        Args:
            end: The end of the run, up to which what has no end counts.
        """
        # Who is admitted at once does not wait.
        stays = [it for it in self._stays if it.begin != it.end or it.ending is not StayEnd.ADMITTED]
        ends = np.array([end if it.end is None else it.end for it in stays], np.int64)
        begins = np.array([it.begin for it in stays], np.int64)
        is_open = np.array([it.end is None for it in stays], np.bool_)
        return Table(
            {
                "cluster": label_column(it.cluster for it in stays),
                "cluster_queue": label_column(it.queue for it in stays),
                "work": label_column(it.arrival.work for it in stays),
                "job": label_column(f"{it.arrival.key[0]}/{it.arrival.key[2]}" for it in stays),
                "namespace": label_column(it.arrival.key[1] for it in stays),
                "workload": label_column(it.workload for it in stays),
                "state": label_column(it.state.value for it in stays),
                "begin": Column(values=begins.astype("datetime64[ns]")),
                "end": Column(values=ends.astype("datetime64[ns]"), is_null=is_open),
                "seconds": Column(values=(ends - begins) / SECOND_NS),
                "ending": label_column("" if it.ending is None else it.ending.value for it in stays),
            }
        )

    def quotas(self) -> Table:
        """Return a row for each change of a quota, its usage or its queue, by time, cluster and name."""
        rows = self._last_of_each_moment()
        pairs = [pair for _, _, pair, _ in rows]
        names = ("nominal", "usage", "borrowed", "pending")
        amounts = np.array([amount for *_, amount in rows], np.int64).reshape(len(rows), len(names))
        return Table(
            {
                "time": Column(values=np.array([time for time, *_ in rows], np.int64).astype("datetime64[ns]")),
                "cluster": label_column(cluster for _, cluster, _, _ in rows),
                **{
                    name: label_column(pair[part] for pair in pairs)
                    for part, name in enumerate(("cluster_queue", "flavor", "resource"))
                },
                **{name: Column(values=amounts[:, place].copy()) for place, name in enumerate(names)},
            }
        )

    def copies(self) -> dict[str, tuple[int, int]]:
        """Return how many copies of Workloads each cluster got, and how many of them were never admitted there."""
        left = [cluster for cluster, _ in self._fruitless]
        return {
            name or ON_MANAGER: (n, self._wasted[name] + left.count(name)) for name, n in sorted(self._copies.items())
        }

    def _take_copy(self, cluster: str, key: str, happened: str, workload: JsonObject) -> None:
        if cluster != MANAGER and happened == "ADDED":
            self._copies[cluster] += 1
            self._fruitless.add((cluster, key))
        if is_true(workload, "Admitted"):
            self._fruitless.discard((cluster, key))
        elif happened == "DELETED" and (cluster, key) in self._fruitless:
            self._fruitless.discard((cluster, key))
            self._wasted[cluster] += 1

    def _last_of_each_moment(self) -> list[tuple[int, str, _Pair, _Amounts]]:
        last = {(time, cluster, pair): amounts for time, cluster, pair, amounts in self._changes}
        return [(*key, amounts) for key, amounts in sorted(last.items())]

    def _queue(self, cluster: str, workload: JsonObject) -> str:
        """Return the ClusterQueue that a Workload holds quota of, or else that of its LocalQueue."""
        held = text_at(workload, "status", "admission", "clusterQueue")
        if held:
            return held
        namespace, name = text_at(workload, "metadata", "namespace"), text_at(workload, "spec", "queueName")
        local_queue = self._nodes[cluster].get("LocalQueue", name, namespace=namespace) if name else None
        return text_at(local_queue, "spec", "clusterQueue")


def outage_table(connections: Sequence[tuple[int, str, bool]], end: int) -> Table:
    """Return a row for each time in which the manager was without a worker that it had, by its beginning.

    Args:
        connections: When the manager got or lost a connection to a worker: the time, the worker, whether it got it.
        end: The end of the run, up to which an outage without an end counts.
    """
    rows: list[tuple[int, str, int | None]] = []
    lost: dict[str, int] = {}
    for time, worker, is_connected in connections:
        if not is_connected:
            lost.setdefault(worker, time)
        elif worker in lost:
            rows.append((lost.pop(worker), worker, time))
    rows += [(since, worker, None) for worker, since in lost.items()]
    rows.sort(key=lambda row: row[:2])
    begins = np.array([begin for begin, *_ in rows], np.int64)
    ends = np.array([end if until is None else until for *_, until in rows], np.int64)
    return Table(
        {
            "cluster": label_column(worker for _, worker, _ in rows),
            "begin": Column(values=begins.astype("datetime64[ns]")),
            "end": Column(
                values=ends.astype("datetime64[ns]"), is_null=np.array([row[2] is None for row in rows], np.bool_)
            ),
            "seconds": Column(values=(ends - begins) / SECOND_NS),
        }
    )


def label_column(texts: Sequence[str] | Iterator[str]) -> Column:
    """Return strings as a column, with null for empty ones."""
    labels = Labels.of([*texts])
    empty = np.array([not text for text in labels.texts], np.bool_)
    is_null: npt.NDArray[np.bool_] = empty[labels.codes] if len(labels.codes) else np.zeros(0, np.bool_)
    return Column(values=labels.codes, words=tuple(labels.texts), is_null=is_null)


def _state(cluster: str, workload: JsonObject) -> StayState | None:
    # An evicted Workload is admitted until its quota is released, and on the manager is of no worker any more.
    if not is_true(workload, "Admitted") or (cluster == MANAGER and is_true(workload, "Evicted")):
        return StayState.WAITING
    # What the manager has sent to a worker runs there.
    is_elsewhere = cluster == MANAGER and text_at(workload, "status", "clusterName")
    return None if is_elsewhere else StayState.RUNNING


def _ending(stay: _Stay, happened: str, workload: JsonObject) -> StayEnd:
    if is_true(workload, "Finished"):
        is_failed = text_at(condition(workload, "Finished"), "reason") == "Failed"
        return StayEnd.FAILED if is_failed else StayEnd.FINISHED
    if happened == "DELETED":
        return StayEnd.REMOVED
    return StayEnd.ADMITTED if stay.state is StayState.WAITING else StayEnd.EVICTED


def _units(quantity: str | None, resource: str) -> int:
    """Return a quantity in the units of results: cpu in thousandths, everything else in whole units."""
    amount = None if quantity is None else number(quantity)
    if amount is None:
        return _UNLIMITED
    return min(int(amount * (Fraction(1000) if resource == "cpu" else 1)), _UNLIMITED)
