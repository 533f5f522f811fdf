"""Metrics at the end of a run in the text form of Prometheus, under Kueue's names and labels (rules/09 §10)."""

from __future__ import annotations

import numpy as np

from kueuecore.controller.metric_families import FAMILIES
from kueuecore.controller.metric_gauges import gauges_of
from kueuecore.controller.metric_objects import MetricObjects
from kueuecore.controller.metric_page import page
from kueuecore.controller.metric_series import Histogram, MetricSeries
from kueuecore.results.usage_log import UsageLog
from kueuecore.simulation.run import Run, StepKind

__all__ = ["metrics_text"]

_KINDS = list(StepKind)
_SECOND = 10**9
_WAIT = "admission_wait_time_seconds"


def metrics_text(run: Run, log: UsageLog) -> str:
    """How things stand at the end, and the admissions, evictions and waits of the whole run.

    Labels that columns do not have are empty: `priority_class`, `reason` and `underlying_cause`.
    """
    series = MetricSeries()
    steps = run.step_table
    steps = steps[np.argsort(steps["workload"], kind="stable")]
    admitted = steps["kind"] == _KINDS.index(StepKind.ADMITTED)
    queued = np.isin(steps["kind"], [_KINDS.index(StepKind.CREATED), _KINDS.index(StepKind.STOPPED)])
    # When each was queued last: a job waits from its creation, or from when it was evicted.
    last = np.maximum.accumulate(np.where(queued, np.arange(len(steps)), -1))
    is_own = (last >= 0) & (steps["workload"][last] == steps["workload"])
    waits = np.where(is_own, steps["time"] - steps["time"][last], 0) / _SECOND
    stopped = steps["kind"] == _KINDS.index(StepKind.STOPPED)
    homes = log.home[steps["workload"]]
    for index, queue in enumerate(log.queue_names):
        here = homes == index
        if n := int((here & stopped).sum()):
            series.add("evicted_workloads_total", (queue, "", "", ""), n)
        if (here & admitted).any():
            series.add("admitted_workloads_total", (queue, ""), int((here & admitted).sum()))
            series.put_histogram(_WAIT, (queue, ""), _histogram(waits[here & admitted & is_own]))
    objects = MetricObjects(run.engine.configuration)
    return page(gauges_of(run.engine, objects), series, objects, replica_role="standalone", silent=())


def _histogram(seconds: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Histogram:
    histogram = Histogram(FAMILIES[_WAIT].bounds)
    place = np.searchsorted(histogram.bounds, seconds, "left")
    histogram.counts = np.bincount(place, minlength=len(histogram.counts)).tolist()
    histogram.total = float(seconds.sum())
    return histogram
