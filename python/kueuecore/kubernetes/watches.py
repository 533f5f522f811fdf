"""Follows all objects of a kind, without end: a list, then events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

from kueuecore._json import JsonObject, JsonValue, int_at, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.controller import is_heartbeat
from kueuecore.kubernetes.api import Api, UnansweredError
from kueuecore.times import SECOND_NS, backoff_ns

__all__ = ["Fault", "LateKinds", "News", "check_event", "follow", "list_all"]

_FIRST_PAUSE_NS = SECOND_NS // 5
_MAX_PAUSE_NS = 60 * SECOND_NS
# For a kind that does not exist: CustomResourceDefinitions are watched, so this is for clusters that forbid it.
_MAX_ABSENCE_NS = 600 * SECOND_NS
_ABSENT_AFTER = 3
# A watch that ends sooner, without an event, was not worth opening.
_SHORT_SECONDS = 1.0
_MAX_SHORT_PAUSE_NS = 5 * SECOND_NS
_PAGE = 500
# No cluster has that many objects of a kind.
_MOST_OBJECTS = 2_000_000
# A server that answers one kind well and another badly is not asked again for each good answer.
_CALM_SECONDS = 10.0
# Retry after this long, whatever the server asks for.
_MAX_ASKED_SECONDS = 600
# This many failures in a row may be due to the version at which the watch would resume.
_LISTS_AFTER = 5
_EVENT_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})

Fault: TypeAlias = Callable[[str, Exception | None], None]
"""Called with a kind and the problem with its watch, and with None once it is watched again."""


@dataclass(frozen=True, slots=True)
class News:
    """A list of all objects of a kind, or one event.

    Args:
        kind: The kind.
        listed: All objects; None: it is an event.
        version: `resourceVersion` of the list.
        event: The event as the server sent it.
        data: Its object as JSON, as it came; empty: unknown.
    """

    kind: str
    listed: list[JsonObject] | None = None
    version: str = ""
    event: JsonObject = field(default_factory=dict)
    data: bytes = b""


class LateKinds:
    """Lets threads wait until a kind may exist, the server answers again, or it is time to stop."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._n_changes = 0
        self._n_recoveries = 0
        self._recovered_at = -inf
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether `end` was called."""
        return self._is_over

    def changed(self) -> None:
        """Report that a CustomResourceDefinition was created or changed."""
        with self._changed:
            self._n_changes += 1
            self._changed.notify_all()

    def recovered(self) -> None:
        """Report that a kind is watched again: the server may answer about others too."""
        now = time.monotonic()
        with self._changed:
            if now - self._recovered_at < _CALM_SECONDS:
                return
            self._recovered_at = now
            self._n_recoveries += 1
            self._changed.notify_all()

    def end(self) -> None:
        """Release all that wait."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def wait(self, pause_ns: int, *, for_kinds: bool) -> None:
        """Wait this long, until `end`, until another kind is watched again or, with `for_kinds`, one may have come."""
        with self._changed:
            before, recoveries = self._n_changes, self._n_recoveries

            def is_due() -> bool:
                has_appeared = for_kinds and self._n_changes != before
                return self._is_over or has_appeared or self._n_recoveries != recoveries

            self._changed.wait_for(is_due, timeout=pause_ns / SECOND_NS)


def follow(
    api: Api,
    kind: str,
    *,
    since: str = "",
    namespace: str = "",
    is_needed: bool = False,
    late: LateKinds | None = None,
    fault: Fault = lambda *_: None,
) -> Iterator[News | None]:
    """Yield a list of all objects of a kind, then its events, until `late` ends; yield None where a watch ends.

    Failed reads are retried after a growing pause. The kind is listed again if the server answers 410 Gone, ends a
    watch with another error, sends something that is not an event, or fails five times in a row. A kind that the server
    does not have counts as an empty list after three such answers; once it has existed, a 404 is only a fault, as a
    starting server may not know its own kinds yet. Heartbeats of nodes are left out.

    Args:
        api: The server.
        kind: The kind, one of `api.kinds`.
        since: `resourceVersion` of a list that is known: it begins with the events after that.
        namespace: Only what is in this namespace; by default, all.
        is_needed: Whether the kind must exist: a 404 is then always a fault.
        late: Reports new kinds and the end; without it, it runs forever.
        fault: Called with each problem.
    """
    late = late or LateKinds()
    version, n_faults, n_absent, n_short, is_known = since, 0, 0, 0, bool(since)
    nodes = _Nodes() if kind == "Node" else None
    while not late.is_over:
        try:
            if not version:
                objects, version = list_all(api, kind, namespace=namespace)
                is_known = True
                yield News(kind, objects, version)
                if nodes is not None:
                    nodes.list(objects)
            began = time.monotonic()
            events = api.watch(api.path(kind, namespace), since=version)
            fault(kind, None)
            for event, data in events:
                check_event(event, kind)
                n_faults = n_short = 0
                version = text_at(event, "object", "metadata", "resourceVersion") or version
                if nodes is None or nodes.is_news(event):
                    yield News(kind, event=event, data=data)
            n_faults = 0
            yield None
            if time.monotonic() - began < _SHORT_SECONDS:
                n_short += 1
                pause = backoff_ns(n_short, first_ns=_FIRST_PAUSE_NS, longest_ns=_MAX_SHORT_PAUSE_NS)
                late.wait(pause, for_kinds=False)
        except (RefusedError, UnansweredError) as error:
            code = error.code if isinstance(error, RefusedError) else 0
            n_faults += 1
            if code == 404 and not is_known and not is_needed:
                n_absent += 1
            elif n_absent < _ABSENT_AFTER:
                n_absent = 0
            # It stays absent while the server cannot be asked: that others cannot be watched then says enough.
            is_absent = n_absent >= _ABSENT_AFTER
            is_too_old = code == 410 and bool(version)
            is_lost = code in (400, 404, 410) or isinstance(error, _BrokenWatchError | _EventError)
            if is_lost or n_faults >= _LISTS_AFTER:
                version = ""
            if is_too_old and n_faults == 1:
                continue  # list again at once
            if not n_absent:
                fault(kind, error)
            elif n_absent == _ABSENT_AFTER and code == 404:
                fault(kind, None)
                yield News(kind, [])  # the cluster does not know this kind yet
            longest = _MAX_ABSENCE_NS if is_absent else _MAX_PAUSE_NS
            pause = max(backoff_ns(n_faults, first_ns=_FIRST_PAUSE_NS, longest_ns=longest), _asked_pause_ns(error))
            yield None
            late.wait(pause, for_kinds=is_absent)


def list_all(api: Api, kind: str, *, namespace: str = "", selector: str = "") -> tuple[list[JsonObject], str]:
    """Return all objects of a kind, page by page, and the version of the list.

    Args:
        api: The server.
        kind: The kind, one of `api.kinds`.
        namespace: List only those in this namespace; by default, all.
        selector: List only those that a selector of labels selects; by default, all.

    Raises:
        RefusedError: The server refuses, for example because a page was requested too late.
        UnansweredError: The server does not answer, or not with a list of this kind.
    """
    objects: list[JsonObject] = []
    path = api.path(kind, namespace)
    first = {"limit": str(_PAGE)} | ({"labelSelector": selector} if selector else {})
    query = first
    while True:
        answer = api.get(path, query)
        items = answer.get("items")
        version, rest = (text_at(answer, "metadata", name) for name in ("resourceVersion", "continue"))
        if not isinstance(items, list | None) or "items" not in answer or not version:
            # Anything else taken for an empty list would mean that everything is gone.
            raise UnansweredError(f"{path}: the answer is no list: it needs items and metadata.resourceVersion")
        objects += (_listed(item, kind, path) for item in items or ())
        if not rest:
            return objects, version
        if not items or rest == query.get("continue") or len(objects) > _MOST_OBJECTS:
            why = "a page has no items, leads to itself, or is one of too many"
            raise UnansweredError(f"{path}: the list does not end: {why}")
        query = {**first, "continue": rest}


def _listed(item: JsonValue, kind: str, path: str) -> JsonObject:
    if not isinstance(item, dict) or item.get("kind", kind) != kind:
        raise UnansweredError(f"{path}: the list has an item that is no {kind}")
    return item


class _BrokenWatchError(RefusedError):
    """The server has ended a watch with an error."""


class _EventError(UnansweredError):
    """Something that came over a watch is not an event of its kind."""


def check_event(event: JsonObject, kind: str) -> None:
    """Refuse what is no event of a kind.

    Raises:
        RefusedError: The server has ended the watch with an error.
        UnansweredError: It is no event, or one about another kind.
    """
    manifest = event.get("object")
    if event.get("type") not in _EVENT_TYPES or not isinstance(manifest, dict):
        raise _EventError(f"watch of {kind}: what came is no event: it needs a type and an object")
    if event["type"] == "ERROR":
        raise _BrokenWatchError.of(manifest)
    if manifest.get("kind") != kind:
        raise _EventError(f"watch of {kind}: an event is about another kind, {text_at(manifest, 'kind') or 'none'}")


def _asked_pause_ns(error: Exception) -> int:
    if not isinstance(error, RefusedError):
        return 0
    return min(int_at(error.details, "retryAfterSeconds"), _MAX_ASKED_SECONDS) * SECOND_NS


class _Nodes:
    """The Nodes as they were when their last event was passed on."""

    def __init__(self) -> None:
        self._nodes: dict[str, JsonObject] = {}

    def list(self, objects: list[JsonObject]) -> None:
        self._nodes = {text_at(object_, "metadata", "name"): object_ for object_ in objects}

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
