"""Forecasts beside a deciding thread, as metrics and annotations."""

from __future__ import annotations

import re
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore._json import JsonObject, object_at, texts_at
from kueuecore.api_server import RefusedError
from kueuecore.controller import Controller
from kueuecore.controller.estimates import ESTIMATED_START
from kueuecore.kubernetes import Address, Api, Process, ServeSettings, serve
from kueuecore.kubernetes.forecasting import Forecaster
from kueuecore.kubernetes.snapshots import ForecastExport, ForecastSettings, Snapshot
from kueuecore.manifests import Manifest, parse_manifests
from kueuecore.writes import Answer
from kueuecore_apiserver import HttpApiServer
from tests.unit.forecasts.present_states import NOW, QUEUES, START, finished, workload
from tests.unit.kubernetes.clusters import job, served, started, wait_for

ANNOTATIONS = {ESTIMATED_START, f"{ESTIMATED_START}-from", f"{ESTIMATED_START}-to"}
BUSY = (*finished(12), workload("runs", created=200, admitted=100), workload("waits", created=30))


class RecordingApi(Api):
    """Records patches instead of sending them."""

    def __init__(self, *, refuses: int = 0) -> None:
        self.sent: list[tuple[str, JsonObject]] = []
        self._refuses = refuses

    def path(self, kind: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
        return f"{kind}/{namespace}/{name}"

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> JsonObject:
        self.sent.append((path, body))
        if self._refuses:
            raise RefusedError(self._refuses, "no")
        return {}


def forecaster(api: Api, *workloads: Manifest, now: int = START, annotates: bool = False) -> Forecaster:
    objects = [manifest.object for manifest in (*parse_manifests(QUEUES), *workloads)]
    export = ForecastExport.ANNOTATE if annotates else ForecastExport.METRICS
    return Forecaster(ForecastSettings(export=export, seconds=30), lambda: Snapshot(now, objects), api=api)


def test_the_outlook_is_that_of_the_first_that_waits() -> None:
    api = RecordingApi()
    behind = workload("behind", created=20)
    one = forecaster(api, *BUSY, behind)
    one.round()
    assert one.outlook is not None
    low, middle, high = one.outlook.waits["cq"]
    # Jobs have run for ten minutes, and this one for 100 s.
    assert low <= middle <= high
    assert middle == pytest.approx(500, abs=60)
    assert list(one.outlook.waits) == ["cq"]
    assert api.sent == []


def test_without_waiting_workloads_or_a_snapshot_there_are_no_waits() -> None:
    one = forecaster(RecordingApi(), *BUSY[:-1])
    one.round()
    assert one.outlook is not None
    assert one.outlook.waits == {}
    follower = Forecaster(ForecastSettings(), lambda: None, api=RecordingApi())
    follower.round()
    assert follower.outlook is None


def test_one_that_its_owner_has_stopped_is_not_the_first() -> None:
    stopped = workload("stopped", created=100, priority=9).object
    stopped = {**stopped, "spec": {**object_at(stopped, "spec"), "active": False}}
    one = forecaster(RecordingApi(), *BUSY, Manifest(stopped))
    one.round()
    assert one.outlook is not None
    assert one.outlook.waits["cq"][1] == pytest.approx(500, abs=60)


def test_annotations_are_written_once_until_they_change() -> None:
    api = RecordingApi()
    forecaster(api, *BUSY, annotates=True).round()
    ((path, body),) = api.sent
    metadata = object_at(body, "metadata")
    written = texts_at(metadata, "annotations")
    assert (path, metadata["uid"], set(written)) == ("Workload/ns/waits", "waits", ANNOTATIONS)
    assert written[f"{ESTIMATED_START}-from"] <= written[ESTIMATED_START] <= written[f"{ESTIMATED_START}-to"]
    assert NOW < written[ESTIMATED_START] < "2026-01-05T13:00:00Z"
    waits = BUSY[-1].object
    known = Manifest({**waits, "metadata": {**object_at(waits, "metadata"), "annotations": dict(written)}})
    forecaster(api, *BUSY[:-1], known, now=START + 10**9, annotates=True).round()
    assert len(api.sent) == 1
    runs_long = workload("runs", created=200, admitted=1)
    forecaster(api, *BUSY[:-2], runs_long, known, annotates=True).round()
    assert len(api.sent) == 2


def test_a_workload_that_is_gone_meanwhile_is_no_problem_but_a_refusal_is() -> None:
    for code in (404, 409):
        forecaster(RecordingApi(refuses=code), *BUSY, annotates=True).round()
    with pytest.raises(RefusedError):
        forecaster(RecordingApi(refuses=403), *BUSY, annotates=True).round()


def test_estimates_of_one_that_will_not_start_are_removed() -> None:
    api = RecordingApi()
    big = workload("big", cpu=9).object
    metadata: JsonObject = {**object_at(big, "metadata"), "annotations": {ESTIMATED_START: NOW, "other": "stays"}}
    forecaster(api, *BUSY[:-1], Manifest({**big, "metadata": metadata}), annotates=True).round()
    ((_, body),) = api.sent
    assert object_at(body, "metadata", "annotations") == {ESTIMATED_START: None}


def test_an_estimate_does_not_wake_the_scheduler_but_any_other_change_does() -> None:
    controller = Controller(status_delay_seconds=None)
    for manifest in (*parse_manifests(QUEUES), *BUSY[-2:]):
        controller.observe({"type": "ADDED", "object": versioned(manifest.object, "1")}, now=START)
    now = START
    for now in range(START, START + 10 * 10**9, 10**9):
        for write in controller.turn(now).writes:
            controller.done(write, Answer(), now=now)
    quiet = controller.next_wake(now)
    assert quiet is None or quiet > now
    waits = controller.workload("waits", namespace="ns") or {}
    noted = versioned(waits, "2", {ESTIMATED_START: NOW})
    assert controller.observe({"type": "MODIFIED", "object": noted}, now=now)
    assert controller.next_wake(now) == quiet
    assert controller.workload("waits", namespace="ns") == noted
    other = versioned(waits, "3", {ESTIMATED_START: NOW, "other": "changed"})
    controller.observe({"type": "MODIFIED", "object": other}, now=now)
    assert controller.next_wake(now) == now


def versioned(plain: JsonObject, version: str, annotations: JsonObject | None = None) -> JsonObject:
    metadata: JsonObject = {**object_at(plain, "metadata"), "resourceVersion": version}
    return {**plain, "metadata": metadata | ({"annotations": annotations} if annotations else {})}


@contextmanager
def serving(server: HttpApiServer, export: ForecastExport) -> Iterator[str]:
    """Run the service; gives the URL of its metrics."""
    ports: dict[str, int] = {}
    processes: list[Process] = []

    def on_start(process: Process, where: dict[str, int]) -> None:
        processes.append(process)
        ports.update(where)

    settings = ServeSettings(
        metrics=Address("127.0.0.1", 0),
        health=None,
        lease=None,
        qps=None,
        burst=1,
        forecasts=ForecastSettings(export=export, seconds=1),
    )

    def connect(answered: Any, qps: float | None, burst: int) -> Api:
        return Api.connect(server=server.url, qps=qps, burst=burst, answered=answered)

    thread = threading.Thread(
        target=lambda: serve(connect, settings, configuration=Configuration(), started=on_start), daemon=True
    )
    thread.start()
    wait_for(lambda: bool(ports), "it listens")
    try:
        yield f"http://127.0.0.1:{ports['metrics']}/metrics"
    finally:
        processes[0].stop()
        thread.join(20)
        assert not thread.is_alive()


def test_a_service_exports_forecasts_and_annotates_what_waits() -> None:
    def page(url: str) -> str:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return str(answer.read(), "utf-8")

    with served() as server, serving(server, ForecastExport.ANNOTATE) as url:
        for number in range(5):
            limited = job(f"j{number}", cpu=2)
            limited["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "600"
            server.load([limited])
        wait_for(lambda: len(started(server)) == 4, "four jobs start")

        def is_forecast() -> bool:
            # An earlier round may have seen fewer of them start.
            found = re.search(r'kueuecore_forecast_wait_seconds\{cluster_queue="a",quantile="0.5"\} (\S+)', page(url))
            return found is not None and 500 < float(found[1]) <= 601

        wait_for(is_forecast, "a forecast from when all four run")

        def is_noted() -> bool:
            entries = server.call(lambda api: api.list("Workload")[0])
            (waits,) = (entry for entry in entries if "admission" not in entry.get("status", {}))
            return set(waits["metadata"].get("annotations", {})) >= ANNOTATIONS

        wait_for(is_noted, "the one that waits is annotated")
