"""Kueue's metrics as Prometheus would have recorded them while known jobs ran."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kueuecore._json import JsonObject, JsonValue

BOUNDS = (1.0, 60.0, 600.0, 3600.0)
HOUR = 3600.0
MONDAY = 1_767_571_200.0
"""2026-01-05T00:00:00Z in seconds since 1970."""


@dataclass(frozen=True)
class Job:
    """Times in seconds after MONDAY."""

    created: float
    started: float
    ended: float
    queue: str = "cq"


@dataclass(frozen=True)
class Pod:
    """A replica of Kueue that counts from one time to another, in seconds after MONDAY."""

    name: str
    begin: float
    end: float


def range_answer(jobs: Sequence[Job], pods: Sequence[Pod], times: Iterable[float]) -> JsonObject:
    """The answer to a query of a range for all metrics: one with several names at once."""
    result: list[JsonValue] = []
    moments = [*times]
    for pod in pods:
        for queue in sorted({job.queue for job in jobs}):
            ours = [job for job in jobs if job.queue == queue]
            labels = {"cluster_queue": queue, "instance": pod.name, "job": "kueue"}
            result += _counters(ours, pod, moments, labels)
            result += _gauges(ours, pod, moments, labels)
    return matrix(result)


def matrix(result: Sequence[JsonValue]) -> JsonObject:
    return {"status": "success", "data": {"resultType": "matrix", "result": [*result]}}


def series(name: str, values: Sequence[tuple[float, float]], **labels: str) -> JsonObject:
    return {
        "metric": {"__name__": name, **labels},
        "values": [[MONDAY + at, f"{value:g}"] for at, value in values],
    }


def _counters(jobs: Sequence[Job], pod: Pod, moments: Sequence[float], labels: dict[str, str]) -> list[JsonValue]:
    def counted(events: Sequence[float], at: float) -> int:
        return min(bisect_right(events, at), bisect_left(events, pod.end)) - bisect_left(events, pod.begin)

    starts, ends = sorted(job.started for job in jobs), sorted(job.ended for job in jobs)
    found: list[JsonValue] = []
    for metric, events in (("admitted", starts), ("quota_reserved", starts), ("finished", ends)):
        # Shown from the first event on, as Kueue does.
        values = [(at, float(counted(events, at))) for at in moments if pod.begin <= at < pod.end]
        shown = [(at, value) for at, value in values if value]
        if shown:
            found.append(series(f"kueue_{metric}_workloads_total", shown, **labels))
    for bound in (*BOUNDS, float("inf")):
        fitting = sorted(job.started for job in jobs if job.started - job.created <= bound)
        values = [(at, float(counted(fitting, at))) for at in moments if pod.begin <= at < pod.end]
        shown = [value for value in values if counted(starts, value[0])]
        if shown:
            le = "+Inf" if bound == float("inf") else f"{bound:g}"
            found.append(series("kueue_admission_wait_time_seconds_bucket", shown, le=le, **labels))
    return found


def _gauges(jobs: Sequence[Job], pod: Pod, moments: Sequence[float], labels: dict[str, str]) -> list[JsonValue]:
    shown = [at for at in moments if pod.begin <= at < pod.end]
    created, starts, ends = (
        sorted(times) for times in zip(*((j.created, j.started, j.ended) for j in jobs), strict=False)
    )
    pending = [(at, float(bisect_right(created, at) - bisect_right(starts, at))) for at in shown]
    holding = [(at, float(bisect_right(starts, at) - bisect_right(ends, at))) for at in shown]
    return [
        series("kueue_pending_workloads", pending, status="active", **labels),
        series("kueue_pending_workloads", [(at, 0.0) for at in shown], status="inadmissible", **labels),
        series("kueue_reserving_active_workloads", holding, **labels),
    ]
