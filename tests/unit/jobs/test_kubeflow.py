from __future__ import annotations

from typing import Any

import pytest

from kueuecore.jobs import Finished, Integration, JobsConfiguration, start_job, workloads_for
from kueuecore.jobs.kubeflow import KUBEFLOW_KINDS, MPI_JOB
from kueuecore.objects import PriorityClass

_BY_KIND = {kind.kind: kind for kind in KUBEFLOW_KINDS}
_ALL = JobsConfiguration(frameworks=[kind.framework for kind in KUBEFLOW_KINDS])


def _job(kind: str, specs: str, types: list[str], **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c"}]}}
    return {
        "apiVersion": _BY_KIND[kind].api_version,
        "kind": kind,
        "metadata": {"name": "j", "namespace": "n", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
        "spec": {specs: {type_: {"replicas": 2, "template": template} for type_ in types}, **spec},
    }


def _spec(*manifests: Any) -> dict[str, Any]:
    result = workloads_for(manifests, configuration=_ALL)
    result.raise_for_problems()
    spec: Any = result.workloads[0].object["spec"]
    assert isinstance(spec, dict)
    return spec


@pytest.mark.parametrize(
    ("kind", "specs", "types", "names"),
    [
        ("PyTorchJob", "pytorchReplicaSpecs", ["Worker", "Master"], ["master", "worker"]),
        ("XGBoostJob", "xgbReplicaSpecs", ["Worker", "Master"], ["master", "worker"]),
        ("PaddleJob", "paddleReplicaSpecs", ["Worker"], ["worker"]),
        ("JAXJob", "jaxReplicaSpecs", ["Worker"], ["worker"]),
        ("MPIJob", "mpiReplicaSpecs", ["Worker", "Launcher"], ["launcher", "worker"]),
        (
            "TFJob",
            "tfReplicaSpecs",
            ["Evaluator", "Worker", "PS", "Master", "Chief"],
            ["chief", "master", "ps", "worker", "evaluator"],
        ),
    ],
)
def test_replica_types_become_pod_sets_in_the_order_of_the_kind(
    kind: str, specs: str, types: list[str], names: list[str]
) -> None:
    pod_sets = _spec(_job(kind, specs, types))["podSets"]
    assert [(pod_set["name"], pod_set["count"]) for pod_set in pod_sets] == [(name, 2) for name in names]
    assert pod_sets[0]["topologyRequest"] == {"podIndexLabel": "training.kubeflow.org/replica-index"}


def test_replica_types_are_case_sensitive_and_needed() -> None:
    (problem,) = workloads_for([_job("PyTorchJob", "pytorchReplicaSpecs", ["worker"])], configuration=_ALL).problems
    assert (problem.field, problem.message) == ("spec.pytorchReplicaSpecs", "Required value: one of Master, Worker")


def test_replicas_are_one_by_default() -> None:
    job = _job("JAXJob", "jaxReplicaSpecs", ["Worker"])
    del job["spec"]["jaxReplicaSpecs"]["Worker"]["replicas"]
    assert _spec(job)["podSets"][0]["count"] == 1


def test_class_of_the_scheduling_policy_goes_before_those_of_the_pods() -> None:
    classes = [PriorityClass("policy", value=7), PriorityClass("pods", value=3)]
    job = _job("PyTorchJob", "pytorchReplicaSpecs", ["Worker"])
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["priorityClassName"] = "pods"
    assert _spec(*classes, job)["priority"] == 3
    job["spec"]["runPolicy"] = {"schedulingPolicy": {"priorityClass": "policy"}}
    assert _spec(*classes, job)["priority"] == 7


@pytest.mark.parametrize("of_pods", [{}, {"priorityClassName": "pods"}])
def test_a_job_waits_for_the_class_of_its_scheduling_policy(of_pods: dict[str, str]) -> None:
    job = _job("MPIJob", "mpiReplicaSpecs", ["Launcher"])
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"] |= of_pods
    job["spec"]["runPolicy"] = {"schedulingPolicy": {"priorityClass": "policy"}}
    (problem,) = workloads_for([PriorityClass("pods", value=3), job]).waiting
    assert problem.field == "spec.runPolicy.schedulingPolicy.priorityClass"
    assert (problem.message, problem.remedy) == (
        'PriorityClass "policy" not found',
        "add the class to the manifests, or correct priorityClass",
    )


def test_jobs_are_off_in_a_new_installation() -> None:
    (ignored,) = workloads_for([_job("TFJob", "tfReplicaSpecs", ["Worker"])]).ignored
    assert ignored.reason.startswith("the integration kubeflow.org/tfjob is not enabled")


def test_start_unsuspends_the_run_policy() -> None:
    result = workloads_for([_job("MPIJob", "mpiReplicaSpecs", ["Worker"])])
    job: Any = result.jobs[0]
    assert job["spec"]["runPolicy"] == {"suspend": True}
    workload: Any = result.workloads[0].object
    assignments = [{"name": "worker", "flavors": {"cpu": "f"}}]
    workload = {**workload, "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": assignments}}}
    (write,) = start_job(job, workload, flavors={"f": {"spec": {"nodeLabels": {"a": "b"}}}})
    spec: Any = write.manifest["spec"]
    assert spec["runPolicy"] == {"suspend": False}
    assert spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["nodeSelector"] == {"a": "b"}


def test_indexes_of_workers_start_after_a_launcher_that_works() -> None:
    def offset(job: dict[str, Any]) -> Any:
        made: Any = workloads_for([job]).jobs[0]
        metadata = made["spec"]["mpiReplicaSpecs"]["Worker"]["template"].get("metadata", {})
        return metadata.get("annotations", {}).get("kueue.x-k8s.io/pod-index-offset")

    both = ["Launcher", "Worker"]
    assert offset(_job("MPIJob", "mpiReplicaSpecs", both, runLauncherAsWorker=True)) == "1"
    assert offset(_job("MPIJob", "mpiReplicaSpecs", both)) is None
    assert offset(_job("MPIJob", "mpiReplicaSpecs", ["Worker"], runLauncherAsWorker=True)) is None


def test_problem_names_the_replica_type_in_brackets() -> None:
    job = _job("MPIJob", "mpiReplicaSpecs", ["Worker"])
    annotations = {"kueue.x-k8s.io/podset-unconstrained-topology": "maybe"}
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"] = {"annotations": annotations}
    (problem,) = workloads_for([job]).problems
    assert problem.field == (
        "spec.mpiReplicaSpecs[Worker].template.metadata.annotations[kueue.x-k8s.io/podset-unconstrained-topology]"
    )


@pytest.mark.parametrize("integration", KUBEFLOW_KINDS, ids=lambda entry: entry.kind)
def test_status_is_read_from_conditions_and_replicas(integration: Integration) -> None:
    def job(*conditions: str, active: int = 0) -> dict[str, Any]:
        rows = [{"type": condition, "status": "True", "message": condition} for condition in conditions]
        return {"status": {"conditions": rows, "replicaStatuses": {"Worker": {"active": active}}}}

    assert integration.finished(job("Created", "Running")) is None
    assert integration.finished(job("Succeeded")) == Finished("Succeeded")
    assert integration.finished(job("Failed")) == Finished("Failed", success=False)
    assert (integration.pods_ready(job("Running")), integration.pods_ready(job("Created"))) == (True, False)
    assert (integration.is_active(job(active=1)), integration.is_active(job())) == (True, False)


def test_mpi_jobs_come_from_another_operator() -> None:
    assert MPI_JOB.default_managed_by == "kubeflow.org/mpi-operator"
