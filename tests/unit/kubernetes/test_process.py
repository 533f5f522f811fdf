"""A process with all of its threads, against the strict API server."""

from __future__ import annotations

import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore._json import text_at
from kueuecore.kubernetes import Address, Api, LeaseLostError, LeaseSettings, Process, ServeSettings, serve
from kueuecore.kubernetes.dry_run.judge import Judged, Verdict
from kueuecore.kubernetes.dry_run.shadow import Shadow
from kueuecore_apiserver import FaultKind, HttpApiServer, Request, SeededFaults
from tests.unit.kubernetes.clusters import job, served, started, wait_for

LEASE = LeaseSettings("kueue-system", "one", "first", duration_seconds=3, deadline_seconds=2, retry_seconds=1)


@contextmanager
def running(*processes: Process | Shadow) -> Iterator[list[BaseException]]:
    """Run processes in threads; gives what ended them, and stops them in the end."""
    failures: list[BaseException] = []

    def run(process: Process | Shadow) -> None:
        try:
            process.run()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(process,), daemon=True) for process in processes]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: bool(failures) or not any(process.unready for process in processes), "all are ready")
        yield failures
    finally:
        for process in processes:
            process.stop()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()


def created(server: HttpApiServer, *jobs: dict[str, Any]) -> None:
    for other in jobs:
        server.load([other])


def test_jobs_start_as_far_as_there_is_quota_and_statuses_follow() -> None:
    with served() as server:
        process = Process(Api.connect(server=server.url), configuration=Configuration())
        with running(process) as failures:
            created(server, *(job(f"j{n}") for n in range(12)))
            wait_for(lambda: len(started(server)) == 8, "eight jobs start")

            def is_told() -> bool:
                found = server.call(lambda api: api.get("ClusterQueue", "a")).get("status", {})
                return (found.get("admittedWorkloads"), found.get("pendingWorkloads")) == (8, 4)

            wait_for(is_told, "the status of the queue says so")
        assert not failures
        reasons = {event["reason"] for event in server.api.list("Event")[0]}
        assert {"CreatedWorkload", "QuotaReserved", "Admitted", "Started"} <= reasons
        # A conflict is no error: on a slow machine a write can precede the event of the write before it.
        writes = [request for request in server.requests if request.verb in ("create", "patch", "update")]
        assert {request.code for request in writes} <= {200, 201, 409}


def test_no_error_that_passes_strands_an_object() -> None:
    def spares(request: Request) -> bool:
        # This kind is missing, which takes three answers in a row to believe: with faults between them, minutes.
        is_missing = request.resource == "provisioningrequests"
        return is_missing or not request.user_agent.startswith("kueuecore/")

    kinds = [entry for entry in FaultKind if entry is not FaultKind.SLOW]
    faults = SeededFaults(seed=3, rates=dict.fromkeys(kinds, 0.03), spares=spares)
    with served(cpus=20, faults=faults) as server:
        process = Process(Api.connect(server=server.url), configuration=Configuration())
        with running(process) as failures:
            created(server, *(job(f"j{n}", "ab"[n % 2]) for n in range(30)))
            wait_for(lambda: len(started(server)) == 30, "all jobs start", seconds=120)
        assert not failures
        assert sum(faults.n_drawn.values()) > 10


def test_a_kind_that_comes_late_is_found_by_its_definition() -> None:
    with served() as server:
        configuration = Configuration.parse(
            "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, "
            "integrations: {frameworks: [batch/job, jobset.x-k8s.io/jobset]}}"
        )
        process = Process(Api.connect(server=server.url), configuration=configuration)
        with running(process) as failures:
            asked = [request for request in server.requests if request.resource == "jobsets"]
            from kueuecore_apiserver.plain_crds import framework_crds

            server.load([crd for crd in framework_crds() if crd["spec"]["names"]["kind"] == "JobSet"])
            wait_for(
                lambda: any(request.verb == "watch" and request.resource == "jobsets" for request in server.requests),
                "it is watched",
                seconds=5,
            )
        assert not failures
        assert len(asked) <= 5


def test_a_thread_that_dies_ends_the_process_with_the_reason() -> None:
    class BrokenApi(Api):
        def watch(self, path: str, *, since: str, selector: str = "") -> Any:
            if path.endswith("/workloads"):
                raise MemoryError("nothing left")
            return super().watch(path, since=since, selector=selector)

    with served() as server:
        process = Process(BrokenApi.connect(server=server.url), configuration=Configuration())
        with pytest.raises(MemoryError, match="nothing left") as raised:
            process.run()
    assert raised.value.__notes__ == ["in the watch of Workload"]


def test_what_was_decided_is_sent_before_the_end() -> None:
    with served() as server:
        process = Process(Api.connect(server=server.url), configuration=Configuration())
        with running(process):
            created(server, job("j"))
            wait_for(lambda: started(server) == {"j"}, "the job starts")
        assert process.n_open == 0


def test_the_page_of_metrics_and_the_answers_about_health() -> None:
    with served() as server, serving(server, lease=None) as (process, ports):
        created(server, job("j"))
        wait_for(lambda: started(server) == {"j"}, "the job starts")
        page = fetched(f"http://127.0.0.1:{ports['metrics']}/metrics")
        assert 'kueue_admitted_workloads_total{cluster_queue="a"' in page
        assert re.search(r'rest_client_requests_total\{code="201",host="127\.0\.0\.1:\d+",method="POST"\} [1-9]', page)
        assert "process_resident_memory_bytes" in page
        assert fetched(f"http://127.0.0.1:{ports['health']}/healthz") == "ok"
        assert fetched(f"http://127.0.0.1:{ports['health']}/readyz") == "ok"
        assert process.unready == {}


def test_a_replica_that_does_not_lead_waits_and_takes_over() -> None:
    with served() as server, served_by(server, LEASE) as first:
        wait_for(lambda: holder(server) == "first", "the first one leads")
        second_settings = LeaseSettings("kueue-system", "one", "second", 3, 2, 1)
        with served_by(server, second_settings) as second:
            created(server, job("j0"))
            wait_for(lambda: started(server) == {"j0"}, "a job starts")
            first.stop()
            wait_for(lambda: holder(server) == "second", "the second one leads")
            created(server, job("j1"))
            wait_for(lambda: started(server) == {"j0", "j1"}, "a job starts")
            assert second.unready == {}


def test_who_loses_the_lease_ends() -> None:
    with served() as server:
        failures: list[BaseException] = []
        with served_by(server, LEASE, failures=failures):
            wait_for(lambda: holder(server) == "first", "it leads")

            def steal() -> None:
                taken = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 3600}}
                server.call(lambda api: api.patch("Lease", "one", taken, namespace="kueue-system"))

            steal()
            wait_for(lambda: bool(failures), "it ends", seconds=20)
    assert [type(failure) for failure in failures] == [LeaseLostError]
    assert str(failures[0]) == "Lease kueue-system/one is held by thief"


def test_a_dry_run_agrees_with_one_that_decides_the_same() -> None:
    with served() as server:
        found: list[Judged] = []

        def n_judged(kind: str) -> int:
            return sum(it.kind.value == kind for it in found)

        process = Process(Api.connect(server=server.url), configuration=Configuration())
        shadow = Shadow(Api.connect(server=server.url), configuration=Configuration(), judged=found.append)
        with running(process, shadow) as failures:
            for n in range(8):
                created(server, job(f"j{n}"))
                wait_for_start(server, f"j{n}")
            # Whoever lent takes it back: four are preempted.
            for n in range(4):
                created(server, job(f"k{n}", "b"))
                wait_for_start(server, f"k{n}")
            # Messages of those who wait for a moment are judged, too.
            wait_for(lambda: n_judged("admission") >= 12 and n_judged("preemption") >= 4, "all is judged")
        assert not failures
        assert [it for it in found if it.verdict is not Verdict.AGREED] == []


def test_a_dry_run_reports_what_is_decided_otherwise_and_writes_nothing() -> None:
    with served(cpus=1) as server:
        found: list[Judged] = []
        api = Api.connect(server=server.url)
        shadow = Shadow(api, configuration=Configuration(), settle_seconds=1, judged=found.append)
        with running(shadow) as failures:
            decider = Process(Api.connect(server=server.url), configuration=Configuration())
            with running(decider):
                created(server, *(job(f"j{n}") for n in range(3)))
                wait_for(lambda: len(started(server)) == 2, "two jobs start")
                wait_for(lambda: bool(pending(server)), "the third waits")
                wait_for(lambda: shadow.n_agreed >= 3, "all are judged")
            found.clear()
            waiting = pending(server)
            admit(server, waiting[0])
            wait_for(lambda: any(it.verdict is Verdict.DIFFERED for it in found), "it is reported")
        assert not failures
        [reported] = [it for it in found if it.verdict is Verdict.DIFFERED]
        assert reported.workload == ("lab", waiting[0])
        assert reported.kueue.startswith("admitted in ")
        assert reported.here.startswith("waits: couldn't assign flavors")
        shadows = [request for request in server.requests if request.verb not in ("get", "list", "watch")]
        writers = {shadow.headers.get("user-agent", "") for shadow in shadows}
        assert writers <= {"kueuecore-load", api.client.user_agent}


# What the tests above stand on.


def wait_for_start(server: HttpApiServer, name: str) -> None:
    wait_for(lambda: name in started(server), f"{name} starts")


def pending(server: HttpApiServer) -> list[str]:
    found = []
    for entry in server.call(lambda api: api.list("Workload")[0]):
        holds = {c["type"] for c in entry.get("status", {}).get("conditions", ()) if c["status"] == "True"}
        if "QuotaReserved" not in holds:
            found.append(entry["metadata"]["name"])
    return found


def admit(server: HttpApiServer, name: str) -> None:
    """Admit a Workload that has no place, as nobody should."""
    assignment = {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}}
    admission = {"clusterQueue": "a", "podSetAssignments": [assignment]}
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind in ("QuotaReserved", "Admitted")
    ]
    patch = {"status": {"admission": admission, "conditions": conditions}}
    server.call(lambda api: api.patch("Workload", name, patch, namespace="lab", subresource="status"))


def holder(server: HttpApiServer) -> str:
    lease = server.call(lambda api: api.find("Lease", "one", namespace="kueue-system"))
    return text_at(lease, "spec", "holderIdentity")


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


@contextmanager
def served_by(
    server: HttpApiServer, lease: LeaseSettings | None, *, failures: list[BaseException] | None = None
) -> Iterator[Process]:
    """`serve` in a thread."""
    with serving(server, lease=lease, failures=failures) as (process, _):
        yield process


@contextmanager
def serving(
    server: HttpApiServer, *, lease: LeaseSettings | None, failures: list[BaseException] | None = None
) -> Iterator[tuple[Process, dict[str, int]]]:
    address = Address("127.0.0.1", 0)
    settings = ServeSettings(metrics=address, health=address, lease=lease, qps=None, burst=1)
    found: list[tuple[Process, dict[str, int]]] = []
    ended = [] if failures is None else failures

    def run() -> None:
        try:
            serve(
                lambda answered, qps, burst: Api.connect(server=server.url, qps=qps, burst=burst, answered=answered),
                settings,
                configuration=Configuration(),
                started=lambda process, ports: found.append((process, ports)),
            )
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    wait_for(lambda: bool(found or ended), "it has started")
    process, ports = found[0]
    wait_for(lambda: not process.unready or bool(ended), "it is ready")
    try:
        yield process, ports
    finally:
        process.stop()
        thread.join(20)
        assert not thread.is_alive()
    if failures is None:
        assert not ended, ended
