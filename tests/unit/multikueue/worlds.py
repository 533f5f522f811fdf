"""A manager and two workers, one smaller than the other, as manifests."""

from __future__ import annotations

from typing import Any

from kueuecore.fleet import Fleet, LinkSettings

START = "2026-01-01T00:00:00Z"
QUEUES = """
apiVersion: v1
kind: Namespace
metadata: {{name: ns}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {{name: default-flavor}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: cluster-queue}}
spec:
  namespaceSelector: {{}}
  admissionChecksStrategy: {{admissionChecks: {checks}}}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{{name: default-flavor, resources: [{{name: cpu, nominalQuota: {cpu}}}]}}]
  preemption: {{withinClusterQueue: LowerPriority}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: lq, namespace: ns}}
spec: {{clusterQueue: cluster-queue}}
"""
WITHOUT_CHECKS = QUEUES.replace("  admissionChecksStrategy: {{admissionChecks: {checks}}}\n", "")
MULTIKUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {{name: multikueue}}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {{apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: config}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {{name: config}}
spec: {{clusters: [{clusters}]}}
"""
CLUSTER = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueCluster
metadata: {{name: {name}}}
spec: {{clusterSource: {{kubeConfig: {{location: {name}-secret, locationType: Secret}}}}}}
"""


def fleet_of(cpu: int, workers: dict[str, int], **options: Any) -> Fleet:
    """A connected fleet whose clusters have the given cpus of quota; every message takes a tenth of a second."""
    links = options.pop("links", {name: LinkSettings(least_ms=100, most_ms=100) for name in workers})
    fleet = Fleet(list(workers), now=START, links=links, **options)
    fleet.apply(MULTIKUEUE.format(clusters=", ".join(workers)))
    for name in workers:
        fleet.apply(CLUSTER.format(name=name))
        fleet.apply(WITHOUT_CHECKS.format(cpu=workers[name]), cluster=name)
    fleet.apply(QUEUES.format(cpu=cpu, checks="[{name: multikueue}]"))
    fleet.wait(2)
    return fleet


def job(name: str = "job", *, cpu: int = 3, queue: str = "lq", **spec: Any) -> dict[str, Any]:
    """A Job of this many pods with one cpu each."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "ns", "labels": {"kueue.x-k8s.io/queue-name": queue}},
        "spec": {
            "parallelism": cpu,
            "completions": cpu,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        }
        | spec,
    }


def workload_of(fleet: Fleet, name: str = "job", *, cluster: str = "") -> dict[str, Any] | None:
    """The Workload of a job."""
    for object_ in fleet.objects("Workload", cluster=cluster):
        if object_["metadata"]["name"].startswith(f"job-{name}-"):
            return object_
    return None
