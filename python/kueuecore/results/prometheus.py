"""Metrics at the end of a run in Prometheus' text format, with Kueue's names and labels (rules/09 §10)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kueuecore.controller.metric_families import FAMILIES
from kueuecore.controller.metric_gauges import gauges_of
from kueuecore.controller.metric_objects import MetricObjects
from kueuecore.controller.metric_page import page
from kueuecore.controller.metric_series import Histogram, MetricSeries
from kueuecore.results.usage_log import Ints, UsageLog
from kueuecore.simulation.run import Run, StepKind
from kueuecore.times import SECOND_NS

__all__ = ["metrics_text"]

_KINDS = list(StepKind)
_WAIT = "admission_wait_time_seconds"


def metrics_text(run: Run, log: UsageLog) -> str:
    """Return the state at the end, and the admissions, evictions and waits of the whole run."""
    series = MetricSeries()
    steps = run.step_table
    steps = steps[np.argsort(steps["workload"], kind="stable")]
    admitted = steps["kind"] == _KINDS.index(StepKind.ADMITTED)
    queued = np.isin(steps["kind"], [_KINDS.index(StepKind.CREATED), _KINDS.index(StepKind.STOPPED)])
    # When each was last queued: a job waits from its creation, or from its eviction.
    last = np.maximum.accumulate(np.where(queued, np.arange(len(steps)), -1))
    is_own = (last >= 0) & (steps["workload"][last] == steps["workload"])
    waits = np.where(is_own, steps["time"] - steps["time"][last], 0) / SECOND_NS
    codes, classes = run._core.priority_classes()
    priority_class = np.frombuffer(codes, "<u4")
    _count_evictions(series, run, log, priority_class, classes)
    of = steps["workload"][admitted].astype(np.int64)
    queues = log.queue_at(of, steps["time"][admitted])
    groups, group = np.unique(np.stack([queues, priority_class[of]]), axis=1, return_inverse=True)
    n = np.bincount(group, minlength=groups.shape[1])
    histograms = _histograms(waits[admitted], np.where(is_own[admitted], group, -1), groups.shape[1])
    for (queue, cls), count, histogram in zip(groups.T.tolist(), n.tolist(), histograms, strict=True):
        labels = (log.queue_names[queue] if queue >= 0 else "", classes[cls])
        series.add("admitted_workloads_total", labels, count)
        series.put_histogram(_WAIT, labels, histogram)
    objects = MetricObjects(run.engine.configuration)
    return page(gauges_of(run.engine, objects), series, objects, replica_role="standalone", silent=())


def _count_evictions(
    series: MetricSeries, run: Run, log: UsageLog, priority_class: npt.NDArray[np.uint32], classes: list[str]
) -> None:
    columns, causes = run._core.evictions()
    number, cause, queues = (np.frombuffer(column, "<u4").astype(np.int64) for column in columns)
    rows = np.stack([queues, cause, priority_class[number].astype(np.int64)])
    groups, counts = np.unique(rows, axis=1, return_counts=True)
    for (queue, index, cls), n in zip(groups.T.tolist(), counts.tolist(), strict=True):
        labels = (log.queue_names[queue] if queue < len(log.queue_names) else "", *causes[index], classes[cls])
        series.add("evicted_workloads_total", labels, n)


def _histograms(seconds: npt.NDArray[np.float64], group: Ints, n_groups: int) -> list[Histogram]:
    """Return a histogram of the times of each group; -1 is no group."""
    bounds = FAMILIES[_WAIT].bounds
    seconds, group = seconds[group >= 0], group[group >= 0]
    n_buckets = len(bounds) + 1
    cells = group * n_buckets + np.searchsorted(bounds, seconds, "left")
    counts = np.bincount(cells, minlength=n_groups * n_buckets).reshape(n_groups, n_buckets)
    totals = np.bincount(group, seconds, n_groups)
    histograms = []
    for of_group, total in zip(counts.tolist(), totals.tolist(), strict=True):
        histogram = Histogram(bounds)
        histogram.counts, histogram.total = of_group, total
        histograms.append(histogram)
    return histograms
