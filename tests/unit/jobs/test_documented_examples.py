"""The examples of Kueue's documentation, in shapes of our own: each loads, and ends as rules/12 §5 says.

Open here, because deciding them takes nodes or drivers, or an API server's policies: how pods are placed in a topology
(tas/*, sample-jobset-tas-* with a topology-aware flavor, sample-leaderworkerset-tas, multikueue/tas, sample-tas-job),
counting devices by counters or capacity (sample-dra-counter-*, sample-dra-capacity-*), and admission policies
(sample-validating-policy*, sample-enforce-requests-policy*). Without objects of Kueue are kind's node definitions,
RBAC (visibility/*), the ConfigMaps of the Ray examples and the Python scripts.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from kueuecore.cli.outcome import Row, RunOutcome
from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.jobs import INTEGRATIONS
from kueuecore.manifests import Manifest
from kueuecore.steady_state import settle
from kueuecore.world import World

_KUEUE = "kueue.x-k8s.io/v1beta2"
_FRAMEWORKS = sorted({it.framework for it in INTEGRATIONS.values()})

Object = dict[str, Any]


def _run(*manifests: Object, gates: dict[str, bool] | None = None, **settings: Any) -> list[Row]:
    """The workloads, after everything is decided, as a Kueue does that has all integrations enabled."""
    return list(_outcome(*manifests, gates=gates, **settings).workloads)


def _outcome(*manifests: Object, gates: dict[str, bool] | None = None, **settings: Any) -> RunOutcome:
    file = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "integrations": {"frameworks": _FRAMEWORKS},
        **settings,
    }
    gates = {"SparkApplicationIntegration": True} if gates is None else gates
    configuration = Configuration.parse(json.dumps(file), feature_gates=gates)
    world = World.of([Manifest(it) for it in manifests], configuration=configuration)
    engine = Engine(configuration)
    world.apply_to(engine, now=0)
    return RunOutcome(engine, world, settle(engine, now=0), 0)


def _admitted(row: Row) -> dict[str, tuple[int, dict[str, str]]]:
    """Count and usage of each pod set of an admitted workload."""
    assert row.status == "Admitted", row.message
    return {it["name"]: (it["count"], it["resourceUsage"]) for it in row.state.status["admission"]["podSetAssignments"]}


# The set-ups.


def _kueue(kind: str, name: str, **spec: Any) -> Object:
    metadata = {"name": name, "namespace": "default"} if kind == "LocalQueue" else {"name": name}
    return {"apiVersion": _KUEUE, "kind": kind, "metadata": metadata, "spec": spec}


def _group(flavors: dict[str, dict[str, Any]]) -> Object:
    """A resource group: quota by flavor and resource."""
    return {
        "coveredResources": list(next(iter(flavors.values()))),
        "flavors": [
            {"name": flavor, "resources": [{"name": it, "nominalQuota": quota} for it, quota in quotas.items()]}
            for flavor, quotas in flavors.items()
        ],
    }


def _setup(
    *groups: dict[str, dict[str, Any]], queue: str = "cluster-queue", local: str = "user-queue", **spec: Any
) -> list[Object]:
    """Flavors, a ClusterQueue and a LocalQueue."""
    return [
        *(_kueue("ResourceFlavor", flavor) for flavors in groups for flavor in flavors),
        _kueue("ClusterQueue", queue, namespaceSelector={}, resourceGroups=[_group(it) for it in groups], **spec),
        _kueue("LocalQueue", local, clusterQueue=queue),
    ]


_SINGLE = _setup({"default-flavor": {"cpu": 9, "memory": "36Gi"}})
_SHARED = _setup(
    {"on-demand": {"cpu": 9}, "spot": {"cpu": 9}},
    {"credits": {"cpu_credits": 14}},
    queue="team-cluster-queue",
    local="team-queue",
)


# Jobs.


def _pod(requests: dict[str, Any] | None = None, *, limits: dict[str, Any] | None = None) -> Object:
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    return {"spec": {"containers": [{"name": "work", "image": "busybox", "resources": resources}]}}


def _object(api_version: str, kind: str, *, queue: str = "user-queue", **spec: Any) -> Object:
    metadata: Object = {"name": "example", "labels": {"kueue.x-k8s.io/queue-name": queue}}
    if annotations := spec.pop("annotations", None):
        metadata["annotations"] = annotations
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _job(n_pods: int, requests: dict[str, Any], **spec: Any) -> Object:
    return _object("batch/v1", "Job", parallelism=n_pods, template=_pod(requests), **{"completions": n_pods, **spec})


def _jobs(count: int, job: Object) -> list[Object]:
    """As many of one job as if it were created again and again by its generateName."""
    return [{**job, "metadata": {**job["metadata"], "name": f"example-{index}"}} for index in range(count)]


def _kubeflow(kind: str, specs: str, version: str = "v1", **replicas: tuple[int, Object]) -> Object:
    types: Any = {name: {"replicas": count, "template": pod} for name, (count, pod) in replicas.items()}
    return _object(f"kubeflow.org/{version}", kind, **{specs: types})


def _cluster(head: dict[str, Any], worker: dict[str, Any], **spec: Any) -> Object:
    group = {"groupName": "small-group", "replicas": 1, "template": _pod(worker)}
    return {"headGroupSpec": {"template": _pod(head)}, "workerGroupSpecs": [group], **spec}


def _wrapper(template: Object, **pod_sets: int) -> Object:
    """An AppWrapper around one object; the pod sets that it declares by their paths, with dots as `__`."""
    declared = [{"path": path.replace("__", "."), "replicas": count} for path, count in pod_sets.items()]
    component = {"template": template, "podSets": declared} if declared else {"template": template}
    return _object("workload.codeflare.dev/v1beta2", "AppWrapper", components=[component])


def _bare_pod(name: str, requests: dict[str, Any], **annotations: str) -> Object:
    pod = _object("v1", "Pod", annotations=annotations, **_pod(requests)["spec"])
    pod["metadata"]["name"] = name
    return pod


_ONE = {"cpu": 1, "memory": "200Mi"}
_MASTER_AND_WORKER: Any = {"Master": (1, _pod(_ONE)), "Worker": (1, _pod(_ONE))}
_LEADERS: Object = {
    "size": 3,
    "leaderTemplate": _pod({"cpu": "100m"}),
    "workerTemplate": _pod({"cpu": "200m"}),
}
_SUBMITTER = {"submitter": (1, {"cpu": "500m", "memory": "200Mi"})}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param(_job(3, _ONE), {"main": (3, {"cpu": "3", "memory": "600Mi"})}, id="sample-job"),
        pytest.param(
            _job(20, _ONE, annotations={"kueue.x-k8s.io/job-min-parallelism": "5"}),
            {"main": (9, {"cpu": "9", "memory": "1800Mi"})},
            id="sample-job-partial-admission",
        ),
        pytest.param(
            _job(
                3,
                {"cpu": "100m", "memory": "100Mi"},
                completions=100,
                annotations={"kueue.x-k8s.io/elastic-job": "true"},
            ),
            {"main": (3, {"cpu": "300m", "memory": "300Mi"})},
            id="sample-scalable-job",
        ),
        pytest.param(
            _object(
                "jobset.x-k8s.io/v1alpha2",
                "JobSet",
                replicatedJobs=[
                    {"name": "workers", "template": {"spec": {"template": _pod(_ONE)}}},
                    {"name": "driver", "template": {"spec": {"template": _pod({"cpu": 2, "memory": "200Mi"})}}},
                ],
            ),
            {"workers": (1, {"cpu": "1", "memory": "200Mi"}), "driver": (1, {"cpu": "2", "memory": "200Mi"})},
            id="sample-jobset",
        ),
        pytest.param(
            _kubeflow(
                "MPIJob",
                "mpiReplicaSpecs",
                "v2beta1",
                Launcher=(1, _pod(limits={"cpu": 1, "memory": "1Gi"})),
                Worker=(2, _pod(limits={"cpu": 1, "memory": "1Gi"})),
            ),
            {"launcher": (1, {"cpu": "1", "memory": "1Gi"}), "worker": (2, {"cpu": "2", "memory": "2Gi"})},
            id="sample-mpijob",
        ),
        pytest.param(
            _kubeflow("PyTorchJob", "pytorchReplicaSpecs", **_MASTER_AND_WORKER),
            {"master": (1, {"cpu": "1", "memory": "200Mi"}), "worker": (1, {"cpu": "1", "memory": "200Mi"})},
            id="sample-pytorchjob",
        ),
        pytest.param(
            _kubeflow("TFJob", "tfReplicaSpecs", PS=(1, _pod(_ONE)), Worker=(2, _pod(_ONE))),
            {"ps": (1, {"cpu": "1", "memory": "200Mi"}), "worker": (2, {"cpu": "2", "memory": "400Mi"})},
            id="sample-tfjob",
        ),
        pytest.param(
            _kubeflow(
                "XGBoostJob",
                "xgbReplicaSpecs",
                Master=(1, _pod({"cpu": "500m", "memory": "256Mi"})),
                Worker=(2, _pod({"cpu": "500m", "memory": "256Mi"})),
            ),
            {"master": (1, {"cpu": "500m", "memory": "256Mi"}), "worker": (2, {"cpu": "1", "memory": "512Mi"})},
            id="sample-xgboostjob",
        ),
        pytest.param(
            _kubeflow("PaddleJob", "paddleReplicaSpecs", Worker=(2, _pod({"cpu": 1, "memory": "256Mi"}))),
            {"worker": (2, {"cpu": "2", "memory": "512Mi"})},
            id="sample-paddlejob",
        ),
        pytest.param(
            _kubeflow("JAXJob", "jaxReplicaSpecs", Worker=(2, _pod(_ONE))),
            {"worker": (2, {"cpu": "2", "memory": "400Mi"})},
            id="sample-jaxjob",
        ),
        pytest.param(
            _object(
                "sparkoperator.k8s.io/v1beta2",
                "SparkApplication",
                mode="cluster",
                driver={"coreRequest": "1", "memory": "1g"},
                executor={"instances": 2, "coreRequest": "1", "memory": "1g"},
            ),
            {"driver": (1, {"cpu": "1", "memory": "1Gi"}), "executor": (2, {"cpu": "2", "memory": "2Gi"})},
            id="sample-sparkapplication",
        ),
        pytest.param(
            _object("ray.io/v1", "RayCluster", **_cluster({"cpu": 1, "memory": "2G"}, {"cpu": 1, "memory": "1G"})),
            {"head": (1, {"cpu": "1", "memory": "1953125Ki"}), "small-group": (1, {"cpu": "1", "memory": "1G"})},
            id="ray-cluster-sample",
        ),
        pytest.param(
            _object(
                "ray.io/v1", "RayJob", shutdownAfterJobFinishes=True, rayClusterSpec=_cluster({"cpu": 1}, {"cpu": 1})
            ),
            {"head": (1, {"cpu": "1"}), "small-group": (1, {"cpu": "1"}), **_SUBMITTER},
            id="ray-job-sample",
        ),
        pytest.param(
            _object(
                "ray.io/v1",
                "RayJob",
                shutdownAfterJobFinishes=True,
                rayClusterSpec=_cluster({"cpu": 1}, {"cpu": 1}, enableInTreeAutoscaling=True),
                annotations={"kueue.x-k8s.io/elastic-job": "true"},
            ),
            {"head": (1, {"cpu": "1500m", "memory": "512Mi"}), "small-group": (1, {"cpu": "1"}), **_SUBMITTER},
            id="ray-job-autoscaling-sample",
        ),
        pytest.param(
            _object(
                "ray.io/v1",
                "RayService",
                rayClusterConfig=_cluster({"cpu": 2, "memory": "4Gi"}, {"cpu": 1, "memory": "2Gi"}),
            ),
            {"head": (1, {"cpu": "2", "memory": "4Gi"}), "small-group": (1, {"cpu": "1", "memory": "2Gi"})},
            id="ray-service-sample",
        ),
        pytest.param(_bare_pod("one", {"cpu": 3}), {"main": (1, {"cpu": "3"})}, id="kueue-pod"),
        pytest.param(
            _object("apps/v1", "StatefulSet", replicas=3, template=_pod({"cpu": "100m"})),
            {"main": (3, {"cpu": "300m"})},
            id="sample-statefulset",
        ),
        pytest.param(
            _wrapper(
                _object("apps/v1", "Deployment", replicas=3, template=_pod({"cpu": "100m"})),
                template__spec__template=3,
            ),
            {"example-0": (3, {"cpu": "300m"})},
            id="appwrapper/deployment-sample",
        ),
        pytest.param(
            _wrapper(
                _object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", replicas=2, leaderWorkerTemplate=_LEADERS),
                template__spec__leaderWorkerTemplate__leaderTemplate=2,
                template__spec__leaderWorkerTemplate__workerTemplate=3,
            ),
            {"example-0": (2, {"cpu": "200m"}), "example-1": (3, {"cpu": "600m"})},
            id="appwrapper/leaderworkerset-sample",
        ),
        pytest.param(
            _wrapper(
                _kubeflow(
                    "PyTorchJob", "pytorchReplicaSpecs", Master=(1, _pod({"cpu": 1})), Worker=(1, _pod({"cpu": 1}))
                )
            ),
            {"example-0": (1, {"cpu": "1"}), "example-1": (1, {"cpu": "1"})},
            id="appwrapper/pytorch-sample",
        ),
    ],
)
def test_job_is_admitted(job: Object, expected: dict[str, tuple[int, dict[str, str]]]) -> None:
    (row,) = _run(*_SINGLE, job)
    assert _admitted(row) == expected
    flavors = {
        it for assigned in row.state.status["admission"]["podSetAssignments"] for it in assigned["flavors"].values()
    }
    assert (flavors, row.state.cluster_queue) == ({"default-flavor"}, "cluster-queue")
    assert row.owner == f"{job['kind']}/{job['metadata']['name']}"


def test_partial_admission_that_is_off_leaves_the_job_pending() -> None:
    job = _job(20, _ONE, annotations={"kueue.x-k8s.io/job-min-parallelism": "5"})
    (row,) = _run(*_SINGLE, job, gates={"PartialAdmission": False})
    assert row.status == "Pending"


def test_every_run_of_a_cron_job_has_its_workload() -> None:
    template = _job(3, _ONE)
    cron_job = _object("batch/v1", "CronJob", schedule="* * * * *", jobTemplate=template)
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "example", "uid": "u", "controller": True}
    runs = [{**it, "metadata": {**it["metadata"], "ownerReferences": [owner]}} for it in _jobs(2, template)]
    assert [row.status for row in _run(*_SINGLE, cron_job, *runs)] == ["Admitted", "Admitted"]


def test_spark_applications_are_not_managed_without_their_gate() -> None:
    job = _object("sparkoperator.k8s.io/v1beta2", "SparkApplication", mode="cluster", driver={}, executor={})
    assert _run(*_SINGLE, job, gates={}) == []


def test_topology_that_no_flavor_has_leaves_the_job_pending() -> None:
    topology = {"kueue.x-k8s.io/podset-required-topology": "cloud.example.com/rack"}
    replicated = {
        "name": "workers",
        "template": {
            "spec": {
                "parallelism": 4,
                "completions": 4,
                "template": {**_pod({"cpu": 1}), "metadata": {"annotations": topology}},
            }
        },
    }
    (row,) = _run(*_SINGLE, _object("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=[replicated]))
    assert row.status == "Pending"
    assert 'Flavor "default-flavor" does not support TopologyAwareScheduling' in row.message


def test_group_of_two_alike_pods_is_one_pod_set() -> None:
    group = {"kueue.x-k8s.io/pod-group-name": "sample-group", "kueue.x-k8s.io/pod-group-total-count": "2"}
    leader, worker = (_bare_pod(name, {"cpu": 3}, **group) for name in ("leader", "worker"))
    assert _run(*_SINGLE, leader) == []
    (row,) = _run(*_SINGLE, leader, worker)
    assert row.state.name == "sample-group"
    assert list(_admitted(row).values()) == [(2, {"cpu": "6"})]


def test_three_pods_fit() -> None:
    rows = _run(*_SINGLE, *(_bare_pod(f"pod-{index}", {"cpu": 3}) for index in range(4)))
    assert [row.status for row in rows].count("Admitted") == 3


def test_deployment_has_a_workload_for_each_pod() -> None:
    rows = _run(*_SINGLE, _object("apps/v1", "Deployment", replicas=3, template=_pod({"cpu": "100m"})))
    assert [_admitted(row) for row in rows] == [{"main": (1, {"cpu": "100m"})}] * 3
    assert {row.owner for row in rows} == {"Deployment/example"}


def test_leader_worker_set_has_a_workload_for_each_group() -> None:
    job = _object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", replicas=2, leaderWorkerTemplate=_LEADERS)
    expected = {"leader": (1, {"cpu": "100m"}), "worker": (2, {"cpu": "400m"})}
    assert [_admitted(row) for row in _run(*_SINGLE, job)] == [expected] * 2


@pytest.mark.parametrize("transformed", [True, False])
def test_shares_of_devices_are_counted_by_hami(transformed: bool) -> None:
    gpu = "nvidia.com/"
    setup = _setup(
        {"hami-flavor": {f"{gpu}gpu": 20, f"{gpu}total-gpucores": 600, f"{gpu}total-gpumem": 20480}}, queue="hami-queue"
    )
    limits = {f"{gpu}gpu": 2, f"{gpu}gpucores": 30, f"{gpu}gpumem": 1024}
    deployment = _object("apps/v1", "Deployment", replicas=1, template=_pod(limits=limits))
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
    (row,) = _run(*setup, deployment, **settings)
    if transformed:
        usage = {f"{gpu}gpu": "2", f"{gpu}total-gpucores": "60", f"{gpu}total-gpumem": "2048"}
        assert _admitted(row)["main"][1] == usage
    else:
        assert row.status == "Pending"


@pytest.mark.parametrize("template", ["Task", "Pipeline", "PipelineRun", "Sandbox", "Workflow"])
def test_controllers_of_others_have_workloads_once_they_make_pods(template: str) -> None:
    parent = {"apiVersion": "example.dev/v1", "kind": template, "metadata": {"name": "p", "uid": "u"}}
    assert _run(*_SINGLE, parent) == []
    owner = {"apiVersion": "example.dev/v1", "kind": template, "name": "p", "uid": "u", "controller": True}
    pod, elsewhere = _bare_pod("pod", {"cpu": "100m"}), _bare_pod("elsewhere", {"cpu": "100m"})
    pod["metadata"]["ownerReferences"] = elsewhere["metadata"]["ownerReferences"] = [owner]
    elsewhere["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "my-local-queue"}
    other, row = sorted(_run(*_SINGLE, parent, pod, elsewhere), key=lambda it: it.status, reverse=True)
    assert (other.status, other.message) == ("Pending", "LocalQueue my-local-queue doesn't exist")
    assert _admitted(row) == {"main": (1, {"cpu": "100m"})}


# Queues.


def test_quick_start_has_room_for_three_of_its_jobs() -> None:
    rows = _run(*_setup({"default-flavor": {"cpu": 9, "memory": "9Gi"}}), *_jobs(4, _job(3, _ONE)))
    assert [row.status for row in rows] == ["Admitted", "Admitted", "Admitted", "Pending"]
    assert "insufficient unused quota for cpu" in rows[3].message


def test_set_up_alone_is_active_and_empty() -> None:
    outcome = _outcome(*_SINGLE)
    (queue,) = outcome.cluster_queues
    assert (queue.is_active, queue.pending_workloads, queue.admitted_workloads) == (True, 0, 0)


def test_taint_keeps_away_those_who_do_not_tolerate_it() -> None:
    taint = {"key": "spot", "value": "true", "effect": "NoSchedule"}
    flavor = _kueue("ResourceFlavor", "spot", nodeLabels={"type": "spot"}, nodeTaints=[taint])
    queues = _setup({"spot": {"cpu": 9}})[1:]
    tolerant = _job(1, {"cpu": 1})
    tolerant["spec"]["template"]["spec"]["tolerations"] = [{"key": "spot", "operator": "Exists"}]
    assert [row.status for row in _run(flavor, *queues, tolerant)] == ["Admitted"]
    assert [row.status for row in _run(flavor, *queues, _job(1, {"cpu": 1}))] == ["Pending"]


def test_check_for_a_flavor_that_the_queue_has_not_is_refused() -> None:
    checks: list[Object] = [{"name": "sample-prov", "onFlavors": ["default-flavor"]}, {"name": "sample-prov-2"}]
    queue = _kueue(
        "ClusterQueue", "cluster-queue-2", namespaceSelector={}, admissionChecksStrategy={"admissionChecks": checks}
    )
    with pytest.raises(ManifestError, match="onFlavors"):
        _outcome(queue)
    del checks[0]["onFlavors"]
    (state,) = _outcome(queue).cluster_queues
    assert not state.is_active


def test_flavors_are_taken_in_their_order() -> None:
    quotas = {"reservation": (4, "16Gi"), "on-demand": (8, "32Gi"), "spot": (16, "64Gi")}
    flavors = {name: {"cpu": cpu, "memory": memory} for name, (cpu, memory) in quotas.items()}
    policy = {"migration": {"mode": "TryPreferredFlavors"}}
    setup = _setup(flavors, queue="team-cluster-queue", local="team-queue", concurrentAdmissionPolicy=policy)
    job = _job(1, {"cpu": 4, "memory": "1Gi"}, queue="team-queue")
    rows = _run(*setup, *_jobs(4, job))
    taken = [row.state.status["admission"]["podSetAssignments"][0]["flavors"]["cpu"] for row in rows]
    assert taken == ["reservation", "on-demand", "on-demand", "spot"]


def test_credits_limit_two_flavors_together() -> None:
    transformation = {"input": "cpu", "strategy": "Retain", "outputs": {"cpu_credits": "1"}}
    jobs = _jobs(5, _job(1, {"cpu": 3}, queue="team-queue"))
    rows = _run(*_SHARED, *jobs, resources={"transformations": [transformation]})
    taken = [row.state.status["admission"]["podSetAssignments"][0]["flavors"]["cpu"] for row in rows[:4]]
    assert taken == ["on-demand"] * 3 + ["spot"]
    assert rows[4].message == (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu_credits in flavor credits, "
        "1 more needed"
    )
    without = _run(*_SHARED, *_jobs(7, jobs[0]))
    assert [row.status for row in without] == ["Admitted"] * 6 + ["Pending"]


def test_admission_fair_sharing_admits_three_jobs_of_either_queue() -> None:
    scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    setup = _setup({"default-flavor": {"cpu": 9}}, local="lq-a", queueingStrategy="StrictFIFO", admissionScope=scope)
    other = _kueue("LocalQueue", "lq-b", clusterQueue="cluster-queue", fairSharing={"weight": 1})
    jobs = [*_jobs(3, _job(1, {"cpu": 3}, queue="lq-a")), {**_job(1, {"cpu": 3}, queue="lq-b")}]
    rows = _run(*setup, other, *jobs, admissionFairSharing={"usageHalfLifeTime": "168h", "usageSamplingInterval": "5m"})
    assert sorted(row.status for row in rows) == ["Admitted"] * 3 + ["Pending"]


# Devices, checks and clusters.


@pytest.mark.parametrize("mapped", [True, False])
def test_claimed_devices_are_charged_if_they_are_mapped(mapped: bool) -> None:
    setup = _setup({"default-flavor": {"cpu": 40, "memory": "200Gi", "example.com/gpu": 8}})
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
    job = _job(1, _ONE)
    pod = job["spec"]["template"]["spec"]
    pod["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "single-gpu"}]
    pod["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    mapping = {"name": "example.com/gpu", "deviceClassNames": ["gpu.example.com"]}
    settings: Any = {"resources": {"deviceClassMappings": [mapping]}} if mapped else {}
    (row,) = _run(*setup, device_class, claim, job, **settings)
    if mapped:
        assert _admitted(row)["main"][1]["example.com/gpu"] == "1"
    else:
        assert "DeviceClass gpu.example.com is not mapped in DRA configuration for podset main" in row.message


def test_extended_resource_counts_as_any_other() -> None:
    setup = _setup({"default-flavor": {"cpu": 40, "memory": "200Gi", "example.com/gpu": 8}})
    (row,) = _run(*setup, _job(1, {**_ONE, "example.com/gpu": 1}))
    assert _admitted(row)["main"][1]["example.com/gpu"] == "1"


def _checked(name: str, controller: str, kind: str) -> list[Object]:
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": kind, "name": "config"}
    check = _kueue("AdmissionCheck", name, controllerName=f"kueue.x-k8s.io/{controller}", parameters=parameters)
    strategy = {"admissionChecks": [{"name": name}]}
    return [*_setup({"default-flavor": {"cpu": 9, "memory": "36Gi"}}, admissionChecksStrategy=strategy), check]


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
    config = _kueue("ProvisioningRequestConfig", "config", provisioningClassName="check-capacity.autoscaling.x-k8s.io")
    job = _job(
        3, {"cpu": "100m", "memory": "100Mi"}, annotations={"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "600"}
    )
    (row,) = _run(*setup, config, job)
    assert row.status == "QuotaReserved"
    (check,) = row.state.status["admissionChecks"]
    assert (check["name"], check["state"]) == ("sample-prov", "Pending")


@pytest.mark.parametrize(
    ("controller", "kind"), [("multikueue", "MultiKueueConfig"), ("unknown", "ProvisioningRequestConfig")]
)
def test_queue_whose_check_nobody_answers_is_inactive(controller: str, kind: str) -> None:
    (row,) = _run(*_checked("check", controller, kind), _job(1, _ONE))
    assert (row.status, row.message) == ("Pending", "ClusterQueue cluster-queue is inactive")
