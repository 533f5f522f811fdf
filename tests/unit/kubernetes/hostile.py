"""An HTTP server that answers whatever a test wants, byte by byte."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    subject: str = ""
    """Who it is by the client's certificate."""

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query


@dataclass(frozen=True)
class Answer:
    """`body` as it is; a watch ends where it ends."""

    body: bytes = b""
    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Hostile:
    url: str
    asked: list[Asked]


@contextmanager
def hostile(answer: Callable[[Asked], Answer], *, tls: ssl.SSLContext | None = None) -> Iterator[Hostile]:
    """Serve; `answer` is asked about each request."""
    asked: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = urlsplit(self.path)
            query, headers = (
                dict(parse_qsl(parts.query)),
                {name.lower(): header for name, header in self.headers.items()},
            )
            request = Asked(self.command, parts.path, query, headers, _subject(self.connection))
            asked.append(request)
            found = answer(request)
            self.send_response(found.code)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(found.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.respond)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield Hostile(f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}", asked)
        finally:
            server.shutdown()


def _subject(connection: Any) -> str:
    certificate = connection.getpeercert() if isinstance(connection, ssl.SSLSocket) else None
    return certificate["subject"][0][0][1] if certificate else ""


def listing(*items: Any, version: str = "10", **metadata: Any) -> Answer:
    return of({"kind": "List", "metadata": {"resourceVersion": version, **metadata}, "items": [*items]})


def of(body: Any, code: int = 200, **headers: str) -> Answer:
    return Answer(json.dumps(body).encode(), code, headers)


def lines(*events: Any) -> Answer:
    return Answer(
        b"".join(event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n" for event in events)
    )
