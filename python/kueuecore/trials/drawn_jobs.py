"""The jobs that histories draw, of all kinds: each pod has one cpu."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kueuecore._json import JsonObject
from kueuecore.jobs.pod import GROUP_NAME, TOTAL_COUNT

__all__ = ["DRAWN", "drawn_job"]

GROUP = "pod group"
"""Stands in for a kind, for pods that run as a group."""


def drawn_job(kind: str, name: str, cpu: int, *, namespace: str, labels: Mapping[str, str]) -> list[JsonObject]:
    """Return a job that ends: one object, or the pods of a group.

    Args:
        kind: One of `DRAWN`.
        name: Its name.
        cpu: How many cpus it needs.
        namespace: Its namespace.
        labels: Its labels.

    Example:
        >>> [pod["metadata"]["name"] for pod in drawn_job("pod group", "crew", 2, namespace="ns", labels={})]
        ['crew-0', 'crew-1']
    """
    if kind == GROUP:
        together: JsonObject = {"annotations": {GROUP_NAME: name, TOTAL_COUNT: str(cpu)}}
        return [
            _object("v1", "Pod", {**_metadata(f"{name}-{index}", namespace, labels), **together}, _pod(1))
            for index in range(cpu)
        ]
    api_version, spec = DRAWN[kind]
    return [_object(api_version, kind, _metadata(name, namespace, labels), spec(cpu))]


def _metadata(name: str, namespace: str, labels: Mapping[str, str]) -> JsonObject:
    return {"name": name, "namespace": namespace, "labels": dict(labels)}


def _object(api_version: str, kind: str, metadata: JsonObject, spec: JsonObject) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _pod(cpu: int) -> JsonObject:
    container: JsonObject = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    return {"restartPolicy": "Never", "containers": [container]}


def _job(cpu: int) -> JsonObject:
    return {"parallelism": cpu, "completions": cpu, "template": {"spec": _pod(1)}}


def _job_set(cpu: int) -> JsonObject:
    return {"replicatedJobs": [{"name": "crew", "replicas": cpu, "template": {"spec": _job(1)}}]}


def _mpi_job(cpu: int) -> JsonObject:
    workers: JsonObject = {"Worker": {"replicas": cpu - 1, "template": {"spec": _pod(1)}}} if cpu > 1 else {}
    return {"mpiReplicaSpecs": {"Launcher": {"replicas": 1, "template": {"spec": _pod(1)}}, **workers}}


def _ray_job(cpu: int) -> JsonObject:
    workers: JsonObject = {"groupName": "workers", "replicas": cpu - 1, "template": {"spec": _pod(1)}}
    cluster: JsonObject = {
        "headGroupSpec": {"template": {"spec": _pod(1)}},
        "workerGroupSpecs": [workers] if cpu > 1 else [],
    }
    # Without a pod that submits it.
    return {"rayClusterSpec": cluster, "shutdownAfterJobFinishes": True, "submissionMode": "HTTPMode"}


def _app_wrapper(cpu: int) -> JsonObject:
    wrapped: JsonObject = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "wrapped"}, "spec": _job(cpu)}
    return {"components": [{"template": wrapped}]}


DRAWN: Mapping[str, tuple[str, Callable[[int], JsonObject]]] = {
    "Job": ("batch/v1", _job),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", _job_set),
    "MPIJob": ("kubeflow.org/v2beta1", _mpi_job),
    "RayJob": ("ray.io/v1", _ray_job),
    "AppWrapper": ("workload.codeflare.dev/v1beta2", _app_wrapper),
    "Pod": ("v1", _pod),
    GROUP: ("v1", _pod),
}
"""The kinds to draw from, with the version and the spec of each."""
