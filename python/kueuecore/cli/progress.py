"""How far a long run has come, on a terminal; and what Ctrl-C does meanwhile."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kueuecore.simulation.run import Progress
from kueuecore.times import format_time

__all__ = ["ctrl_c_raises", "job_progress"]


@contextmanager
def job_progress(n_jobs: int, *, quiet: bool) -> Iterator[Progress | None]:
    """A bar on standard error that counts the jobs that have ended; nothing where that is no terminal.

    Without the extra `progress` there is none.

    Args:
        n_jobs: How many jobs come.
        quiet: Show nothing.
    """
    # Without standard error there is nobody to look.
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        yield None
        return
    with tqdm(total=n_jobs, unit="job", leave=False, file=sys.stderr, dynamic_ncols=True) as bar:

        def report(now: int, n_created: int, n_finished: int) -> None:
            bar.set_postfix_str(f"{n_created - n_finished} waiting or running at {format_time(now)}", refresh=False)
            bar.update(n_finished - bar.n)

        yield report


@contextmanager
def ctrl_c_raises() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt, which ends a run with what has happened by then, in place of the process."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
