"""Many calls of one function on any executor: the same results, whatever runs them."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["processes", "run_all"]

_Result = TypeVar("_Result")


def run_all(
    function: Callable[..., _Result], calls: Iterable[tuple[object, ...]], executor: Executor | None = None
) -> Iterator[tuple[int, _Result]]:
    """Call a function with each of the arguments; yields the index of each call and what it returned, as they end.

    Args:
        function: What is called; processes need one that can be pickled, as its arguments and what it returns.
        calls: The arguments of each call.
        executor: What runs them, such as a `ProcessPoolExecutor`, or that of a Dask client; None: one after the other,
            here.

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
        # Its processes have died of Ctrl-C, too, and a pool whose processes die stumbles over cancelled futures.
        raise
    except BaseException:
        # Whoever stops early, also by closing this generator, leaves no work behind.
        for future in futures:
            future.cancel()
        raise


@contextmanager
def processes(n: int) -> Iterator[Executor | None]:
    """So many processes as an executor; None for one, which is this one.

    Args:
        n: How many.
    """
    if n == 1:
        yield None
        return
    # A fork would copy the locks of threads that it does not copy.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(n, mp_context=context, initializer=_dies_of_ctrl_c)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _dies_of_ctrl_c() -> None:
    # A terminal sends Ctrl-C to all of them; only one has to say so.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
