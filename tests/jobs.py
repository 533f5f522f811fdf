"""The smallest job of every kind that docs/sources.md A4 names: one pod, or one of each role, that asks for one CPU."""

from __future__ import annotations

import copy
from typing import Any

POD: dict[str, Any] = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]}}
_CLUSTER = {"headGroupSpec": {"template": POD}}
EVERY_KIND: dict[str, tuple[str, dict[str, Any]]] = {
    "Job": ("batch/v1", {"template": POD}),
    "JobSet": (
        "jobset.x-k8s.io/v1alpha2",
        {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": POD}}}]},
    ),
    "RayJob": ("ray.io/v1", {"rayClusterSpec": _CLUSTER, "shutdownAfterJobFinishes": True}),
    "RayCluster": ("ray.io/v1", _CLUSTER),
    "PyTorchJob": ("kubeflow.org/v1", {"pytorchReplicaSpecs": {"Worker": {"template": POD}}}),
    "MPIJob": ("kubeflow.org/v2beta1", {"mpiReplicaSpecs": {"Launcher": {"template": POD}}}),
    "Pod": ("v1", POD["spec"]),
    "Deployment": ("apps/v1", {"template": POD}),
    "AppWrapper": (
        "workload.codeflare.dev/v1beta2",
        {"components": [{"template": {"apiVersion": "v1", "kind": "Pod", **POD}}]},
    ),
    "StatefulSet": ("apps/v1", {"template": POD}),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io/v1", {"leaderWorkerTemplate": {"workerTemplate": POD}}),
}

# The rest of the kinds that Kueue knows.
_ROLE = {"coreRequest": "1", "instances": 1}
MORE_KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "RayService": ("ray.io/v1", {"rayClusterConfig": _CLUSTER, "upgradeStrategy": {"type": "None"}}),
    "SparkApplication": (
        "sparkoperator.k8s.io/v1beta2",
        {"mode": "cluster", "driver": {**_ROLE}, "executor": {**_ROLE}},
    ),
    "TrainJob": ("trainer.kubeflow.org/v1alpha1", {"runtimeRef": {"name": "torch"}}),
    **{
        kind: ("kubeflow.org/v1", {f"{specs}ReplicaSpecs": {"Worker": {"template": POD}}})
        for kind, specs in (("TFJob", "tf"), ("XGBoostJob", "xgb"), ("PaddleJob", "paddle"), ("JAXJob", "jax"))
    },
}
ALL_KINDS = {**EVERY_KIND, **MORE_KINDS}


def job(kind: str, name: str = "j", **labels: str) -> dict[str, Any]:
    api_version, spec = ALL_KINDS[kind]
    metadata = {"name": name, "namespace": "n", "labels": {"kueue.x-k8s.io/queue-name": "lq", **labels}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": copy.deepcopy(spec)}


def batch_job(
    annotations: dict[str, str] | None = None, template: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """A Job whose pods ask for nothing, with what a test is about."""
    pods = {"spec": {"containers": [{"name": "c"}]}} if template is None else template
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "j",
            "namespace": "n",
            "labels": {"kueue.x-k8s.io/queue-name": "q"},
            "annotations": annotations or {},
        },
        "spec": {"template": pods, **spec},
    }
