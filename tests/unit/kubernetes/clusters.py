"""A cluster with queues on the strict API server, and jobs in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kueuecore.api_server import ApiServer
from kueuecore_apiserver import Faults, HttpApiServer
from kueuecore_apiserver.crd_schema import CrdSchema
from kueuecore_apiserver.crds import crds

KUEUE = "kueue.x-k8s.io/v1beta2"


@contextmanager
def served(*, cpus: int = 4, faults: Faults | None = None, **options: Any) -> Iterator[HttpApiServer]:
    """A server with ClusterQueues `a` and `b` of one cohort."""
    server = HttpApiServer(ApiServer(), clock=time.time_ns, schemas=CrdSchema.of, **options)
    server.load([*crds(), *queues(cpus)])
    server.faults = faults
    with server:
        yield server


def queues(cpus: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}},
        {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "default"}, "spec": {}},
        {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 100},
    ]
    for name in ("a", "b"):
        flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": str(cpus)}]}
        spec = {
            "cohortName": "all",
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
        }
        found.append({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec})
        metadata = {"name": name, "namespace": "lab"}
        found.append({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}})
    return found


def job(name: str, queue: str = "a", *, cpu: int = 1, priority: str = "") -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    labels = {"kueue.x-k8s.io/queue-name": queue} | ({"kueue.x-k8s.io/priority-class": priority} if priority else {})
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"suspend": True, "parallelism": 1, "completions": 1, "template": template}
    metadata = {"name": name, "namespace": "lab", "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def started(server: HttpApiServer) -> set[str]:
    return {
        entry["metadata"]["name"]
        for entry in server.call(lambda api: api.list("Job")[0])
        if entry["spec"].get("suspend") is False
    }


def wait_for(condition: Callable[[], bool], what: str, *, seconds: float = 30.0) -> None:
    """Wait until something holds; how long that may take is for a busy machine."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"{what}: not within {seconds} s"
        time.sleep(0.005)
