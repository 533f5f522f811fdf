"""Runs the server: over the streams of a client that started it, or over HTTP on this machine, with a token."""

from __future__ import annotations

import hmac
import socket
from collections.abc import Callable

import anyio
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl

__all__ = ["LOOPBACK", "PATH", "serve_http", "serve_stdio"]

LOOPBACK = "127.0.0.1"
PATH = "/mcp"
_BACKLOG = 64
# Clients keep a stream open for news.
_GRACE_SECONDS = 2


def serve_stdio(server: Server[object]) -> None:
    """Serve the client that started this process, until it closes standard input.

    Args:
        server: The server.
    """

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(serve)


def serve_http(server: Server[object], *, port: int, token: str, started: Callable[[str], None]) -> None:
    """Serve streamable HTTP on the loopback interface, until a signal ends it.

    Requests need the token. Those for another host, as a page sends whose name was bound to this machine (DNS
    rebinding), and those from pages of other origins are refused.

    Args:
        server: The server.
        port: The port; 0 for any free one.
        token: The bearer token.
        started: Called with the address once it listens.

    Raises:
        OSError: The port is in use.
    """
    import uvicorn

    listening = socket.create_server((LOOPBACK, port), backlog=_BACKLOG)
    port = listening.getsockname()[1]
    names = [f"{host}:{port}" for host in (LOOPBACK, "localhost")]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=TransportSecuritySettings(
            allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
        ),
        # There is no authorization server: who starts this server hands out the one token.
        auth=AuthSettings(issuer_url=AnyHttpUrl(f"http://{names[0]}"), resource_server_url=None),
        token_verifier=_OneToken(token),
    )
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=_GRACE_SECONDS)

    async def serve() -> None:
        started(f"http://{names[0]}{PATH}")
        await uvicorn.Server(config).serve(sockets=[listening])

    with listening:
        anyio.run(serve)


class _OneToken:
    """Knows one bearer token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        # A comparison that ends at the first difference would tell how much is right.
        if not hmac.compare_digest(token.encode(), self._token):
            return None
        return AccessToken(token=token, client_id="kueuecore", scopes=[])
