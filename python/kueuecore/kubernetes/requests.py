"""Sends what a controller decided to an API server, and retries until the outcome is known."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kueuecore._json import JsonObject, int_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.checks import ObjectWrite, ObjectWriteKind
from kueuecore.controller import JobWork, WorkloadWrite
from kueuecore.errors import ObjectRef
from kueuecore.jobs import Verb
from kueuecore.kubernetes.api import MERGE_PATCH, Api, UnansweredError

__all__ = ["Emission", "JobTask", "ObjectsTask", "WorkloadTask", "pause_after"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0
# Retry after this long, whatever the server asks for.
_LONGEST_ASKED_PAUSE = 600
_METHODS = {Verb.CREATE: "POST", Verb.PATCH: "PATCH", Verb.DELETE: "DELETE"}
_OBJECT_METHODS = {
    ObjectWriteKind.CREATE: "POST",
    ObjectWriteKind.PATCH: "PATCH",
    ObjectWriteKind.PATCH_STATUS: "PUT",
    ObjectWriteKind.DELETE: "DELETE",
}
_MOST_EMISSIONS = 5


def pause_after(n_failed: int, error: Exception) -> float:
    """Return the seconds to wait after so many failures in a row: what the server asks for, or double each time."""
    pause = min(_FIRST_PAUSE * (1 << min(n_failed - 1, 20)), _LONGEST_PAUSE)
    if not isinstance(error, RefusedError):
        return pause
    return max(pause, float(min(int_at(error.details, "retryAfterSeconds"), _LONGEST_ASKED_PAUSE)))


def _was_throttled(error: Exception) -> bool:
    """Return whether the server refused without looking at the request."""
    return isinstance(error, RefusedError) and error.code == 429


def _is_gone(error: Exception) -> bool:
    """Return whether the object no longer exists. A server that does not know the kind for a moment names none."""
    return isinstance(error, RefusedError) and error.code == 404 and bool(text_at(error.details, "name"))


@dataclass(slots=True)
class WorkloadTask:
    """Writes a Workload: one patch and, unless it is accepted, reads until the server's state is known.

    Args:
        api: The API server.
        write: The write.
        confirmed: Called with the write and the answer.
        refused: Called with the write and the current Workload; None: it is gone.
        asks_after: Send nothing, as that was done already; read the state after this many seconds.
    """

    api: Api
    write: WorkloadWrite
    confirmed: Callable[[WorkloadWrite, JsonObject], None]
    refused: Callable[[WorkloadWrite, JsonObject | None], None]
    asks_after: float | None = None
    _is_sent: bool = False
    _n_failed: int = 0

    def __call__(self) -> float | None:
        """Make one attempt."""
        if self.asks_after is not None:
            pause, self.asks_after, self._is_sent = self.asks_after, None, True
            return pause
        try:
            if not self._is_sent:
                self._is_sent = True
                it = self.write
                path = self.api.path("Workload", it.namespace, it.name, it.subresource)
                self.confirmed(it, self.api.send("PATCH", path, it.patch, content_type=MERGE_PATCH))
                return None
        except (RefusedError, UnansweredError) as error:
            if _was_throttled(error):
                self._is_sent = False
                return self._pause(error)
            _LOGGER.info("write not accepted", extra={"workload": self.write.key, "error": str(error)})
        return self._ask()

    def _ask(self) -> float | None:
        it = self.write
        try:
            newest: JsonObject | None = self.api.get(self.api.path("Workload", it.namespace, it.name))
        except (RefusedError, UnansweredError) as error:
            if not _is_gone(error):
                return self._pause(error)
            newest = None
        self.refused(it, newest)
        return None

    def _pause(self, error: Exception) -> float:
        self._n_failed += 1
        return pause_after(self._n_failed, error)


@dataclass(slots=True)
class JobTask:
    """The requests of one reconcile of a job, in order; the first failure ends it.

    Args:
        api: The API server.
        work: The result of the reconcile.
        answered: Called with each object that the server returned.
        done: Called once all were accepted.
        failed: Called after the first that was not.
    """

    api: Api
    work: JobWork
    answered: Callable[[JsonObject], None]
    done: Callable[[JobWork], None]
    failed: Callable[[JobWork], None]
    _n_sent: int = 0
    _n_failed: int = 0
    # The server's last answer for each object.
    _stored: dict[ObjectRef, JsonObject] = field(default_factory=dict)

    def __call__(self) -> float | None:
        """Make the requests that were not accepted yet."""
        for planned in self.work.requests[self._n_sent :]:
            ref = planned.object
            request = planned.following(self._stored[ref]) if ref in self._stored else planned
            name = "" if request.verb is Verb.CREATE else ref.name
            path = self.api.path(ref.kind, ref.namespace, name, request.subresource)
            kind = MERGE_PATCH if request.verb is Verb.PATCH else "application/json"
            try:
                answer = self.api.send(_METHODS[request.verb], path, request.body, content_type=kind)
            except (RefusedError, UnansweredError) as error:
                if _was_throttled(error):
                    self._n_failed += 1
                    return pause_after(self._n_failed, error)
                if not (request.verb is Verb.DELETE and _is_gone(error)):
                    extra = {"job": str(self.work.job), "request": f"{request.verb} {ref}", "error": str(error)}
                    _LOGGER.info("request not accepted", extra=extra)
                    self.failed(self.work)
                    return None
            else:
                if request.verb is not Verb.DELETE:
                    self._stored[ref] = answer
                    self.answered(answer)
            self._n_sent += 1
        self.done(self.work)
        return None


@dataclass(slots=True)
class ObjectsTask:
    """Writes of other objects, in order; those after a refused one are skipped.

    Args:
        api: The API server.
        writes: The writes.
        answered: Called with each object that the server returned.
        refused: Called with the refused write, and why.
    """

    api: Api
    writes: Sequence[ObjectWrite]
    answered: Callable[[JsonObject], None]
    refused: Callable[[ObjectWrite, Exception], None]
    _n_sent: int = 0
    _n_failed: int = 0

    def __call__(self) -> float | None:
        """Make the requests that were not accepted yet."""
        for write in self.writes[self._n_sent :]:
            try:
                answer = self._send(write)
            except (RefusedError, UnansweredError) as error:
                if _was_throttled(error):
                    self._n_failed += 1
                    return pause_after(self._n_failed, error)
                if not (write.kind is ObjectWriteKind.DELETE and _is_gone(error)):
                    _LOGGER.info("write not accepted", extra={"object": str(write.object), "error": str(error)})
                    self.refused(write, error)
                    return None
            else:
                if write.kind is not ObjectWriteKind.DELETE:
                    self.answered(answer)
            self._n_sent += 1
        return None

    def _send(self, write: ObjectWrite) -> JsonObject:
        ref, body = write.object, write.manifest
        name = "" if write.kind is ObjectWriteKind.CREATE else ref.name
        subresource = "status" if write.kind is ObjectWriteKind.PATCH_STATUS else ""
        path = self.api.path(ref.kind, ref.namespace, name, subresource)
        if write.kind is ObjectWriteKind.DELETE:
            uid = text_at(write.manifest, "metadata", "uid")
            body = {"preconditions": {"uid": uid}} if uid else {}
        kind = MERGE_PATCH if write.kind is ObjectWriteKind.PATCH else "application/json"
        return self.api.send(_OBJECT_METHODS[write.kind], path, body, content_type=kind)


@dataclass(slots=True)
class Emission:
    """Creates an Event; gives up after some attempts, as Kueue's recorder does.

    Args:
        api: The API server.
        event: The Event.
    """

    api: Api
    event: JsonObject
    _n_failed: int = 0

    def __call__(self) -> float | None:
        """Make one attempt."""
        try:
            self.api.send("POST", self.api.path("Event", text_at(self.event, "metadata", "namespace")), self.event)
        except (RefusedError, UnansweredError) as error:
            self._n_failed += 1
            is_transient = isinstance(error, UnansweredError) or error.code in (429, 500, 503, 504)
            if is_transient and self._n_failed < _MOST_EMISSIONS:
                return pause_after(self._n_failed, error)
            _LOGGER.warning("event not created", extra={"reason": self.event["reason"], "error": str(error)})
        return None
