"""What is to be looked at when: each key once, at the earliest time; what fails, later each time."""

from __future__ import annotations

from typing import Generic, TypeVar

from kueuecore.times import backoff_ns

__all__ = ["WorkQueue", "failure_delay_ns"]

_Key = TypeVar("_Key", str, tuple[str, str])
# How the queues of controllers wait after failures: from 5 ms, twice as long each time, to 1000 s.
_FIRST_RETRY_NS = 5_000_000
_LAST_RETRY_NS = 1_000_000_000_000


def failure_delay_ns(n_failed: int) -> int:
    """How long a controller's queue waits after this many failures in a row."""
    return backoff_ns(n_failed, first_ns=_FIRST_RETRY_NS, longest_ns=_LAST_RETRY_NS)


class WorkQueue(Generic[_Key]):
    """Keys with the times when they are due."""

    def __init__(self) -> None:
        self._due: dict[_Key, int] = {}
        self._failures: dict[_Key, int] = {}

    def add(self, key: _Key, at: int) -> None:
        """A key is due at a time, unless it is due before."""
        self._due[key] = min(at, self._due.get(key, at))

    def take(self, now: int) -> list[_Key]:
        """The keys that are due, in their order; they are in the queue no more."""
        keys = sorted(key for key, at in self._due.items() if at <= now)
        for key in keys:
            del self._due[key]
        return keys

    def failed(self, key: _Key, now: int) -> None:
        """It went wrong: look again, later each time."""
        self._failures[key] = self._failures.get(key, 0) + 1
        self.add(key, now + failure_delay_ns(self._failures[key]))

    def went_well(self, key: _Key) -> None:
        """It went well: the next failure is the first again."""
        self._failures.pop(key, None)

    def forget(self, key: _Key) -> None:
        """It is not to be looked at any more."""
        self._due.pop(key, None)
        self._failures.pop(key, None)

    @property
    def next(self) -> int | None:
        """When the next key is due; None if none is."""
        return min(self._due.values(), default=None)
