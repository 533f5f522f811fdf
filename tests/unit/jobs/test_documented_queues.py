"""Queues, devices and checks of Kueue's documentation do what it says."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.errors import ManifestError
from tests.unit.jobs.documented import (
    ONE,
    SHARED,
    SINGLE,
    Object,
    admitted_pods,
    batch_job,
    kueue_object,
    numbered,
    run_outcome,
    run_rows,
    set_up,
)


def test_quick_start_has_room_for_three_of_its_jobs() -> None:
    rows = run_rows(*set_up({"default-flavor": {"cpu": 9, "memory": "9Gi"}}), *numbered(4, batch_job(3, ONE)))
    assert [row.status for row in rows] == ["Admitted", "Admitted", "Admitted", "Pending"]
    assert "insufficient unused quota for cpu" in rows[3].message


def test_set_up_alone_is_active_and_empty() -> None:
    outcome = run_outcome(*SINGLE)
    (queue,) = outcome.cluster_queues
    assert (queue.is_active, queue.pending_workloads, queue.admitted_workloads) == (True, 0, 0)


def test_taint_keeps_away_those_who_do_not_tolerate_it() -> None:
    taint = {"key": "spot", "value": "true", "effect": "NoSchedule"}
    flavor = kueue_object("ResourceFlavor", "spot", nodeLabels={"type": "spot"}, nodeTaints=[taint])
    queues = set_up({"spot": {"cpu": 9}})[1:]
    tolerant = batch_job(1, {"cpu": 1})
    tolerant["spec"]["template"]["spec"]["tolerations"] = [{"key": "spot", "operator": "Exists"}]
    assert [row.status for row in run_rows(flavor, *queues, tolerant)] == ["Admitted"]
    assert [row.status for row in run_rows(flavor, *queues, batch_job(1, {"cpu": 1}))] == ["Pending"]


def test_check_for_a_flavor_that_the_queue_has_not_is_refused() -> None:
    checks: list[Object] = [{"name": "sample-prov", "onFlavors": ["default-flavor"]}, {"name": "sample-prov-2"}]
    queue = kueue_object(
        "ClusterQueue", "cluster-queue-2", namespaceSelector={}, admissionChecksStrategy={"admissionChecks": checks}
    )
    with pytest.raises(ManifestError, match="onFlavors"):
        run_outcome(queue)
    del checks[0]["onFlavors"]
    (state,) = run_outcome(queue).cluster_queues
    assert not state.is_active


def test_flavors_are_taken_in_their_order() -> None:
    quotas = {"reservation": (4, "16Gi"), "on-demand": (8, "32Gi"), "spot": (16, "64Gi")}
    flavors = {name: {"cpu": cpu, "memory": memory} for name, (cpu, memory) in quotas.items()}
    policy = {"migration": {"mode": "TryPreferredFlavors"}}
    setup = set_up(flavors, queue="team-cluster-queue", local="team-queue", concurrentAdmissionPolicy=policy)
    job = batch_job(1, {"cpu": 4, "memory": "1Gi"}, queue="team-queue")
    rows = run_rows(*setup, *numbered(4, job))
    taken = [row.state.status["admission"]["podSetAssignments"][0]["flavors"]["cpu"] for row in rows]
    assert taken == ["reservation", "on-demand", "on-demand", "spot"]


def test_credits_limit_two_flavors_together() -> None:
    transformation = {"input": "cpu", "strategy": "Retain", "outputs": {"cpu_credits": "1"}}
    jobs = numbered(5, batch_job(1, {"cpu": 3}, queue="team-queue"))
    rows = run_rows(*SHARED, *jobs, resources={"transformations": [transformation]})
    taken = [row.state.status["admission"]["podSetAssignments"][0]["flavors"]["cpu"] for row in rows[:4]]
    assert taken == ["on-demand"] * 3 + ["spot"]
    assert rows[4].message == (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu_credits in flavor credits, "
        "1 more needed"
    )
    without = run_rows(*SHARED, *numbered(7, jobs[0]))
    assert [row.status for row in without] == ["Admitted"] * 6 + ["Pending"]


def test_admission_fair_sharing_admits_three_jobs_of_either_queue() -> None:
    scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    setup = set_up({"default-flavor": {"cpu": 9}}, local="lq-a", queueingStrategy="StrictFIFO", admissionScope=scope)
    other = kueue_object("LocalQueue", "lq-b", clusterQueue="cluster-queue", fairSharing={"weight": 1})
    jobs = [*numbered(3, batch_job(1, {"cpu": 3}, queue="lq-a")), {**batch_job(1, {"cpu": 3}, queue="lq-b")}]
    rows = run_rows(
        *setup, other, *jobs, admissionFairSharing={"usageHalfLifeTime": "168h", "usageSamplingInterval": "5m"}
    )
    assert sorted(row.status for row in rows) == ["Admitted"] * 3 + ["Pending"]


# Devices, checks and clusters.


@pytest.mark.parametrize("mapped", [True, False])
def test_claimed_devices_are_charged_if_they_are_mapped(mapped: bool) -> None:
    setup = set_up({"default-flavor": {"cpu": 40, "memory": "200Gi", "example.com/gpu": 8}})
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "single-gpu", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu.example.com"},
        "spec": {},
    }
    job = batch_job(1, ONE)
    pod = job["spec"]["template"]["spec"]
    pod["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "single-gpu"}]
    pod["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    mapping = {"name": "example.com/gpu", "deviceClassNames": ["gpu.example.com"]}
    settings: Any = {"resources": {"deviceClassMappings": [mapping]}} if mapped else {}
    (row,) = run_rows(*setup, device_class, claim, job, **settings)
    if mapped:
        assert admitted_pods(row)["main"][1]["example.com/gpu"] == "1"
    else:
        assert "DeviceClass gpu.example.com is not mapped in DRA configuration for podset main" in row.message


def test_extended_resource_counts_as_any_other() -> None:
    setup = set_up({"default-flavor": {"cpu": 40, "memory": "200Gi", "example.com/gpu": 8}})
    (row,) = run_rows(*setup, batch_job(1, {**ONE, "example.com/gpu": 1}))
    assert admitted_pods(row)["main"][1]["example.com/gpu"] == "1"


def _checked(name: str, controller: str, kind: str) -> list[Object]:
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": kind, "name": "config"}
    check = kueue_object("AdmissionCheck", name, controllerName=f"kueue.x-k8s.io/{controller}", parameters=parameters)
    strategy = {"admissionChecks": [{"name": name}]}
    return [*set_up({"default-flavor": {"cpu": 9, "memory": "36Gi"}}, admissionChecksStrategy=strategy), check]


def test_provisioning_holds_the_job_at_its_quota() -> None:
    setup = _checked("sample-prov", "provisioning-request", "ProvisioningRequestConfig")
    setup[-1]["status"] = {
        "conditions": [
            {
                "type": "Active",
                "status": "True",
                "reason": "Active",
                "message": "ready",
                "lastTransitionTime": "1970-01-01T00:00:00Z",
            }
        ]
    }
    config = kueue_object(
        "ProvisioningRequestConfig", "config", provisioningClassName="check-capacity.autoscaling.x-k8s.io"
    )
    job = batch_job(
        3, {"cpu": "100m", "memory": "100Mi"}, annotations={"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "600"}
    )
    (row,) = run_rows(*setup, config, job)
    assert row.status == "QuotaReserved"
    (check,) = row.state.status["admissionChecks"]
    assert (check["name"], check["state"]) == ("sample-prov", "Pending")


@pytest.mark.parametrize(
    ("controller", "kind"), [("multikueue", "MultiKueueConfig"), ("unknown", "ProvisioningRequestConfig")]
)
def test_queue_whose_check_nobody_answers_is_inactive(controller: str, kind: str) -> None:
    (row,) = run_rows(*_checked("check", controller, kind), batch_job(1, ONE))
    assert (row.status, row.message) == ("Pending", "ClusterQueue cluster-queue is inactive")
