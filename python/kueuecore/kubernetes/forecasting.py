"""Forecasts when the first workloads of each ClusterQueue are admitted, in a thread beside the deciding one."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isinf

from kueuecore._json import JsonObject, JsonValue, text_at, texts_at
from kueuecore._text import logged
from kueuecore.api_server import RefusedError
from kueuecore.configuration import Configuration
from kueuecore.controller.estimates import ESTIMATED_START
from kueuecore.forecasts import Eta, Experience, Forecast, eta
from kueuecore.forecasts.futures import enough_steps
from kueuecore.forecasts.present_workloads import PresentWorkload, Status, present_workloads
from kueuecore.kubernetes.api import MERGE_PATCH, Api, UnansweredError
from kueuecore.kubernetes.snapshots import ForecastExport, ForecastSettings, Snapshot
from kueuecore.manifests import Manifest
from kueuecore.scenarios import ClusterPart, Scenario
from kueuecore.times import SECOND_NS, format_time, nanoseconds

__all__ = ["SHARES", "Forecaster", "Outlook"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
SHARES = (0.1, 0.5, 0.9)
"""The quantiles that are exported."""
_FROM, _TO = f"{ESTIMATED_START}-from", f"{ESTIMATED_START}-to"
# How much of the time between rounds may be spent: the deciding thread needs the processor, too.
_SHARE_OF_TIME = 0.25
_PER_QUEUE = 5
_MOST_WORKLOADS = 200
_N_FUTURES, _LEAST_FUTURES = 100, 10
_N_MOMENTS = 30
_MOST_PATCHES = 20
# What has to change for an annotation to be written again: a share of the wait, or of this time if it is shorter.
_LEAST_CHANGE, _SHORT_SECONDS = 0.1, 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What the newest round has found.

    Args:
        waits: For the first workload of each ClusterQueue, the seconds by which it is admitted, by `SHARES`; infinite:
            not within 30 days.
        held_ratio: Of the intervals forecast for the past, how many held; None: none was compared.
        until: When it is outdated, in seconds of `time.monotonic`.
    """

    waits: Mapping[str, tuple[float, ...]]
    held_ratio: float | None
    until: float


class Forecaster:
    """Forecasts in a thread of its own, again and again.

    Args:
        settings: How.
        snapshot: Returns the cluster; None: this process does not lead, or has not listed all kinds.
        configuration: Kueue's Configuration.
        api: Writes annotations.
        confirm: Called before each write; raises an error if another process may decide by now.
    """

    def __init__(
        self,
        settings: ForecastSettings,
        snapshot: Callable[[], Snapshot | None],
        *,
        configuration: Configuration | None = None,
        api: Api,
        confirm: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings, self._snapshot, self._api, self._confirm = settings, snapshot, api, confirm
        self._configuration = configuration or Configuration()
        self._experience = Experience()
        # The same objects in each round, as long as they do not change: ended ones are then read once.
        self._read: dict[int, Manifest] = {}
        self._outlook: Outlook | None = None
        self._problem = ""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="forecast", daemon=True)

    def start(self) -> None:
        """Start forecasting."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the future that is being played."""
        self._is_over.set()
        self._thread.join(5)

    @property
    def outlook(self) -> Outlook | None:
        """What the newest round has found; None: there is none, or it is outdated."""
        found = self._outlook
        return None if found is None or time.monotonic() > found.until else found

    def round(self) -> None:
        """Forecast once, from the cluster as it is now."""
        began = time.monotonic()
        seen = self._snapshot()
        if seen is None:
            return
        manifests = self._manifests(seen.objects)
        present = present_workloads(manifests)
        asked = _first_of_each_queue(present)
        until = began + 3 * self._settings.seconds
        if not asked:
            self._outlook = Outlook(waits={}, held_ratio=None, until=until)
            return
        found = self._forecast(seen.now, manifests, asked, began)
        by_key = {forecast.workload: forecast for forecast in found.forecasts}
        self._outlook = _outlook(found, by_key, asked, until)
        if self._settings.export is ForecastExport.ANNOTATE:
            self._annotate(seen.now, asked, by_key)

    def _run(self) -> None:
        while not self._is_over.is_set():
            began = time.monotonic()
            try:
                self.round()
                self._problem = ""
            except Exception as error:
                # A forecast that fails is no reason to stop deciding.
                problem = logged(error) or type(error).__name__
                if problem != self._problem:
                    _LOGGER.warning("no forecast", extra={"error": problem})
                self._problem = problem
            self._is_over.wait(max(self._settings.seconds - (time.monotonic() - began), 0.1))

    def _manifests(self, objects: Iterable[JsonObject]) -> list[Manifest]:
        read: dict[int, Manifest] = {}
        for plain in objects:
            known = self._read.get(id(plain))
            read[id(plain)] = known if known is not None and known.object is plain else Manifest(plain)
        self._read = read
        return list(read.values())

    def _forecast(self, now: int, manifests: Sequence[Manifest], asked: Sequence[PresentWorkload], began: float) -> Eta:
        until = began + _SHARE_OF_TIME * self._settings.seconds
        cluster = ClusterPart(objects=tuple(manifests), configuration=self._configuration)
        return eta(
            Scenario(cluster=cluster, start=now),
            [workload.key for workload in asked],
            seeds=range(_N_FUTURES),
            most_steps=enough_steps(len(manifests)),
            n_moments=_N_MOMENTS,
            experience=self._experience,
            trusted=True,
            is_enough=lambda n: self._is_over.is_set() or (n >= _LEAST_FUTURES and time.monotonic() >= until),
        )

    def _annotate(self, now: int, asked: Sequence[PresentWorkload], found: Mapping[str, Forecast]) -> None:
        n_patched = 0
        for workload in asked:
            forecast = found.get(workload.key)
            if forecast is None or workload.status is not Status.PENDING:
                continue
            patch = _patch(workload, forecast, now)
            if not patch:
                continue
            if n_patched == _MOST_PATCHES or self._is_over.is_set():
                return
            n_patched += 1
            namespace, name = workload.namespace_and_name
            metadata: JsonObject = {"annotations": patch}
            if uid := text_at(workload.manifest.object, "metadata", "uid"):
                # Another one may have its name by now.
                metadata["uid"] = uid
            self._confirm()
            try:
                path = self._api.path("Workload", namespace, name)
                self._api.send("PATCH", path, {"metadata": metadata}, content_type=MERGE_PATCH)
            except (RefusedError, UnansweredError) as error:
                if isinstance(error, RefusedError) and error.code in (404, 409):
                    continue
                raise


def _first_of_each_queue(present: Sequence[PresentWorkload]) -> list[PresentWorkload]:
    """Return the first workloads that wait in each ClusterQueue, all heads first."""
    queues: dict[str, list[PresentWorkload]] = defaultdict(list)
    for workload in present:
        if workload.status is Status.PENDING and workload.cluster_queue and workload.is_active:
            queues[workload.cluster_queue].append(workload)
    ranked = []
    for name, waiting in queues.items():
        waiting.sort(key=lambda it: (-it.priority, it.created or 0, it.key))
        ranked += [(rank, name, workload) for rank, workload in enumerate(waiting[:_PER_QUEUE])]
    ranked.sort(key=lambda row: row[:2])
    return [workload for *_, workload in ranked[:_MOST_WORKLOADS]]


def _outlook(found: Eta, forecasts: Mapping[str, Forecast], asked: Sequence[PresentWorkload], until: float) -> Outlook:
    waits: dict[str, tuple[float, ...]] = {}
    for workload in asked:
        forecast = forecasts.get(workload.key)
        if workload.cluster_queue not in waits and forecast is not None and forecast.seconds:
            waits[workload.cluster_queue] = tuple(map(forecast.quantile, SHARES))
    record = found.record
    return Outlook(waits=waits, held_ratio=record.n_held / record.n if record and record.n else None, until=until)


def _patch(workload: PresentWorkload, forecast: Forecast, now: int) -> JsonObject:
    """Return the annotations to write; empty: they have not changed by much."""
    names = (_FROM, ESTIMATED_START, _TO)
    waits = [forecast.quantile(share) for share in SHARES] if forecast.seconds else [float("inf")] * len(SHARES)
    written = texts_at(workload.manifest.object, "metadata", "annotations")
    if isinf(waits[1]):
        return {name: None for name in names if name in written}
    if all(_is_near(written.get(name, ""), wait, now) for name, wait in zip(names, waits, strict=True)):
        return {}
    patch: dict[str, JsonValue] = {}
    for name, wait in zip(names, waits, strict=True):
        if not isinf(wait):
            patch[name] = format_time(now // SECOND_NS * SECOND_NS + round(wait) * SECOND_NS)
        elif name in written:
            patch[name] = None
    return patch


def _is_near(text: str, wait: float, now: int) -> bool:
    """Whether a time that was written is still about right."""
    if isinf(wait) or not text:
        return isinf(wait) and not text
    try:
        before = (nanoseconds(text) - now) / SECOND_NS
    except ValueError:
        return False
    return abs(before - wait) <= _LEAST_CHANGE * max(wait, _SHORT_SECONDS)
