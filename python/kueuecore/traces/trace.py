"""A trace of a cluster: jobs as columns, independent of their format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from kueuecore.errors import ManifestError, Problem
from kueuecore.submissions import Submissions
from kueuecore.traces.assignment import Assignment, assign
from kueuecore.traces.rules import STANDARD_RESOURCES, GpuFractions, TraceRules
from kueuecore.traces.scaling import sampled
from kueuecore.traces.text_column import TextColumn

__all__ = ["Trace", "made_trace"]

_CENTURY = 100.0 * 366 * 86400
_MAX_PODS = 2**31 - 1
_MAX_AMOUNT = 2.0**62
_GPU_MILLI = 1000
_NEARLY = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """Jobs in order of submission, n rows.

    Args:
        at: When each was submitted, in seconds from the start of the trace, shape (n,).
        run_seconds: How long it ran; infinite if it had not ended when the trace was taken.
        ends_failed: Whether it then failed, or was killed or cancelled.
        pods: Its number of pods.
        requests: What one pod requests: `cpu` in thousandths, `memory` in bytes, `gpu` in thousandths of a device,
            others in whole units. 0: nothing.
        priority: Its priority.
        fields: The format's text fields, such as user, queue and partition, for rules to match.
        dropped: How many jobs of the file were left out, by reason.
        header: What the file says about the cluster, by key.
        begin: When the first job was submitted, in seconds by the clock of the file: 0 in `at`.
        wait_seconds: How long it waited until it started, as recorded; NaN: unknown. None: unknown for all.
        limit_seconds: The limit of its run time that it asked for; NaN: none, or unknown. None: unknown for all.
        ids: What the file calls it; several rows may have the same. None: it has no names.
        notes: What is odd about the file, in sentences.
    """

    at: npt.NDArray[np.float64]
    run_seconds: npt.NDArray[np.float64]
    ends_failed: npt.NDArray[np.bool_]
    pods: npt.NDArray[np.int64]
    requests: Mapping[str, npt.NDArray[np.int64]]
    priority: npt.NDArray[np.int64]
    fields: Mapping[str, TextColumn] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    header: Mapping[str, str] = field(default_factory=dict)
    begin: float = 0.0
    wait_seconds: npt.NDArray[np.float64] | None = None
    limit_seconds: npt.NDArray[np.float64] | None = None
    ids: TextColumn | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.at)

    def rows(self, index: npt.NDArray[np.int64]) -> Trace:
        """Return the jobs at these positions."""
        return replace(
            self,
            at=self.at[index],
            run_seconds=self.run_seconds[index],
            ends_failed=self.ends_failed[index],
            pods=self.pods[index],
            requests={name: amounts[index] for name, amounts in self.requests.items()},
            priority=self.priority[index],
            fields={name: column.rows(index) for name, column in self.fields.items()},
            wait_seconds=None if self.wait_seconds is None else self.wait_seconds[index],
            limit_seconds=None if self.limit_seconds is None else self.limit_seconds[index],
            ids=None if self.ids is None else self.ids.rows(index),
        )

    def scaled(self, rules: TraceRules) -> Trace:
        """Return the sample of jobs that the rules ask for, from their `begin` on, with times stretched.

        `dropped` counts the others too.

        Raises:
            ManifestError: Times exceed a century.
        """
        scale = rules.scale
        trace = self if scale.sample >= 1 else self.rows(sampled(len(self), scale.sample, scale.seed))
        dropped = {**self.dropped, "not in the sample": len(self) - len(trace)}
        if rules.begin is not None:
            since = trace.at + (trace.begin - rules.begin)
            dropped["before `begin`"] = int((since < 0).sum())
            trace = replace(trace, at=since, begin=rules.begin).rows(np.flatnonzero(since >= 0))
            if len(trace) and trace.at[-1] >= _CENTURY:
                message = f"jobs would arrive after {trace.at[-1]:g} seconds, which is more than a century"
                raise rules.error(message, "begin", f"write {self.begin:.10g}, the time of the first job, or later")
        # Zero times infinity is NaN.
        ends = np.isfinite(trace.run_seconds)
        run = np.where(ends, np.where(ends, trace.run_seconds, 0.0) * scale.runs, np.inf)
        at = trace.at * scale.time
        for name, times in (("time", at), ("runs", run[ends])):
            if len(times) and times.max() >= _CENTURY:
                message = f"jobs would arrive or run for {times.max():g} seconds, which is more than a century"
                raise rules.error(message, f"scale.{name}", "write a smaller factor")
        return replace(trace, at=at, run_seconds=run, dropped={reason: n for reason, n in dropped.items() if n})

    def submissions(self, rules: TraceRules, *, prefix: str = "job-") -> tuple[Submissions, ...]:
        """Turn the jobs into Workloads that arrive during a simulation.

        Args:
            rules: The rules for queues and resource names.
            prefix: Workload names are this prefix and the number of the job in its namespace, from 0.

        Raises:
            ManifestError: A rule names a field that the trace does not have, or no rule matches a job.

        Returns:
            A batch for each namespace, sorted by name.

        Example:
            >>> from kueuecore.traces import JobRule
            >>> trace = made_trace(at=[5, 9], run_seconds=[60, 60], pods=[1, 2], requests={"gpu": [500, 8000]},
            ...                    fields={"user": TextColumn.of(["Ann", "bob"])}, drop=())
            >>> for it in trace.submissions(TraceRules(default=JobRule(queue="{user}/jobs"))):
            ...     print(it.namespace, it.local_queues, it.at, it.requests["nvidia.com/gpu"])
            ann ['jobs'] [0.] [1]
            bob ['jobs'] [4.] [8]
        """
        trace = self.scaled(rules)
        assignment = assign(len(trace), trace.fields, rules)
        priority, requests = trace.priorities(assignment, rules), trace.pod_requests(assignment, rules)
        # Queues are sorted by namespace, so a batch has a contiguous range of them.
        namespaces = [namespace for namespace, _ in assignment.queues]
        begins = [
            place for place, namespace in enumerate(namespaces) if place == 0 or namespace != namespaces[place - 1]
        ]
        ordered = np.argsort(assignment.queue, kind="stable")
        cuts = np.searchsorted(assignment.queue[ordered], begins)
        ends = [*begins, len(namespaces)][1:]
        batches = []
        for begin, end, rows in zip(begins, ends, np.split(ordered, cuts)[1:], strict=True):
            rows.sort()
            batches.append(
                Submissions(
                    namespace=namespaces[begin],
                    local_queues=[queue for _, queue in assignment.queues[begin:end]],
                    queue=assignment.queue[rows] - begin,
                    requests={name: amounts[rows] for name, amounts in requests.items() if amounts[rows].any()},
                    at=trace.at[rows],
                    run_seconds=trace.run_seconds[rows],
                    ends_failed=trace.ends_failed[rows],
                    count=trace.pods[rows],
                    priority=priority[rows],
                    prefix=prefix,
                )
            )
        return tuple(batches)

    def priorities(self, assignment: Assignment, rules: TraceRules) -> npt.NDArray[np.int64]:
        """Return the priority of each job: that of its rule, or else its own."""
        priority = self.priority.copy()
        for index, rule in enumerate(rules.all_rules()):
            if rule.priority is not None:
                priority[assignment.rule == index] = rule.priority
        return priority

    def pod_requests(self, assignment: Assignment, rules: TraceRules) -> dict[str, npt.NDArray[np.int64]]:
        """Return what a pod of each job requests, by Kubernetes' resource names."""
        requests: dict[str, npt.NDArray[np.int64]] = {}
        for name, amounts in self.requests.items():
            called = rules.resources.get(name, STANDARD_RESOURCES.get(name, name))
            if called is not None:
                requests[called] = _devices(amounts, rules.gpu_fractions) if name == "gpu" else amounts.copy()
        for index, rule in enumerate(rules.all_rules()):
            for called, amount in rule.requests.items():
                requests.setdefault(called, np.zeros(len(self), np.int64))[assignment.rule == index] = amount
        return requests


def _devices(milli: npt.NDArray[np.int64], fractions: GpuFractions) -> npt.NDArray[np.int64]:
    match fractions:
        case GpuFractions.UP:
            return -(-milli // _GPU_MILLI)
        case GpuFractions.NEAREST:
            return (milli + _GPU_MILLI // 2) // _GPU_MILLI
        case GpuFractions.DOWN:
            return milli // _GPU_MILLI
        case GpuFractions.THOUSANDTHS:
            return milli.copy()


def made_trace(
    *,
    at: npt.ArrayLike,
    run_seconds: npt.ArrayLike,
    pods: npt.ArrayLike,
    requests: Mapping[str, npt.ArrayLike],
    drop: Sequence[tuple[str, npt.NDArray[np.bool_]]],
    ends_failed: npt.ArrayLike = False,
    priority: npt.ArrayLike = 0,
    fields: Mapping[str, TextColumn] | None = None,
    header: Mapping[str, str] | None = None,
    wait_seconds: npt.NDArray[np.float64] | None = None,
    limit_seconds: npt.NDArray[np.float64] | None = None,
    ids: TextColumn | None = None,
    notes: Sequence[str] = (),
    lines: npt.NDArray[np.int64] | None = None,
    file: str = "",
) -> Trace:
    """Build a trace from the columns of a file: sort the jobs by time, and count those left out.

    Time starts with the first job that is kept.

    Args:
        at: When jobs were submitted, in seconds; NaN: unknown.
        run_seconds: How long they ran; infinite: they had not ended, NaN: unknown.
        pods: How many pods they have; NaN: unknown.
        requests: What a pod requests, in the units of `Trace.requests`; NaN: unknown, which counts as nothing.
            Fractions of a unit are rounded up.
        drop: Reasons to leave out jobs, and which; the first reason counts. The reasons common to all traces follow.
        ends_failed: Whether they then failed, or were killed or cancelled.
        priority: Their priorities.
        fields: Their text fields.
        header: What the file says about the cluster.
        wait_seconds: How long they waited, as recorded.
        limit_seconds: The limits of their run times.
        ids: What the file calls them.
        notes: What is odd about the file.
        lines: The line of each job, for errors.
        file: The name of the file, for errors.

    Raises:
        ManifestError: A number is too large for a Workload.
    """
    time = np.asarray(at, np.float64)
    run = np.broadcast_to(np.asarray(run_seconds, np.float64), time.shape)
    count = np.broadcast_to(np.asarray(pods, np.float64), time.shape)
    rank = np.nan_to_num(np.broadcast_to(np.asarray(priority, np.float64), time.shape), posinf=np.inf, neginf=-np.inf)
    amounts = {
        name: np.nan_to_num(np.asarray(request, np.float64), posinf=np.inf) for name, request in requests.items()
    }
    kept, dropped = _kept(time, run, count, amounts, drop)
    order = kept[np.argsort(time[kept], kind="stable")]
    begin = float(time[order[0]]) if len(order) else 0.0
    limits = [
        ("at", time - begin, _CENTURY, "seconds, which is a century"),
        ("run_seconds", np.where(np.isinf(run), 0.0, run), _CENTURY, "seconds, which is a century"),
        ("pods", count, _MAX_PODS, "pods"),
        ("priority", np.abs(rank), _MAX_PODS, "either way"),
        *((name, amount, _MAX_AMOUNT, "units") for name, amount in amounts.items()),
    ]
    for name, column, most, unit in limits:
        _check_limit(name, column, order, most, unit, lines, file)
    return Trace(
        at=time[order] - begin,
        run_seconds=run[order],
        ends_failed=np.broadcast_to(np.asarray(ends_failed, np.bool_), time.shape)[order],
        pods=_rounded_up(count[order]),
        requests={name: _rounded_up(amount[order]) for name, amount in amounts.items()},
        priority=np.rint(rank[order]).astype(np.int64),
        fields={name: column.rows(order) for name, column in (fields or {}).items()},
        dropped=dropped,
        header=header or {},
        begin=begin,
        wait_seconds=None if wait_seconds is None else wait_seconds[order],
        limit_seconds=None if limit_seconds is None else limit_seconds[order],
        ids=None if ids is None else ids.rows(order),
        notes=tuple(notes),
    )


def _rounded_up(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    # Products of decimal fractions may be slightly above the exact whole number.
    nearest = np.rint(numbers)
    return np.where(np.abs(numbers - nearest) < _NEARLY, nearest, np.ceil(numbers)).astype(np.int64)


def _kept(
    time: npt.NDArray[np.float64],
    run: npt.NDArray[np.float64],
    count: npt.NDArray[np.float64],
    amounts: Mapping[str, npt.NDArray[np.float64]],
    drop: Sequence[tuple[str, npt.NDArray[np.bool_]]],
) -> tuple[npt.NDArray[np.int64], dict[str, int]]:
    """Return the rows to keep, and the number of others by reason."""
    nothing, negative = np.full(time.shape, bool(amounts)), np.zeros(time.shape, np.bool_)
    for column in amounts.values():
        nothing &= column == 0
        negative |= column < 0
    reasons = [
        *drop,
        ("no time of submission", np.isnan(time)),
        ("no run time", np.isnan(run)),
        ("negative time", (time < 0) | (run < 0)),
        ("no pods", ~(count > 0)),
        ("negative request", negative),
        ("requests nothing", nothing),
    ]
    left, dropped = np.ones(time.shape, np.bool_), dict[str, int]()
    for reason, rows in reasons:
        if n := int((left & rows).sum()):
            dropped[reason] = dropped.get(reason, 0) + n
        left &= ~rows
    return np.flatnonzero(left).astype(np.int64), dropped


def _check_limit(
    name: str,
    column: npt.NDArray[np.float64],
    rows: npt.NDArray[np.int64],
    most: float,
    unit: str,
    lines: npt.NDArray[np.int64] | None,
    file: str,
) -> None:
    beyond = rows[column[rows] > most]
    if len(beyond):
        row = int(beyond.min())
        line = None if lines is None else int(lines[row])
        message = f"Invalid value: {column[row]:g} is more than {most:.10g} {unit}"
        remedy = "correct or remove this job"
        raise ManifestError([Problem(message, field=name, remedy=remedy, file=file, line=line)])
