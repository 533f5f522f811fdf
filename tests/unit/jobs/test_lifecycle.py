"""Starting and stopping batch/v1 Jobs, and the state they report."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kueuecore.errors import UnknownObjectError
from kueuecore.jobs import (
    Finished,
    JobsConfiguration,
    StartError,
    StopReason,
    reclaimable_pods,
    start_job,
    stop_job,
    workload_name,
    workloads_for,
)
from kueuecore.jobs.batch_job import BATCH_JOB
from tests.jobs import batch_job
from tests.unit.jobs.sample_job import deed


def test_job_that_is_stopping_is_not_suspended_yet() -> None:
    assert BATCH_JOB.is_suspended(batch_job(suspend=True))
    assert not BATCH_JOB.is_suspended(batch_job(suspend=False))
    assert not BATCH_JOB.is_suspended(batch_job({"kueue.x-k8s.io/stopping": "true"}, suspend=True))


def _admitted(job: dict[str, Any], *, count: int, **status: Any) -> dict[str, Any]:
    workload: Any = workloads_for([job]).workloads[0].object
    assignment = {"name": "main", "flavors": {"cpu": "spot", "memory": "spot"}, "count": count}
    admission = {"clusterQueue": "team-a", "podSetAssignments": [assignment]}
    return {**workload, "status": {"admission": admission, **status}}


_SPOT: dict[str, Any] = {
    "spec": {
        "nodeLabels": {"pool": "spot"},
        "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
    }
}


def _suspended(job: dict[str, Any]) -> dict[str, Any]:
    result: Any = workloads_for([job]).jobs[0]
    assert isinstance(result, dict)
    return result


def test_start_injects_what_the_flavors_say() -> None:
    job = _suspended(batch_job(parallelism=2))
    (write,) = start_job(job, _admitted(job, count=2), flavors={"spot": _SPOT})
    assert deed(write) == "Update"
    started: Any = write.manifest
    assert started["spec"]["suspend"] is False
    assert started["spec"]["parallelism"] == 2
    assert started["spec"]["template"]["spec"] == {
        "containers": [{"name": "c"}],
        "nodeSelector": {"pool": "spot"},
        "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
    }
    assert started["spec"]["template"]["metadata"] == {
        "annotations": {"kueue.x-k8s.io/workload": workload_name("j", kind="Job", group="batch")},
        "labels": {
            "batch.kubernetes.io/job-name": "j",
            "kueue.x-k8s.io/podset": "main",
            "kueue.x-k8s.io/local-queue-name": "q",
            "kueue.x-k8s.io/cluster-queue-name": "team-a",
        },
    }


def test_start_waits_for_a_flavor_that_is_not_there() -> None:
    workload: dict[str, Any] = {
        "metadata": {"name": "w"},
        "status": {"admission": {"podSetAssignments": [{"name": "main", "count": 1, "flavors": {"cpu": "gone"}}]}},
    }
    with pytest.raises(
        UnknownObjectError, match='there is no ResourceFlavor "gone"; pod set main of Workload w got it'
    ):
        start_job(batch_job(suspend=True), workload, flavors={})


def test_a_job_of_another_version_that_names_a_queue_is_noted() -> None:
    (ignored,) = workloads_for([batch_job() | {"apiVersion": "batch/v2"}]).ignored
    assert ignored.reason == "Kueue does not know Job of batch/v2: write batch/v1"


def test_start_leaves_the_given_job_alone() -> None:
    job = _suspended(batch_job(parallelism=2))
    before = repr(job)
    start_job(job, _admitted(job, count=2), flavors={"spot": _SPOT})
    assert repr(job) == before


def test_cluster_queue_that_is_no_label_value_is_not_named() -> None:
    job = _suspended(batch_job())
    workload = _admitted(job, count=1)
    workload["status"]["admission"]["clusterQueue"] = "Team A"
    (write,) = start_job(job, workload, flavors={"spot": _SPOT})
    template: Any = write.manifest["spec"]["template"]  # type: ignore[index,call-overload]
    assert "kueue.x-k8s.io/cluster-queue-name" not in template["metadata"]["labels"]


def test_start_with_fewer_pods_changes_parallelism() -> None:
    annotations = {"kueue.x-k8s.io/job-min-parallelism": "2"}
    job = _suspended(batch_job(annotations, parallelism=5, completions=10))
    (write,) = start_job(job, _admitted(job, count=3), flavors={"spot": _SPOT})
    spec: Any = write.manifest["spec"]
    assert (spec["parallelism"], spec["completions"]) == (3, 10)
    stopped: Any = stop_job(write.manifest, _admitted(job, count=3), reason=StopReason.WORKLOAD_EVICTED)[-1].manifest
    assert (stopped["spec"]["parallelism"], stopped["spec"]["completions"]) == (5, 10)


def test_completions_follow_parallelism_where_they_are_to_be_equal() -> None:
    annotations = {
        "kueue.x-k8s.io/job-min-parallelism": "2",
        "kueue.x-k8s.io/job-completions-equal-parallelism": "true",
    }
    job = _suspended(batch_job(annotations, parallelism=5, completions=5, completionMode="Indexed"))
    (write,) = start_job(job, _admitted(job, count=3), flavors={"spot": _SPOT})
    spec: Any = write.manifest["spec"]
    assert (spec["parallelism"], spec["completions"]) == (3, 3)


def test_checks_add_to_the_template() -> None:
    job = _suspended(batch_job())
    update = {"name": "main", "nodeSelector": {"zone": "a"}, "annotations": {"note": "x"}}
    workload = _admitted(job, count=1, admissionChecks=[{"name": "ac", "podSetUpdates": [update]}])
    (write,) = start_job(job, workload, flavors={"spot": _SPOT})
    template: Any = write.manifest["spec"]["template"]  # type: ignore[index,call-overload]
    assert template["spec"]["nodeSelector"] == {"pool": "spot", "zone": "a"}
    assert template["metadata"]["annotations"]["note"] == "x"


def test_check_that_contradicts_a_flavor_fails_for_good() -> None:
    job = _suspended(batch_job())
    update = {"name": "main", "nodeSelector": {"pool": "other"}}
    workload = _admitted(job, count=1, admissionChecks=[{"name": "ac", "podSetUpdates": [update]}])
    message = (
        'in admission check "ac": invalid admission check PodSetUpdate: conflict for nodeSelector: '
        "conflict for key=pool, value1=spot, value2=other"
    )
    with pytest.raises(StartError, match=f"^{re.escape(message)}$"):
        start_job(job, workload, flavors={"spot": _SPOT})


def test_template_that_contradicts_a_flavor_fails_for_good() -> None:
    job = _suspended(batch_job(template={"spec": {"containers": [{"name": "c"}], "nodeSelector": {"pool": "mine"}}}))
    with pytest.raises(StartError, match="value1=mine, value2=spot"):
        start_job(job, _admitted(job, count=1), flavors={"spot": _SPOT})


def test_admission_of_another_number_of_pod_sets_fails_for_good() -> None:
    job = _suspended(batch_job())
    workload = _admitted(job, count=1)
    workload["status"]["admission"]["podSetAssignments"] *= 2
    with pytest.raises(StartError, match=r"^invalid podset infos: expecting 1 podset, got 2$"):
        start_job(job, workload, flavors={"spot": _SPOT})


def test_start_with_topology_puts_a_gate_before_the_pods() -> None:
    job = _suspended(batch_job())
    workload = _admitted(job, count=1)
    workload["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"] = {"levels": ["h"]}
    (write,) = start_job(job, workload, flavors={"spot": _SPOT})
    template: Any = write.manifest["spec"]["template"]  # type: ignore[index,call-overload]
    assert template["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/topology"}]
    assert template["metadata"]["annotations"]["kueue.x-k8s.io/podset-unconstrained-topology"] == "true"


def test_stop_restores_the_template_in_three_steps() -> None:
    job = _suspended(batch_job(parallelism=2))
    workload = _admitted(job, count=2)
    (started,) = start_job(job, workload, flavors={"spot": _SPOT})
    running: Any = {**started.manifest, "status": {"startTime": "2026-01-01T00:00:00Z", "active": 2}}
    suspended, without_start, restored = stop_job(running, workload, reason=StopReason.NOT_ADMITTED)
    assert [deed(entry) for entry in (suspended, without_start, restored)] == ["Update", "UpdateStatus", "Update"]
    assert not BATCH_JOB.is_suspended(suspended.manifest)
    assert without_start.manifest["status"] == {"active": 2}
    assert restored.manifest == {**job, "status": {"active": 2}}
    assert BATCH_JOB.is_suspended(restored.manifest)
    assert stop_job(restored.manifest, workload, reason=StopReason.NOT_ADMITTED) == ()


def test_stop_without_a_workload_only_suspends() -> None:
    job = _suspended(batch_job())
    (started,) = start_job(job, _admitted(job, count=1), flavors={"spot": _SPOT})
    stopped: Any = stop_job(started.manifest, None, reason=StopReason.NO_MATCHING_WORKLOAD)[-1].manifest
    assert stopped == {**started.manifest, "spec": {**stopped["spec"], "suspend": True}}
    assert stopped["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "spot"}


@pytest.mark.parametrize(
    ("kind", "status", "finished"),
    [
        ("Complete", "True", Finished("because", success=True)),
        ("Failed", "True", Finished("because", success=False)),
        ("Failed", "False", None),
        ("Suspended", "True", None),
    ],
)
def test_job_is_finished_when_it_says_so(kind: str, status: str, finished: Finished | None) -> None:
    condition: Any = {"type": kind, "status": status, "message": "because"}
    assert BATCH_JOB.finished({**batch_job(), "status": {"conditions": [condition]}}) == finished


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({}, False),
        ({"ready": 2, "succeeded": 0}, False),
        ({"ready": 2, "succeeded": 1}, True),
        ({"ready": 1, "succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["uid"]}}, True),
    ],
)
def test_pods_are_ready_when_all_run_or_are_done(status: dict[str, Any], ready: bool) -> None:
    assert BATCH_JOB.pods_ready({**batch_job(parallelism=3), "status": status}) is ready


@pytest.mark.parametrize(
    ("spec", "status", "pods"),
    [
        ({"parallelism": 3, "completions": 5}, {"succeeded": 2}, {}),
        ({"parallelism": 3, "completions": 5}, {"succeeded": 3}, {"main": 1}),
        ({"parallelism": 3}, {"succeeded": 1}, {"main": 1}),
        ({"parallelism": 1, "completions": 5}, {"succeeded": 5}, {}),
        (
            {"parallelism": 4, "completions": 6, "completionMode": "Indexed"},
            {"completedIndexes": "0,2-3,9", "failedIndexes": "3-4,x,5-1", "succeeded": 1},
            {"main": 2},
        ),
    ],
)
def test_pods_that_are_not_needed_any_more_are_reclaimable(
    spec: dict[str, Any], status: dict[str, Any], pods: dict[str, int]
) -> None:
    assert BATCH_JOB.reclaimable_pods({**batch_job(**spec), "status": status}, JobsConfiguration()) == pods


def test_reclaimable_pods_are_never_more_than_the_pod_set_has() -> None:
    job = {**batch_job(parallelism=5, completions=5), "status": {"succeeded": 4}}
    workload = workloads_for([batch_job(parallelism=2, completions=2)]).workloads[0].object
    assert reclaimable_pods(job, workload) == {"main": 2}
    off = JobsConfiguration(feature_gates={"ReclaimablePods": False})
    assert reclaimable_pods(job, workload, configuration=off) == {}
