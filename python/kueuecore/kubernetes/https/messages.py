"""Requests to the servers of `kueuecore serve`, their answers, and what clients may ask of a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from typing import Self, TypeAlias

from kueuecore._json import JsonObject
from kueuecore.kubernetes.https.tls import Peer

__all__ = ["Handler", "Request", "Response", "ServerLimits"]


@dataclass(frozen=True, slots=True)
class Request:
    """A request.

    Args:
        method: GET, POST and so on.
        path: Its path, unquoted and without the query.
        query: All values of each parameter.
        headers: Its headers; names are looked up in any case.
        body: Its body.
        peer: Who the client is by its certificate, if it gave one and a CA of the server's list has signed it.
    """

    method: str
    path: str
    query: Mapping[str, list[str]] = field(default_factory=dict)
    headers: Message = field(default_factory=Message)
    body: bytes = b""
    peer: Peer | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """What a request is answered with.

    Args:
        status: The status code.
        body: The body.
        content_type: What the body is.
        headers: Further headers.
    """

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def text(cls, status: int, text: str) -> Self:
        """Return an answer in plain text."""
        return cls(status, text.encode(), "text/plain; charset=utf-8")

    @classmethod
    def json(cls, status: int, body: JsonObject) -> Self:
        """Return an answer in JSON."""
        text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        # Half a pair of surrogates, as a client may have escaped it, has no UTF-8.
        return cls(status, text.encode("utf-8", "replace"))


Handler: TypeAlias = Callable[[Request], Response]
"""Answers a request. It is called from several threads at a time."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What clients may ask of a server.

    Args:
        connections: The most that are open at a time; one more closes the one that has waited longest for its client.
        body: The most bytes of a request's body.
        patience_seconds: How long a handshake may take, a request from its first byte on, and each part of an answer.
        idle_seconds: How long a connection may wait for its next request.
    """

    connections: int = 32
    body: int = 0
    patience_seconds: float = 10.0
    idle_seconds: float = 90.0
