"""Serves metrics and health over HTTP."""

from __future__ import annotations

import logging
import queue
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import (
    GC_COLLECTOR,
    PLATFORM_COLLECTOR,
    PROCESS_COLLECTOR,
    CollectorRegistry,
    Counter,
    Gauge,
    MetricsHandler,
)
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from kueuecore.errors import KueuecoreError
from kueuecore.kubernetes.settings import Address
from kueuecore.releases import Release
from kueuecore.version import version

__all__ = ["Health", "ListenError", "ProcessMetrics", "serve_health", "serve_metrics"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
# Both IPv4 and IPv6, if the machine has both.
_EVERYWHERE = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
_MAX_CONNECTIONS = 32
_PATIENCE_SECONDS = 10.0

Health = Callable[[], "dict[str, str]"]
"""Returns problems by subject; empty if all is well."""


class ListenError(KueuecoreError):
    """It is not possible to listen on an address."""


class ProcessMetrics:
    """Counts what a process does besides Kueue's own metrics, with the names of Kueue's libraries where they exist.

    Args:
        release: The release of Kueue that it decides as.
        lease: Name of the Lease; empty without an election.
    """

    def __init__(self, release: Release, *, lease: str = "") -> None:
        self.registry = CollectorRegistry()
        for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
            self.registry.register(collector)
        labels = ("version", "kueue_version", "kueue_commit")
        build = Gauge("kueuecore_build_info", "1, with the versions.", labels, registry=self.registry)
        build.labels(version(), release.tag, release.commit).set(1)
        self._requests = Counter(
            "rest_client_requests",
            "Requests by code, method and host.",
            ("code", "method", "host"),
            registry=self.registry,
        )
        self._lease = lease
        self._leads: Gauge | None = None
        if lease:
            about = "Is this the process that decides?"
            self._leads = Gauge("leader_election_master_status", about, ("name",), registry=self.registry)
            self._leads.labels(lease).set(0)

    def count_request(self, method: str, host: str, code: int) -> None:
        """Count a request; code 0: without an answer."""
        self._requests.labels(str(code) if code else "<error>", method, host.partition("://")[2]).inc()

    def lead(self) -> None:
        """Record that this process decides from now on."""
        if self._leads is not None:
            self._leads.labels(self._lease).set(1)

    def compare(self, agreed: Callable[[], int], differed: Callable[[], int]) -> None:
        """Show how often a dry run and Kueue decided the same, and how often not."""
        about = "Decisions of Kueue and of the dry run beside it: the same, or not."
        compared = Gauge("kueuecore_dry_run_decisions", about, ("verdict",), registry=self.registry)
        compared.labels("agreed").set_function(agreed)
        compared.labels("differed").set_function(differed)

    def show(self, page: Callable[[], str]) -> None:
        """Have the registry also show a page of metrics in the Prometheus text format."""
        self.registry.register(_Page(page))


class _Page(Collector):
    def __init__(self, page: Callable[[], str]) -> None:
        self._page = page

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the page's families are only known when it is made."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Return the families of the page; none if it cannot be made in time."""
        try:
            return list(text_string_to_metric_families(self._page()))
        except queue.Empty:
            return ()


def serve_metrics(address: Address, metrics: ProcessMetrics) -> int:
    """Serve metrics in threads; return the port.

    Raises:
        ListenError: Cannot listen on the address.
    """
    try:
        return _serve(address, MetricsHandler.factory(metrics.registry), "metrics")
    except OSError as error:
        raise ListenError(f"metrics cannot be served at {address.host}:{address.port}: {error}") from error


def serve_health(address: Address, *, healthy: Health, ready: Health) -> int:
    """Serve `/healthz` and `/readyz` in threads: 200 if all is well, else 500 with the problems. Return the port.

    Raises:
        ListenError: Cannot listen on the address.
    """
    checks = {"/healthz": healthy, "/livez": healthy, "/readyz": ready}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that http.server calls
            check = checks.get(self.path.partition("?")[0])
            wrong = check() if check is not None else {}
            code = 404 if check is None else 500 if wrong else 200
            text = "".join(f"{name}: {why}\n" for name, why in wrong.items()) or ("ok" if check else "not found")
            self.send_response(code)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    try:
        return _serve(address, Handler, "health")
    except OSError as error:
        raise ListenError(f"health cannot be served at {address.host}:{address.port}: {error}") from error


class _Server(ThreadingHTTPServer):
    """Answers in threads, of which there are not many.

    If too many connections are open, the oldest is closed: whoever opens connections and says nothing cannot keep
    others away.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, socket.socket] = {}
        self._n_threads = 0
        super().__init__(address, handler)

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """Answer in a thread, as `ThreadingHTTPServer` does."""
        assert isinstance(request, socket.socket), "it listens on a stream"
        with self._lock:
            # Threads that are closing, or busy with an answer, count too.
            is_crowded = self._n_threads >= 2 * _MAX_CONNECTIONS
            if not is_crowded:
                self._n_threads += 1
                if len(self._open) >= _MAX_CONNECTIONS:
                    with suppress(OSError):
                        self._open.pop(next(iter(self._open))).shutdown(socket.SHUT_RDWR)
                self._open[id(request)] = request
        if is_crowded:
            super().shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Close a connection once it is answered."""
        with self._lock:
            self._n_threads -= 1
            self._open.pop(id(request), None)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log it: clients may disconnect at any time."""
        _LOGGER.debug("not answered", extra={"client": str(client_address)}, exc_info=True)


def _serve(address: Address, handler: type[BaseHTTPRequestHandler], name: str) -> int:
    """Serve in threads; return the port."""
    host = address.host or _EVERYWHERE

    class Server(_Server):
        address_family = socket.getaddrinfo(host, address.port, type=socket.SOCK_STREAM)[0][0]

    # Per wait for the client; in all, the oldest connection gives way to a new one.
    handler.timeout = _PATIENCE_SECONDS
    server = Server((host, address.port), handler)
    threading.Thread(target=server.serve_forever, name=name, daemon=True).start()
    return server.server_port
