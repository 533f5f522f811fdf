"""Small logs in the Standard Workload Format, for tests of `make forecast`."""

from __future__ import annotations

from benches.forecast.logs import Log, log_of
from kueuecore.traces.swf import read_swf

__all__ = ["HOUR", "log_text", "small_log"]

HOUR = 3600
_START = 978307200  # a Monday


def log_text(*jobs: tuple[int, int, int], processors: int = 4, queues: tuple[int, ...] = (), limit: int = -1) -> str:
    """A log of jobs, each with its time of submission, run time and processors; users take turns."""
    lines = [f"; MaxProcs: {processors}", f"; UnixStartTime: {_START}"]
    for number, (at, run, pods) in enumerate(jobs, 1):
        queue = queues[(number - 1) % len(queues)] if queues else -1
        user, app = number % 3 + 1, number % 2 + 1
        lines.append(f"{number} {at} -1 {run} {pods} -1 -1 {pods} {limit} -1 1 {user} 1 {app} {queue} 1 -1 -1")
    return "\n".join(lines) + "\n"


def small_log(*jobs: tuple[int, int, int], processors: int = 4, queues: tuple[int, ...] = (), limit: int = -1) -> Log:
    """The same, read."""
    text = log_text(*jobs, processors=processors, queues=queues, limit=limit)
    return log_of(read_swf(text.encode(), "small.swf"), "small")
