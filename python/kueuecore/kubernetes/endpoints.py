"""Serves metrics and health."""

from __future__ import annotations

import gzip
import queue
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from prometheus_client import (
    GC_COLLECTOR,
    PLATFORM_COLLECTOR,
    PROCESS_COLLECTOR,
    CollectorRegistry,
    Counter,
    Gauge,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from kueuecore._json import JsonObject
from kueuecore._text import escaped
from kueuecore.kubernetes.https.delegated_access import AccessUnknownError, DelegatedAccess, bearer_token
from kueuecore.kubernetes.https.messages import Handler, Request, Response, ServerLimits
from kueuecore.kubernetes.https.server import HttpServer, ListenError
from kueuecore.kubernetes.https.tls import TlsContexts
from kueuecore.kubernetes.settings import Address
from kueuecore.releases import Release
from kueuecore.version import version

if TYPE_CHECKING:
    from kueuecore.kubernetes.forecasting import Outlook

__all__ = ["Health", "ListenError", "ProcessMetrics", "serve_health", "serve_metrics"]

Health = Callable[[], "dict[str, str]"]
"""Returns problems by subject; empty if all is well."""


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

    def judged(self, *, known: Callable[[], int], failed: Callable[[], int]) -> Callable[[str, str], None]:
        """Show what a dry run has judged.

        Args:
            known: How many different differences it knows.
            failed: How many writes to its journal have failed.

        Returns:
            Counts a decision: takes its kind and the verdict.
        """
        about = "Decisions of Kueue that the dry run beside it has judged, by kind."
        counter = Counter("kueuecore_dry_run_judged", about, ("kind", "verdict"), registry=self.registry)
        about = "Differences that are known, each counted once."
        Gauge("kueuecore_dry_run_differences", about, registry=self.registry).set_function(known)
        about = "Writes to the journal that have failed."
        Gauge("kueuecore_dry_run_journal_errors", about, registry=self.registry).set_function(failed)
        return lambda kind, verdict: counter.labels(kind, verdict).inc()

    def forecast(self, outlook: Callable[[], Outlook | None], shares: Sequence[float]) -> None:
        """Show forecasts of when the first workload of each ClusterQueue is admitted.

        Args:
            outlook: Returns the newest ones; None: there are none.
            shares: Their quantiles.
        """
        self.registry.register(_Forecasts(outlook, shares))

    def show(self, page: Callable[[], str]) -> None:
        """Have the registry also show a page of metrics in the Prometheus text format."""
        self.registry.register(_Page(page))


class _Forecasts(Collector):
    def __init__(self, outlook: Callable[[], Outlook | None], shares: Sequence[float]) -> None:
        self._outlook, self._shares = outlook, shares

    def describe(self) -> Iterable[Metric]:
        """Return nothing: there may be no forecast."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Return the families, as far as there are forecasts."""
        found = self._outlook()
        if found is None:
            return
        about = "Seconds until the first workload that waits in a ClusterQueue is admitted, by probability."
        waits = GaugeMetricFamily("kueuecore_forecast_wait_seconds", about, labels=("cluster_queue", "quantile"))
        for name, seconds in sorted(found.waits.items()):
            for share, second in zip(self._shares, seconds, strict=True):
                waits.add_metric((name, f"{share:g}"), second)
        yield waits
        if found.held_ratio is not None:
            about = "Share of the 80 % intervals forecast for moments of the past that held."
            yield GaugeMetricFamily("kueuecore_forecast_held_ratio", about, value=found.held_ratio)


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


def serve_metrics(
    address: Address,
    metrics: ProcessMetrics,
    *,
    tls: TlsContexts | None = None,
    access: DelegatedAccess | None = None,
    limits: ServerLimits | None = None,
) -> int:
    """Serve `/metrics` in threads; return the port.

    Args:
        address: Where to listen.
        metrics: What to show.
        tls: The certificates; None: plain HTTP.
        access: Who may read it, as for Kueue's metrics: whoever has the verb `get` for the URL `/metrics`; None:
            everybody.
        limits: What clients may ask of the server.

    Raises:
        ListenError: Cannot listen on the address.
    """
    page = partial(_metrics_page, metrics.registry)
    handler = page if access is None else partial(_guarded, page, access)

    def answer(request: Request) -> Response:
        return handler(request) if request.path == "/metrics" else Response.text(404, "404 page not found\n")

    return _served(address, answer, "metrics", limits, tls)


def serve_health(address: Address, *, healthy: Health, ready: Health, limits: ServerLimits | None = None) -> int:
    """Serve `/healthz` and `/readyz` in threads: 200 if all is well, else 500 with the problems. Return the port.

    Raises:
        ListenError: Cannot listen on the address.
    """
    return _served(address, health_pages(healthy=healthy, ready=ready), "health", limits, None)


def health_pages(*, healthy: Health, ready: Health) -> Handler:
    """Return what answers `/healthz`, `/livez` and `/readyz`."""
    checks = {"/healthz": healthy, "/livez": healthy, "/readyz": ready}

    def answer(request: Request) -> Response:
        check = checks.get(request.path)
        if check is None:
            return Response.text(404, "not found")
        wrong = check()
        return Response.text(500 if wrong else 200, "".join(f"{name}: {why}\n" for name, why in wrong.items()) or "ok")

    return answer


def _guarded(page: Handler, access: DelegatedAccess, request: Request) -> Response:
    """Answer as Kueue's metrics do: 401, 403 and 500 with the words of controller-runtime."""
    token = bearer_token(request.headers)
    try:
        user = access.user_of(token) if token else None
    except AccessUnknownError:
        return Response.text(500, "Authentication failed\n")
    if user is None:
        return Response.text(401, "Unauthorized\n")
    asked: JsonObject = {"nonResourceAttributes": {"path": request.path, "verb": request.method.lower()}}
    try:
        verdict = access.verdict(user, asked)
    except AccessUnknownError:
        return Response.text(500, f"Authorization for user {escaped(user.name)} failed\n")
    if not verdict.is_allowed:
        return Response.text(403, f"Authorization denied for user {escaped(user.name)}\n")
    return page(request)


def _metrics_page(registry: CollectorRegistry, request: Request) -> Response:
    shown: Any = registry
    if names := request.query.get("name[]"):
        shown = registry.restricted_registry(names)
    encoder, content_type = choose_encoder(request.headers.get("Accept", ""))
    page = encoder(shown)
    accepted = (
        coding.split(";")[0].strip().lower() for coding in request.headers.get("Accept-Encoding", "").split(",")
    )
    if "gzip" not in accepted:
        return Response(200, page, content_type)
    return Response(200, gzip.compress(page, 5), content_type, {"Content-Encoding": "gzip"})


def _served(address: Address, handler: Handler, name: str, limits: ServerLimits | None, tls: TlsContexts | None) -> int:
    server = HttpServer(address, handler, name=name, tls=tls, limits=limits)
    server.start()
    return server.port
