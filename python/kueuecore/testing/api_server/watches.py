"""Who watches what, and what happened lately: events reach watchers as soon as they happen."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kueuecore.api_server import ApiServer
from kueuecore.testing.api_server.refusals import expired
from kueuecore.testing.api_server.requests import Object

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
        kind: What is watched, as it is stored.
        line: The line that a change is sent as; empty if the watch does not cover it.
        wake: Is called when there is something to send.
        lines: What waits to be sent.
        n_sent: How many events were sent.
    """

    kind: str
    line: Callable[[Change], bytes]
    wake: Callable[[], None]
    lines: list[bytes] = field(default_factory=list)
    n_sent: int = 0

    def put(self, change: Change) -> None:
        """Something has happened."""
        if line := self.line(change):
            self.lines.append(line)
            self.wake()

    def take(self) -> list[bytes]:
        """What there is to send."""
        lines, self.lines = self.lines, []
        self.n_sent += len(lines)
        return lines


class Watches:
    """The changes of each kind that are not forgotten yet, and who watches.

    Args:
        api: Whose changes.
        keep: How many changes are kept at least; twice as many are never kept.
    """

    def __init__(self, api: ApiServer, *, keep: int) -> None:
        self._api, self._keep = api, keep
        self._changes: dict[str, list[Change]] = {}
        self._watchers: dict[str, set[Watcher]] = {}
        self._n_changes = 0
        self._forgotten = api.version
        api.listeners.append(self._heard)

    @property
    def n_watchers(self) -> int:
        """How many watches there are at the moment."""
        return sum(map(len, self._watchers.values()))

    def _heard(self, kind: str, event: Object, before: Object | None) -> None:
        change = Change(self._api.version, event["type"], event["object"], before)
        self._changes.setdefault(kind, []).append(change)
        self._n_changes += 1
        for watcher in list(self._watchers.get(kind, ())):
            watcher.put(change)
        if self._n_changes > 2 * self._keep:
            self._forget()

    def _forget(self) -> None:
        """Keep the newest changes alone."""
        versions = sorted(it.version for changes in self._changes.values() for it in changes)
        self._forgotten = versions[-self._keep - 1]
        for kind, changes in self._changes.items():
            start = bisect_right(changes, self._forgotten, key=lambda it: it.version)
            self._changes[kind] = changes[start:]
        self._n_changes = sum(map(len, self._changes.values()))
        # The in-memory server keeps its events for those who ask it; here nobody does.
        self._api.history = [it for it in self._api.history if it[0] > self._forgotten]

    @property
    def oldest(self) -> int:
        """The version from which a watch may still begin."""
        return max(self._forgotten, self._api.compacted)

    def since(self, kind: str, version: int) -> Iterator[Change]:
        """What happened to a kind after a version, in order.

        Raises:
            RefusedError: That is too long ago (410).
        """
        if version < self.oldest:
            raise expired(f"too old resource version: {version} ({self.oldest})")
        changes = self._changes.get(kind, [])
        return iter(changes[bisect_right(changes, version, key=lambda it: it.version) :])

    def add(self, watcher: Watcher) -> None:
        """Start sending changes to a watcher."""
        self._watchers.setdefault(watcher.kind, set()).add(watcher)

    def remove(self, watcher: Watcher) -> None:
        """Stop sending changes to it."""
        self._watchers.get(watcher.kind, set()).discard(watcher)

    def wake_all(self) -> None:
        """Let all watchers look around: the server stops."""
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.wake()
