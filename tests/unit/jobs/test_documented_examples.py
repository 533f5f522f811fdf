"""The examples of Kueue's documentation, in shapes of our own: each loads, and ends as rules/12 §5 says.

Open here, because deciding them takes nodes or drivers, or an API server's policies: how pods are placed in a topology
(tas/*, sample-jobset-tas-* with a topology-aware flavor, sample-leaderworkerset-tas, multikueue/tas, sample-tas-job),
counting devices by counters or capacity (sample-dra-counter-*, sample-dra-capacity-*), and admission policies
(sample-validating-policy*, sample-enforce-requests-policy*). Without objects of Kueue are kind's node definitions,
RBAC (visibility/*), the ConfigMaps of the Ray examples and the Python scripts.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.jobs.documented import (
    LEADERS,
    MASTER_AND_WORKER,
    ONE,
    SINGLE,
    SUBMITTER,
    Object,
    admitted_pods,
    app_wrapper,
    bare_pod,
    batch_job,
    custom,
    kubeflow_job,
    numbered,
    pod_template,
    ray_cluster,
    run_rows,
    set_up,
)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param(batch_job(3, ONE), {"main": (3, {"cpu": "3", "memory": "600Mi"})}, id="sample-job"),
        pytest.param(
            batch_job(20, ONE, annotations={"kueue.x-k8s.io/job-min-parallelism": "5"}),
            {"main": (9, {"cpu": "9", "memory": "1800Mi"})},
            id="sample-job-partial-admission",
        ),
        pytest.param(
            batch_job(
                3,
                {"cpu": "100m", "memory": "100Mi"},
                completions=100,
                annotations={"kueue.x-k8s.io/elastic-job": "true"},
            ),
            {"main": (3, {"cpu": "300m", "memory": "300Mi"})},
            id="sample-scalable-job",
        ),
        pytest.param(
            custom(
                "jobset.x-k8s.io/v1alpha2",
                "JobSet",
                replicatedJobs=[
                    {"name": "workers", "template": {"spec": {"template": pod_template(ONE)}}},
                    {"name": "driver", "template": {"spec": {"template": pod_template({"cpu": 2, "memory": "200Mi"})}}},
                ],
            ),
            {"workers": (1, {"cpu": "1", "memory": "200Mi"}), "driver": (1, {"cpu": "2", "memory": "200Mi"})},
            id="sample-jobset",
        ),
        pytest.param(
            kubeflow_job(
                "MPIJob",
                "mpiReplicaSpecs",
                "v2beta1",
                Launcher=(1, pod_template(limits={"cpu": 1, "memory": "1Gi"})),
                Worker=(2, pod_template(limits={"cpu": 1, "memory": "1Gi"})),
            ),
            {"launcher": (1, {"cpu": "1", "memory": "1Gi"}), "worker": (2, {"cpu": "2", "memory": "2Gi"})},
            id="sample-mpijob",
        ),
        pytest.param(
            kubeflow_job("PyTorchJob", "pytorchReplicaSpecs", **MASTER_AND_WORKER),
            {"master": (1, {"cpu": "1", "memory": "200Mi"}), "worker": (1, {"cpu": "1", "memory": "200Mi"})},
            id="sample-pytorchjob",
        ),
        pytest.param(
            kubeflow_job("TFJob", "tfReplicaSpecs", PS=(1, pod_template(ONE)), Worker=(2, pod_template(ONE))),
            {"ps": (1, {"cpu": "1", "memory": "200Mi"}), "worker": (2, {"cpu": "2", "memory": "400Mi"})},
            id="sample-tfjob",
        ),
        pytest.param(
            kubeflow_job(
                "XGBoostJob",
                "xgbReplicaSpecs",
                Master=(1, pod_template({"cpu": "500m", "memory": "256Mi"})),
                Worker=(2, pod_template({"cpu": "500m", "memory": "256Mi"})),
            ),
            {"master": (1, {"cpu": "500m", "memory": "256Mi"}), "worker": (2, {"cpu": "1", "memory": "512Mi"})},
            id="sample-xgboostjob",
        ),
        pytest.param(
            kubeflow_job("PaddleJob", "paddleReplicaSpecs", Worker=(2, pod_template({"cpu": 1, "memory": "256Mi"}))),
            {"worker": (2, {"cpu": "2", "memory": "512Mi"})},
            id="sample-paddlejob",
        ),
        pytest.param(
            kubeflow_job("JAXJob", "jaxReplicaSpecs", Worker=(2, pod_template(ONE))),
            {"worker": (2, {"cpu": "2", "memory": "400Mi"})},
            id="sample-jaxjob",
        ),
        pytest.param(
            custom(
                "sparkoperator.k8s.io/v1beta2",
                "SparkApplication",
                mode="cluster",
                driver={"coreRequest": "1", "memory": "1g"},
                executor={"instances": 2, "coreRequest": "1", "memory": "1g"},
            ),
            {"driver": (1, {"cpu": "1", "memory": "1408Mi"}), "executor": (2, {"cpu": "2", "memory": "2816Mi"})},
            id="sample-sparkapplication",
        ),
        pytest.param(
            custom("ray.io/v1", "RayCluster", **ray_cluster({"cpu": 1, "memory": "2G"}, {"cpu": 1, "memory": "1G"})),
            {"head": (1, {"cpu": "1", "memory": "1953125Ki"}), "small-group": (1, {"cpu": "1", "memory": "1G"})},
            id="ray-cluster-sample",
        ),
        pytest.param(
            custom(
                "ray.io/v1", "RayJob", shutdownAfterJobFinishes=True, rayClusterSpec=ray_cluster({"cpu": 1}, {"cpu": 1})
            ),
            {"head": (1, {"cpu": "1"}), "small-group": (1, {"cpu": "1"}), **SUBMITTER},
            id="ray-job-sample",
        ),
        pytest.param(
            custom(
                "ray.io/v1",
                "RayJob",
                shutdownAfterJobFinishes=True,
                rayClusterSpec=ray_cluster({"cpu": 1}, {"cpu": 1}, enableInTreeAutoscaling=True),
                annotations={"kueue.x-k8s.io/elastic-job": "true"},
            ),
            {"head": (1, {"cpu": "1500m", "memory": "512Mi"}), "small-group": (1, {"cpu": "1"}), **SUBMITTER},
            id="ray-job-autoscaling-sample",
        ),
        pytest.param(
            custom(
                "ray.io/v1",
                "RayService",
                rayClusterConfig=ray_cluster({"cpu": 2, "memory": "4Gi"}, {"cpu": 1, "memory": "2Gi"}),
                # Since 0.20.0 it has to say so.
                upgradeStrategy={"type": "None"},
            ),
            {"head": (1, {"cpu": "2", "memory": "4Gi"}), "small-group": (1, {"cpu": "1", "memory": "2Gi"})},
            id="ray-service-sample",
        ),
        pytest.param(bare_pod("one", {"cpu": 3}), {"main": (1, {"cpu": "3"})}, id="kueue-pod"),
        pytest.param(
            custom("apps/v1", "StatefulSet", replicas=3, template=pod_template({"cpu": "100m"})),
            {"main": (3, {"cpu": "300m"})},
            id="sample-statefulset",
        ),
        pytest.param(
            app_wrapper(
                custom("apps/v1", "Deployment", replicas=3, template=pod_template({"cpu": "100m"})),
                template__spec__template=3,
            ),
            {"example-0": (3, {"cpu": "300m"})},
            id="appwrapper/deployment-sample",
        ),
        pytest.param(
            app_wrapper(
                custom("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", replicas=2, leaderWorkerTemplate=LEADERS),
                template__spec__leaderWorkerTemplate__leaderTemplate=2,
                template__spec__leaderWorkerTemplate__workerTemplate=3,
            ),
            {"example-0": (2, {"cpu": "200m"}), "example-1": (3, {"cpu": "600m"})},
            id="appwrapper/leaderworkerset-sample",
        ),
        pytest.param(
            app_wrapper(
                kubeflow_job(
                    "PyTorchJob",
                    "pytorchReplicaSpecs",
                    Master=(1, pod_template({"cpu": 1})),
                    Worker=(1, pod_template({"cpu": 1})),
                )
            ),
            {"example-0": (1, {"cpu": "1"}), "example-1": (1, {"cpu": "1"})},
            id="appwrapper/pytorch-sample",
        ),
    ],
)
def test_job_is_admitted(job: Object, expected: dict[str, tuple[int, dict[str, str]]]) -> None:
    (row,) = run_rows(*SINGLE, job)
    assert admitted_pods(row) == expected
    flavors = {
        flavor
        for assigned in row.state.status["admission"]["podSetAssignments"]
        for flavor in assigned["flavors"].values()
    }
    assert (flavors, row.state.cluster_queue) == ({"default-flavor"}, "cluster-queue")
    assert row.owner == f"{job['kind']}/{job['metadata']['name']}"


def test_partial_admission_that_is_off_leaves_the_job_pending() -> None:
    job = batch_job(20, ONE, annotations={"kueue.x-k8s.io/job-min-parallelism": "5"})
    (row,) = run_rows(*SINGLE, job, gates={"PartialAdmission": False})
    assert row.status == "Pending"


def test_every_run_of_a_cron_job_has_its_workload() -> None:
    template = batch_job(3, ONE)
    cron_job = custom("batch/v1", "CronJob", schedule="* * * * *", jobTemplate=template)
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "example", "uid": "u", "controller": True}
    runs = [
        {**object_, "metadata": {**object_["metadata"], "ownerReferences": [owner]}}
        for object_ in numbered(2, template)
    ]
    assert [row.status for row in run_rows(*SINGLE, cron_job, *runs)] == ["Admitted", "Admitted"]


def test_spark_applications_are_not_managed_without_their_gate() -> None:
    job = custom("sparkoperator.k8s.io/v1beta2", "SparkApplication", mode="cluster", driver={}, executor={})
    assert run_rows(*SINGLE, job, gates={}) == []


def test_topology_that_no_flavor_has_leaves_the_job_pending() -> None:
    topology = {"kueue.x-k8s.io/podset-required-topology": "cloud.example.com/rack"}
    replicated = {
        "name": "workers",
        "template": {
            "spec": {
                "parallelism": 4,
                "completions": 4,
                "template": {**pod_template({"cpu": 1}), "metadata": {"annotations": topology}},
            }
        },
    }
    (row,) = run_rows(*SINGLE, custom("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=[replicated]))
    assert row.status == "Pending"
    assert 'Flavor "default-flavor" does not support TopologyAwareScheduling' in row.message


def test_group_of_two_alike_pods_is_one_pod_set() -> None:
    group = {"kueue.x-k8s.io/pod-group-name": "sample-group", "kueue.x-k8s.io/pod-group-total-count": "2"}
    leader, worker = (bare_pod(name, {"cpu": 3}, **group) for name in ("leader", "worker"))
    assert run_rows(*SINGLE, leader) == []
    (row,) = run_rows(*SINGLE, leader, worker)
    assert row.state.name == "sample-group"
    assert list(admitted_pods(row).values()) == [(2, {"cpu": "6"})]


def test_three_pods_fit() -> None:
    rows = run_rows(*SINGLE, *(bare_pod(f"pod-{index}", {"cpu": 3}) for index in range(4)))
    assert [row.status for row in rows].count("Admitted") == 3


def test_deployment_has_a_workload_for_each_pod() -> None:
    rows = run_rows(*SINGLE, custom("apps/v1", "Deployment", replicas=3, template=pod_template({"cpu": "100m"})))
    assert [admitted_pods(row) for row in rows] == [{"main": (1, {"cpu": "100m"})}] * 3
    assert {row.owner for row in rows} == {"Deployment/example"}


def test_leader_worker_set_has_a_workload_for_each_group() -> None:
    job = custom("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", replicas=2, leaderWorkerTemplate=LEADERS)
    expected = {"leader": (1, {"cpu": "100m"}), "worker": (2, {"cpu": "400m"})}
    assert [admitted_pods(row) for row in run_rows(*SINGLE, job)] == [expected] * 2


@pytest.mark.parametrize("transformed", [True, False])
def test_shares_of_devices_are_counted_by_hami(transformed: bool) -> None:
    gpu = "nvidia.com/"
    setup = set_up(
        {"hami-flavor": {f"{gpu}gpu": 20, f"{gpu}total-gpucores": 600, f"{gpu}total-gpumem": 20480}}, queue="hami-queue"
    )
    limits = {f"{gpu}gpu": 2, f"{gpu}gpucores": 30, f"{gpu}gpumem": 1024}
    deployment = custom("apps/v1", "Deployment", replicas=1, template=pod_template(limits=limits))
    transformations = [
        {
            "input": f"{gpu}{name}",
            "strategy": "Replace",
            "multiplyBy": f"{gpu}gpu",
            "outputs": {f"{gpu}total-{name}": "1"},
        }
        for name in ("gpucores", "gpumem")
    ]
    settings: Any = {"resources": {"transformations": transformations}} if transformed else {}
    (row,) = run_rows(*setup, deployment, **settings)
    if transformed:
        usage = {f"{gpu}gpu": "2", f"{gpu}total-gpucores": "60", f"{gpu}total-gpumem": "2048"}
        assert admitted_pods(row)["main"][1] == usage
    else:
        assert row.status == "Pending"


@pytest.mark.parametrize("template", ["Task", "Pipeline", "PipelineRun", "Sandbox", "Workflow"])
def test_controllers_of_others_have_workloads_once_they_make_pods(template: str) -> None:
    parent = {"apiVersion": "example.dev/v1", "kind": template, "metadata": {"name": "p", "uid": "u"}}
    assert run_rows(*SINGLE, parent) == []
    owner = {"apiVersion": "example.dev/v1", "kind": template, "name": "p", "uid": "u", "controller": True}
    pod, elsewhere = bare_pod("pod", {"cpu": "100m"}), bare_pod("elsewhere", {"cpu": "100m"})
    pod["metadata"]["ownerReferences"] = elsewhere["metadata"]["ownerReferences"] = [owner]
    elsewhere["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "my-local-queue"}
    other, row = sorted(run_rows(*SINGLE, parent, pod, elsewhere), key=lambda run_row: run_row.status, reverse=True)
    assert (other.status, other.message) == ("Pending", "LocalQueue my-local-queue doesn't exist")
    assert admitted_pods(row) == {"main": (1, {"cpu": "100m"})}
