"""Answers that take seconds or minutes: each in a thread of its own, the same question only once."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["GoneError", "SlowAnswers"]

_T = TypeVar("_T")
# Of a large state an answer may have megabytes.
_KEPT = 8
_LOOK_SECONDS = 0.5


class GoneError(Exception):
    """The reader has left before the answer came."""


class SlowAnswers(Generic[_T]):
    """Works out answers beside the server, and keeps the last ones.

    Args:
        is_kept: Whether an answer may be given again to the same question.
        at_once: How many are worked out at the same time; more would only take turns on the processor.
    """

    def __init__(self, is_kept: Callable[[_T], bool], *, at_once: int = 2) -> None:
        self._is_kept = is_kept
        self._turns = asyncio.Semaphore(at_once)
        self._tasks: OrderedDict[Hashable, asyncio.Task[_T]] = OrderedDict()
        self._readers: Counter[Hashable] = Counter()
        self._begun: set[Hashable] = set()

    async def answer(
        self, question: Hashable, work: Callable[[], _T], *, is_gone: Callable[[], Awaitable[bool]] | None = None
    ) -> _T:
        """Return the answer to a question.

        Args:
            question: What it is, with the version of the state.
            work: Works it out, in another thread.
            is_gone: Whether the reader has left. What nobody waits for any more is not begun.

        Raises:
            GoneError: The reader has left.
        """
        task = self._tasks.get(question)
        if task is None:
            task = self._tasks[question] = asyncio.create_task(self._work(question, work))
        self._readers[question] += 1
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_LOOK_SECONDS)
                if not task.done() and is_gone is not None and await is_gone():
                    raise GoneError
            return task.result()
        finally:
            self._readers[question] -= 1
            if not self._readers[question]:
                del self._readers[question]
                if not task.done() and question not in self._begun:
                    task.cancel()

    async def _work(self, question: Hashable, work: Callable[[], _T]) -> _T:
        is_kept = False
        try:
            async with self._turns:
                self._begun.add(question)
                found = await _in_thread(work)
            is_kept = self._is_kept(found)
            return found
        finally:
            self._begun.discard(question)
            if not is_kept:
                self._tasks.pop(question, None)
            over = [other for other, task in self._tasks.items() if task.done() or other == question]
            for other in over[: max(0, len(over) - _KEPT)]:
                del self._tasks[other]


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
