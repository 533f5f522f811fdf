"""Asks a Prometheus over HTTP, with nothing but the standard library."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
from contextlib import closing
from functools import partial
from urllib.parse import SplitResult, unquote, urlencode, urlsplit

from kueuecore._json import JsonValue, text_at
from kueuecore._text import logged, quoted
from kueuecore.errors import ManifestError
from kueuecore.forecasts.history.kinds import without_password
from kueuecore.forecasts.history.metric_rates import Ask
from kueuecore.times import SECOND_NS
from kueuecore.version import version

__all__ = ["connected"]

_PATH = "/api/v1/query_range"
_SILENT_SECONDS = 30.0
_WHOLE_SECONDS = 120.0
_MOST_BYTES = 1 << 28
_CHUNK = 1 << 20
_REACH = (
    "check the address, such as http://prometheus:9090; from outside of a cluster, "
    "kubectl -n monitoring port-forward svc/prometheus 9090 and http://localhost:9090"
)
_ALLOWED = "give the address as https://USER:PASSWORD@HOST, or of a port-forward to Prometheus itself"
_OTHER = "give the address of Prometheus itself, or of what answers /api/v1/query_range like it"


def connected(address: str) -> Ask:
    """Return what sends queries to a Prometheus. Nothing is sent yet.

    Args:
        address: `http://` or `https://`, a host, and if it needs them a user with a password, a port, and a path before
            `/api/v1`.

    Raises:
        ManifestError: The address is none.
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise ManifestError.of(f"it is no address: {error}", remedy=_REACH, file=without_password(address)) from None
    shown = without_password(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ManifestError.of("it is no address of a server", remedy=_REACH, file=shown)
    if parts.query or parts.fragment:
        raise ManifestError.of("it is an address with a query", remedy="leave out what follows the path", file=shown)
    return partial(_ask, parts, port, shown)


def _ask(parts: SplitResult, port: int | None, shown: str, query: str, begin: int, end: int, step: int) -> JsonValue:
    """Send a query of a range.

    Raises:
        ManifestError: The server cannot be reached, refuses, or is none of Prometheus.
    """
    times = {"start": f"{begin / SECOND_NS:.3f}", "end": f"{end / SECOND_NS:.3f}", "step": str(step)}
    path = f"{parts.path.rstrip('/').removesuffix('/api/v1')}{_PATH}?{urlencode({'query': query, **times})}"
    headers = {"Accept": "application/json", "User-Agent": f"kueuecore/{version()}"}
    if parts.username is not None:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(secret.encode()).decode()}"
    try:
        with closing(_connection(parts, port)) as connection:
            connection.request("GET", path, headers=headers)
            with connection.getresponse() as answer:
                return _read(answer, shown)
    except http.client.InvalidURL as error:
        raise ManifestError.of(f"it is no address: {logged(error)}", remedy=_REACH, file=shown) from None
    except http.client.HTTPException as error:
        message = f"it does not speak HTTP: {logged(error) or type(error).__name__}"
        raise ManifestError.of(message, remedy=_REACH, file=shown) from None
    except UnicodeError as error:
        raise ManifestError.of(f"it is no address: {logged(error)}", remedy=_REACH, file=shown) from None
    except ssl.SSLError as error:
        remedy = "name its CA in the variable SSL_CERT_FILE, or check whether the address is one of http://"
        raise ManifestError.of(f"no TLS with it: {error.reason or error}", remedy=remedy, file=shown) from None
    except OSError as error:
        why = "it does not answer in time" if isinstance(error, TimeoutError) else error.strerror or error
        raise ManifestError.of(f"cannot be reached: {why}", remedy=_REACH, file=shown) from None


def _connection(parts: SplitResult, port: int | None) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=_SILENT_SECONDS, context=context)
    return http.client.HTTPConnection(host, port, timeout=_SILENT_SECONDS)


def _read(answer: http.client.HTTPResponse, shown: str) -> JsonValue:
    """Read an answer.

    Raises:
        ManifestError: It is not what Prometheus answers.
    """
    if 300 <= answer.status < 400:
        place = quoted(answer.headers.get("Location", ""))
        message = f"it redirects to {place}, which is not followed"
        raise ManifestError.of(message, remedy="give that address, if it is the one you trust", file=shown)
    data = _body(answer, shown)
    try:
        found: JsonValue = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if answer.status in (401, 403):
        raise ManifestError.of(f"it refuses: {answer.status} {answer.reason}", remedy=_ALLOWED, file=shown)
    if isinstance(found, dict) and text_at(found, "status") in ("success", "error"):
        return found
    if answer.status >= 400:
        raise ManifestError.of(f"it answers {answer.status} {answer.reason}", remedy=_OTHER, file=shown)
    raise ManifestError.of("its answer is none of Prometheus", remedy=_OTHER, file=shown)


def _body(answer: http.client.HTTPResponse, shown: str) -> bytes:
    until = time.monotonic() + _WHOLE_SECONDS
    chunks: list[bytes] = []
    left = _MOST_BYTES
    while chunk := answer.read1(_CHUNK):
        chunks.append(chunk)
        left -= len(chunk)
        if left < 0 or time.monotonic() > until:
            message = f"its answer has more than {_MOST_BYTES >> 20} MiB, or takes more than {_WHOLE_SECONDS:g} s"
            raise ManifestError.of(message, remedy="save fewer series to a file, and give that", file=shown)
    return b"".join(chunks)
