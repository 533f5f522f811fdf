"""Sends what a controller decided to an API server, and retries until the outcome is known."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kueuecore._json import JsonObject, int_at, text_at
from kueuecore._text import logged
from kueuecore.api_server import RefusedError
from kueuecore.errors import ObjectRef
from kueuecore.kubernetes.api import MERGE_PATCH, Api, UnansweredError
from kueuecore.kubernetes.event_correlator import Correlated
from kueuecore.writes import Answer, Verb, Write

__all__ = ["Emission", "Sending", "is_gone", "pause_after", "send_write"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
_FIRST_PAUSE, _MAX_PAUSE = 0.1, 30.0
# Retry after this long, whatever the server asks for.
_MAX_ASKED_PAUSE = 600
_METHODS = {Verb.CREATE: "POST", Verb.UPDATE: "PUT", Verb.PATCH: "PATCH", Verb.DELETE: "DELETE", Verb.GET: "GET"}
_DELETE_OPTIONS: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
_MAX_EMISSIONS = 5


def pause_after(n_failed: int, error: Exception) -> float:
    """Return the seconds to wait after so many failures in a row: what the server asks for, or double each time."""
    pause = min(_FIRST_PAUSE * (1 << min(n_failed - 1, 20)), _MAX_PAUSE)
    if not isinstance(error, RefusedError):
        return pause
    return max(pause, float(min(int_at(error.details, "retryAfterSeconds"), _MAX_ASKED_PAUSE)))


def is_gone(error: Exception) -> bool:
    """Return whether the object no longer exists. A server that does not know the kind for a moment names none."""
    return isinstance(error, RefusedError) and error.code == 404 and bool(text_at(error.details, "name"))


@dataclass(slots=True)
class Sending:
    """Sends writes one after the other; the first that is not accepted is the last.

    The outcome of a write that is open (it has a `number`) must become known: unless it is accepted, its object is read
    until the server answers. A deletion of what is gone counts as accepted.

    Args:
        api: The API server.
        writes: The writes.
        done: Called with each write and how it went.
        asks_after: Unless 0: do not send the first, as that was done already; read its object after so many seconds.
    """

    api: Api
    writes: Sequence[Write]
    done: Callable[[Write, Answer], None]
    asks_after: float = 0
    # The server's last answer for each object.
    _stored: dict[ObjectRef, JsonObject] = field(default_factory=dict)
    # Why a write was not accepted whose object is to be read.
    _refusal: Answer | None = None
    _n_done: int = 0
    _n_failed: int = 0

    def __call__(self) -> float | None:
        """Make one attempt."""
        if self.asks_after:
            pause, self.asks_after, self._refusal = self.asks_after, 0, Answer(error="it is not known how it went")
            return pause
        for planned in self.writes[self._n_done :]:
            stored = self._stored.get(planned.object)
            write = planned if stored is None else planned.following(stored)
            try:
                answer = self._attempt(write)
            except (RefusedError, UnansweredError) as error:
                self._n_failed += 1
                return pause_after(self._n_failed, error)
            self._n_done += 1
            self.done(planned, answer)
            if not answer.is_accepted:
                return None
            if answer.object is not None:
                self._stored[write.object] = answer.object
        return None

    def _attempt(self, write: Write) -> Answer:
        """Send a write, or read its object if it was sent; raises an error after which to try the same again."""
        if self._refusal is None:
            try:
                answer = send_write(self.api, write)
                return Answer(None if write.verb is Verb.DELETE else answer)
            except (RefusedError, UnansweredError) as error:
                if isinstance(error, RefusedError) and error.code == 429:
                    # The server has not looked at it.
                    raise
                if write.verb is Verb.DELETE and is_gone(error):
                    return Answer()
                _LOGGER.info("write not accepted", extra={"object": str(write.object), "error": logged(error)})
                refusal = Answer(error=str(error) or "refused", code=getattr(error, "code", 0))
                if not write.number:
                    return refusal
                self._refusal = refusal
        try:
            newest = self.api.get(self.api.path(write.kind, write.namespace, write.name))
        except RefusedError as error:
            if not is_gone(error):
                raise
            return replace(self._refusal, code=404)
        return replace(self._refusal, object=newest)


def send_write(api: Api, write: Write) -> JsonObject:
    """Send a write once, and return the server's answer.

    Raises:
        RefusedError: The server refuses.
        UnansweredError: The server does not answer, or not with an object.
    """
    name = "" if write.verb is Verb.CREATE else write.name
    path = api.path(write.kind, write.namespace, name, write.subresource)
    body: JsonObject | None = write.manifest
    if write.verb is Verb.DELETE:
        body = {**_DELETE_OPTIONS, "preconditions": write.preconditions}
    elif write.verb is Verb.GET:
        body = None
    content_type = MERGE_PATCH if write.verb is Verb.PATCH else "application/json"
    return api.send(_METHODS[write.verb], path, body, content_type=content_type)


@dataclass(slots=True)
class Emission:
    """Creates an Event, or counts it up; gives up after some attempts, as Kueue's recorder does.

    Args:
        api: The API server.
        written: What to write.
    """

    api: Api
    written: Correlated
    _n_failed: int = 0
    # Whether the Event that was to be counted up is there.
    _is_gone: bool = False

    def __call__(self) -> float | None:
        """Make one attempt."""
        event, patch = self.written.event, self.written.patch
        namespace, name = text_at(event, "metadata", "namespace"), text_at(event, "metadata", "name")
        try:
            if patch is None or self._is_gone:
                self.api.send("POST", self.api.path("Event", namespace), event)
            else:
                path = self.api.path("Event", namespace, name)
                self.api.send("PATCH", path, patch, content_type=MERGE_PATCH)
        except (RefusedError, UnansweredError) as error:
            if isinstance(error, RefusedError) and error.code == 409:
                # An attempt without an answer has created it.
                return None
            if isinstance(error, RefusedError) and error.code == 404 and patch is not None and not self._is_gone:
                # Servers forget Events after an hour.
                self._is_gone = True
                return 0.0
            self._n_failed += 1
            is_transient = isinstance(error, UnansweredError) or error.code in (429, 500, 503, 504)
            if is_transient and self._n_failed < _MAX_EMISSIONS:
                return pause_after(self._n_failed, error)
            _LOGGER.warning("event not created", extra={"reason": event["reason"], "error": logged(error)})
        return None
