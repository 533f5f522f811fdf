"""Runs blocking work in threads, a few at a time, and waits for none of them longer than it has to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

__all__ = ["Workers"]

_Answer = TypeVar("_Answer")


class Workers:
    """Threads for work that would block an event loop.

    A thread cannot be stopped. One whose answer nobody waits for any more keeps its place until it ends, so that the
    number of threads is bounded, and it does not keep the process alive.

    Args:
        most: How many may work at once; others wait.
    """

    def __init__(self, most: int) -> None:
        self._places = asyncio.Semaphore(most)

    async def run(self, work: Callable[[], _Answer], *, seconds: float) -> _Answer:
        """Run work in a thread.

        Args:
            work: The work.
            seconds: How long to wait for a place and for its end together.

        Returns:
            What it returns.

        Raises:
            TimeoutError: It takes longer.
        """
        async with asyncio.timeout(seconds):
            await self._places.acquire()
            loop = asyncio.get_running_loop()
            found: asyncio.Future[_Answer] = loop.create_future()

            def end(answer: _Answer | None, error: BaseException | None) -> None:
                self._places.release()
                if found.done():
                    return
                if error is not None:
                    found.set_exception(error)
                else:
                    found.set_result(answer)  # type: ignore[arg-type] # None only if that is the answer

            def body() -> None:
                answer: _Answer | None = None
                error: BaseException | None = None
                try:
                    answer = work()
                except BaseException as raised:
                    error = raised
                # The loop may have ended meanwhile.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(end, answer, error)

            threading.Thread(target=body, daemon=True, name="kueuecore question").start()
            return await found
