"""Runs many calls of one function on any executor, with the same results on each."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import (
    Executor,
    Future,
    InvalidStateError,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from contextlib import contextmanager, suppress
from typing import ParamSpec, TypeVar

__all__ = ["processes", "run_all", "threads"]

_Result = TypeVar("_Result")
_Given = ParamSpec("_Given")


def run_all(
    function: Callable[..., _Result], calls: Iterable[tuple[object, ...]], executor: Executor | None = None
) -> Generator[tuple[int, _Result]]:
    """Call a function with each tuple of arguments; yield the index and result of each call as it ends.

    Args:
        function: The function; with processes it must be picklable, like its arguments and results.
        calls: The arguments of each call.
        executor: What runs them, such as a `ProcessPoolExecutor` or a Dask client's executor; None: one at a time, in
            this process.

    Example:
        >>> list(run_all(pow, [(2, 3), (3, 2)]))
        [(0, 8), (1, 9)]
    """
    if executor is None:
        for index, arguments in enumerate(calls):
            yield index, function(*arguments)
        return
    futures = {executor.submit(function, *arguments): index for index, arguments in enumerate(calls)}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    except KeyboardInterrupt:
        # Ctrl-C has killed its processes too, and a pool with dead processes fails on cancelled futures.
        raise
    except BaseException:
        # Stopping early, also by closing this generator, leaves no work behind.
        for future in futures:
            future.cancel()
        raise


@contextmanager
def processes(n: int) -> Iterator[Executor | None]:
    """Make an executor of n processes; None for one, which is this process.

    Args:
        n: The number of processes.
    """
    if n == 1:
        yield None
        return
    # A fork would copy locks held by threads that it does not copy.
    context = multiprocessing.get_context("spawn")
    pool = _Processes(n, mp_context=context, initializer=_dies_of_ctrl_c)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def threads(n: int) -> Iterator[Executor | None]:
    """Make an executor of n threads, for calls that spend their time in the extension; None for one.

    Args:
        n: The number of threads.
    """
    if n == 1:
        yield None
        return
    pool = ThreadPoolExecutor(n)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class _Processes(ProcessPoolExecutor):
    """Processes of which some may die after calls were cancelled, which Python 3.11 answers with a traceback."""

    def submit(
        self, function: Callable[_Given, _Result], /, *arguments: _Given.args, **named: _Given.kwargs
    ) -> Future[_Result]:
        future = super().submit(function, *arguments, **named)
        fails = future.set_exception

        # The pool fails all calls that are left, and stops at one that was cancelled.
        def set_exception(exception: BaseException | None) -> None:
            with suppress(InvalidStateError):
                fails(exception)

        future.set_exception = set_exception  # type: ignore[method-assign]
        return future


def _dies_of_ctrl_c() -> None:
    # A terminal sends Ctrl-C to all of them; only one should report it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
