"""A work queue: each key once, at its earliest time; failing keys are retried later each time."""

from __future__ import annotations

from typing import Generic, TypeVar

from kueuecore.times import backoff_ns

__all__ = ["WorkQueue", "failure_delay_ns"]

_Key = TypeVar("_Key", str, tuple[str, str])
# How controller queues back off after failures: from 5 ms, doubling each time, to 1000 s.
_FIRST_RETRY_NS = 5_000_000
_LAST_RETRY_NS = 1_000_000_000_000


def failure_delay_ns(n_failed: int) -> int:
    """Return how long a controller's queue waits after this many failures in a row."""
    return backoff_ns(n_failed, first_ns=_FIRST_RETRY_NS, longest_ns=_LAST_RETRY_NS)


class WorkQueue(Generic[_Key]):
    """Holds keys with the times when they are due."""

    def __init__(self) -> None:
        self._due: dict[_Key, int] = {}
        self._failures: dict[_Key, int] = {}

    def add(self, key: _Key, at: int) -> None:
        """Make a key due at a time, unless it is due earlier."""
        self._due[key] = min(at, self._due.get(key, at))

    def take(self, now: int) -> list[_Key]:
        """Remove and return the keys that are due, in order."""
        keys = sorted(key for key, at in self._due.items() if at <= now)
        for key in keys:
            del self._due[key]
        return keys

    def failed(self, key: _Key, now: int) -> None:
        """Note that a key failed: look again, later each time."""
        self._failures[key] = self._failures.get(key, 0) + 1
        self.add(key, now + failure_delay_ns(self._failures[key]))

    def went_well(self, key: _Key) -> None:
        """Note that a key succeeded: the next failure counts as the first."""
        self._failures.pop(key, None)

    def forget(self, key: _Key) -> None:
        """Forget a key: it need not be looked at again."""
        self._due.pop(key, None)
        self._failures.pop(key, None)

    @property
    def next(self) -> int | None:
        """Return when the next key is due; None if none is."""
        return min(self._due.values(), default=None)
