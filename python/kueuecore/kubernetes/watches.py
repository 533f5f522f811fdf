"""Everything of a kind, for ever: a list, then what happens (rules/00, "watch")."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.controller import is_heartbeat
from kueuecore.kubernetes.api import Api, UnansweredError
from kueuecore.times import backoff_ns

__all__ = ["Fault", "LateKinds", "News", "follow", "list_all"]

_SECOND_NS = 1_000_000_000
_FIRST_PAUSE_NS = _SECOND_NS // 5
_LONGEST_PAUSE_NS = 60 * _SECOND_NS
# Of a kind that is not there: CustomResourceDefinitions are watched, so this is for clusters that forbid it.
_LONGEST_ABSENCE_NS = 600 * _SECOND_NS
_ABSENT_AFTER = 3
_PAGE = 500

Fault: TypeAlias = Callable[[str, Exception | None], None]
"""Is called with a kind and what went wrong with its watch, and with None once it is watched again."""


@dataclass(frozen=True, slots=True)
class News:
    """What is heard of a kind: all of it in a list, or one event.

    Args:
        kind: The kind.
        listed: All objects, in a list; None: it is an event.
        version: `resourceVersion` of the list.
        event: The event as the server has sent it.
    """

    kind: str
    listed: list[JsonObject] | None = None
    version: str = ""
    event: JsonObject = field(default_factory=dict)


class LateKinds:
    """Wakes those who wait for a kind to come: a CustomResourceDefinition is there, or all is over."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._n_changes = 0
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Is all over?"""
        return self._is_over

    def changed(self) -> None:
        """A CustomResourceDefinition has come, or has changed."""
        with self._changed:
            self._n_changes += 1
            self._changed.notify_all()

    def end(self) -> None:
        """Let everybody who waits go."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def wait(self, pause_ns: int, *, for_kinds: bool) -> None:
        """Wait so long, until all is over or, with `for_kinds`, until a kind may have come."""
        with self._changed:
            before = self._n_changes

            def is_due() -> bool:
                return self._is_over or (for_kinds and self._n_changes != before)

            self._changed.wait_for(is_due, timeout=pause_ns / _SECOND_NS)


def follow(
    api: Api, kind: str, *, is_needed: bool = False, late: LateKinds | None = None, fault: Fault = lambda *_: None
) -> Iterator[News | None]:
    """A list of all objects of a kind, then its events, until `late` says that all is over; None where a watch ends.

    What cannot be read is tried again after a growing pause, and listed again if the server says 410 Gone. A kind that
    the server does not have counts as an empty list once it has said so three times; after it was there once, a 404 is
    only a fault, as a server that starts may not know its own kinds. Heartbeats of nodes are left out.

    Args:
        api: The server.
        kind: The kind, one of `api.kinds`.
        is_needed: Does it have to be there? Then a 404 is always a fault.
        late: When kinds come, and when all is over; without one it goes on for ever.
        fault: Is called with what went wrong.
    """
    late = late or LateKinds()
    version, n_faults, n_absent, is_known = "", 0, 0, False
    nodes = _Nodes() if kind == "Node" else None
    while not late.is_over:
        try:
            if not version:
                objects, version = list_all(api, kind)
                is_known, n_faults = True, 0
                yield News(kind, objects, version)
                if nodes is not None:
                    nodes.list(objects)
            began = time.monotonic()
            events = api.watch(api.path(kind), since=version)
            fault(kind, None)
            for event in events:
                n_faults = 0
                if event.get("type") == "ERROR":
                    raise RefusedError.of(object_at(event, "object"))
                version = text_at(event, "object", "metadata", "resourceVersion") or version
                if nodes is None or nodes.is_news(event):
                    yield News(kind, event=event)
            yield None
            if time.monotonic() - began < 1:  # a server that ends each watch at once is not asked without a pause
                late.wait(_FIRST_PAUSE_NS, for_kinds=False)
        except (RefusedError, UnansweredError) as error:
            code = error.code if isinstance(error, RefusedError) else 0
            n_faults += 1
            n_absent = n_absent + 1 if code == 404 and not is_known and not is_needed else 0
            is_absent = n_absent >= _ABSENT_AFTER
            if code == 410 and version:
                version = ""  # too old: list again at once
                continue
            if code in (404, 410):
                version = ""
            if not is_absent:
                fault(kind, error)
            elif n_absent == _ABSENT_AFTER:
                fault(kind, None)
                yield News(kind, [])  # the cluster does not know this kind, yet
            longest = _LONGEST_ABSENCE_NS if is_absent else _LONGEST_PAUSE_NS
            pause = max(backoff_ns(n_faults, first_ns=_FIRST_PAUSE_NS, longest_ns=longest), _asked_pause_ns(error))
            yield None
            late.wait(pause, for_kinds=is_absent)


def list_all(api: Api, kind: str) -> tuple[list[JsonObject], str]:
    """All objects of a kind, page by page, and the version of the list.

    Raises:
        RefusedError: The server says no, say because a later page was asked for too late.
        UnansweredError: It says nothing.
    """
    objects: list[JsonObject] = []
    query = {"limit": str(_PAGE)}
    while True:
        answer = api.get(api.path(kind), query)
        objects += (it for it in list_at(answer, "items") if isinstance(it, dict))
        metadata = object_at(answer, "metadata")
        if not (rest := text_at(metadata, "continue")):
            return objects, text_at(metadata, "resourceVersion")
        query = {"limit": str(_PAGE), "continue": rest}


def _asked_pause_ns(error: Exception) -> int:
    seconds = error.details.get("retryAfterSeconds") if isinstance(error, RefusedError) else None
    return seconds * _SECOND_NS if isinstance(seconds, int) else 0


class _Nodes:
    """Nodes as they were when an event of them was last passed on."""

    def __init__(self) -> None:
        self._nodes: dict[str, JsonObject] = {}

    def list(self, objects: list[JsonObject]) -> None:
        self._nodes = {text_at(it, "metadata", "name"): it for it in objects}

    def is_news(self, event: JsonObject) -> bool:
        if event.get("type") == "BOOKMARK":
            return True
        node = object_at(event, "object")
        name = text_at(node, "metadata", "name")
        before = self._nodes.get(name)
        if event.get("type") == "MODIFIED" and before is not None and is_heartbeat(before, node):
            return False
        self._nodes[name] = node
        return True
