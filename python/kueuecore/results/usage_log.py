"""When workloads took and released quota in a run: the engine's own charges as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from kueuecore.simulation.run import Run

__all__ = ["Codes", "Ints", "UsageLog", "last_before"]

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
"""Workload numbers and indices: half the memory, and a run has far fewer than 2^31 of each."""


@dataclass(frozen=True)
class UsageLog:
    """Changes of usage in order of time, each with rows of amounts.

    Args:
        time: When a change happened, in nanoseconds since 1970.
        workload: Number of the workload.
        queue: Index in `queue_names`.
        adds: True where quota was taken, False where it was released.
        change: For each amount, the index of its change.
        pair: For each amount, the index in `pair_names`.
        amount: The amounts: cpu in thousandths, others in units.
        queue_names: ClusterQueues.
        pair_names: Flavors and resources.
        home: For each workload, its last ClusterQueue as an index in `queue_names`, -1 for none.
        end: The time at the end of the run.
    """

    time: Ints
    workload: Codes
    queue: Codes
    adds: npt.NDArray[np.bool_]
    change: Codes
    pair: Codes
    amount: Ints
    queue_names: tuple[str, ...]
    pair_names: tuple[tuple[str, str], ...]
    home: Codes
    end: int

    @classmethod
    def of(cls, run: Run) -> Self:
        """Collect the log of a run."""
        core = run._core
        time, workload, queue, adds, ends = core.usage_changes()
        pair, amount = core.usage_amounts()
        queue_names, pair_names = core.usage_names()
        counts = np.diff(_codes(ends), prepend=0)
        known = _codes(core.homes())
        home = np.full(core.n_workloads(), -1, np.int32)
        home[: len(known)] = known
        return cls(
            time=np.frombuffer(time, "<i8"),
            workload=_codes(workload),
            queue=_codes(queue),
            adds=np.frombuffer(adds, "u1").astype(np.bool_),
            change=np.repeat(np.arange(len(counts), dtype=np.int32), counts),
            pair=_codes(pair),
            amount=np.frombuffer(amount, "<i8"),
            queue_names=tuple(queue_names),
            pair_names=tuple(pair_names),
            home=home,
            end=run.end,
        )

    @cached_property
    def closed_at(self) -> Ints:
        """When the quota taken by each change was released, or the end of the run; for others, their own time."""
        order = np.argsort(self.workload, kind="stable")
        closed = self.time.copy()
        followed = np.zeros(len(order), np.bool_)
        followed[:-1] = self.workload[order[1:]] == self.workload[order[:-1]]
        # The change after one that took quota releases it.
        until = np.full(len(order), self.end)
        until[:-1][followed[:-1]] = self.time[order[1:]][followed[:-1]]
        takes = self.adds[order]
        closed[order[takes]] = until[takes]
        return closed

    @cached_property
    def last_taken(self) -> Codes:
        """The last change by which each workload took quota; -1 if it never did."""
        last = np.full(len(self.home), -1, np.int32)
        taken = np.flatnonzero(self.adds)
        # The last write wins.
        last[self.workload[taken]] = taken
        return last

    @cached_property
    def next_queue(self) -> Codes:
        """For each change, the ClusterQueue in which its workload takes quota, by this change or the next that does.

        If none does, the workload's home.
        """
        n = len(self.time)
        order = np.argsort(self.workload, kind="stable")
        workload = self.workload[order]
        place = np.where(self.adds[order], np.arange(n), n)
        following = np.minimum.accumulate(place[::-1])[::-1]
        # The next workload's first change is not this one's.
        has_next = following < n
        has_next[has_next] = workload[following[has_next]] == workload[has_next]
        queues = self.home[workload]
        queues[has_next] = self.queue[order[following[has_next]]]
        result = np.empty(n, np.int32)
        result[order] = queues
        return result

    @cached_property
    def first_queue(self) -> Codes:
        """The ClusterQueue in which each workload first takes quota, else its home; -1 for none."""
        first = self.home.copy()
        # The last write wins, so write the first change last.
        first[self.workload[::-1]] = self.next_queue[::-1]
        return first

    def queue_at(self, workload: Ints, time: Ints) -> Codes:
        """Return where each workload last took quota by its time; -1 for nowhere.

        Args:
            workload: Numbers of workloads.
            time: A time for each.
        """
        taken = np.flatnonzero(self.adds)
        taken = taken[np.argsort(self.workload[taken], kind="stable")]
        place = last_before((self.workload[taken], self.time[taken]), (workload, time + 1))
        queues: Codes = np.full(len(place), -1, np.int32)
        queues[place >= 0] = self.queue[taken[place[place >= 0]]]
        return queues


def _codes(column: bytes) -> Codes:
    # From u32, in which 2^32 - 1 is none; as i32 that is -1.
    return np.frombuffer(column, "<i4")


def last_before(rows: tuple[Ints | Codes, Ints], wanted: tuple[Ints | Codes, Ints]) -> Ints:
    """Return, for each wanted workload and time, its last row before that time; -1 if there is none.

    Rows are sorted by workload and time.
    """
    (workload, time), (of, at) = rows, wanted
    if not len(workload):
        return np.full(len(of), -1)
    _, rank = np.unique(np.concatenate([time, at]), return_inverse=True)
    n = int(rank.max(initial=0)) + 1
    # Products exceed 32 bits.
    keys, looked_for = (np.asarray(entry, np.int64) * n for entry in (workload, of))
    place = np.searchsorted(keys + rank[: len(time)], looked_for + rank[len(time) :], "left") - 1
    return np.where((place >= 0) & (workload[place] == of), place, -1)
