"""Whole fleets: what their parts come to together (docs/sources.md G4, G7, rules/06 §4.5)."""

from __future__ import annotations

import pytest

from kueuecore._conditions import has_quota
from tests.unit.multikueue.worlds import WITHOUT_CHECKS, fleet_of, job, workload_of


@pytest.mark.parametrize(("cpu", "n_running"), [(4, 4), (2, 2)], ids=["the sum of the workers", "less"])
def test_the_quota_of_the_manager_says_how_much_is_dispatched(cpu: int, n_running: int) -> None:
    fleet = fleet_of(cpu, {"west": 2, "east": 2})
    for index in range(4):
        fleet.submit(job(f"j{index}", cpu=1), run_seconds=1000)
    fleet.wait(30)
    # With less than the workers have they stay idle, and workloads wait on the manager.
    assert sum(len(fleet.nodes[name].running()) for name in ("west", "east")) == n_running
    assert sum(has_quota(object_) for object_ in fleet.objects("Workload")) == n_running


def test_with_more_quota_than_the_workers_have_workloads_wait_on_the_workers() -> None:
    fleet = fleet_of(8, {"west": 2, "east": 2})
    for index in range(5):
        fleet.submit(job(f"j{index}", cpu=1), run_seconds=1000)
    fleet.wait(30)
    assert sum(len(fleet.nodes[name].running()) for name in ("west", "east")) == 4
    (hopeless,) = [object_ for object_ in fleet.objects("Workload") if "clusterName" not in object_["status"]]
    assert hopeless["status"]["nominatedClusterNames"] == ["east", "west"]
    for worker in ("west", "east"):
        copy = fleet.get("Workload", hopeless["metadata"]["name"], namespace="ns", cluster=worker)
        assert copy is not None
        (quota,) = [condition for condition in copy["status"]["conditions"] if condition["type"] == "QuotaReserved"]
        assert (quota["status"], quota["reason"]) == ("False", "WaitingForQuota")


def test_the_manager_runs_what_comes_through_another_queue_and_is_no_worker_of_its_own() -> None:
    fleet = fleet_of(4, {"west": 4})
    other = WITHOUT_CHECKS.format(cpu=2).replace("cluster-queue", "local-queue").replace("name: lq", "name: here")
    fleet.apply(other)
    fleet.submit(job("delegated", cpu=2), run_seconds=1000)
    fleet.submit(job("regular", cpu=2, queue="here"), run_seconds=1000)
    fleet.wait(10)
    assert fleet.running(namespace="ns", name="delegated") == ["west"]
    assert fleet.running(namespace="ns", name="regular") == [""]


def test_what_a_worker_preempts_goes_to_another_one() -> None:
    fleet = fleet_of(4, {"west": 2, "east": 2})
    high = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: high}, value: 9}"
    fleet.submit(job(cpu=2), run_seconds=1000)
    fleet.wait(10)
    (first,) = fleet.running(namespace="ns", name="job")
    fleet.apply(high, cluster=first)
    own = job("own", cpu=2)
    own["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high"
    fleet.submit(own, cluster=first)
    fleet.wait(30)
    assert fleet.running(namespace="ns", name="own") == [first]
    (second,) = fleet.running(namespace="ns", name="job")
    assert second != first
    workload = workload_of(fleet)
    assert workload is not None
    assert workload["status"]["clusterName"] == second
    assert workload["status"]["admissionChecks"][0]["retryCount"] == 1


def test_a_job_that_is_deleted_while_its_worker_is_away_is_removed_there_once_it_is_back() -> None:
    fleet = fleet_of(4, {"west": 2})
    fleet.submit(job(cpu=2))
    fleet.wait(10)
    fleet.cut("west")
    fleet.delete("Job", "job", namespace="ns")
    fleet.wait(100)
    assert fleet.running(namespace="ns", name="job") == ["west"]
    fleet.mend("west")
    fleet.wait(400)
    assert fleet.objects("Job", cluster="west") == []
    assert fleet.objects("Workload", cluster="west") == []


def test_the_check_of_a_manager_without_workers_stops_its_queue() -> None:
    fleet = fleet_of(4, {"west": 2})
    fleet.cut("west")
    fleet.wait(10)
    fleet.submit(job(cpu=1), run_seconds=10)
    fleet.wait(10)
    workload = workload_of(fleet)
    assert workload is not None
    (quota,) = [condition for condition in workload["status"]["conditions"] if condition["type"] == "QuotaReserved"]
    assert (quota["status"], "inactive" in quota["message"]) == ("False", True)
    fleet.mend("west")
    fleet.wait(400)
    assert "clusterName" in (workload_of(fleet) or {})["status"]
