"""Small clusters as they stand, for tests of forecasts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kueuecore._json import JsonObject
from kueuecore.manifests import Manifest, parse_manifests
from kueuecore.scenarios import ClusterPart, Scenario
from kueuecore.times import nanoseconds

NOW = "2026-01-05T12:00:00Z"
START = nanoseconds(NOW)
QUEUES = """
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: main}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cq}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - {coveredResources: [cpu], flavors: [{name: main, resources: [{name: cpu, nominalQuota: 4}]}]}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: ns}, spec: {clusterQueue: cq}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: other, namespace: ns}, spec: {clusterQueue: cq}}
"""


def ago(seconds: float) -> str:
    """A time before NOW."""
    time = datetime(2026, 1, 5, 12, tzinfo=UTC) - timedelta(seconds=seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def workload(
    name: str,
    *,
    cpu: int = 4,
    created: float = 0.0,
    admitted: float | None = None,
    finished: float | None = None,
    priority: int = 0,
    queue: str = "lq",
    job: str = "",
    limit: int | None = None,
) -> Manifest:
    """A Workload; times are seconds before NOW."""
    container: JsonObject = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    pods: JsonObject = {
        "name": "main",
        "count": 1,
        "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
    }
    metadata: JsonObject = {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": ago(created)}
    if job:
        owner: JsonObject = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job, "controller": True}
        metadata["ownerReferences"] = [owner]
    plain: JsonObject = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": metadata,
        "spec": {
            "queueName": queue,
            "priority": priority,
            "podSets": [pods],
            **({} if limit is None else {"maximumExecutionTimeSeconds": limit}),
        },
    }
    if limit is not None:
        plain["spec"] = {
            "queueName": queue,
            "priority": priority,
            "podSets": [pods],
            "maximumExecutionTimeSeconds": limit,
        }
    if admitted is not None:
        since = [("QuotaReserved", admitted), ("Admitted", admitted)]
        since += [("Finished", finished)] if finished is not None else []
        assignment: JsonObject = {
            "name": "main",
            "count": 1,
            "flavors": {"cpu": "main"},
            "resourceUsage": {"cpu": str(cpu)},
        }
        plain["status"] = {
            "admission": {"clusterQueue": "cq", "podSetAssignments": [assignment]},
            "conditions": [
                {
                    "type": type_,
                    "status": "True",
                    "reason": "Succeeded" if type_ == "Finished" else type_,
                    "message": "",
                    "lastTransitionTime": ago(seconds),
                }
                for type_, seconds in since
            ],
        }
    return Manifest(plain)


def finished(
    n: int, *, seconds: float = 600.0, queue: str = "lq", priority: int = 0, name: str = "done"
) -> list[Manifest]:
    """So many that have ended, each after so long, one after the other, the last a second ago."""
    ends = [1 + seconds * number for number in range(n)]
    return [
        workload(
            f"{name}-{queue}-{priority}-{number}" if name == "done" else f"{name}-{number}",
            created=end + seconds,
            admitted=end + seconds,
            finished=end,
            queue=queue,
            priority=priority,
        )
        for number, end in enumerate(ends)
    ]


def state(*workloads: Manifest) -> Scenario:
    """A cluster with these Workloads."""
    return Scenario(cluster=ClusterPart(objects=(*parse_manifests(QUEUES), *workloads)), start=START)
