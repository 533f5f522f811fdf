from __future__ import annotations

from typing import Any

import pytest

from kueuecore.jobs import (
    Finished,
    JobsConfiguration,
    StopReason,
    Sync,
    start_job,
    stop_job,
    sync_workloads,
    workloads_for,
)
from kueuecore.jobs.ray import RAY_CLUSTER, RAY_JOB, RAY_SERVICE
from kueuecore.manifests import parse_manifests

_ELASTIC = {"kueue.x-k8s.io/elastic-job": "true"}


def _cluster(**spec: Any) -> dict[str, Any]:
    def template() -> dict[str, Any]:
        container = {"name": "ray", "image": "ray:2", "resources": {"requests": {"cpu": 1}}}
        return {"spec": {"containers": [container]}}

    return {
        "headGroupSpec": {"template": template()},
        "workerGroupSpecs": [{"groupName": "Small", "replicas": 2, "template": template()}],
        **spec,
    }


def _job(kind: str, spec: dict[str, Any], **annotations: str) -> dict[str, Any]:
    labels = {"kueue.x-k8s.io/queue-name": "q"}
    metadata = {"name": "r", "namespace": "n", "labels": labels, "annotations": annotations}
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _ray_job(cluster: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    annotations = spec.pop("annotations", {})
    spec = {"shutdownAfterJobFinishes": True, "rayClusterSpec": cluster or _cluster(), **spec}
    return _job("RayJob", spec, **annotations)


def _made(*manifests: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    result = workloads_for(manifests)
    result.raise_for_problems()
    return result.jobs[-1], result.workloads[-1].object


def _pod_sets(*manifests: Any) -> list[dict[str, Any]]:
    pod_sets = _made(*manifests)[1]["spec"]["podSets"]
    assert isinstance(pod_sets, list)
    return pod_sets


def _counts(*manifests: Any) -> dict[str, int]:
    return {pod_set["name"]: pod_set["count"] for pod_set in _pod_sets(*manifests)}


def _containers(pod_set: dict[str, Any]) -> dict[str, Any]:
    return {
        container["name"]: container["resources"].get("requests")
        for container in pod_set["template"]["spec"]["containers"]
    }


@pytest.mark.parametrize(
    ("job", "names", "field"),
    [
        (_job("RayCluster", _cluster()), ["head", "small"], ("suspend",)),
        (
            _job("RayService", {"rayClusterConfig": _cluster(), "upgradeStrategy": {"type": "None"}}),
            ["head", "small"],
            ("rayClusterConfig", "suspend"),
        ),
        (_ray_job(), ["head", "small", "submitter"], ("suspend",)),
        (_ray_job(submissionMode="HTTPMode"), ["head", "small"], ("suspend",)),
    ],
)
def test_head_and_groups_of_workers_are_pod_sets(job: dict[str, Any], names: list[str], field: tuple[str, ...]) -> None:
    made, workload = _made(job)
    assert [pod_set["name"] for pod_set in workload["spec"]["podSets"]] == names
    assert not any("topologyRequest" in pod_set for pod_set in workload["spec"]["podSets"])
    value = made["spec"]
    for key in field:
        value = value[key]
    assert value is True


def test_replicas_have_several_hosts_and_are_none_by_default() -> None:
    cluster = _cluster()
    cluster["workerGroupSpecs"][0]["numOfHosts"] = 4
    assert _counts(_job("RayCluster", cluster)) == {"head": 1, "small": 8}
    del cluster["workerGroupSpecs"][0]["replicas"]
    assert _counts(_job("RayCluster", cluster)) == {"head": 1, "small": 0}


def test_submitter_is_that_of_kube_ray_if_the_job_has_none() -> None:
    submitter = _pod_sets(_ray_job())[-1]
    assert submitter["template"]["spec"]["containers"][0]["image"] == "ray:2"
    assert _containers(submitter) == {"ray-job-submitter": {"cpu": "500m", "memory": "200Mi"}}
    own = {"spec": {"containers": [{"name": "mine", "resources": {"requests": {"cpu": 3}}}]}}
    assert _containers(_pod_sets(_ray_job(submitterPodTemplate=own))[-1]) == {"mine": {"cpu": 3}}


def test_submitter_beside_the_head_adds_to_it() -> None:
    head, _ = _pod_sets(_ray_job(submissionMode="SidecarMode"))
    assert _containers(head) == {"ray": {"cpu": 1}, "ray-job-submitter": {"cpu": "500m", "memory": "200Mi"}}


def test_head_of_a_fault_tolerant_cluster_has_room_for_the_cleanup() -> None:
    cluster = _cluster()
    cluster["headGroupSpec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "100m"}
    head, _ = _pod_sets(_job("RayCluster", cluster, **{"ray.io/ft-enabled": "TRUE"}))
    assert _containers(head) == {"ray": {"cpu": "200m", "memory": "256Mi"}}


def test_autoscaler_of_an_elastic_cluster_adds_to_the_head() -> None:
    job, workload = _made(_job("RayCluster", _cluster(enableInTreeAutoscaling=True), **_ELASTIC))
    head, worker = workload["spec"]["podSets"]
    assert _containers(head)["autoscaler"] == {"cpu": "500m", "memory": "512Mi"}
    gates = [{"name": "kueue.x-k8s.io/elastic-job"}]
    assert [entry["template"]["spec"]["schedulingGates"] for entry in (head, worker)] == [gates, gates]
    assert workload["metadata"]["annotations"]["kueue.x-k8s.io/elastic-job"] == "true"
    own = {"resources": {"requests": {"cpu": 2}}}
    cluster = _cluster(enableInTreeAutoscaling=True, autoscalerOptions=own)
    assert _containers(_pod_sets(_job("RayCluster", cluster, **_ELASTIC))[0])["autoscaler"] == {"cpu": 2}
    assert job["spec"]["suspend"] is True


def test_counts_of_an_elastic_job_are_those_of_its_live_cluster() -> None:
    live = _job("RayCluster", _cluster())
    live["metadata"] |= {"name": "live", "labels": {}}
    live["spec"]["workerGroupSpecs"][0]["replicas"] = 5
    job = _ray_job(_cluster(enableInTreeAutoscaling=True), annotations=_ELASTIC)
    job["status"] = {"rayClusterName": "live"}
    assert _counts(live, job)["small"] == 5
    live["spec"]["workerGroupSpecs"][0]["groupName"] = "other"
    assert "PodSet name mismatch" in workloads_for([live, job]).ignored[-1].reason


@pytest.mark.parametrize("kind", ["RayJob", "RayService"])
def test_the_generation_of_the_live_cluster_is_noted_on_an_elastic_job(kind: str) -> None:
    key = "kueue.x-k8s.io/raycluster-generation"
    live = _job("RayCluster", _cluster())
    live["metadata"] |= {"name": "live", "labels": {}, "generation": 3}
    live["spec"]["workerGroupSpecs"][0]["replicas"] = 5
    cluster = _cluster(enableInTreeAutoscaling=True)
    job = _ray_job(cluster) if kind == "RayJob" else _job("RayService", {"rayClusterConfig": cluster})
    job["metadata"] |= {"annotations": dict(_ELASTIC), "generation": 1}

    def sync(*workloads: Any, around: tuple[Any, ...] = ()) -> Sync:
        return sync_workloads(job, workloads, now="2026-01-01T00:00:00Z", around=around)

    # There is no cluster yet.
    found = sync()
    (write,), (step,) = found.writes, found.steps
    job["metadata"]["annotations"] = write.manifest["metadata"]["annotations"]  # type: ignore[index,call-overload]
    assert job["metadata"]["annotations"][key] == ""
    assert sync(step.workload) == Sync(workloads=(step.workload,))
    job["status"] = {"rayClusterName": "live", "activeServiceStatus": {"rayClusterName": "live"}}
    running = {**step.workload, "status": {"conditions": [{"type": "QuotaReserved", "status": "True"}]}}
    found = sync(running, around=(live,))
    assert found.writes[0].manifest["metadata"]["annotations"][key] == "3"  # type: ignore[index,call-overload]
    # The larger slice has a name of its own, though the job has not changed.
    new: Any = found.workload
    old: Any = step.workload
    assert new["metadata"]["name"] != old["metadata"]["name"]
    assert [pod_set["count"] for pod_set in new["spec"]["podSets"]][1] == 5


def test_start_writes_the_submitter_and_stop_restores_the_templates() -> None:
    job, workload = _made(_ray_job())
    assignments = [{"name": name, "flavors": {"cpu": "f"}} for name in ("head", "small", "submitter")]
    workload = {**workload, "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": assignments}}}
    (write,) = start_job(job, workload, flavors={"f": {"spec": {"nodeLabels": {"a": "b"}}}})
    spec: Any = write.manifest["spec"]
    assert spec["suspend"] is False
    assert spec["submitterPodTemplate"]["spec"]["nodeSelector"] == {"a": "b"}
    assert spec["rayClusterSpec"]["workerGroupSpecs"][0]["template"]["spec"]["nodeSelector"] == {"a": "b"}
    (stopped,) = stop_job(write.manifest, workload, reason=StopReason.WORKLOAD_EVICTED)
    spec = stopped.manifest["spec"]
    assert "nodeSelector" not in spec["submitterPodTemplate"]["spec"]
    assert "nodeSelector" not in spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("job", "field", "message"),
    [
        (
            _ray_job(clusterSelector={"a": "b"}),
            "spec.clusterSelector",
            'Invalid value: {"a":"b"}: a kueue managed job should not use an existing cluster',
        ),
        (
            _job("RayJob", {}),
            "spec.rayClusterSpec",
            "Required value: rayClusterSpec is required for Kueue-managed jobs that don't use clusterSelector",
        ),
        (
            _ray_job(shutdownAfterJobFinishes=False),
            "spec.shutdownAfterJobFinishes",
            "Invalid value: false: a kueue managed job should delete the cluster after finishing",
        ),
        (
            _ray_job(_cluster(enableInTreeAutoscaling=True)),
            "spec.rayClusterSpec.enableInTreeAutoscaling",
            "Invalid value: true: a kueue managed job should only use autoscaling when workload slicing is enabled",
        ),
        (
            _job("RayCluster", _cluster(enableInTreeAutoscaling=True)),
            "spec.enableInTreeAutoscaling",
            "Invalid value: true: a kueue-managed RayCluster can use autoscaling only as an elastic job: enable the "
            'ElasticJobsViaWorkloadSlices feature gate and set the "kueue.x-k8s.io/elastic-job": "true" annotation',
        ),
    ],
)
def test_jobs_that_are_rejected(job: dict[str, Any], field: str, message: str) -> None:
    (problem,) = workloads_for([job]).problems
    assert (problem.field, problem.message) == (field, message)


def test_groups_of_workers_are_few_and_none_is_the_head() -> None:
    group = _cluster()["workerGroupSpecs"][0]
    groups = [{**group, "groupName": f"g{index}"} for index in range(17)]
    problems = workloads_for(
        [_job("RayCluster", _cluster(workerGroupSpecs=[*groups, {**group, "groupName": "head"}]))]
    ).problems
    assert [(problem.field, problem.message) for problem in problems] == [
        ("spec.workerGroupSpecs", "Too many: 19: must have at most 18 items"),
        ("spec.workerGroupSpecs[17].groupName", 'Forbidden: "head" is reserved for the head group'),
    ]


def test_job_in_a_cluster_that_is_there_is_left_alone() -> None:
    (ignored,) = workloads_for([_job("RayJob", {"clusterSelector": {"a": "b"}})]).ignored
    assert ignored.reason == "it runs in a RayCluster that is there already"


def test_status_of_each_kind() -> None:
    ready: Any = {"state": "ready"}
    assert RAY_CLUSTER.pods_ready({"status": ready})
    assert RAY_CLUSTER.finished({"status": {"state": "failed"}}) is None
    condition: Any = [{"type": "Ready", "status": "True"}]
    assert RAY_SERVICE.is_active({"status": {"conditions": condition}})
    assert RAY_JOB.pods_ready({"status": {"rayClusterStatus": ready}})
    done: Any = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "message": "ok"}
    assert RAY_JOB.finished({"status": done}) == Finished("ok", success=True)
    assert RAY_JOB.finished({"status": {**done, "jobStatus": "FAILED"}}) == Finished("ok", success=False)
    assert [RAY_JOB.is_active({"status": {"jobDeploymentStatus": name}}) for name in ("", "Suspended", "Running")] == [
        False,
        False,
        True,
    ]
    assert RAY_JOB.is_on_hold({"status": {"jobDeploymentStatus": "ValidationFailed"}})


def test_lines_of_a_service_are_found() -> None:
    manifests = parse_manifests(
        "apiVersion: ray.io/v1\n"
        "kind: RayService\n"
        "metadata: {name: r, labels: {kueue.x-k8s.io/queue-name: q}}\n"
        "spec:\n"
        "  rayClusterConfig:\n"
        "    headGroupSpec:\n"
        "      template:\n"
        "        spec: {containers: [], priorityClassName: none}\n"
    )
    (problem,) = workloads_for(manifests, configuration=JobsConfiguration()).problems
    assert (problem.line, problem.field) == (8, "spec.rayClusterConfig.headGroupSpec.template.spec.containers")
