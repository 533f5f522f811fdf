"""Sends the writes of a MultiKueue manager: once each, as the manager itself decides what to repeat."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import replace

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from kueuecore._text import logged
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes.api import Api, UnansweredError
from kueuecore.kubernetes.requests import is_gone, send_write
from kueuecore.writes import Answer, Verb, Write

__all__ = ["WorkerWriters", "answer_to"]

_N_WRITERS = 4


def answer_to(api: Api, write: Write, *, reads: bool = True) -> Answer:
    """Send a write once, and return how it went, with the object as it is after a refusal, if the server says so.

    Args:
        api: The API server.
        write: The write.
        reads: Whether the object may be read after a refusal.
    """
    try:
        answer = send_write(api, write)
    except (RefusedError, UnansweredError) as error:
        if is_gone(error):
            return Answer() if write.verb is Verb.DELETE else _refusal(error)
        refusal = _refusal(error)
    else:
        return Answer(_left(answer) if write.verb is Verb.DELETE else answer)
    if write.verb is Verb.GET or not reads:
        return refusal
    try:
        return replace(refusal, object=api.get(api.path(write.kind, write.namespace, write.name)))
    except (RefusedError, UnansweredError) as error:
        return replace(refusal, code=404) if is_gone(error) else refusal


def _refusal(error: RefusedError | UnansweredError) -> Answer:
    code = error.code if isinstance(error, RefusedError) else 0
    if code == 404 and not is_gone(error):
        # The worker does not know the kind: that says nothing about the object.
        code = 0
    return Answer(error=logged(error) or "refused", code=code)


def _left(answer: JsonObject) -> JsonObject | None:
    """Return what a deletion has left: an object that waits for finalizers or for its pods to end."""
    metadata = object_at(answer, "metadata")
    waits = list_at(metadata, "finalizers") or int_at(metadata, "deletionGracePeriodSeconds")
    return answer if text_at(metadata, "deletionTimestamp") and waits else None


class WorkerWriters:
    """Threads that send writes to one worker, so that those to other clusters never wait for it.

    Args:
        name: The name of the threads.
        write: Sends a write.
    """

    def __init__(self, name: str, write: Callable[[Write], None]) -> None:
        self._write = write
        self._writes: queue.SimpleQueue[Write | None] = queue.SimpleQueue()
        self._is_closed = threading.Event()
        for number in range(_N_WRITERS):
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True).start()

    def submit(self, write: Write) -> None:
        """Queue a write. The manager has one open write of an object, so their order does not matter."""
        self._writes.put(write)

    def close(self) -> None:
        """Drop what is queued; what is on its way is not waited for."""
        self._is_closed.set()
        for _ in range(_N_WRITERS):
            self._writes.put(None)

    def _work(self) -> None:
        while (write := self._writes.get()) is not None:
            if not self._is_closed.is_set():
                self._write(write)
