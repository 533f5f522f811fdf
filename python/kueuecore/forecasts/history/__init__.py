"""Reads the past of a cluster from where people have it: traces, dumps, journals, logs and Prometheus.

Example:
    >>> from kueuecore.times import nanoseconds
    >>> history = history_of(["examples/traces/sacct.txt"], now=nanoseconds("2026-06-01T00:00:00Z"))
    >>> history.notes
    ('examples/traces/sacct.txt: 36 jobs taken; left out: 4 (never started)',)
    >>> job = history.jobs[0]
    >>> job.labels["user"], job.requests["cpu"], job.run_seconds
    ('user5', 64000, 1025.0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.forecasts.history.kinds import HistoryKind
    from kueuecore.forecasts.history.queue_rates import QueueRates, RateWindow, SpanHistogram
    from kueuecore.forecasts.history.sources import History, history_of

__all__ = [
    "History",
    "HistoryKind",
    "QueueRates",
    "RateWindow",
    "SpanHistogram",
    "history_of",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.forecasts.history.kinds": "HistoryKind",
        "kueuecore.forecasts.history.queue_rates": "QueueRates RateWindow SpanHistogram",
        "kueuecore.forecasts.history.sources": "History history_of",
    },
)
