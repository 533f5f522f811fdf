from __future__ import annotations

from typing import Any

import pytest

from kueuecore.jobs import (
    Finished,
    Integration,
    StopReason,
    reclaimable_pods,
    start_job,
    stop_job,
    workloads_for,
)
from kueuecore.jobs.train_job import TRAIN_JOB

_API = "trainer.kubeflow.org/v1alpha1"


def _template(step: str, container: str) -> dict[str, Any]:
    pod = {"containers": [{"name": container, "image": "a", "resources": {"requests": {"cpu": 1, "memory": "1Gi"}}}]}
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": step} if step else {}
    return {"metadata": {"labels": labels}, "spec": {"template": {"spec": pod}}}


def _runtime(*replicated: tuple[str, str, str], **policy: Any) -> dict[str, Any]:
    jobs = [{"name": name, "template": _template(step, container)} for name, step, container in replicated]
    spec = {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": jobs}}}
    return {"apiVersion": _API, "kind": "ClusterTrainingRuntime", "metadata": {"name": "rt"}, "spec": spec}


_TORCH = _runtime(("Init", "dataset-initializer", "dataset-initializer"), ("node", "trainer", "node"), numNodes=2)


def _job(**spec: Any) -> dict[str, Any]:
    labels = {"kueue.x-k8s.io/queue-name": "q"}
    metadata = {"name": "t", "namespace": "n", "labels": labels}
    return {
        "apiVersion": _API,
        "kind": "TrainJob",
        "metadata": metadata,
        "spec": {"runtimeRef": {"name": "rt"}, **spec},
    }


def _made(job: dict[str, Any], runtime: dict[str, Any] = _TORCH) -> tuple[dict[str, Any], dict[str, Any]]:
    result = workloads_for([runtime, job])
    result.raise_for_problems()
    assert [str(ignored) for ignored in result.ignored] == []
    return result.jobs[0], result.workloads[0].object


def _counts(job: dict[str, Any], runtime: dict[str, Any] = _TORCH) -> dict[str, int]:
    return {pod_set["name"]: pod_set["count"] for pod_set in _made(job, runtime)[1]["spec"]["podSets"]}


def test_pods_are_those_of_the_runtime() -> None:
    job, workload = _made(_job())
    assert _counts(_job()) == {"init": 1, "node": 2}
    assert job["spec"]["suspend"] is True
    assert job["spec"]["runtimePatches"][-1]["manager"] == "kueue.x-k8s.io/manager"
    request = workload["spec"]["podSets"][1]["topologyRequest"]
    assert request["subGroupIndexLabel"] == "jobset.sigs.k8s.io/job-index"


def test_job_says_how_many_nodes_and_what_each_needs() -> None:
    resources = {"limits": {"cpu": 4}}
    job = _job(
        trainer={"numNodes": 5, "resourcesPerNode": resources, "image": "b", "env": [{"name": "A", "value": "1"}]}
    )
    assert _counts(job) == {"init": 1, "node": 5}
    init, node = _made(job)[1]["spec"]["podSets"]
    container = node["template"]["spec"]["containers"][0]
    assert container["resources"] == {"limits": {"cpu": 4}, "requests": {"cpu": 1, "memory": "1Gi"}}
    assert container["image"] == "b"
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert init["template"]["spec"]["containers"][0]["image"] == "a"


@pytest.mark.parametrize(("launches", "expected"), [(True, 3), (False, 4)])
def test_launcher_of_mpi_may_be_one_of_the_nodes(launches: bool, expected: int) -> None:
    policy: Any = {"numNodes": 1, "mpi": {"runLauncherAsNode": launches}}
    runtime = _runtime(("launcher", "trainer", "node"), ("node", "", "node"), **policy)
    assert _counts(_job(trainer={"numNodes": 4}), runtime) == {"launcher": 1, "node": expected}


def test_all_nodes_of_mpi_get_the_resources_of_the_job_where_the_launcher_is_one() -> None:
    trainer = {"numNodes": 3, "image": "b", "resourcesPerNode": {"requests": {"cpu": 8}}}
    policy: Any = {"mpi": {"runLauncherAsNode": True}}
    runtime = _runtime(("launcher", "trainer", "node"), ("node", "", "node"), **policy)
    launcher, node = _made(_job(trainer=trainer), runtime)[1]["spec"]["podSets"]
    containers = [entry["template"]["spec"]["containers"][0] for entry in (launcher, node)]
    assert [container["resources"] for container in containers] == [{"requests": {"cpu": 8, "memory": "1Gi"}}] * 2
    assert [container["image"] for container in containers] == ["b", "a"]


def test_patches_of_the_job_are_merged_into_the_runtime() -> None:
    pod = {"nodeSelector": {"zone": "a"}, "containers": [{"name": "node", "resources": {"requests": {"cpu": 7}}}]}
    replicated = [{"name": "node", "template": {"spec": {"template": {"spec": pod}}}}]
    patch = {"manager": "me", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": replicated}}}}
    spec = _made(_job(runtimePatches=[patch]))[1]["spec"]["podSets"][1]["template"]["spec"]
    assert spec["nodeSelector"] == {"zone": "a"}
    assert spec["containers"] == [
        {"name": "node", "image": "a", "resources": {"requests": {"cpu": 7, "memory": "1Gi"}}}
    ]


def test_null_is_a_missing_field() -> None:
    given = _job(runtimeRef={"name": "rt", "kind": None, "apiGroup": None}, trainer={"numNodes": None})
    assert _counts(given) == {"init": 1, "node": 2}
    assert _counts(given, _runtime(("node", "trainer", "node"), numNodes=2, mpi=None)) == {"node": 2}


def test_a_job_of_an_unknown_kind_of_runtimes_gets_no_workload() -> None:
    (ignored,) = workloads_for([_TORCH, _job(runtimeRef={"name": "rt", "kind": "Other"})]).ignored
    assert ignored.reason == "unsupported runtime: Other.trainer.kubeflow.org"


@pytest.mark.parametrize(
    ("name", "kind", "remedy"),
    [
        ("other", "ClusterTrainingRuntime", "add it to the manifests, or correct its name"),
        ("rt", "TrainingRuntime", "add it to the manifests, or correct its name"),
        ("torch-distribted", "ClusterTrainingRuntime", "write torch-distributed"),
    ],
)
def test_a_job_waits_for_its_runtime(name: str, kind: str, remedy: str) -> None:
    result = workloads_for([_TORCH, _job(runtimeRef={"name": name, "kind": kind})])
    (waiting,) = result.waiting
    assert str(waiting) == f'TrainJob "n/t": spec.runtimeRef.name: {kind} "{name}" not found; {remedy}'
    assert (result.workloads, result.ignored) == ((), ())


def test_a_job_that_comes_with_its_workload_does_not_wait_for_its_runtime() -> None:
    job = _job(runtimeRef={"name": "other"})
    owner = {"apiVersion": _API, "kind": "TrainJob", "name": "t", "uid": ""}
    metadata = {"name": "w", "namespace": "n", "ownerReferences": [owner]}
    workload: Any = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata, "spec": {}}
    result = workloads_for([job, workload])
    assert (result.workloads, result.waiting, result.ignored) == ((), (), ())


def test_start_patches_the_runtime_before_it_lets_go() -> None:
    job, workload = _made(_job())
    assignments = [{"name": name, "flavors": {"cpu": "f"}} for name in ("init", "node")]
    workload = {**workload, "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": assignments}}}
    patched, running = start_job(job, workload, flavors={"f": {"spec": {"nodeLabels": {"a": "b"}}}})
    first, second = patched.manifest["spec"], running.manifest["spec"]
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert (first["suspend"], second["suspend"]) == (True, False)
    patches: Any = first["runtimePatches"]
    node = patches[-1]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][1]
    assert node["name"] == "node"
    assert node["template"]["spec"]["template"]["spec"] == {"nodeSelector": {"a": "b"}}

    busy: Any = {**running.manifest, "status": {"jobsStatus": [{"name": "node", "active": 1}]}}
    (suspended,) = stop_job(busy, workload, reason=StopReason.WORKLOAD_EVICTED)
    idle: Any = {**suspended.manifest, "status": {"jobsStatus": [{"name": "node", "active": 0}]}}
    (restored,) = stop_job(idle, workload, reason=StopReason.WORKLOAD_EVICTED)
    assert restored.manifest["spec"] == job["spec"]
    assert stop_job(restored.manifest, workload, reason=StopReason.WORKLOAD_EVICTED) == ()


def test_status_counts_jobs() -> None:
    job, workload = _made(_job())
    status: Any = [{"name": "Init", "succeeded": 1}, {"name": "node", "ready": 1, "active": 1}]
    job["status"] = {"jobsStatus": status}
    assert TRAIN_JOB.pods_ready(job)
    assert reclaimable_pods(job, workload) == {"init": 1}
    job["status"]["conditions"] = [{"type": "Complete", "status": "True", "message": "m"}]
    assert TRAIN_JOB.finished(job) == Finished("m")
    assert isinstance(TRAIN_JOB, Integration)


def test_topology_of_the_runtime_is_checked() -> None:
    runtime = _runtime(("node", "trainer", "node"))
    template = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template["metadata"] = {"annotations": {"kueue.x-k8s.io/podset-unconstrained-topology": "maybe"}}
    (problem,) = workloads_for([runtime, _job()]).problems
    assert problem.field == "job[node].annotations[kueue.x-k8s.io/podset-unconstrained-topology]"
    assert problem.message.endswith(
        'must be a boolean value. Adjust either the "TrainJob.spec.runtimePatches" or the '
        '"TrainingRuntime.Template" annotations for the corresponding Job'
    )
