"""What became of each job, a row each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from kueuecore.results.table import Column, Table
from kueuecore.results.usage_log import Ints, UsageLog
from kueuecore.simulation.run import Run, StepKind

__all__ = ["SLOWDOWN_BOUND_SECONDS", "JobTimes", "job_table"]

SLOWDOWN_BOUND_SECONDS = 10.0
"""Shorter runs count as so long in the slowdown (Feitelson, Metrics for Parallel Job Scheduling and Their Convergence,
2001), lest a job of a moment outweigh all others."""

_SECOND = 10**9
_KINDS = list(StepKind)


@dataclass(frozen=True)
class JobTimes:
    """Times of the jobs by number, in nanoseconds; -1 where there is none.

    Args:
        created: When a job was created.
        admitted: When it was first admitted.
        finished: When it ended, by itself or by an event.
        ran: How long the run took that led to its end.
        lost: How long all its runs took that evictions cut off.
        evictions: How often it was evicted.
    """

    created: Ints
    admitted: Ints
    finished: Ints
    ran: Ints
    lost: Ints
    evictions: Ints

    @classmethod
    def of(cls, run: Run) -> Self:
        """The times of the jobs of a run."""
        outcome = run.outcome_table
        steps = run.step_table
        ends = [StepKind.ADMITTED, StepKind.STOPPED, StepKind.FINISHED, StepKind.DELETED]
        steps = steps[np.isin(steps["kind"], [_KINDS.index(kind) for kind in ends])]
        steps = steps[np.argsort(steps["workload"], kind="stable")]
        this, following = steps[:-1], steps[1:]
        is_run = (this["kind"] == _KINDS.index(StepKind.ADMITTED)) & (this["workload"] == following["workload"])
        took = following["time"] - this["time"]
        is_useful = is_run & (following["kind"] == _KINDS.index(StepKind.FINISHED))
        is_lost = is_run & (following["kind"] == _KINDS.index(StepKind.STOPPED))
        ran = np.full(len(outcome), -1)
        ran[this["workload"][is_useful]] = took[is_useful]
        lost = np.zeros(len(outcome), np.int64)
        np.add.at(lost, this["workload"][is_lost], took[is_lost])
        return cls(outcome["created"], outcome["admitted"], outcome["finished"], ran, lost, outcome["evictions"])

    @property
    def slowdown(self) -> npt.NDArray[np.float64]:
        """The bounded slowdown; meaningless where `ran` is -1."""
        response = (self.finished - self.created) / _SECOND
        bounded = response / np.maximum(self.ran / _SECOND, SLOWDOWN_BOUND_SECONDS)
        slowdown: npt.NDArray[np.float64] = np.maximum(bounded, 1.0)
        return slowdown


def job_table(run: Run, log: UsageLog, times: JobTimes) -> Table:
    """A row a job that appeared, in the order of their numbers; docs/simulate.md defines the columns."""
    keys = run.workload_keys
    rows = np.flatnonzero(times.created >= 0)
    namespaces, names = _split([keys[row] or "/" for row in rows.tolist()])
    has_started = times.admitted >= 0
    has_ended = times.finished >= 0
    has_run = times.ran >= 0
    wait = (times.admitted - times.created) / _SECOND

    def seconds(values: npt.NDArray[np.float64], has: npt.NDArray[np.bool_]) -> Column:
        return Column(values=values[rows], is_null=~has[rows])

    flavors, flavor_words = _flavors(log)
    return Table(
        {
            "namespace": namespaces,
            "name": names,
            "cluster_queue": Column(values=log.home[rows], words=log.queue_names),
            "created": Column(values=_moments(times.created[rows])),
            "admitted": Column(values=_moments(times.admitted[rows]), is_null=~has_started[rows]),
            "finished": Column(values=_moments(times.finished[rows]), is_null=~has_ended[rows]),
            "wait_seconds": seconds(wait, has_started),
            "run_seconds": seconds(times.ran / _SECOND, has_run),
            "slowdown": seconds(times.slowdown, has_run),
            "evictions": Column(values=times.evictions[rows]),
            "lost_seconds": Column(values=(times.lost / _SECOND)[rows]),
            "flavors": Column(values=flavors[rows], words=flavor_words),
        }
    )


def _moments(times: Ints) -> npt.NDArray[np.datetime64]:
    return times.astype("datetime64[ns]")


def _split(keys: list[str]) -> tuple[Column, Column]:
    """Namespaces and names of `namespace/name`."""
    parts = [key.partition("/") for key in keys]
    columns = []
    for place in (0, 2):
        codes: dict[str, int] = {}
        values = np.fromiter((codes.setdefault(part[place], len(codes)) for part in parts), np.int64, len(parts))
        columns.append(Column(values=values, words=tuple(codes)))
    return columns[0], columns[1]


def _flavors(log: UsageLog) -> tuple[Ints, tuple[str, ...]]:
    """The flavors of each job when it last took quota, sorted and joined by commas; -1 if it never did."""
    names = sorted({flavor for flavor, _ in log.pair_names})
    by_pair = np.array([names.index(flavor) for flavor, _ in log.pair_names], np.int64)
    is_last = np.zeros(len(log.time), np.bool_)
    is_last[log.last_taken[log.last_taken >= 0]] = True
    counted = is_last[log.change]
    # Each flavor of a change once, in order.
    uses = np.unique(log.change[counted] * max(len(names), 1) + by_pair[log.pair[counted]])
    change, flavor = np.divmod(uses, max(len(names), 1))
    words, codes = [""], np.zeros(len(log.time), np.int64)
    while len(change):
        # The next flavor of each change that has more of them makes a longer text.
        is_first = np.diff(change, prepend=-1) != 0
        pairs = codes[change[is_first]] * len(names) + flavor[is_first]
        distinct, place = np.unique(pairs, return_inverse=True)
        texts = [f"{words[pair // len(names)]},{names[pair % len(names)]}".lstrip(",") for pair in distinct.tolist()]
        codes[change[is_first]] = len(words) + place
        words += texts
        change, flavor = change[~is_first], flavor[~is_first]
    result = np.where(log.last_taken >= 0, codes[log.last_taken] if len(codes) else -1, -1)
    return result, tuple(words)
