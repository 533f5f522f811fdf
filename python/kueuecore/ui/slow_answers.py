"""Answers that take seconds or minutes: each in a thread of its own, the same question only once."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["SlowAnswers"]

_T = TypeVar("_T")
# More at once would only take turns.
_AT_ONCE = 2
_KEPT = 32


class SlowAnswers(Generic[_T]):
    """Works out answers beside the server, and keeps the last ones.

    Args:
        is_kept: Whether an answer may be given again to the same question.
    """

    def __init__(self, is_kept: Callable[[_T], bool]) -> None:
        self._is_kept = is_kept
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._open: OrderedDict[Hashable, asyncio.Task[_T]] = OrderedDict()

    async def answer(self, question: Hashable, work: Callable[[], _T]) -> _T:
        """Return the answer to a question.

        Args:
            question: What it is, with the version of the state.
            work: Works it out, in another thread.
        """
        task = self._open.get(question)
        if task is None:
            task = self._open[question] = asyncio.create_task(self._work(question, work))
            while len(self._open) > _KEPT:
                self._open.popitem(last=False)
        # A reader who leaves does not take the answer from those who stay.
        return await asyncio.shield(task)

    async def _work(self, question: Hashable, work: Callable[[], _T]) -> _T:
        is_kept = False
        try:
            async with self._turns:
                found = await _in_thread(work)
            is_kept = self._is_kept(found)
            return found
        finally:
            if not is_kept:
                self._open.pop(question, None)


async def _in_thread(work: Callable[[], _T]) -> _T:
    """Run it in a thread that does not keep the process alive after Ctrl-C, as those of an executor do."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def settle(found: _T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(found)  # type: ignore[arg-type] # without an error there is a result

    def run() -> None:
        found, failure = None, None
        try:
            found = work()
        except Exception as error:
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, found, failure)

    threading.Thread(target=run, daemon=True, name="kueuecore-ui-answer").start()
    return await future
