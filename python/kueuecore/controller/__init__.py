"""Schedules without I/O, for controllers: pass in what you watch, send what it returns, and report how that went.

Nothing here does I/O or reads a clock: you bring the Kubernetes client, or another job system. Events, including those
about its own writes, may come late, twice, out of order or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.controller.cycle_report import Considered, Verdict
    from kueuecore.controller.job_controller import JobController, JobWork
    from kueuecore.controller.loop import Controller
    from kueuecore.controller.metrics import Metrics
    from kueuecore.controller.node_events import is_heartbeat
    from kueuecore.controller.validation import WatchError
    from kueuecore.controller.watched_kinds import WATCHED
    from kueuecore.controller.writes import Turn

__all__ = [
    "WATCHED",
    "Considered",
    "Controller",
    "JobController",
    "JobWork",
    "Metrics",
    "Turn",
    "Verdict",
    "WatchError",
    "is_heartbeat",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.controller.cycle_report": "Considered Verdict",
        "kueuecore.controller.job_controller": "JobController JobWork",
        "kueuecore.controller.loop": "Controller",
        "kueuecore.controller.metrics": "Metrics",
        "kueuecore.controller.node_events": "is_heartbeat",
        "kueuecore.controller.validation": "WatchError",
        "kueuecore.controller.watched_kinds": "WATCHED",
        "kueuecore.controller.writes": "Turn",
    },
)
