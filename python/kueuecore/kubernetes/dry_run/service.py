"""Implements `kueuecore serve --dry-run`: a process that judges a Kueue until it is asked to stop."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kueuecore.configuration import Configuration
from kueuecore.kubernetes.api import Answered, Api
from kueuecore.kubernetes.dry_run.journal_folder import JournalFolder
from kueuecore.kubernetes.dry_run.kueue_watch import KueueWatch
from kueuecore.kubernetes.dry_run.reports import Reports
from kueuecore.kubernetes.dry_run.shadow import Shadow
from kueuecore.kubernetes.endpoints import ProcessMetrics, serve_health
from kueuecore.kubernetes.secured_metrics import serve_secured_metrics
from kueuecore.kubernetes.settings import ServeSettings
from kueuecore.kubernetes.signals import stopped_by_signals

__all__ = ["DryRunSettings", "serve_shadow"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")


@dataclass(frozen=True, slots=True)
class DryRunSettings:
    """What a dry run keeps.

    Args:
        journal: The folder of its journal; None: it keeps nothing.
        summary_at_ns: When the day's summary is written, in nanoseconds after midnight UTC.
    """

    journal: Path | None = None
    summary_at_ns: int = 0


def serve_shadow(
    connect: Callable[[Answered, float | None, int], Api],
    settings: ServeSettings,
    *,
    configuration: Configuration | None = None,
    keeps: DryRunSettings | None = None,
    configure: Callable[[Api], Configuration] | None = None,
    started: Callable[[], None] = lambda: None,
) -> None:
    """Run next to Kueue, judge its decisions, and report those that the engine would not make, until SIGTERM or SIGINT.

    Args:
        connect: Makes an `Api` that reports its requests and limits their rate.
        settings: Addresses and the rate limit.
        configuration: The Configuration of that Kueue; by default that of its release manifest.
        keeps: What is kept on disk.
        configure: Reads the Configuration of the Kueue in the cluster; by default it stays the same.
        started: Called before it runs, once it listens.

    Raises:
        ListenError: An address is taken.
        ManifestError: The folder of the journal cannot be written.
        BaseException: A watch has died.
    """
    keeps = keeps or DryRunSettings()
    known = configuration or Configuration()
    journal = JournalFolder(keeps.journal) if keeps.journal is not None else None
    counted = ProcessMetrics(known.release)
    reports = Reports(
        journal,
        kueue=known.release.name,
        now=time.time_ns(),
        summary_at_ns=keeps.summary_at_ns,
        count=counted.judged(known=lambda: reports.memory.n_known, failed=lambda: journal.n_errors if journal else 0),
    )
    api = connect(counted.count_request, settings.qps, settings.burst)
    shadow = Shadow(api, configuration=known, judged=reports.take, noted=reports.note, tick=reports.tick)
    counted.compare(lambda: shadow.n_agreed, lambda: shadow.n_differed)
    if settings.metrics is not None:
        serve_secured_metrics(settings.metrics, settings, counted, connect)
    if settings.health is not None:
        serve_health(settings.health, healthy=dict, ready=lambda: shadow.unready)
    asks = connect(counted.count_request, None, 1)

    def changed(found: Configuration, what: str) -> None:
        reports.kueue = found.release.name
        shadow.restart(found, what)

    beside = KueueWatch(
        asks,
        known,
        configure=lambda: known if configure is None else configure(asks),
        changed=changed,
        paused=shadow.pause,
    )
    with stopped_by_signals(shadow.stop):
        _LOGGER.info("judges", extra={"kueue": known.release.title})
        started()
        beside.start()
        try:
            shadow.run()
        finally:
            beside.stop()
            reports.close(time.time_ns())
    _LOGGER.info("stopped", extra={"agreed": shadow.n_agreed, "differed": shadow.n_differed})
