"""What the source documents describe of jobs (rules/00, rows A4, A5, B3)."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.engine import Engine
from kueuecore.jobs import INTEGRATIONS, JobsConfiguration, workloads_for
from kueuecore.manifests import Manifest
from kueuecore.objects import (
    ClusterQueue,
    FlavorQuotas,
    LabelSelector,
    LocalQueue,
    PriorityClass,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    WorkloadPriorityClass,
)
from kueuecore.settling import settle
from kueuecore.world import World

_POD: dict[str, Any] = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]}}
_CLUSTER = {"headGroupSpec": {"template": _POD}}
_EVERY_KIND: dict[str, tuple[str, dict[str, Any]]] = {
    "Job": ("batch/v1", {"template": _POD}),
    "JobSet": (
        "jobset.x-k8s.io/v1alpha2",
        {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": _POD}}}]},
    ),
    "RayJob": ("ray.io/v1", {"rayClusterSpec": _CLUSTER, "shutdownAfterJobFinishes": True}),
    "RayCluster": ("ray.io/v1", _CLUSTER),
    "PyTorchJob": ("kubeflow.org/v1", {"pytorchReplicaSpecs": {"Worker": {"template": _POD}}}),
    "MPIJob": ("kubeflow.org/v2beta1", {"mpiReplicaSpecs": {"Launcher": {"template": _POD}}}),
    "Pod": ("v1", _POD["spec"]),
    "Deployment": ("apps/v1", {"template": _POD}),
    "AppWrapper": (
        "workload.codeflare.dev/v1beta2",
        {"components": [{"template": {"apiVersion": "v1", "kind": "Pod", **_POD}}]},
    ),
    "StatefulSet": ("apps/v1", {"template": _POD}),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io/v1", {"leaderWorkerTemplate": {"workerTemplate": _POD}}),
}


def _job(kind: str, name: str = "j", **labels: str) -> dict[str, Any]:
    api_version, spec = _EVERY_KIND[kind]
    metadata = {"name": name, "namespace": "n", "labels": {"kueue.x-k8s.io/queue-name": "lq", **labels}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _workload(
    *manifests: Any, frameworks: list[str] | None = None, external: list[str] | None = None
) -> dict[str, Any]:
    configuration = JobsConfiguration(
        frameworks=frameworks or [it.framework for it in INTEGRATIONS.values()], external_frameworks=external or []
    )
    result = workloads_for(manifests, configuration=configuration)
    result.raise_for_problems()
    (workload,) = result.workloads
    return workload.object


@pytest.mark.parametrize("kind", _EVERY_KIND)
def test_a4_a_workload_is_made_of_every_kind_of_job(kind: str) -> None:
    workload = _workload(_job(kind))
    assert workload["spec"]["queueName"] == "lq"
    containers = [it["template"]["spec"]["containers"][0] for it in workload["spec"]["podSets"]]
    assert {"cpu": 1} in [it["resources"]["requests"] for it in containers]


@pytest.mark.parametrize(("external", "n_workloads"), [([], 1), (["MiniCluster.v1alpha2.flux-framework.org"], 0)])
def test_a4_jobs_of_others_have_workloads_unless_their_kind_is_managed_elsewhere(
    external: list[str], n_workloads: int
) -> None:
    labels = {"kueue.x-k8s.io/queue-name": "lq"}
    owner: dict[str, Any] = {"apiVersion": "flux-framework.org/v1alpha2", "kind": "MiniCluster"}
    cluster = {**owner, "metadata": {"name": "m", "namespace": "n", "uid": "u", "labels": labels}}
    job = _job("Job")
    job["metadata"]["ownerReferences"] = [{**owner, "name": "m", "uid": "u", "controller": True}]
    configuration = JobsConfiguration(external_frameworks=external)
    assert len(workloads_for([cluster, job], configuration=configuration).workloads) == n_workloads


def test_a4_the_job_itself_is_only_suspended() -> None:
    job = _job("Job")
    (made,) = workloads_for([job]).jobs
    spec: Any = made["spec"]
    assert spec["suspend"] is True
    assert {**spec["template"], "metadata": None} == {**_POD, "metadata": None}


@pytest.mark.parametrize("kind", _EVERY_KIND)
def test_a5_either_class_gives_the_priority(kind: str) -> None:
    classes = [WorkloadPriorityClass("urgent", value=100), PriorityClass("standard", value=7, global_default=True)]
    by_label = _workload(*classes, _job(kind, **{"kueue.x-k8s.io/priority-class": "urgent"}))
    assert by_label["spec"]["priority"] == 100
    assert _workload(*classes, _job(kind))["spec"]["priority"] == 7


def test_b3_an_admin_sees_which_jobs_wait_where_and_why() -> None:
    quota = FlavorQuotas("f", resources=[ResourceQuota("cpu", nominal_quota="1")])
    group = ResourceGroup(["cpu"], flavors=[quota])
    queues = [
        ResourceFlavor("f"),
        ClusterQueue("cq", resource_groups=[group], namespace_selector=LabelSelector()),
        LocalQueue("lq", namespace="n", cluster_queue="cq"),
    ]
    jobs = [_job("Job", "runs"), _job("StatefulSet", "second"), _job("Pod", "third")]
    world = World.of([*(Manifest(it.to_manifest()) for it in queues), *map(Manifest, jobs)])
    engine = Engine()
    world.apply_to(engine, now=0)
    settle(engine, now=0)
    owners: Any = {it.object["metadata"]["name"]: it.object["metadata"]["ownerReferences"] for it in world.made}  # type: ignore[index,call-overload]
    waiting = engine.pending("cq")
    assert [(it.position_in_cluster_queue, owners[it.name][0]["name"]) for it in waiting] == [
        (0, "second"),
        (1, "third"),
    ]
    assert engine.workload(waiting[0].name, namespace="n").message == (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor f, 1 more needed"
    )
