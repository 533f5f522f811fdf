"""Serves HTTP from threads, over TLS if it has certificates, however badly its clients behave."""

from __future__ import annotations

import io
import logging
import re
import socket
import socketserver
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TypeAlias, cast
from urllib.parse import parse_qs, unquote

from kueuecore._text import logged
from kueuecore.errors import KueuecoreError
from kueuecore.kubernetes.https.messages import Handler, Request, Response, ServerLimits
from kueuecore.kubernetes.https.tls import CertificateError, Peer, TlsContexts, peer_of
from kueuecore.kubernetes.settings import Address

__all__ = ["HttpServer", "ListenError"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
# Both IPv4 and IPv6, if the machine has both.
_EVERYWHERE = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
_CHUNK = 1 << 16
_MAX_PARAMETERS = 100
# Before the next try to accept a connection, when the process has too many files open.
_PAUSE_SECONDS = 0.1


class ListenError(KueuecoreError):
    """It is not possible to listen on an address."""


class HttpServer:
    """A server that answers from `start` to `stop`.

    Args:
        address: Where to listen.
        handler: Answers requests.
        name: What it serves, for messages and its thread.
        tls: Its certificates; None: plain HTTP.
        limits: What clients may ask of it.

    Raises:
        ListenError: It cannot listen on the address.

    Example:
        >>> from urllib.request import urlopen
        >>> server = HttpServer(Address("127.0.0.1", 0), lambda it: Response.text(200, it.path), name="echo")
        >>> server.start()
        >>> urlopen(f"http://127.0.0.1:{server.port}/said?twice").read()
        b'/said'
        >>> server.stop()
    """

    def __init__(
        self,
        address: Address,
        handler: Handler,
        *,
        name: str,
        tls: TlsContexts | None = None,
        limits: ServerLimits | None = None,
    ) -> None:
        host = address.host or _EVERYWHERE
        try:
            family = socket.getaddrinfo(host, address.port, type=socket.SOCK_STREAM)[0][0]
            serving = _Serving(handler, name, tls, limits or ServerLimits())
            self._server = _Server(family, (host, address.port), serving)
        except OSError as error:
            raise ListenError(f"{name} cannot be served at {address.host}:{address.port}: {error}") from error
        self._thread = threading.Thread(target=self._server.serve_forever, name=name, daemon=True)
        self.port = int(self._server.server_address[1])
        """Where it listens."""

    def start(self) -> None:
        """Accept connections."""
        self._thread.start()

    def stop(self, *, seconds: float = 2.0) -> None:
        """Accept no more, close connections that wait for their clients, and let the other answers end.

        Args:
            seconds: How long to wait for these.
        """
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
        self._server.drain(seconds)


@dataclass(frozen=True, slots=True)
class _Serving:
    handler: Handler
    name: str
    tls: TlsContexts | None
    limits: ServerLimits


_Raw: TypeAlias = socket.socket | tuple[bytes, socket.socket]


class _Server(socketserver.TCPServer):
    """Answers in threads, of which there are not many.

    If too many connections are open, the one that has waited longest for its client is closed: whoever opens
    connections and says nothing cannot keep others away.
    """

    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, family: socket.AddressFamily, address: tuple[str, int], serving: _Serving) -> None:
        self.address_family = family
        self.serving = serving
        self._state = threading.Condition()
        # In the order in which they began to wait for their clients; whether for a request, not for an answer's reader.
        self._waiting: dict[_Connection, bool] = {}
        self._n_threads = 0
        self._is_over = False
        super().__init__(address, BaseHTTPRequestHandler)

    def get_request(self) -> tuple[socket.socket, object]:
        """Accept a connection."""
        try:
            return super().get_request()
        except OSError:
            # Mostly too many open files: the connection stays in the queue, and would be tried without a pause.
            time.sleep(_PAUSE_SECONDS)
            raise

    def process_request(self, request: _Raw, client_address: object) -> None:
        """Answer in a thread, if there are not too many."""
        assert isinstance(request, socket.socket), "it listens on a stream"
        connection = _Connection(request, self)
        most = self.serving.limits.connections
        with self._state:
            # Threads that are closing, or busy with an answer, count too.
            is_crowded = self._n_threads >= 2 * most
            if not is_crowded:
                self._n_threads += 1
                if self._n_threads > most and self._waiting:
                    oldest = next(iter(self._waiting))
                    del self._waiting[oldest]
                    oldest.cut()
                self._waiting[connection] = True
        if is_crowded:
            connection.close()
            return
        try:
            threading.Thread(target=self._converse, args=(connection,), name=self.serving.name, daemon=True).start()
        except RuntimeError as error:
            _LOGGER.warning("a connection is not answered", extra={"port": self.serving.name, "error": logged(error)})
            self._ended(connection)

    def _converse(self, connection: _Connection) -> None:
        try:
            connection.converse()
        except OSError as error:
            # Clients may leave at any time, and speak no TLS.
            _LOGGER.debug("a connection ended", extra={"port": self.serving.name, "error": logged(error)})
        except CertificateError as error:
            # Reported once by whoever looks after the certificates.
            _LOGGER.debug("a connection is not answered", extra={"port": self.serving.name, "error": logged(error)})
        except Exception:
            _LOGGER.exception("a connection ended", extra={"port": self.serving.name})
        finally:
            self._ended(connection)

    def _ended(self, connection: _Connection) -> None:
        connection.close()
        with self._state:
            self._n_threads -= 1
            self._waiting.pop(connection, None)
            self._state.notify_all()

    def is_busy(self, connection: _Connection) -> None:
        """Note that a connection's request is being answered."""
        with self._state:
            if connection not in self._waiting:
                raise ConnectionAbortedError("closed for a newer one")
            del self._waiting[connection]

    def waits(self, connection: _Connection, *, for_request: bool) -> bool:
        """Note that a connection waits for its client, for a request or to read an answer; False: it need not."""
        with self._state:
            self._waiting.pop(connection, None)
            self._waiting[connection] = for_request
            return not self._is_over

    def drain(self, seconds: float) -> None:
        """Close the connections that wait, and wait for the others."""
        until = time.monotonic() + seconds
        with self._state:
            self._is_over = True
            for connection, for_request in self._waiting.items():
                if for_request:
                    connection.cut()
            while self._n_threads and (left := until - time.monotonic()) > 0:
                self._state.wait(left)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log what has gone wrong before a thread was started."""
        _LOGGER.exception("a connection is not answered", extra={"port": self.serving.name})


class _Connection:
    """A connection: its handshake if it is over TLS, then its requests."""

    def __init__(self, raw: socket.socket, server: _Server) -> None:
        self.server = server
        self.socket = raw

    def converse(self) -> None:
        """Answer all requests."""
        serving = self.server.serving
        self.socket.settimeout(serving.limits.patience_seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        peer = None
        if serving.tls is not None:
            context = serving.tls.context()
            secured = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
            self.socket = secured
            secured.do_handshake()
            peer = peer_of(secured)
        _Requests(self, peer)

    def cut(self) -> None:
        """End it from another thread, which wakes its own."""
        with suppress(OSError):
            # Not that of a TLS socket, which would also take away the state that its thread is using.
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it, after it has ended."""
        with suppress(OSError):
            socket.socket.shutdown(self.socket, socket.SHUT_WR)
        self.socket.close()


class _Requests(BaseHTTPRequestHandler):
    """Reads the requests of a connection and writes the answers."""

    protocol_version = "HTTP/1.1"
    connection: socket.socket

    def __init__(self, connection: _Connection, peer: Peer | None) -> None:
        self._of, self._peer = connection, peer
        self._serving = connection.server.serving
        super().__init__(connection.socket, ("", 0), connection.server)

    def setup(self) -> None:
        """Read and write with limits of time."""
        limits = self._serving.limits
        self.connection = self.request
        self._stream = _Timed(self.connection, limits.idle_seconds, limits.patience_seconds)
        self.rfile = io.BufferedReader(self._stream, _CHUNK)
        self.wfile = io.BufferedWriter(cast(io.RawIOBase, self._stream), _CHUNK)

    def finish(self) -> None:
        """Leave the rest to the connection."""

    def handle_one_request(self) -> None:
        """Wait for a request and answer it."""
        self._stream.wait()
        super().handle_one_request()
        if not self._of.server.waits(self._of, for_request=True):
            self.close_connection = True

    def _answer(self) -> None:
        status, body = self._body()
        if status is not None:
            self.send_error(status)
            return
        path, _, query = self.path.partition("?")
        try:
            parameters = parse_qs(query, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
        except ValueError:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        request = Request(self.command, unquote(path), parameters, self.headers, body, self._peer)
        self._of.server.is_busy(self._of)
        try:
            response = self._serving.handler(request)
        except Exception:
            _LOGGER.exception("a request is not answered", extra={"port": self._serving.name, "path": logged(path)})
            response = Response.text(500, "internal error, see the log\n")
        finally:
            self._of.server.waits(self._of, for_request=False)
        self._write(response)

    # The names that http.server calls.
    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer  # noqa: N815

    def _write(self, response: Response) -> None:
        self.send_response_only(response.status)
        self.send_header("Date", self.date_time_string())
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in response.headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)
        self.wfile.flush()

    def _body(self) -> tuple[HTTPStatus | None, bytes]:
        """Return the status with which to refuse a body, or the body."""
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers:
            return HTTPStatus.LENGTH_REQUIRED, b""
        if not lengths:
            return None, b""
        if len(lengths) > 1 or not re.fullmatch("[0-9]{1,18}", lengths[0]):
            return HTTPStatus.BAD_REQUEST, b""
        length = int(lengths[0])
        if length > self._serving.limits.body:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b""
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionResetError("the client left within its request")
        return None, body

    def handle_expect_100(self) -> bool:
        """Ask for the body at once; without a client's wait if it is too large."""
        length = self.headers.get("Content-Length", "0")
        if re.fullmatch("[0-9]{1,18}", length) and int(length) <= self._serving.limits.body:
            self.send_response_only(HTTPStatus.CONTINUE)
            self.end_headers()
            self.wfile.flush()
        return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request and close the connection, for what follows cannot be told from a body."""
        self.close_connection = True
        # What could not be read is answered like any other.
        self.request_version = self.protocol_version
        if not hasattr(self, "command") or self.command is None:
            self.command = ""
        self._write(Response.text(code, f"{HTTPStatus(code).phrase}\n"))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing of clients."""


class _Timed(io.RawIOBase):
    """A socket with a limit of time for the whole of a request."""

    def __init__(self, of: socket.socket, idle: float, patience: float) -> None:
        self._of, self._idle, self._patience = of, idle, patience
        # When the request must have been read; None: it has not begun.
        self._until: float | None = None

    def wait(self) -> None:
        """Wait for the next request."""
        self._until = None

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        left = self._idle if self._until is None else self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the client is too slow")
        self._of.settimeout(left)
        n_read = self._of.recv_into(buffer)
        if self._until is None:
            self._until = time.monotonic() + self._patience
        return n_read

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        self._of.settimeout(self._patience)
        return self._of.send(data)
