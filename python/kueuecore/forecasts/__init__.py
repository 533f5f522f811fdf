"""Forecasts of when waiting workloads will be admitted, from a cluster's present state and past.

Example:
    >>> from kueuecore import read_manifests
    >>> from kueuecore.scenarios import ClusterPart, Scenario, Span
    >>> cluster = ClusterPart(objects=read_manifests("examples/scenario/queues.yaml", "examples/scenario/job.yaml"))
    >>> found = eta(Scenario(cluster=cluster), seeds=range(3), run_seconds={"": Span(60)})
    >>> [(it.workload, it.quantile(0.5)) for it in found.forecasts]
    [('team-a/job-small-64f21', 0.0)]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.forecasts.answer import Eta, Forecast
    from kueuecore.forecasts.backtest import Record
    from kueuecore.forecasts.experience import Experience
    from kueuecore.forecasts.forecast import eta
    from kueuecore.forecasts.history import History, QueueRates, history_of
    from kueuecore.forecasts.past_jobs import PastJob

__all__ = [
    "Eta",
    "Experience",
    "Forecast",
    "History",
    "PastJob",
    "QueueRates",
    "Record",
    "eta",
    "history_of",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.forecasts.answer": "Eta Forecast",
        "kueuecore.forecasts.backtest": "Record",
        "kueuecore.forecasts.experience": "Experience",
        "kueuecore.forecasts.forecast": "eta",
        "kueuecore.forecasts.history": "History QueueRates history_of",
        "kueuecore.forecasts.past_jobs": "PastJob",
    },
)
