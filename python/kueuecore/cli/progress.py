"""Progress bars for long runs, and what Ctrl-C does meanwhile."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from kueuecore.cli.streams import to_stderr
from kueuecore.times import format_time

if TYPE_CHECKING:
    from tqdm import tqdm

    from kueuecore.simulation.run import Progress

__all__ = [
    "ctrl_c_raises",
    "job_progress",
    "line_progress",
    "rule_progress",
    "run_progress",
    "shrink_progress",
    "ticking",
    "upgrade_progress",
]

_LINE_SECONDS = 3.0


@contextmanager
def run_progress(*, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar that counts runs, if standard error is a terminal and the extra `progress` is installed.

    Args:
        quiet: Show nothing.
    """
    with _counted("run", quiet=quiet) as report:
        yield report


@contextmanager
def rule_progress(*, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar that counts rules, as `run_progress` does."""
    with _counted("rule", quiet=quiet) as report:
        yield report


@contextmanager
def shrink_progress(*, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar that counts tries, and how many objects are left, as `run_progress` does.

    Args:
        quiet: Show nothing.
    """
    bar = None if quiet else _bar("try")
    if bar is None:
        yield None
        return
    with bar:

        def report(n_tries: int, n_objects: int) -> None:
            bar.set_postfix_str(f"{n_objects} objects left", refresh=False)
            bar.update(n_tries - bar.n)

        yield report


@contextmanager
def upgrade_progress(*, quiet: bool) -> Iterator[Callable[[int, int, int], None] | None]:
    """Show a bar that counts runs, and how many differences are explained, as `run_progress` does.

    Args:
        quiet: Show nothing.
    """
    bar = None if quiet else _bar("run")
    if bar is None:
        yield None
        return
    with bar:

        def report(n_runs: int, n_explained: int, n_differences: int) -> None:
            bar.set_postfix_str(f"{n_explained} of {n_differences} differences explained", refresh=False)
            bar.update(n_runs - bar.n)

        yield report


def line_progress(*, quiet: bool, clock: Callable[[], float] = time.monotonic) -> Callable[[Callable[[], str]], None]:
    """Return a function that writes a line to standard error, terminal or not, if none was written for three seconds.

    Args:
        quiet: Write nothing.
        clock: Returns the time in seconds.
    """
    last = clock()

    def report(line: Callable[[], str]) -> None:
        nonlocal last
        if not quiet and clock() - last >= _LINE_SECONDS:
            to_stderr(line())
            last = clock()

    return report


@contextmanager
def ticking(line: Callable[[], str], *, quiet: bool) -> Iterator[None]:
    """Write a line to standard error every three seconds, terminal or not, whatever the program does meanwhile.

    Args:
        line: Makes the line.
        quiet: Write nothing.
    """
    if quiet:
        yield
        return
    is_over = threading.Event()

    def tick() -> None:
        while not is_over.wait(_LINE_SECONDS):
            to_stderr(line())

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextmanager
def job_progress(n_jobs: int, *, quiet: bool) -> Iterator[Progress | None]:
    """Show a bar that counts finished jobs, as `run_progress` does.

    Args:
        n_jobs: How many jobs arrive in all.
        quiet: Show nothing.
    """
    bar = None if quiet else _bar("job", n_jobs)
    if bar is None:
        yield None
        return
    with bar:

        def report(now: int, n_created: int, n_finished: int) -> None:
            bar.set_postfix_str(f"{n_created - n_finished} waiting or running at {format_time(now)}", refresh=False)
            bar.update(n_finished - bar.n)

        yield report


@contextmanager
def ctrl_c_raises() -> Iterator[None]:
    """Make Ctrl-C raise KeyboardInterrupt, which ends a run early with its results, instead of killing the process."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def _counted(unit: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    bar = None if quiet else _bar(unit)
    if bar is None:
        yield None
        return
    with bar:

        def report(n_over: int, n_all: int) -> None:
            bar.total = n_all
            bar.update(n_over - bar.n)

        yield report


def _bar(unit: str, total: int | None = None) -> tqdm[NoReturn] | None:
    # Standard error may be closed.
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, unit=unit, leave=False, file=sys.stderr, dynamic_ncols=True)
