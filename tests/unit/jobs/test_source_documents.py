"""What the source documents describe of jobs (docs/sources.md A4, A5, B3)."""

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
from kueuecore.steady_state import settle
from kueuecore.world import World
from tests.jobs import EVERY_KIND, POD, job


def _workload(
    *manifests: Any, frameworks: list[str] | None = None, external: list[str] | None = None
) -> dict[str, Any]:
    configuration = JobsConfiguration(
        frameworks=frameworks or [integration.framework for integration in INTEGRATIONS.values()],
        external_frameworks=external or [],
    )
    result = workloads_for(manifests, configuration=configuration)
    result.raise_for_problems()
    (workload,) = result.workloads
    return workload.object


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_workload_is_made_of_every_kind_ofjob(kind: str) -> None:
    workload = _workload(job(kind))
    assert workload["spec"]["queueName"] == "lq"
    containers = [pod_set["template"]["spec"]["containers"][0] for pod_set in workload["spec"]["podSets"]]
    assert {"cpu": 1} in [container["resources"]["requests"] for container in containers]


@pytest.mark.parametrize(("external", "n_workloads"), [([], 1), (["MiniCluster.v1alpha2.flux-framework.org"], 0)])
def test_jobs_of_others_have_workloads_unless_their_kind_is_managed_elsewhere(
    external: list[str], n_workloads: int
) -> None:
    labels = {"kueue.x-k8s.io/queue-name": "lq"}
    owner: dict[str, Any] = {"apiVersion": "flux-framework.org/v1alpha2", "kind": "MiniCluster"}
    cluster = {**owner, "metadata": {"name": "m", "namespace": "n", "uid": "u", "labels": labels}}
    child = job("Job")
    child["metadata"]["ownerReferences"] = [{**owner, "name": "m", "uid": "u", "controller": True}]
    configuration = JobsConfiguration(external_frameworks=external)
    assert len(workloads_for([cluster, child], configuration=configuration).workloads) == n_workloads


def test_the_job_itself_is_only_suspended() -> None:
    (made,) = workloads_for([job("Job")]).jobs
    spec: Any = made["spec"]
    assert spec["suspend"] is True
    assert {**spec["template"], "metadata": None} == {**POD, "metadata": None}


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_either_class_gives_the_priority(kind: str) -> None:
    classes = [WorkloadPriorityClass("urgent", value=100), PriorityClass("standard", value=7, global_default=True)]
    by_label = _workload(*classes, job(kind, **{"kueue.x-k8s.io/priority-class": "urgent"}))
    assert by_label["spec"]["priority"] == 100
    assert _workload(*classes, job(kind))["spec"]["priority"] == 7


def test_an_admin_sees_which_jobs_wait_where_and_why() -> None:
    quota = FlavorQuotas("f", resources=[ResourceQuota("cpu", nominal_quota="1")])
    group = ResourceGroup(["cpu"], flavors=[quota])
    queues = [
        ResourceFlavor("f"),
        ClusterQueue("cq", resource_groups=[group], namespace_selector=LabelSelector()),
        LocalQueue("lq", namespace="n", cluster_queue="cq"),
    ]
    jobs = [job("Job", "runs"), job("StatefulSet", "second"), job("Pod", "third")]
    world = World.of([*(Manifest(queue.to_manifest()) for queue in queues), *map(Manifest, jobs)])
    engine = Engine()
    world.apply_to(engine, now=0)
    settle(engine, now=0)
    made: list[Any] = [manifest.object["metadata"] for manifest in world.made]
    owners = {metadata["name"]: metadata["ownerReferences"] for metadata in made}
    waiting = engine.pending("cq")
    assert [(workload.position_in_cluster_queue, owners[workload.name][0]["name"]) for workload in waiting] == [
        (0, "second"),
        (1, "third"),
    ]
    assert engine.workload(waiting[0].name, namespace="n").message == (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor f, 1 more needed"
    )
