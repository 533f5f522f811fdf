"""Large states for questions: a crowded cohort, and a cluster with nodes and fair sharing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

__all__ = ["CONFIGURATION", "crowded", "shared_nodes", "yaml"]

Json = dict[str, Any]
KUEUE = "kueue.x-k8s.io/v1beta2"
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
CONFIGURATION = """\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}
"""


def yaml(objects: Iterable[Json]) -> str:
    """Manifests as one file."""
    return "\n---\n".join(map(json.dumps, objects)) + "\n"


def crowded(n_waiting: int, *, n_flavors: int = 8, n_queues: int = 4, n_running: int = 40) -> Iterator[Json]:
    """ClusterQueues that borrow from each other in each of some flavors, all in use, and workloads that wait.

    Args:
        n_waiting: How many wait. Those named `w40` and up do.
        n_flavors: How many flavors each ClusterQueue has.
        n_queues: How many ClusterQueues.
        n_running: How many workloads came first, with more priority.
    """
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}
    flavors = [f"f{n}" for n in range(n_flavors)]
    for name in flavors:
        yield _thing("ResourceFlavor", name, {"nodeLabels": {"pool": name}})
    amounts = [{"name": "cpu", "nominalQuota": "10"}, {"name": "memory", "nominalQuota": "40Gi"}]
    quotas = [{"name": name, "resources": amounts} for name in flavors]
    for n in range(n_queues):
        yield from _queue(n, [{"coveredResources": ["cpu", "memory"], "flavors": quotas}])
    for n in range(n_running + n_waiting):
        runs = n < n_running
        requests = {"cpu": f"{(4000 if runs else 6000) + n % 7}m", "memory": f"{1 + n % 5}Gi"}
        yield _workload(f"w{n}", n % n_queues, 36_000 - n, 2, requests, priority=10 * runs)


def shared_nodes(n_workloads: int, *, n_nodes: int = 40, n_queues: int = 6, seed: int = 7) -> Iterator[Json]:
    """A cluster with racks of nodes, as it stands: a fifth of its workloads has ended, as many run, the others wait.

    Args:
        n_workloads: How many workloads there are. The last ones, such as `w290` of 300, wait.
        n_nodes: How many nodes of 16 cpus.
        n_queues: How many ClusterQueues share them, with different weights.
        seed: For sizes, run times and requests.
    """
    random = Random(seed)
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    yield _thing("Topology", "dc", {"levels": levels})
    yield _thing("ResourceFlavor", "tas", {"nodeLabels": {"pool": "a"}, "topologyName": "dc"})
    yield from map(_node, range(n_nodes))
    quotas = [
        {"name": "cpu", "nominalQuota": str(n_nodes * 16 // n_queues)},
        {"name": "memory", "nominalQuota": f"{n_nodes * 64 // n_queues}Gi"},
    ]
    group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "tas", "resources": quotas}]}
    for n in range(n_queues):
        yield from _queue(n, [group], fairSharing={"weight": str(1 + n % 3)})
    free = [16] * n_nodes
    for n in range(n_workloads):
        pods, cpu, queue = random.choice([1, 2, 4, 8]), random.choice([2, 4, 8]), random.randrange(n_queues)
        asked: Json = random.choice([{"required": "rack"}, {"preferred": "rack"}, {"unconstrained": True}])
        created, ran = 20_000 - 60 * n, random.randint(300, 9000)
        requests = {"cpu": str(cpu), "memory": f"{cpu}Gi"}
        plain = _workload(f"w{n}", queue, created, pods, requests, priority=random.choice([0, 0, 0, 100]), **asked)
        if n < n_workloads // 5:
            plain["status"] = _status(queue, pods, cpu, created - 30, [], finished=max(1, created - 30 - ran))
        elif n < 2 * n_workloads // 5 and (places := _placed(free, pods, cpu)):
            plain["status"] = _status(queue, pods, cpu, created - 30, places)
        yield plain


def _thing(kind: str, name: str, spec: Json, **metadata: str) -> Json:
    return {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def _queue(number: int, groups: list[Json], **spec: Any) -> Iterator[Json]:
    preemption = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
    every = {"namespaceSelector": {}, "cohortName": "all", "preemption": preemption, "resourceGroups": groups, **spec}
    yield _thing("ClusterQueue", f"cq{number}", every)
    yield _thing("LocalQueue", f"lq{number}", {"clusterQueue": f"cq{number}"}, namespace="ns")


def _node(number: int) -> Json:
    labels = {"pool": "a", "rack": f"r{number // 8}", "kubernetes.io/hostname": f"n{number}"}
    status = {
        "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}", "labels": labels}, "status": status}


def _workload(
    name: str, queue: int, ago: int, pods: int, requests: dict[str, str], *, priority: int, **asked: Any
) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    pod_set: Json = {"name": "main", "count": pods, "template": template}
    if asked:
        pod_set["topologyRequest"] = asked
    spec = {"queueName": f"lq{queue}", "priority": priority, "podSets": [pod_set]}
    return _thing("Workload", name, spec, namespace="ns", uid=f"u-{name}", creationTimestamp=_time(ago))


def _status(queue: int, pods: int, cpu: int, ago: int, places: list[tuple[int, int]], *, finished: int = 0) -> Json:
    usage = {"cpu": str(pods * cpu), "memory": f"{pods * cpu}Gi"}
    flavors = {"cpu": "tas", "memory": "tas"}
    assignment: Json = {"name": "main", "count": pods, "flavors": flavors, "resourceUsage": usage}
    if places:
        values = {"individual": {"roots": [f"n{node}" for node, _ in places]}}
        counts = {"individual": [count for _, count in places]}
        slices = [{"domainCount": len(places), "valuesPerLevel": [values], "podCounts": counts}]
        assignment["topologyAssignment"] = {"levels": ["kubernetes.io/hostname"], "slices": slices}
    since = [("QuotaReserved", ago), ("Admitted", ago), *([("Finished", finished)] if finished else [])]
    return {
        "admission": {"clusterQueue": f"cq{queue}", "podSetAssignments": [assignment]},
        "conditions": [
            {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": _time(at)}
            for kind, at in since
        ],
    }


def _placed(free: list[int], pods: int, cpu: int) -> list[tuple[int, int]]:
    """Places for pods on the first nodes with room, which it takes away; none if there is too little."""
    places, left = [], pods
    for node, room in enumerate(free):
        if count := min(left, room // cpu):
            places.append((node, count))
            left -= count
    if left:
        return []
    for node, count in places:
        free[node] -= count * cpu
    return places


def _time(ago: int) -> str:
    return (NOW - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
