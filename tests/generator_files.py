"""Files in the form of the generator of Kueue's performance tests."""

from __future__ import annotations

from typing import Any

RACK = "cloud.provider.com/topology-rack"
HOST = "kubernetes.io/hostname"
# Class, of the 500 Workloads of a queue, milliseconds apart, runs, priority, pods, cpu of each, pods of a slice.
SHAPES = (
    ("small", (120, 120, 110), 100, 200, 50, 2, "500m", 1),
    ("medium", (34, 33, 33), 500, 500, 100, 4, "1250m", 2),
    ("large", (17, 17, 16), 1200, 1000, 200, 8, "2500m", 4),
)
CONSTRAINTS = ("required", "preferred", "balanced")


def on_racks(*, cohorts: int = 5, queues: int = 6, racks: int = 10, hosts: int = 64, share: int = 1) -> dict[str, Any]:
    """The shape of Kueue's own run with nodes: 15,000 Workloads of nine classes on 640 nodes, if nothing else is said.

    Args:
        cohorts: Number of cohorts.
        queues: ClusterQueues of each.
        racks: Number of racks.
        hosts: Nodes of each.
        share: One in this many Workloads is drawn.
    """
    sets = [
        {
            "count": count // share,
            "creationIntervalMs": interval,
            "workloads": [
                {
                    "className": f"{name}-{constraint}",
                    "runtimeMs": runs,
                    "priority": priority,
                    "request": cpu,
                    "podCount": pods,
                    "tasConstraint": constraint,
                    "tasLevel": RACK,
                    **({"sliceSize": size} if constraint == "balanced" else {}),
                }
            ],
        }
        for name, counts, interval, runs, priority, pods, cpu, size in SHAPES
        for constraint, count in zip(CONSTRAINTS, counts, strict=True)
    ]
    queue_set = {
        "className": "cq",
        "count": queues,
        "nominalQuota": "20",
        "borrowingLimit": 100,
        "reclaimWithinCohort": "Any",
        "withinClusterQueue": "LowerPriority",
        "workloadsSets": sets,
    }
    levels = [
        {"name": "block", "count": 1, "nodeLabel": "cloud.provider.com/topology-block"},
        {"name": "rack", "count": racks, "nodeLabel": RACK},
        {"name": "node", "count": hosts, "nodeLabel": HOST, "capacity": {"cpu": 96, "memory": "256Gi"}},
    ]
    return {
        "topology": {"name": "racks", "levels": levels},
        "resourceFlavor": {"name": "on-racks", "nodeLabel": "tas-node-group", "topologyName": "racks"},
        "cohorts": [{"className": "cohort", "count": cohorts, "queuesSets": [queue_set]}],
    }
