"""Nodes, flavors and workloads with a topology, as tests write them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

BLOCK, RACK, HOST = "example.com/block", "example.com/rack", "kubernetes.io/hostname"
NOW = "2026-01-01T00:00:00Z"


def node(name: str, *place: str, cpu: int = 1, pods: int = 110, ready: str = "True", **spec: Any) -> Json:
    """A node in these domains: its rack, or its block and its rack."""
    keys = (RACK,) if len(place) == 1 else (BLOCK, RACK)
    labels = {HOST: name, **dict(zip(keys, place, strict=False))}
    ready_since: Json = {"type": "Ready", "status": ready, "lastTransitionTime": NOW}
    status: Json = {"allocatable": {"cpu": cpu, "pods": pods}, "conditions": [ready_since]}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def pod(name: str, on: str, cpu: int = 1, namespace: str = "system", **metadata: Any) -> Json:
    """A pod that Kueue did not place, on a node."""
    spec: Json = {"nodeName": on, "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}
    named = {"name": name, "namespace": namespace, **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": spec, "status": {"phase": "Running"}}


def kueue(kind: str, name: str, namespace: str = "", **spec: Any) -> Json:
    """An object of Kueue's."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def topology(*levels: str, name: str = "default") -> Json:
    """A Topology."""
    return kueue("Topology", name, levels=[{"nodeLabel": level} for level in levels])


def flavor(name: str = "tas", of: str = "default", **spec: Any) -> Json:
    """A ResourceFlavor with a topology."""
    return kueue("ResourceFlavor", name, topologyName=of, **spec)


def queue(name: str = "q", cpu: int = 100, flavors: tuple[str, ...] = ("tas",), **spec: Any) -> list[Json]:
    """A ClusterQueue, and a LocalQueue of the same name."""
    quotas = [{"name": each, "resources": [{"name": "cpu", "nominalQuota": cpu}]} for each in flavors]
    groups = [{"coveredResources": ["cpu"], "flavors": quotas}]
    cluster_queue = kueue("ClusterQueue", name, namespaceSelector={}, resourceGroups=groups, **spec)
    return [cluster_queue, kueue("LocalQueue", name, "ns", clusterQueue=name)]


def pod_set(name: str = "main", count: int = 1, cpu: int | None = 1, **request: Any) -> Json:
    """A pod set, and what it asks of topology."""
    resources: Json = {} if cpu is None else {"requests": {"cpu": cpu}}
    spec: Json = {"containers": [{"name": "main", "resources": resources}]}
    made: Json = {"name": name, "count": count, "template": {"spec": spec}}
    return made | ({"topologyRequest": request} if request else {})


def workload(name: str, *pod_sets: Json, lq: str = "q", priority: int = 0, **metadata: Any) -> Json:
    """A Workload; its name is its UID."""
    made = kueue("Workload", name, "ns", queueName=lq, podSets=list(pod_sets), priority=priority)
    made["metadata"] |= {"uid": name, "creationTimestamp": NOW, **metadata}
    return made


def namespace(name: str = "ns") -> Json:
    """A Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
