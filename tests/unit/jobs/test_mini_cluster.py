"""MiniClusters of the Flux Operator: Kueue manages the Job that is made of each."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import World
from kueuecore.jobs import JobsConfiguration, JobsResult, workloads_for
from kueuecore.manifests import parse_manifests

QUEUE = "kueue.x-k8s.io/queue-name"


def cluster(*containers: dict[str, Any], name: str = "lammps", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "flux-framework.org/v1alpha2",
        "kind": "MiniCluster",
        "metadata": {"name": name, "namespace": "lab", "uid": "u1"},
        "spec": {"size": 4, "jobLabels": {QUEUE: "q"}, "containers": list(containers or [container()]), **spec},
    }


def container(cpu: int = 2, **fields: Any) -> dict[str, Any]:
    return {"image": "app", "command": "lmp", "resources": {"requests": {"cpu": cpu}}, **fields}


def made(result: JobsResult) -> tuple[dict[str, Any], dict[str, Any]]:
    """The job and its Workload."""
    assert [str(problem) for problem in (*result.problems, *result.ignored, *result.warnings)] == []
    (job,), (workload,) = result.jobs, result.workloads
    return job, workload.object


def pods(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """The pods of the Workload."""
    found: Any = made(workloads_for([cluster(*containers, **spec)]))[1]["spec"]["podSets"][0]["template"]["spec"]
    return dict(found)


def test_its_job_gets_the_workload() -> None:
    job, workload = made(workloads_for([cluster()]))
    assert (job["kind"], job["metadata"]["name"], job["spec"]["suspend"]) == ("Job", "lammps", True)
    assert workload["metadata"]["name"] == "job-lammps-2a350"
    assert workload["spec"]["queueName"] == "q"
    (pod_set,) = workload["spec"]["podSets"]
    assert (pod_set["name"], pod_set["count"]) == ("main", 4)
    assert pod_set["template"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": 2}}


def test_containers_are_named_as_the_operator_names_them() -> None:
    assert [other["name"] for other in pods(container(name="mine"))["containers"]] == ["lammps"]
    both = pods(container(name="side"), container(name="mine", runFlux=True))
    assert [other["name"] for other in both["containers"]] == ["side", "lammps"]


def test_a_container_that_brings_flux_runs_first() -> None:
    (first,) = pods(flux={"container": {"resources": {"requests": {"cpu": 8}}}})["initContainers"]
    assert (first["name"], first["resources"]) == ("flux-view", {"requests": {"cpu": 8}})


def test_pods_go_where_the_cluster_says() -> None:
    toleration = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    place = {"nodeSelector": {"pool": "hpc"}, "tolerations": [toleration], "nodeAffinity": {"zone": ["a", "b"]}}
    spec = pods(pod=place)
    assert (spec["nodeSelector"], spec["tolerations"]) == ({"pool": "hpc"}, [toleration])
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]
    assert "affinity" not in pods(pod=place, network={"disableAffinity": True})


def test_a_job_that_the_operator_has_made_counts_instead() -> None:
    manifests = [cluster(), made(workloads_for([cluster(size=2)]))[0]]
    (workload,) = workloads_for(manifests).workloads
    found: Any = workload.object["spec"]
    assert found["podSets"][0]["count"] == 2


def test_its_own_labels_are_not_those_of_its_job() -> None:
    given = cluster(jobLabels={})
    given["metadata"]["labels"] = {QUEUE: "q"}
    (ignored,) = workloads_for([given]).ignored
    assert str(ignored) == (
        'MiniCluster "lab/lammps": the Flux Operator gives its Job the labels in spec.jobLabels, not its own: '
        "name the queue there"
    )


def test_its_job_needs_the_integration_of_jobs() -> None:
    (ignored,) = workloads_for([cluster()], configuration=JobsConfiguration(frameworks=["pod"])).ignored
    assert str(ignored) == (
        'Job "lab/lammps": the integration batch/job is not enabled: name it in integrations.frameworks'
    )


def test_no_job_is_made_where_another_controller_makes_the_workload() -> None:
    external = JobsConfiguration(external_frameworks=["MiniCluster.v1alpha2.flux-framework.org"])
    result = workloads_for([cluster()], configuration=external)
    assert result.workloads == ()
    assert [ignored.reason for ignored in result.ignored] == [
        "the controller of MiniCluster.v1alpha2.flux-framework.org makes its Workload: give that one, too"
    ]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"size": "4"}, "spec.size"),
        ({"containers": {}}, "spec.containers"),
        ({"jobLabels": [1]}, "spec.jobLabels"),
    ],
)
def test_fields_of_the_wrong_type_are_refused(spec: dict[str, Any], field: str) -> None:
    (problem,) = workloads_for([cluster(**spec)]).problems
    assert (str(problem.object), problem.field) == ('MiniCluster "lab/lammps"', field)


def test_problems_of_its_job_have_its_line() -> None:
    text = """
apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata: {generateName: run-, namespace: lab}
spec: {size: 2, jobLabels: {kueue.x-k8s.io/queue-name: "a b"}, containers: [{image: app}]}
"""
    (problem,) = workloads_for(parse_manifests(text, file="m.yaml")).problems
    assert (problem.place, str(problem.object)) == ("m.yaml:2 (document 1)", 'Job "lab/run-00001"')


def test_a_world_knows_the_cluster_as_the_job() -> None:
    world = World.of([cluster()])
    assert world.namespaces == ("lab",)
    (job,) = world.jobs.values()
    assert job.object["kind"] == "MiniCluster"
