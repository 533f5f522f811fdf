"""Talks to an API server over HTTP: the `kubernetes` client's credentials and connections, plain JSON objects."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeAlias
from urllib.parse import quote, urlencode

import urllib3
from kubernetes.client import ApiClient
from urllib3.exceptions import HTTPError

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.errors import KueuecoreError
from kueuecore.kubernetes.credentials import Client, credentials_at
from kueuecore.version import version

__all__ = ["FIELD_MANAGER", "MERGE_PATCH", "Answered", "Api", "UnansweredError"]

FIELD_MANAGER = "kueuecore"
"""The name of the writer in `metadata.managedFields`."""
MERGE_PATCH = "application/merge-patch+json"
_CONNECT_SECONDS = 10.0
# Bookmarks come about every minute, so a connection that is silent for longer may be dead.
_SILENT_SECONDS = 75.0
# Of an event, in `{"type":"ADDED",`.
_QUOTES_BEFORE = 4
_WATCH_SECONDS = 300
# The longest line of a watch: no object is that large.
_MAX_LINE = 64 << 20
# No page of a list is that large or slow.
_MOST_BYTES = 1 << 30
_WHOLE_SECONDS = 300.0
_CHUNK = 1 << 20

Answered: TypeAlias = Callable[[str, str, int], None]
"""Called after each request with method, host and status code; 0 if there was no answer."""


class UnansweredError(KueuecoreError):
    """A request got no answer, or an unreadable one. If it was a write, it may or may not have been carried out."""


class Api:
    """Makes requests to one API server. Safe to use from several threads at a time.

    Args:
        client: A client of the `kubernetes` package, for its credentials and connections.
        kinds: apiVersion and the plural in the path, by kind.
        qps: The most requests per second on average, as in `clientConnection.qps`; None: no limit.
        burst: The most requests at once.
        answered: Called after each request.

    Example:
        >>> api = Api.connect(server="http://127.0.0.1:8001", kinds={"Job": ("batch/v1", "jobs")})
        >>> api.path("Job", "lab", "sum", "status")
        '/apis/batch/v1/namespaces/lab/jobs/sum/status'
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        kinds: Mapping[str, tuple[str, str]] | None = None,
        qps: float | None = None,
        burst: int = 1,
        answered: Answered | None = None,
    ) -> None:
        self.client = client
        self.kinds = dict(kinds or {})
        self._pace = _Pace(qps, burst) if qps else None
        self._answered = answered
        self._host = client.configuration.host.rstrip("/")
        self._credentials = threading.Lock()
        self._watches: set[urllib3.BaseHTTPResponse] = set()
        client.user_agent = f"kueuecore/{version()}"

    @classmethod
    def connect(
        cls,
        *,
        server: str = "",
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        kinds: Mapping[str, tuple[str, str]] | None = None,
        qps: float | None = None,
        burst: int = 1,
        answered: Answered | None = None,
    ) -> Self:
        """Find the API server: at a URL, in a kubeconfig, or that of the pod in which this runs.

        Tokens in files and those of a kubeconfig's exec plugin are read again before they expire, and after a 401.

        Args:
            server: Its URL, if no credentials are needed, as with `kubectl proxy`.
            kubeconfig: A kubeconfig; by default, outside of a cluster, `KUBECONFIG` or `~/.kube/config`.
            context: A context of the kubeconfig; by default its current one.
            kinds: As for `Api`.
            qps: As for `Api`.
            burst: As for `Api`.
            answered: As for `Api`.

        Raises:
            kubernetes.config.ConfigException: Credentials cannot be found or read.
        """
        client = Client(partial(credentials_at, server=server, kubeconfig=kubeconfig, context=context))
        return cls(client, kinds=kinds, qps=qps, burst=burst, answered=answered)

    @property
    def host(self) -> str:
        """The URL of the server."""
        return str(self._host)

    def path(self, kind: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of an object or, without a name, of all objects of a kind.

        Raises:
            KeyError: The kind is not in `kinds`.
        """
        api_version, plural = self.kinds[kind]
        place = f"/{'apis' if '/' in api_version else 'api'}/{api_version}"
        place += f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        return "/".join(filter(None, (place, plural, quote(name, safe=""), subresource)))

    def get(self, path: str, query: Mapping[str, str] | None = None) -> JsonObject:
        """Get an object or a list.

        Raises:
            RefusedError: The server refuses.
            UnansweredError: The server does not answer.
        """
        return self.send("GET", path, query=query)

    def send(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        seconds: float = 30.0,
    ) -> JsonObject:
        """Send a request and read its answer. It is sent only once, whatever happens.

        Args:
            method: GET, POST, PUT, PATCH or DELETE.
            path: The path, as returned by `path`.
            body: What to send.
            query: The query parameters.
            content_type: The content type of `body`; patches need one.
            seconds: How long to wait for the answer.

        Raises:
            RefusedError: The server refuses.
            UnansweredError: The server does not answer, or not with an object.
        """
        if self._pace is not None:
            self._pace.wait()
        fields = {"fieldManager": FIELD_MANAGER} if method in ("POST", "PUT", "PATCH") else {}
        answer = self._open(method, path, body, {**(query or {}), **fields}, content_type, seconds)
        try:
            return _object(_whole(answer, path), path)
        except HTTPError as error:
            raise UnansweredError(f"{method} {path}: {error}") from error

    def watch(self, path: str, *, since: str, selector: str = "") -> Iterator[tuple[JsonObject, bytes]]:
        """Start a watch; yield its events, until the server or 75 seconds of silence end it.

        With each comes its object's JSON as it was sent; empty if the line is not written as API servers do.

        Args:
            path: The path of all objects of a kind.
            since: The `resourceVersion` of the list, or of the last event.
            selector: A selector of labels; empty: all objects.

        Raises:
            RefusedError: The server refuses.
            UnansweredError: The server does not answer; or later, the connection breaks or carries something that is
                not an event.
        """
        query = {"watch": "true", "allowWatchBookmarks": "true"}
        query |= {"timeoutSeconds": str(_WATCH_SECONDS), "resourceVersion": since}
        query |= {"labelSelector": selector} if selector else {}
        return self._events(path, self._open("GET", path, None, query, "application/json", _SILENT_SECONDS))

    def _events(self, path: str, answer: urllib3.BaseHTTPResponse) -> Iterator[tuple[JsonObject, bytes]]:
        try:
            self._watches.add(answer)
            for line in _lines(answer):
                event = _object(line, path)
                yield event, _object_in(line, event)
        except HTTPError as error:
            if not isinstance(error, urllib3.exceptions.ReadTimeoutError):
                raise UnansweredError(f"watch of {path}: {error}") from error
        finally:
            self._watches.discard(answer)
            answer.close()

    def close(self) -> None:
        """End the watches, and close all connections. Readers of a watch see it end."""
        for answer in [*self._watches]:
            with suppress(ValueError, RuntimeError, OSError):  # it may have just ended by itself
                answer.shutdown()
        self.client.rest_client.close()

    def _open(
        self,
        method: str,
        path: str,
        body: JsonObject | None,
        query: Mapping[str, str],
        content_type: str,
        seconds: float,
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json", "User-Agent": self.client.user_agent}
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        with self._credentials:
            # Reads expired credentials again.
            self.client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        url = f"{self._host}{path}" + (f"?{urlencode(query)}" if query else "")
        code = 0
        try:
            answer = self.client.rest_client.pool_manager.request(
                method,
                url,
                body=data,
                headers=headers,
                timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=seconds),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            code = answer.status
            if code == 401 and isinstance(self.client, Client):
                self.client.refused()
            if code >= 300:
                raise _refusal(method, path, answer)
        except HTTPError as error:
            raise UnansweredError(f"{method} {path}: {error}") from error
        finally:
            if self._answered is not None:
                self._answered(method, self._host, code)
        return answer


class _Pace:
    """A token bucket: `qps` per second on average, `burst` at once."""

    def __init__(self, qps: float, burst: int) -> None:
        self._seconds, self._burst = 1 / qps, max(1, burst)
        self._lock = threading.Lock()
        # When the bucket is full again.
        self._full = time.monotonic()

    def wait(self) -> None:
        with self._lock:
            now = time.monotonic()
            self._full = max(self._full, now) + self._seconds
            pause = self._full - self._seconds * self._burst - now
        if pause > 0:
            time.sleep(pause)


def _whole(answer: urllib3.BaseHTTPResponse, path: str) -> bytes:
    """Return the body of an answer that ends in time, and is no larger than any page of a list."""
    until = time.monotonic() + _WHOLE_SECONDS
    chunks: list[bytes] = []
    left = _MOST_BYTES
    while chunk := answer.read1(_CHUNK):
        chunks.append(chunk)
        left -= len(chunk)
        if left < 0:
            answer.close()
            raise UnansweredError(f"{path}: the answer has more than {_MOST_BYTES} bytes")
        if time.monotonic() > until:
            answer.close()
            raise UnansweredError(f"{path}: the answer takes more than {_WHOLE_SECONDS:g} s")
    answer.release_conn()
    return b"".join(chunks)


def _object(data: bytes, path: str) -> JsonObject:
    """Return an answer or a watch event without `managedFields`, which make up half of an object or more."""
    try:
        found: Any = _read(data)
    except ValueError as error:
        raise UnansweredError(f"{path}: the answer is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise UnansweredError(f"{path}: the answer is no object")
    for item in (found, found.get("object"), *list_at(found, "items")):
        object_at(item, "metadata").pop("managedFields", None)
    return found


def _object_in(line: bytes, event: JsonObject) -> bytes:
    """Return the JSON of an event's object; empty if the line is not `{"type":"ADDED","object":{...}}`."""
    head, _, rest = line.rstrip().partition(b'"object":')
    is_whole = [*event] == ["type", "object"] and head.count(b'"') == _QUOTES_BEFORE
    return rest[:-1] if is_whole else b""


def _read(data: bytes) -> Any:
    """Read JSON as Kubernetes writes it.

    Raises:
        ValueError: It is not JSON, cannot be represented as text, or is nested too deeply.
    """

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no number of JSON")

    try:
        found = json.loads(data, parse_constant=refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if rb"\ud" in data or rb"\uD" in data:
        # Half of a surrogate pair is not valid text: encoding it again shows where.
        json.dumps(found, ensure_ascii=False).encode()
    return found


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the lines of a body, each as soon as it arrives."""
    rest = b""
    for chunk in answer.stream(1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line for line in lines if line.strip())
        if len(rest) > _MAX_LINE:
            raise urllib3.exceptions.ProtocolError(f"a line has more than {_MAX_LINE} bytes")
    if rest.strip():
        yield rest


def _refusal(method: str, path: str, answer: urllib3.BaseHTTPResponse) -> RefusedError:
    """Return why the server refused, from its Status or from whatever a proxy in between sent."""
    data = answer.data
    try:
        status = _read(data)
    except ValueError:
        status = None
    if not isinstance(status, dict) or text_at(status, "kind") != "Status":
        shown = data[:200].decode(errors="replace").strip()
        if answer.status < 400:
            shown = f"redirected to {answer.headers.get('Location', 'nowhere')}, which is not followed"
        status = {"message": shown or answer.reason or ""}
    details = {**status.get("details", {})} if isinstance(status.get("details"), dict) else {}
    seconds = answer.headers.get("Retry-After", "")
    if re.fullmatch("[0-9]{1,9}", seconds):
        details["retryAfterSeconds"] = int(seconds)
    # An API server's message names its subject; other messages may not.
    message = text_at(status, "message")
    if not message or text_at(status, "kind") != "Status":
        status["message"] = f"{method} {path}: {answer.status} {message or text_at(status, 'reason')}".rstrip()
    return RefusedError.of({**status, "code": answer.status, "details": details})
