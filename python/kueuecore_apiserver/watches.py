"""Tracks watches and recent changes: events reach watchers as soon as they happen."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kueuecore.api_server import ApiServer
from kueuecore_apiserver.refusals import expired
from kueuecore_apiserver.requests import Object

__all__ = ["Change", "Watcher", "Watches"]


class Change(NamedTuple):
    """A write: its version, `ADDED`, `MODIFIED` or `DELETED`, and the object after and before it."""

    version: int
    type: str
    object: Object
    before: Object | None


@dataclass(eq=False, slots=True)
class Watcher:
    """One watch.

    Args:
        kind: The watched kind, as stored.
        line: Returns the line to send for a change; empty if the watch does not cover it.
        wake: Called when there is something to send.
        lines: The lines that wait to be sent.
        n_sent: How many events were sent.
    """

    kind: str
    line: Callable[[Change], bytes]
    wake: Callable[[], None]
    lines: list[bytes] = field(default_factory=list)
    n_sent: int = 0

    def put(self, change: Change) -> None:
        """Queue a change to be sent."""
        if line := self.line(change):
            self.lines.append(line)
            self.wake()

    def take(self) -> list[bytes]:
        """Remove and return what is to be sent."""
        lines, self.lines = self.lines, []
        self.n_sent += len(lines)
        return lines


class Watches:
    """The recent changes of each kind, and the watchers.

    Args:
        api: The server whose changes they are.
        keep: The minimum number of changes to keep; never more than twice as many are kept.
    """

    def __init__(self, api: ApiServer, *, keep: int) -> None:
        self._api, self._keep = api, keep
        self._changes: dict[str, list[Change]] = {}
        self._watchers: dict[str, set[Watcher]] = {}
        self._n_changes = 0
        self._forgotten = api.version
        api.listeners.append(self._heard)

    def _heard(self, kind: str, event: Object, before: Object | None) -> None:
        change = Change(self._api.version, event["type"], event["object"], before)
        self._changes.setdefault(kind, []).append(change)
        self._n_changes += 1
        for watcher in list(self._watchers.get(kind, ())):
            watcher.put(change)
        if self._n_changes > 2 * self._keep:
            self._forget()

    def _forget(self) -> None:
        """Drop all but the newest changes."""
        versions = sorted(change.version for changes in self._changes.values() for change in changes)
        self._forgotten = versions[-self._keep - 1]
        for kind, changes in self._changes.items():
            start = bisect_right(changes, self._forgotten, key=lambda change: change.version)
            self._changes[kind] = changes[start:]
        self._n_changes = sum(map(len, self._changes.values()))
        # The in-memory server keeps events for callers that ask for them; here nothing does.
        self._api.history = [row for row in self._api.history if row[0] > self._forgotten]

    @property
    def oldest(self) -> int:
        """The version from which a watch may still begin."""
        return max(self._forgotten, self._api.compacted)

    def since(self, kind: str, version: int) -> Iterator[Change]:
        """Return the changes of a kind after a version, in order.

        Raises:
            RefusedError: The version is too old (410).
        """
        if version < self.oldest:
            raise expired(f"too old resource version: {version} ({self.oldest})")
        changes = self._changes.get(kind, [])
        return iter(changes[bisect_right(changes, version, key=lambda change: change.version) :])

    def add(self, watcher: Watcher) -> None:
        """Start sending changes to a watcher."""
        self._watchers.setdefault(watcher.kind, set()).add(watcher)

    def remove(self, watcher: Watcher) -> None:
        """Stop sending changes to it."""
        self._watchers.get(watcher.kind, set()).discard(watcher)

    def wake_all(self) -> None:
        """Wake all watchers, because the server stops."""
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.wake()
