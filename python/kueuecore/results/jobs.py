"""The table of jobs, one row per job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from kueuecore.results.job_runs import JobRuns
from kueuecore.results.joined_texts import joined_texts
from kueuecore.results.table import Column, Table
from kueuecore.results.usage_log import Ints, UsageLog
from kueuecore.simulation.run import Run, StepKind
from kueuecore.times import SECOND_NS

__all__ = ["SLOWDOWN_BOUND_SECONDS", "JobTimes", "job_table"]

SLOWDOWN_BOUND_SECONDS = 10.0
"""The slowdown counts shorter runs as this long (Feitelson, Metrics for Parallel Job Scheduling and Their Convergence,
2001), so that a very short job does not outweigh all others."""

_KINDS = list(StepKind)


_OUTCOMES = ("Succeeded", "Running", "Pending", "Deleted")


@dataclass(frozen=True)
class JobTimes:
    """Times of the jobs by number, in nanoseconds; -1 if there is none or it is unknown.

    Args:
        has_come: Which jobs existed, from the start or later.
        created: When a job was created.
        admitted: When it was first admitted.
        finished: When it ended, by itself or by an event.
        ran: How long its last run took, if the job ended with it.
        evictions: How often it was evicted.
        outcome: Its state at the end of the simulation, as an index in `outcomes`.
        outcomes: The words for these states.
    """

    has_come: npt.NDArray[np.bool_]
    created: Ints
    admitted: Ints
    finished: Ints
    ran: Ints
    evictions: Ints
    outcome: Ints
    outcomes: tuple[str, ...]

    @classmethod
    def of(cls, run: Run, runs: JobRuns) -> Self:
        """Collect the times of the jobs in a run."""
        table = run.outcome_table
        created, admitted = table["created"].copy(), table["admitted"].copy()
        number, born, since, was_evicted = (
            np.frombuffer(column, type_)
            for column, type_ in zip(run._core.present_columns(), ("<u4", "<i8", "<i8", "u1"), strict=True)
        )
        created[number] = np.where(born > 0, born, -1)
        holds = since >= 0
        admitted[number] = np.where(was_evicted == 1, -1, np.where(holds, since, admitted[number]))
        # A job that runs at the start was admitted before.
        began_before = np.full(len(table), -1)
        began_before[number[holds]] = since[holds]
        begin = np.where(runs.begin == run.start, began_before[runs.workload], -1)
        begin = np.where(begin >= 0, begin, runs.begin)
        ran = np.full(len(table), -1)
        ran[runs.workload[runs.has_ended]] = (runs.end - begin)[runs.has_ended]
        has_come = table["created"] >= 0
        has_come[number] = True
        outcome, outcomes = _outcomes(run)
        return cls(has_come, created, admitted, table["finished"], ran, table["evictions"], outcome, outcomes)

    @property
    def has_succeeded(self) -> npt.NDArray[np.bool_]:
        """Return which jobs succeeded."""
        succeeded: npt.NDArray[np.bool_] = self.outcome == _OUTCOMES.index("Succeeded")
        return succeeded

    @property
    def slowdown(self) -> npt.NDArray[np.float64]:
        """Return the bounded slowdown; meaningless where `ran` or `created` is -1."""
        response = (self.finished - self.created) / SECOND_NS
        bounded = response / np.maximum(self.ran / SECOND_NS, SLOWDOWN_BOUND_SECONDS)
        slowdown: npt.NDArray[np.float64] = np.maximum(bounded, 1.0)
        return slowdown


def job_table(run: Run, log: UsageLog, times: JobTimes, runs: JobRuns) -> Table:
    """Return a row per job, in the order of their numbers; docs/simulate.md defines the columns."""
    # If all jobs existed, share the run's columns instead of copying them.
    rows = slice(None) if times.has_come.all() else np.flatnonzero(times.has_come)
    namespaces, names = _names(run, rows)
    is_known, has_started = times.created >= 0, times.admitted >= 0
    has_ended = times.finished >= 0
    has_run = times.ran >= 0
    wait = (times.admitted - times.created) / SECOND_NS

    def seconds(values: npt.NDArray[np.float64], has: npt.NDArray[np.bool_]) -> Column:
        return Column(values=values[rows], is_null=~has[rows])

    flavors, flavor_words = _flavors(log)
    nodes, node_words = _nodes(run)
    return Table(
        {
            "namespace": namespaces,
            "name": names,
            "cluster_queue": Column(values=log.home[rows], words=log.queue_names),
            "outcome": Column(values=times.outcome[rows], words=times.outcomes),
            "created": Column(values=_moments(times.created[rows]), is_null=~is_known[rows]),
            "admitted": Column(values=_moments(times.admitted[rows]), is_null=~has_started[rows]),
            "finished": Column(values=_moments(times.finished[rows]), is_null=~has_ended[rows]),
            "wait_seconds": seconds(wait, is_known & has_started),
            "run_seconds": seconds(times.ran / SECOND_NS, has_run),
            "slowdown": seconds(times.slowdown, is_known & has_run),
            "evictions": Column(values=times.evictions[rows]),
            "lost_seconds": Column(values=runs.lost_seconds[rows]),
            "lost_pod_seconds": Column(values=runs.lost_pod_seconds[rows]),
            "flavors": Column(values=flavors[rows], words=flavor_words),
            "nodes": Column(values=nodes[rows], words=node_words),
        }
    )


def _moments(times: Ints) -> npt.NDArray[np.datetime64]:
    moments: npt.NDArray[np.datetime64] = times.view("datetime64[ns]")
    return moments


def _names(run: Run, rows: npt.NDArray[np.int64] | slice) -> tuple[Column, Column]:
    """Return namespaces and names."""
    namespace, namespaces, names = run._core.names()
    numbers: dict[str, int] = {}
    values = np.fromiter((numbers.setdefault(name, len(numbers)) for name in names), np.int32, len(names))
    return (
        Column(values=np.frombuffer(namespace, "<u4").astype(np.int32)[rows], words=tuple(namespaces)),
        Column(values=values[rows], words=tuple(numbers)),
    )


def _outcomes(run: Run) -> tuple[Ints, tuple[str, ...]]:
    """Return the state of each job at the end of a run, and the words for these states."""
    steps = run.step_table
    succeeded, running, pending, deleted = range(len(_OUTCOMES))
    outcome = np.full(run._core.n_workloads(), pending)
    means = {
        StepKind.ADMITTED: running,
        StepKind.REPLACED: running,
        StepKind.CREATED: pending,
        StepKind.STOPPED: pending,
        StepKind.FINISHED: succeeded,
        StepKind.DELETED: deleted,
    }
    # The last write wins.
    outcome[steps["workload"]] = np.array([means[kind] for kind in _KINDS])[steps["kind"]]
    # A job deleted after its end has ended all the same.
    outcome[steps["workload"][steps["kind"] == _KINDS.index(StepKind.FINISHED)]] = succeeded
    (numbers, reasons), words = run._core.endings()
    outcome[np.frombuffer(numbers, "<u4")] = len(_OUTCOMES) + np.frombuffer(reasons, "<u4").astype(np.int64)
    return outcome, (*_OUTCOMES, *words)


def _flavors(log: UsageLog) -> tuple[Ints, tuple[str, ...]]:
    """Return the flavors of each job when it last took quota; -1 if it never did."""
    names = list(dict.fromkeys(flavor for flavor, _ in log.pair_names))
    by_pair = np.array([names.index(flavor) for flavor, _ in log.pair_names], np.int64)
    is_last = np.zeros(len(log.time), np.bool_)
    is_last[log.last_taken[log.last_taken >= 0]] = True
    counted = is_last[log.change]
    return joined_texts(log.workload[log.change[counted]], by_pair[log.pair[counted]], names, len(log.home))


def _nodes(run: Run) -> tuple[Ints, tuple[str, ...]]:
    """Return the nodes, or domains, of each job's last placement; -1 if it was never placed."""
    rows = run.placement_table
    names = list(dict.fromkeys(map(str, run.domains)))
    codes = {name: index for index, name in enumerate(names)}
    by_domain = np.array([codes[str(domain)] for domain in run.domains], np.int64)
    last = np.full(run._core.n_workloads(), -1)
    last[rows["workload"]] = rows["time"]
    rows = rows[rows["time"] == last[rows["workload"]]]
    return joined_texts(rows["workload"].astype(np.int64), by_domain[rows["domain"]], names, len(last))
