"""Makes a table of the outcomes of jobs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kueuecore.results import Column, Table
from kueuecore.scenarios.job_outcomes import JobOutcomes, Labels
from kueuecore.times import SECOND_NS

__all__ = ["job_table"]


def job_table(jobs: JobOutcomes) -> Table:
    """Return a row for each job, in order of arrival."""
    numbers, labels = jobs.numbers, jobs.labels
    names = [*map(jobs.names, range(len(jobs)))]
    is_waiting = numbers["admitted"] < 0
    waits = np.where(is_waiting, 0, numbers["admitted"] - numbers["created"]) / SECOND_NS
    counts = ("evictions", "replacements", "node_evictions", "copies")
    return Table(
        {
            "work": _text_column(labels["work"]),
            "job": _text_column(Labels.of([name.job for name in names])),
            "namespace": _text_column(Labels.of([name.namespace for name in names])),
            "workload": _text_column(Labels.of([name.workload for name in names])),
            "cluster_queue": _text_column(labels["cluster_queue"]),
            "cluster": _text_column(labels["cluster"]),
            **{name: _time_column(numbers[name]) for name in ("created", "admitted", "finished")},
            "failed": Column(values=numbers["failed"] != 0),
            "wait_seconds": Column(values=waits, is_null=is_waiting),
            **{name: Column(values=numbers[name].copy()) for name in counts},
            "message": _text_column(Labels.of([name.message for name in names])),
        }
    )


def _text_column(labels: Labels) -> Column:
    """Return strings as a column, with null for empty ones."""
    is_null = np.array([not text for text in labels.texts], np.bool_)[labels.codes] if len(labels.codes) else None
    return Column(values=labels.codes, words=tuple(labels.texts), is_null=is_null)


def _time_column(times: npt.NDArray[np.int64]) -> Column:
    return Column(values=times.astype("datetime64[ns]"), is_null=times < 0)
