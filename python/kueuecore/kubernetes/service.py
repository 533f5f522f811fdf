"""Implements `kueuecore serve`: a process that schedules the jobs of a cluster until it is asked to stop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kueuecore.configuration import Configuration
from kueuecore.controller import Metrics
from kueuecore.kubernetes.api import Answered, Api
from kueuecore.kubernetes.election import Election, LeaseSettings
from kueuecore.kubernetes.endpoints import ProcessMetrics, serve_health
from kueuecore.kubernetes.process import Process
from kueuecore.kubernetes.secured_metrics import serve_secured_metrics
from kueuecore.kubernetes.settings import ServeSettings
from kueuecore.kubernetes.signals import stopped_by_signals
from kueuecore.kubernetes.visibility.server import VisibilityServer
from kueuecore.kubernetes.webhooks.server import WebhookServer
from kueuecore.multikueue import Dispatcher

if TYPE_CHECKING:
    from kueuecore.kubernetes.forecasting import Forecaster

__all__ = ["serve"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
# A deciding thread that is silent for longer counts as hung.
_MAX_SILENCE = 60.0


def serve(
    connect: Callable[[Answered, float | None, int], Api],
    settings: ServeSettings,
    *,
    configuration: Configuration | None = None,
    dispatcher: Dispatcher | None = None,
    started: Callable[[Process, dict[str, int]], None] = lambda *_: None,
) -> None:
    """Schedule the jobs of a cluster as Kueue does, until SIGTERM or SIGINT.

    Args:
        connect: Makes an `Api` that reports its requests and limits their rate: `Api.connect` with credentials.
        settings: Addresses, the Lease and the rate limit.
        configuration: Kueue's Configuration; by default that of Kueue's release manifest.
        dispatcher: Decides which workers of MultiKueue get copies; by default the one that the Configuration names.
        started: Called with the process before it runs, and the ports of `metrics` and `health`.

    Raises:
        ListenError: An address is taken.
        CertificateError: There is no certificate for an address.
        LeaseLostError: Another process may be deciding by now.
        BaseException: A watch or another thread has died.
    """
    lease = settings.lease
    release = (configuration or Configuration()).release
    counted = ProcessMetrics(release, lease=lease.name if lease else "")
    metrics = Metrics(replica_role="follower" if lease else "standalone")
    api = connect(counted.count_request, settings.qps, settings.burst)
    emits = connect(counted.count_request, settings.qps, settings.burst)
    process = Process(
        api,
        configuration=configuration,
        metrics=metrics,
        leads=lease is None,
        emits=emits,
        dispatcher=dispatcher,
        answered=counted.count_request,
    )
    counted.show(process.metrics_text)
    webhooks = None
    if settings.webhooks is not None:
        asks = connect(counted.count_request, None, 1)
        webhooks = WebhookServer(
            settings.webhooks,
            asks,
            configuration=configuration,
            kinds=process.api.kinds,
            tls=settings.certificates.tls,
        )
        process.also_hear(webhooks.hear)
    with stopped_by_signals(process.stop):
        ports = _listen(settings, process, counted, connect, webhooks)
        visibility = _visibility(
            settings, process, lambda: connect(counted.count_request, settings.qps, settings.burst)
        )
        if visibility is not None:
            visibility.start()
            ports["visibility"] = visibility.port
        _LOGGER.info("listens", extra={**ports, "kueue": release.title})
        election = _election(connect, lease, process, metrics, counted) if lease is not None else None
        forecaster = _forecaster(settings, process, counted, configuration, connect)
        started(process, ports)
        try:
            process.run()
        finally:
            if election is not None:
                election.release()
            if forecaster is not None:
                forecaster.stop()
            if webhooks is not None:
                webhooks.stop()
            if visibility is not None:
                visibility.stop()
    _LOGGER.info("stopped")


def _election(
    connect: Callable[[Answered, float | None, int], Api],
    lease: LeaseSettings,
    process: Process,
    metrics: Metrics,
    counted: ProcessMetrics,
) -> Election:
    def won() -> None:
        _LOGGER.info("leads", extra={"identity": lease.identity})
        metrics.replica_role = "leader"
        counted.lead()
        process.lead(confirm=election.confirm)

    election = Election(connect(counted.count_request, None, 1), lease, won=won, lost=process.end)
    election.start()
    return election


def _listen(
    settings: ServeSettings,
    process: Process,
    counted: ProcessMetrics,
    connect: Callable[[Answered, float | None, int], Api],
    webhooks: WebhookServer | None,
) -> dict[str, int]:
    def unready() -> dict[str, str]:
        return {**process.unready, **(webhooks.unready if webhooks is not None else {})}

    where: dict[str, int] = {}
    if webhooks is not None:
        where["webhooks"] = webhooks.start()
    if settings.metrics is not None:
        where["metrics"] = serve_secured_metrics(settings.metrics, settings, counted, connect)
    if settings.health is not None:
        where["health"] = serve_health(settings.health, healthy=partial(_faults, process), ready=unready)
    return where


def _forecaster(
    settings: ServeSettings,
    process: Process,
    counted: ProcessMetrics,
    configuration: Configuration | None,
    connect: Callable[[Answered, float | None, int], Api],
) -> Forecaster | None:
    if settings.forecasts is None:
        return None
    from kueuecore.kubernetes.forecasting import SHARES, Forecaster  # brings numpy along

    api = connect(counted.count_request, settings.qps, settings.burst)
    api.kinds = process.api.kinds
    forecaster = Forecaster(
        settings.forecasts, process.snapshot, configuration=configuration, api=api, confirm=process.confirm
    )
    counted.forecast(lambda: forecaster.outlook, SHARES)
    forecaster.start()
    return forecaster


def _visibility(settings: ServeSettings, process: Process, connect: Callable[[], Api]) -> VisibilityServer | None:
    if settings.visibility is None:
        return None
    return VisibilityServer(
        settings.visibility,
        settings.certificates,
        connect,
        process.pending,
        healthy=partial(_faults, process),
        ready=lambda: process.unlisted,
    )


def _faults(process: Process) -> dict[str, str]:
    silent = process.silent_seconds
    return {"decisions": f"none for {silent:.0f} s"} if silent > _MAX_SILENCE else {}
