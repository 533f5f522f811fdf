"""A process that is a manager of MultiKueue, with all of its threads: slow, broken and hostile workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore._json import JsonObject
from kueuecore.controller import Metrics
from kueuecore.kubernetes import Api, Process, list_all
from kueuecore_apiserver import Fault, FaultKind, HttpApiServer, Request, SeededFaults
from tests.unit.kubernetes.clusters import job, served, started, wait_for
from tests.unit.kubernetes.http_fleet import CONFIGURATION
from tests.unit.kubernetes.multikueue_objects import CHECKED, MULTIKUEUE, kubeconfig, multikueue_objects, secret
from tests.unit.kubernetes.test_process import running

Json = dict[str, Any]
BEGAN = "2026-01-01T00:00:00Z"
CONFIGURED = Configuration.parse(CONFIGURATION)


@contextmanager
def fleet(*workers: str) -> Iterator[dict[str, HttpApiServer]]:
    """A manager and workers on servers whose clock is the real one; none has a Kueue yet."""
    with ExitStack() as stack:
        servers = {name: stack.enter_context(served(cpus=20)) for name in ("", *workers)}
        servers[""].load(multikueue_objects({name: servers[name].url for name in workers}))
        servers[""].call(lambda api: api.patch("ClusterQueue", "a", CHECKED))
        yield servers


def process_of(server: HttpApiServer) -> Process:
    return Process(Api.connect(server=server.url), configuration=CONFIGURED)


def dispatched(name: str) -> Json:
    found = job(name)
    found["spec"]["managedBy"] = MULTIKUEUE
    return found


def is_active(server: HttpApiServer, worker: str) -> bool:
    status = server.call(lambda api: api.get("MultiKueueCluster", worker)).get("status", {})
    return any(row["status"] == "True" for row in status.get("conditions", ()))


def test_a_job_goes_to_a_worker_and_its_status_comes_back() -> None:
    with fleet("west", "east") as servers:
        metrics = Metrics()
        manager = Process(Api.connect(server=servers[""].url), configuration=CONFIGURED, metrics=metrics)
        with running(manager, process_of(servers["west"]), process_of(servers["east"])) as failures:
            servers[""].load([dispatched("sum")])
            workers = [servers["west"], servers["east"]]
            wait_for(lambda: any("sum" in started(server) for server in workers), "it starts on a worker")
            (worker,) = (server for server in workers if "sum" in started(server))
            at = "2026-01-01T00:00:00Z"
            done = [
                {"type": name, "status": "True", "message": "done", "lastTransitionTime": at}
                for name in ("SuccessCriteriaMet", "Complete")
            ]
            status = {"startTime": at, "completionTime": at, "succeeded": 1, "conditions": done}
            worker.call(lambda api: api.patch("Job", "sum", {"status": status}, namespace="lab", subresource="status"))

            def is_over() -> bool:
                here = servers[""].call(lambda api: api.get("Job", "sum", namespace="lab"))
                left = [row for server in workers for row in server.call(lambda api: api.list("Workload")[0])]
                return here.get("status", {}).get("succeeded") == 1 and not left

            wait_for(is_over, "the status comes back, and nothing is left")
            page = manager.metrics_text()
            name = "west" if worker is servers["west"] else "east"
            won = f'multikueue_workloads_admitted_total{{cluster="{name}",cluster_queue="a"'
            assert won in page
            assert page.count("multikueue_workloads_dispatched_total{") == 2
        assert not failures


def test_slow_and_silent_workers_hold_up_neither_local_jobs_nor_other_workers() -> None:
    def slow(request: Request) -> Fault | None:
        # What was watched goes on; whatever else is asked takes longer than anybody waits.
        return Fault(delay_seconds=20) if request.verb not in ("list", "watch") else None

    with fleet("west", "east") as servers:
        with running(*(process_of(server) for name, server in servers.items() if name != "west")) as failures:
            wait_for(lambda: all(is_active(servers[""], name) for name in ("west", "east")), "both are connected")
            servers["west"].faults = slow
            began = time.monotonic()
            servers[""].load([dispatched("sum"), *(job(f"here-{n}", "b") for n in range(10))])
            wait_for(lambda: len(started(servers[""])) >= 10, "local jobs start", seconds=15)
            local = time.monotonic() - began
            wait_for(lambda: "sum" in started(servers["east"]), "the other worker gets it", seconds=25)
            servers["west"].faults = None
        assert not failures
    assert local < 10


def test_a_worker_that_dies_and_comes_back_is_connected_again() -> None:
    with fleet("west") as servers, running(process_of(servers[""])) as failures:
        wait_for(lambda: is_active(servers[""], "west"), "it is connected")
        servers["west"].stop()
        wait_for(lambda: not is_active(servers[""], "west"), "it is lost")
        servers["west"].start()
        # After five seconds.
        wait_for(lambda: is_active(servers[""], "west"), "it is connected again")
        assert not failures


def test_no_fault_of_workers_that_passes_loses_or_doubles_a_job() -> None:
    kinds = [kind for kind in FaultKind if kind is not FaultKind.SLOW]
    faults = SeededFaults(
        seed=5, rates=dict.fromkeys(kinds, 0.05), spares=lambda request: "authorization" not in request.headers
    )
    names: set[str] = set()
    where = ("west", "east")
    with fleet(*where) as servers:
        for name in where:
            servers[name].faults = faults

        def all_run() -> bool:
            return set().union(*(started(servers[name]) for name in where)) == names == started(servers[""])

        def are_met() -> bool:
            return sum(faults.n_drawn.values()) > 10

        with running(*map(process_of, servers.values())) as failures:
            while not are_met() and len(names) < 40:
                new = {f"j{n}" for n in range(len(names), len(names) + 8)}
                servers[""].load([dispatched(name) for name in sorted(new)])
                names |= new
                wait_for(lambda: all_run() or are_met(), "all run, or faults are met", seconds=120)
            # An attempt to connect that fails doubles the time to the next one, so faults pass before minutes are lost.
            for name in where:
                servers[name].faults = None
            wait_for(all_run, "all run", seconds=120)
            assert not started(servers["west"]) & started(servers["east"])
        assert not failures
        assert are_met()


def test_a_worker_that_lacks_a_kind_of_job_is_connected_all_the_same() -> None:
    both = Configuration.parse(CONFIGURATION.replace("[batch/job]", "[batch/job, jobset.x-k8s.io/jobset]"))
    with fleet("west") as servers:
        process = Process(Api.connect(server=servers[""].url), configuration=both)
        with running(process) as failures:
            wait_for(lambda: is_active(servers[""], "west"), "it is connected")
            asked = [request for request in servers["west"].requests if request.resource == "jobsets"]
        assert not failures
        assert {(request.verb, request.code) for request in asked} == {("list", 404)}


def test_whoever_does_not_lead_does_not_connect() -> None:
    with fleet("west") as servers:
        follower = Process(Api.connect(server=servers[""].url), configuration=CONFIGURED, leads=False)
        with running(follower) as failures:
            time.sleep(1)
            assert not [request for request in servers["west"].requests if request.user_agent.startswith("kueuecore/")]
            threading.Thread(target=follower.lead, daemon=True).start()
            wait_for(lambda: is_active(servers[""], "west"), "it connects once it leads")
        assert not failures


def test_without_the_gate_or_anything_of_multikueue_nothing_is_asked_for() -> None:
    gates = "MultiKueue: false, MultiKueueReuseClientConnectionConfigForWorkers: false"
    off = Configuration.parse(f"{CONFIGURATION}featureGates: {{{gates}}}\n")
    for configuration, asked in ((off, set()), (CONFIGURED, {"multikueueclusters", "multikueueconfigs"})):
        with served(bookmark_seconds=0.05) as server:
            process = Process(Api.connect(server=server.url), configuration=configuration)
            with running(process) as failures:
                server.load([job("j")])
                wait_for(lambda server=server: started(server) == {"j"}, "a job starts")  # type: ignore[misc]
                time.sleep(0.5)  # for some bookmarks, which are no objects
            assert not failures
            resources = {request.resource for request in server.requests if request.user_agent.startswith("kueuecore/")}
            assert {name for name in resources if name.startswith("multikueue") or name == "secrets"} == asked


GARBAGE = [
    {"status": "none"},
    {"status": {"conditions": [5, None, {"type": 7}, {"type": "Admitted", "status": True}]}},
    {"status": {"conditions": {"type": "Finished"}}, "spec": []},
    {"metadata": {"labels": [], "annotations": 3}, "spec": {"podSets": "main"}},
]


@pytest.mark.parametrize("garbage", GARBAGE)
def test_a_worker_that_stores_nonsense_ends_nothing(garbage: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker lists copies in which anything may stand."""
    names: list[str] = []
    n_lists = 0

    def nonsense(api: Api, kind: str, **options: str) -> tuple[list[JsonObject], str]:
        nonlocal n_lists
        objects, version = list_all(api, kind, **options)
        if kind != "Workload" or not names:
            return objects, version
        n_lists += 1
        labels: Json = {"labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"}}
        metadata = {"name": names[0], "namespace": "lab", "uid": "u", "resourceVersion": "1", **labels}
        metadata |= garbage.get("metadata", {})
        return [{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, **garbage, "metadata": metadata}], version

    monkeypatch.setattr("kueuecore.kubernetes.workers.link.list_all", nonsense)
    with fleet("west") as servers, running(process_of(servers[""])) as failures:
        manager = servers[""]
        manager.load([dispatched("sum")])
        wait_for(lambda: bool(manager.call(lambda api: api.list("Workload")[0])), "there is a Workload")
        names += [row["metadata"]["name"] for row in manager.call(lambda api: api.list("Workload")[0])]
        data = secret("west-secret", kubeconfig(servers["west"].url, token="other"))["data"]
        manager.call(lambda api: api.patch("Secret", "west-secret", {"data": data}, namespace="kueue-system"))
        wait_for(lambda: n_lists > 0, "it is connected anew")
        manager.load([job("here", "b")])
        wait_for(lambda: "here" in started(manager), "a local job starts")
        time.sleep(1.5)
        manager.load([job("too", "b")])
        wait_for(lambda: "too" in started(manager), "it goes on")
        assert not failures


def test_a_changed_secret_moves_the_connection_to_another_server() -> None:
    with fleet("west") as servers, served() as other, running(process_of(servers[""])) as failures:
        wait_for(lambda: is_active(servers[""], "west"), "it is connected")
        data = secret("west-secret", kubeconfig(other.url))["data"]
        servers[""].call(lambda api: api.patch("Secret", "west-secret", {"data": data}, namespace="kueue-system"))
        wait_for(lambda: any(request.verb == "watch" for request in other.requests), "the other one is watched")
        servers[""].load([dispatched("sum")])
        wait_for(lambda: bool(other.call(lambda api: api.list("Workload")[0])), "it gets the copy")
        assert not servers["west"].call(lambda api: api.list("Workload")[0])
        assert not failures
