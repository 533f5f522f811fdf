"""What has happened to one workload, step by step: from its conditions, from Events, from a log, from a run.

Every source finds the same plain facts, and all of them lead into one `Timeline`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names
from kueuecore.histories.timeline import Step, Timeline, What

if TYPE_CHECKING:
    from kueuecore.histories.log_lines import LogLine, read_log
    from kueuecore.histories.recorded import history_of, history_of_gone
    from kueuecore.histories.runs import history_of_cycles, history_of_run
    from kueuecore.histories.versions import history_of_versions

__all__ = [
    "LogLine",
    "Step",
    "Timeline",
    "What",
    "history_of",
    "history_of_cycles",
    "history_of_gone",
    "history_of_run",
    "history_of_versions",
    "read_log",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.histories.log_lines": "LogLine read_log",
        "kueuecore.histories.recorded": "history_of history_of_gone",
        "kueuecore.histories.runs": "history_of_cycles history_of_run",
        "kueuecore.histories.versions": "history_of_versions",
    },
)
