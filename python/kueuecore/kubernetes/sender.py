"""A work queue: runs tasks in threads, one at a time per lane, and retries them after a pause if they ask for it."""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from enum import IntEnum
from typing import TypeAlias

__all__ = ["Sender", "Stream", "Task"]

Task: TypeAlias = Callable[[], float | None]
"""One attempt. Returns the seconds after which to try again; None: it is done."""


class Stream(IntEnum):
    """What a lane is about: threads take from the streams in turn, so that no stream waits behind all of another."""

    JOBS = 0
    """Jobs that start and stop, and Workloads that are created for them."""
    WORKLOADS = 1
    """Decisions about Workloads."""
    OBJECTS = 2
    """All else, such as statuses of queues."""


# A job that starts takes a decision and a start; statuses may come a little later.
_TURNS = (Stream.JOBS, Stream.WORKLOADS, Stream.JOBS, Stream.WORKLOADS, Stream.OBJECTS)


class Sender:
    """Runs tasks in threads. Tasks of one lane never run at the same time, and run in order of arrival.

    Args:
        name: The name of its threads.
        n_threads: How many tasks run at a time.
        failed: Called with the error that a task raised, in the task's thread; the task is dropped.
        before: Called before each task; what it raises is as if the task had raised it.

    Example:
        >>> sender = Sender("example", n_threads=2, failed=print)
        >>> sender.submit("a", lambda: print("sent"))
        >>> sender.close(seconds=5)
        sent
        True
    """

    def __init__(
        self,
        name: str,
        *,
        n_threads: int,
        failed: Callable[[BaseException], None],
        before: Callable[[], None] = lambda: None,
    ) -> None:
        self._failed, self._before = failed, before
        self._changed = threading.Condition()
        self._lanes: dict[Hashable, deque[Task]] = {}
        self._streams: dict[Hashable, Stream] = {}
        # Lanes of each stream that wait for a thread: when their first task is due, in order of arrival.
        self._due: dict[Stream, list[tuple[float, int, Hashable]]] = {stream: [] for stream in Stream}
        self._n_of_stream = dict.fromkeys(Stream, 0)
        self._turn = 0
        self._n_pushed = 0
        self._n_tasks = 0
        self._is_closed = False
        for number in range(n_threads):
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True).start()

    @property
    def n_tasks(self) -> int:
        """How many tasks are not done."""
        return self._n_tasks

    def n_of(self, stream: Stream) -> int:
        """How many tasks of a stream are not done."""
        return self._n_of_stream[stream]

    def submit(self, lane: Hashable, task: Task, stream: Stream = Stream.OBJECTS) -> None:
        """Queue a task, after the earlier ones of its lane.

        Args:
            lane: What must be done in order.
            task: The task.
            stream: What the lane is about; that of its first task counts until it is empty.
        """
        with self._changed:
            tasks = self._lanes.setdefault(lane, deque())
            tasks.append(task)
            self._n_tasks += 1
            self._n_of_stream[self._streams.setdefault(lane, stream)] += 1
            if len(tasks) == 1:
                self._push(lane, time.monotonic())

    def close(self, *, seconds: float) -> bool:
        """Let running and due tasks finish; give up those that wait for a retry.

        Args:
            seconds: The longest time to wait for them.

        Returns:
            Whether all tasks are done.
        """
        until = time.monotonic() + seconds
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._n_tasks == 0, timeout=max(0.0, until - time.monotonic()))
            return self._n_tasks == 0

    def _push(self, lane: Hashable, due: float) -> None:
        self._n_pushed += 1
        heapq.heappush(self._due[self._streams[lane]], (due, self._n_pushed, lane))
        self._changed.notify()

    def _work(self) -> None:
        while True:
            lane, task = self._next()
            try:
                self._before()
                pause = task()
            except BaseException as error:
                self._failed(error)
                pause = None
            with self._changed:
                if pause is not None and not self._is_closed:
                    self._push(lane, time.monotonic() + pause)
                    continue
                tasks = self._lanes[lane]
                tasks.popleft()
                self._n_tasks -= 1
                self._n_of_stream[self._streams[lane]] -= 1
                if tasks:
                    self._push(lane, time.monotonic())
                else:
                    del self._lanes[lane], self._streams[lane]
                if self._n_tasks == 0:
                    self._changed.notify_all()

    def _next(self) -> tuple[Hashable, Task]:
        """Return the first task of the lane that is due first in the stream whose turn it is; wait until one is."""
        with self._changed:
            while True:
                now = time.monotonic()
                for offset in range(len(_TURNS)):
                    due = self._due[_TURNS[(self._turn + offset) % len(_TURNS)]]
                    if due and due[0][0] <= now:
                        self._turn += offset + 1
                        lane = heapq.heappop(due)[2]
                        return lane, self._lanes[lane][0]
                first = min((due[0][0] for due in self._due.values() if due), default=None)
                self._changed.wait(None if first is None else first - now)
