"""Queues calls from other threads for the one that decides."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import TypeVar

from kueuecore.times import SECOND_NS

__all__ = ["Inbox"]

_T = TypeVar("_T")


class Inbox:
    """A queue of calls for the deciding thread, which makes them one after the other; and its clock.

    Example:
        >>> inbox = Inbox()
        >>> inbox.put(lambda: print("made"))
        >>> inbox.stop()
        >>> inbox.take(until=None)
        made
        >>> inbox.is_over
        True
    """

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._beat = time.monotonic()
        self._now = 0
        self.is_over = False
        """Whether `stop` was called."""

    # From any thread.

    def put(self, call: Callable[[], None]) -> None:
        """Queue a call."""
        self._calls.put(call)

    def stop(self) -> None:
        """Make no more calls after those already queued."""

        def end() -> None:
            self.is_over = True

        self.put(end)

    def end(self, error: BaseException) -> None:
        """Raise an error in the deciding thread."""

        def fail() -> None:
            raise error

        self.put(fail)

    def ask(self, question: Callable[[], _T], *, seconds: float = 10.0) -> _T:
        """Have the deciding thread answer a question.

        Raises:
            queue.Empty: It has not answered in time.
        """
        answers: queue.SimpleQueue[_T] = queue.SimpleQueue()
        until = time.monotonic() + seconds

        def answer() -> None:
            # Nobody waits any more: late answers to many questions would make it later still.
            if time.monotonic() < until:
                answers.put(question())

        self.put(answer)
        return answers.get(timeout=seconds)

    @property
    def silent_seconds(self) -> float:
        """How long the deciding thread has made no call although one is queued."""
        return 0.0 if self._calls.empty() else time.monotonic() - self._beat

    # From the deciding thread.

    def now(self) -> int:
        """Return the time in nanoseconds since 1970. It never goes back, even if the clock is set back."""
        self._now = max(self._now, time.time_ns())
        return self._now

    def take(self, *, until: int | None) -> None:
        """Wait for a call, or until a time; then make all queued calls.

        Args:
            until: The time, in nanoseconds since 1970; None: wait for a call.
        """
        seconds = None if until is None else max(0.0, (until - time.time_ns()) / SECOND_NS)
        try:
            call = self._calls.get(timeout=seconds)
            while not self.is_over:
                self._beat = time.monotonic()
                call()
                call = self._calls.get_nowait()
        except queue.Empty:
            self._beat = time.monotonic()
