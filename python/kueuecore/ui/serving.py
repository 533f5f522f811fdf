"""Serves the page on loopback until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import uvicorn

from kueuecore.cli.state_source import StateSource
from kueuecore.ui.app import application
from kueuecore.ui.timeline import Timeline

__all__ = ["PageServer", "serve_page"]

_HOST = "127.0.0.1"
# A form holds a job in its address.
_LONGEST_REQUEST = 1024 * 1024


class PageServer(uvicorn.Server):
    """The server of one page.

    Args:
        port: The port; 0 for a free one.
        source: The state.
        run: The run, if there is no state.

    Raises:
        OSError: The port is in use.
    """

    def __init__(self, *, port: int = 0, source: StateSource | None = None, run: Timeline | None = None) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind((_HOST, port))
            # A browser may come before the server is up.
            self.socket.listen()
        except OSError:
            self.socket.close()
            raise
        self.port: int = self.socket.getsockname()[1]
        self._token = secrets.token_urlsafe(32)
        app, self._close = application(token=self._token, port=self.port, source=source, run=run)
        config = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            lifespan="off",
            ws="none",
            http="h11",
            server_header=False,
            h11_max_incomplete_event_size=_LONGEST_REQUEST,
            timeout_graceful_shutdown=1,
        )
        super().__init__(config)

    @property
    def address(self) -> str:
        """The address of the page, with the token."""
        return f"http://{_HOST}:{self.port}/?token={self._token}"

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the streams of open pages, then the server."""
        self._close()
        super().handle_exit(sig, frame)

    def serve_until_stopped(self) -> None:
        """Serve until Ctrl-C, or until `stop`."""
        self.run(sockets=[self.socket])

    def stop(self) -> None:
        """End a server that runs in another thread."""
        self._close()
        self.should_exit = True


def serve_page(server: PageServer, say: Callable[[str], None], *, opens: bool) -> None:
    """Say where the page is, and serve it until Ctrl-C.

    Args:
        server: The server.
        say: Prints a line.
        opens: Open a browser?
    """
    say(server.address)
    if opens:
        webbrowser.open(server.address)
    # uvicorn raises it again once everything is closed.
    with suppress(KeyboardInterrupt):
        server.serve_until_stopped()
