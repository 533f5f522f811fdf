"""Implements `kueuecore serve`: a process that schedules the jobs of a cluster until it is asked to stop."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kueuecore.configuration import Configuration
from kueuecore.controller import Metrics
from kueuecore.kubernetes.api import Answered, Api
from kueuecore.kubernetes.election import Election, LeaseSettings
from kueuecore.kubernetes.endpoints import ProcessMetrics, serve_health, serve_metrics
from kueuecore.kubernetes.process import Process
from kueuecore.kubernetes.settings import ServeSettings
from kueuecore.kubernetes.signals import stopped_by_signals

__all__ = ["serve"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
# A deciding thread that is silent for longer counts as hung.
_MAX_SILENCE = 60.0


def serve(
    connect: Callable[[Answered, float | None, int], Api],
    settings: ServeSettings,
    *,
    configuration: Configuration | None = None,
    started: Callable[[Process, dict[str, int]], None] = lambda *_: None,
) -> None:
    """Schedule the jobs of a cluster as Kueue does, until SIGTERM or SIGINT.

    Args:
        connect: Makes an `Api` that reports its requests and limits their rate: `Api.connect` with credentials.
        settings: Addresses, the Lease and the rate limit.
        configuration: Kueue's Configuration; by default that of Kueue's release manifest.
        started: Called with the process before it runs, and the ports of `metrics` and `health`.

    Raises:
        ListenError: An address is taken.
        LeaseLostError: Another process may be deciding by now.
        BaseException: A watch or another thread has died.
    """
    lease = settings.lease
    release = (configuration or Configuration()).release
    counted = ProcessMetrics(release, lease=lease.name if lease else "")
    metrics = Metrics(replica_role="follower" if lease else "standalone")
    api = connect(counted.count_request, settings.qps, settings.burst)
    emits = connect(counted.count_request, settings.qps, settings.burst)
    process = Process(api, configuration=configuration, metrics=metrics, leads=lease is None, emits=emits)
    counted.show(process.metrics_text)
    with stopped_by_signals(process.stop):
        ports = _listen(settings, process, counted)
        _LOGGER.info("listens", extra={**ports, "kueue": release.title})
        election = _election(connect, lease, process, metrics, counted) if lease is not None else None
        started(process, ports)
        try:
            process.run()
        finally:
            if election is not None:
                election.release()
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


def _listen(settings: ServeSettings, process: Process, counted: ProcessMetrics) -> dict[str, int]:
    def healthy() -> dict[str, str]:
        silent = process.silent_seconds
        return {"decisions": f"none for {silent:.0f} s"} if silent > _MAX_SILENCE else {}

    where: dict[str, int] = {}
    if settings.metrics is not None:
        where["metrics"] = serve_metrics(settings.metrics, counted)
    if settings.health is not None:
        where["health"] = serve_health(settings.health, healthy=healthy, ready=lambda: process.unready)
    return where
