"""Each run of each job: how much of its work was lost, and how much was useful."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from kueuecore.results.usage_log import Ints, UsageLog, last_before
from kueuecore.simulation.run import Run, StepKind
from kueuecore.times import SECOND_NS

__all__ = ["JobRuns"]

_KINDS = list(StepKind)
_ADMITTED, _FINISHED = _KINDS.index(StepKind.ADMITTED), _KINDS.index(StepKind.FINISHED)
_ENDS = [_KINDS.index(kind) for kind in (StepKind.STOPPED, StepKind.FINISHED, StepKind.DELETED)]

_Seconds = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class JobRuns:
    """The runs of all jobs, each from admission until it stops, ends or is deleted; times in nanoseconds since 1970.

    Runs that have not ended are not included.

    Args:
        n_workloads: How many workloads have a number.
        workload: The workload of each run. Runs are sorted by workload, then by time.
        begin: When it was admitted.
        end: When it ended, or its job was evicted.
        has_ended: Whether the job ended with it.
        idle: How long the job did no work in it, in nanoseconds.
        lost: How much of its work was lost, in nanoseconds.
        lost_pods: The same in seconds, times the number of pods.
    """

    n_workloads: int
    workload: Ints
    begin: Ints
    end: Ints
    has_ended: npt.NDArray[np.bool_]
    idle: Ints
    lost: Ints
    lost_pods: _Seconds

    @classmethod
    def of(cls, run: Run) -> Self:
        """Collect the runs of all jobs in a simulation run."""
        steps = run.step_table
        steps = steps[np.isin(steps["kind"], [_ADMITTED, *_ENDS])]
        steps = steps[np.argsort(steps["workload"], kind="stable")]
        this, following = steps[:-1], steps[1:]
        is_run = (this["kind"] == _ADMITTED) & (following["kind"] != _ADMITTED)
        is_run &= this["workload"] == following["workload"]
        begins, ends = this[is_run], following[is_run]
        workload, begin, end = begins["workload"].astype(np.int64), begins["time"], ends["time"].copy()
        has_ended = ends["kind"] == _FINISHED
        columns = run._core.work_columns()
        time, of, pods, lost, idle = (
            np.frombuffer(column, type_) for column, type_ in zip(columns, _TYPES, strict=True)
        )
        place = last_before((workload, begin), (of.astype(np.int64), time))
        known = place >= 0
        place, time, pods, lost, idle = place[known], time[known], pods[known], lost[known], idle[known]
        # A job that takes a while to stop does no more work after its eviction, which is the last row.
        last = np.copy(begin)
        np.maximum.at(last, place, time)
        end = np.where(has_ended | (last == begin), end, last)
        sums = np.zeros((2, len(begin)), np.int64)
        np.add.at(sums[0], place, idle)
        np.add.at(sums[1], place, lost)
        lost_pods = np.bincount(place, lost / SECOND_NS * pods, len(begin))
        return cls(
            n_workloads=run._core.n_workloads(),
            workload=workload,
            begin=begin,
            end=end,
            has_ended=has_ended,
            idle=sums[0],
            lost=sums[1],
            lost_pods=lost_pods.astype(np.float64),
        )

    @cached_property
    def lost_seconds(self) -> _Seconds:
        """Return how much work each job lost, in seconds, by its number."""
        return np.bincount(self.workload, self.lost / SECOND_NS, self.n_workloads).astype(np.float64)

    @cached_property
    def lost_pod_seconds(self) -> _Seconds:
        """Return the same, times the number of pods that had started."""
        return np.bincount(self.workload, self.lost_pods, self.n_workloads).astype(np.float64)

    def useful_seconds(self, log: UsageLog, is_useful: npt.NDArray[np.bool_]) -> _Seconds:
        """Return how many seconds of each reservation were useful; 0 for other changes of usage.

        If a job's quota changes while it runs, its useful work counts as spread evenly over the run.

        Args:
            log: The usage.
            is_useful: For each job, whether the work that it kept is useful.
        """
        place = last_before((self.workload, self.begin), (log.workload, log.closed_at))
        counts = log.adds & (place >= 0) & is_useful[log.workload]
        held, run = np.flatnonzero(counts), place[counts]
        span = np.minimum(self.end[run], log.closed_at[held]) - np.maximum(self.begin[run], log.time[held])
        kept = self.end[run] - self.begin[run] - self.idle[run] - self.lost[run]
        share = kept / np.maximum(self.end[run] - self.begin[run], 1)
        seconds = np.zeros(len(log.time))
        seconds[held] = np.maximum(span, 0) * share / SECOND_NS
        return seconds


_TYPES = ("<i8", "<u4", "<i8", "<i8", "<i8")
