"""What Kueue's documentation sets up and submits, and what a run of it shows."""

from __future__ import annotations

import json
from typing import Any

from kueuecore.cli.outcome import Row, RunOutcome
from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.jobs import INTEGRATIONS
from kueuecore.manifests import Manifest
from kueuecore.steady_state import settle
from kueuecore.world import World

KUEUE = "kueue.x-k8s.io/v1beta2"
_FRAMEWORKS = sorted({integration.framework for integration in INTEGRATIONS.values()})

Object = dict[str, Any]


def run_rows(*manifests: Object, gates: dict[str, bool] | None = None, **settings: Any) -> list[Row]:
    """The workloads, after everything is decided, as a Kueue does that has all integrations enabled."""
    return list(run_outcome(*manifests, gates=gates, **settings).workloads)


def run_outcome(*manifests: Object, gates: dict[str, bool] | None = None, **settings: Any) -> RunOutcome:
    file = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "integrations": {"frameworks": _FRAMEWORKS},
        **settings,
    }
    gates = {"SparkApplicationIntegration": True} if gates is None else gates
    configuration = Configuration.parse(json.dumps(file), feature_gates=gates)
    world = World.of([Manifest(manifest) for manifest in manifests], configuration=configuration)
    engine = Engine(configuration)
    world.apply_to(engine, now=0)
    return RunOutcome(engine, world, settle(engine, now=0), 0)


def admitted_pods(row: Row) -> dict[str, tuple[int, dict[str, str]]]:
    """Count and usage of each pod set of an admitted workload."""
    assert row.status == "Admitted", row.message
    return {
        assignment["name"]: (assignment["count"], assignment["resourceUsage"])
        for assignment in row.state.status["admission"]["podSetAssignments"]
    }


# The set-ups.


def kueue_object(kind: str, name: str, **spec: Any) -> Object:
    metadata = {"name": name, "namespace": "default"} if kind == "LocalQueue" else {"name": name}
    return {"apiVersion": KUEUE, "kind": kind, "metadata": metadata, "spec": spec}


def resource_group(flavors: dict[str, dict[str, Any]]) -> Object:
    """A resource group: quota by flavor and resource."""
    return {
        "coveredResources": list(next(iter(flavors.values()))),
        "flavors": [
            {"name": flavor, "resources": [{"name": key, "nominalQuota": quota} for key, quota in quotas.items()]}
            for flavor, quotas in flavors.items()
        ],
    }


def set_up(
    *groups: dict[str, dict[str, Any]], queue: str = "cluster-queue", local: str = "user-queue", **spec: Any
) -> list[Object]:
    """Flavors, a ClusterQueue and a LocalQueue."""
    return [
        *(kueue_object("ResourceFlavor", flavor) for flavors in groups for flavor in flavors),
        kueue_object(
            "ClusterQueue",
            queue,
            namespaceSelector={},
            resourceGroups=[resource_group(group) for group in groups],
            **spec,
        ),
        kueue_object("LocalQueue", local, clusterQueue=queue),
    ]


SINGLE = set_up({"default-flavor": {"cpu": 9, "memory": "36Gi"}})
SHARED = set_up(
    {"on-demand": {"cpu": 9}, "spot": {"cpu": 9}},
    {"credits": {"cpu_credits": 14}},
    queue="team-cluster-queue",
    local="team-queue",
)


# Jobs.


def pod_template(requests: dict[str, Any] | None = None, *, limits: dict[str, Any] | None = None) -> Object:
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    return {"spec": {"containers": [{"name": "work", "image": "busybox", "resources": resources}]}}


def custom(api_version: str, kind: str, *, queue: str = "user-queue", **spec: Any) -> Object:
    metadata: Object = {"name": "example", "labels": {"kueue.x-k8s.io/queue-name": queue}}
    if annotations := spec.pop("annotations", None):
        metadata["annotations"] = annotations
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def batch_job(n_pods: int, requests: dict[str, Any], **spec: Any) -> Object:
    return custom(
        "batch/v1", "Job", parallelism=n_pods, template=pod_template(requests), **{"completions": n_pods, **spec}
    )


def numbered(count: int, job: Object) -> list[Object]:
    """As many of one job as if it were created again and again by its generateName."""
    return [{**job, "metadata": {**job["metadata"], "name": f"example-{index}"}} for index in range(count)]


def kubeflow_job(kind: str, specs: str, version: str = "v1", **replicas: tuple[int, Object]) -> Object:
    types: Any = {name: {"replicas": count, "template": pod} for name, (count, pod) in replicas.items()}
    return custom(f"kubeflow.org/{version}", kind, **{specs: types})


def ray_cluster(head: dict[str, Any], worker: dict[str, Any], **spec: Any) -> Object:
    group = {"groupName": "small-group", "replicas": 1, "template": pod_template(worker)}
    return {"headGroupSpec": {"template": pod_template(head)}, "workerGroupSpecs": [group], **spec}


def app_wrapper(template: Object, **pod_sets: int) -> Object:
    """An AppWrapper around one object; the pod sets that it declares by their paths, with dots as `__`."""
    declared = [{"path": path.replace("__", "."), "replicas": count} for path, count in pod_sets.items()]
    component = {"template": template, "podSets": declared} if declared else {"template": template}
    return custom("workload.codeflare.dev/v1beta2", "AppWrapper", components=[component])


def bare_pod(name: str, requests: dict[str, Any], **annotations: str) -> Object:
    pod = custom("v1", "Pod", annotations=annotations, **pod_template(requests)["spec"])
    pod["metadata"]["name"] = name
    return pod


ONE = {"cpu": 1, "memory": "200Mi"}
MASTER_AND_WORKER: Any = {"Master": (1, pod_template(ONE)), "Worker": (1, pod_template(ONE))}
LEADERS: Object = {
    "size": 3,
    "leaderTemplate": pod_template({"cpu": "100m"}),
    "workerTemplate": pod_template({"cpu": "200m"}),
}
SUBMITTER = {"submitter": (1, {"cpu": "500m", "memory": "200Mi"})}
