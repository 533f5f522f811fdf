"""The objects of the day, and its timetable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["MINUTES", "NAMESPACE", "QUEUES", "Kill", "PlannedJob", "jobs", "kills", "nodes", "objects"]

Object = dict[str, Any]
NAMESPACE = "day"
MINUTES = 30
"""The time of day that a step represents."""
_KUEUE = "kueue.x-k8s.io/v1beta2"
_RACK, _HOST = "example.com/rack", "kubernetes.io/hostname"
QUEUES = {
    "vision": "research",
    "speech": "research",
    "text": "research",
    "ads": "products",
    "search": "products",
    "maps": "products",
}
"""The ClusterQueues, and the cohort of each."""
N_STEPS = 30
LOST_NODE, LOST_AT, BACK_AT = "gpu-1", 9, 20


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job of the day.

    Args:
        step: When it arrives.
        name: Its name.
        queue: Its queue.
        pods: How many pods it has.
        cpu: What each requests.
        gpu: Whether each requests a GPU, all in one rack.
        is_urgent: Whether it has a higher priority.
        n_steps: How long it runs.
    """

    step: int
    name: str
    queue: str
    pods: int
    cpu: int
    gpu: bool
    is_urgent: bool
    n_steps: int

    @property
    def manifest(self) -> Object:
        """Return the job as a user creates it, suspended by Kueue's webhook."""
        requests = {"cpu": str(self.cpu)} | ({"example.com/gpu": "1"} if self.gpu else {})
        container = {
            "name": "main",
            "image": "registry.k8s.io/e2e-test-images/busybox:1.29-4",
            "command": ["sleep", str(self.n_steps * 2)],
            "resources": {"requests": requests} | ({"limits": {"example.com/gpu": "1"}} if self.gpu else {}),
        }
        labels = {"kueue.x-k8s.io/queue-name": self.queue}
        if self.is_urgent:
            labels["kueue.x-k8s.io/priority-class"] = "urgent"
        template: Object = {"metadata": {}, "spec": {"restartPolicy": "Never", "containers": [container]}}
        if self.gpu:
            template["metadata"]["annotations"] = {"kueue.x-k8s.io/podset-required-topology": _RACK}
        spec = {"suspend": True, "parallelism": self.pods, "completions": self.pods, "template": template}
        metadata = {"name": self.name, "namespace": NAMESPACE, "labels": labels}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


@dataclass(frozen=True, slots=True)
class Kill:
    """A SIGKILL of a replica.

    Args:
        step: When.
        moment: `after a write`: it is stored, but no watch has shown it; `in a status write`: it was sent but not
            stored; `while it leads`: with nothing in flight.
        title: Its text in the timeline.
    """

    step: int
    moment: str
    title: str


def jobs() -> Iterator[PlannedJob]:
    """Yield sixty jobs: at each step, one of research and one of products."""
    queues = [[name for name, cohort in QUEUES.items() if cohort == text] for text in ("research", "products")]
    for step in range(N_STEPS):
        for cohort, names in enumerate(queues):
            queue = names[(step + cohort) % 3]
            # Two in five request more than their queue has, and borrow.
            pods, is_urgent = (4, 1, 2, 1, 5)[(step + 2 * cohort) % 5], step % 7 == 5
            gpu = queue == "vision"
            yield PlannedJob(
                step=step,
                name=f"{queue}-{step:02}",
                queue=queue,
                pods=min(pods, 4) if gpu else pods,
                cpu=1,
                gpu=gpu,
                is_urgent=is_urgent,
                n_steps=3 + (step * 5 + cohort) % 4,
            )


def kills() -> tuple[Kill, ...]:
    """Return the three kills."""
    return (
        Kill(6, "after a write", "the leader is killed after a write that no watch has shown"),
        Kill(13, "in a status write", "the leader is killed in the middle of a status write"),
        Kill(21, "while it leads", "the leader is killed"),
    )


def objects() -> Iterator[Object]:
    """Yield queues, flavors and what they need."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    levels = [{"nodeLabel": _RACK}, {"nodeLabel": _HOST}]
    yield _object("Topology", "racks", {"levels": levels})
    yield _object("ResourceFlavor", "cpu", {"nodeLabels": {"pool": "cpu"}})
    yield _object("ResourceFlavor", "gpu", {"nodeLabels": {"pool": "gpu"}, "topologyName": "racks"})
    yield {"apiVersion": _KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": "urgent"}, "value": 100}
    for name, cohort in QUEUES.items():
        if name == "vision":
            resources = [{"name": "cpu", "nominalQuota": "8"}, {"name": "example.com/gpu", "nominalQuota": "8"}]
            groups = [{"coveredResources": ["cpu", "example.com/gpu"], "flavors": [_flavor("gpu", resources)]}]
        else:
            groups = [
                {"coveredResources": ["cpu"], "flavors": [_flavor("cpu", [{"name": "cpu", "nominalQuota": "4"}])]}
            ]
        spec = {
            "cohortName": cohort,
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
            "resourceGroups": groups,
        }
        yield _object("ClusterQueue", name, spec)
        local = _object("LocalQueue", name, {"clusterQueue": name})
        yield {**local, "metadata": {"name": name, "namespace": NAMESPACE}}


def nodes() -> Iterator[Object]:
    """Yield four nodes with GPUs in two racks; other nodes are not needed, as nothing reads them."""
    for number in range(1, 5):
        name, rack = f"gpu-{number}", f"rack-{(number + 1) // 2}"
        labels = {"pool": "gpu", _RACK: rack, _HOST: name}
        capacity = {"cpu": "8", "example.com/gpu": "2", "pods": "20"}
        status = {"allocatable": capacity, "capacity": capacity, "conditions": [{"type": "Ready", "status": "True"}]}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def _object(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": _KUEUE, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _flavor(name: str, resources: list[Object]) -> Object:
    return {"name": name, "resources": resources}
