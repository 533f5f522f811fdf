"""The nodes of a cluster in a history: they fail, leave and return, and pods run on them, as far as Kueue sees it."""

from __future__ import annotations

from random import Random
from typing import Any, TypeAlias

from kueuecore._json import object_at
from kueuecore._kinds import KUEUE
from kueuecore.api_server import ApiServer
from kueuecore.times import format_time

__all__ = ["HOST", "RACK", "Machines", "is_gated", "is_terminated", "target_of"]

HOST, RACK = "kubernetes.io/hostname", "example.com/rack"
_Object: TypeAlias = dict[str, Any]
_LEVELS = ((RACK, HOST), (RACK, HOST), (HOST,), (RACK,))
_TAINT = {"key": "example.com/broken", "effect": "NoSchedule"}


class Machines:
    """Nodes in two racks, pods outside Kueue, and a scheduler that binds pods.

    Args:
        cluster: The cluster that they belong to.
        random: The source of all choices.
    """

    def __init__(self, cluster: ApiServer, random: Random) -> None:
        self._cluster = cluster
        self._random = random
        self._n_made = 0
        # Drawn once, so that a node that returns has the same size.
        self._cpus = {f"n{index}": random.randint(1, 3) for index in range(random.randint(3, 6))}
        self.levels: tuple[str, ...] = random.choice(_LEVELS)
        metadata = {"name": "racks"}
        spec = {"levels": [{"nodeLabel": level} for level in self.levels]}
        made = {"apiVersion": KUEUE, "kind": "Topology", "metadata": metadata, "spec": spec}
        cluster.create(made)
        for name in self._cpus:
            self._create(name)

    def _create(self, name: str) -> None:
        rack = f"r{int(name[1:]) % 2}"
        labels = {HOST: name, RACK: rack, "pool": "all"}
        allocatable = {"cpu": str(self._cpus[name]), "pods": "20"}
        status = {"allocatable": allocatable, "conditions": [self._ready("True")]}
        metadata = {"name": name, "labels": labels}
        self._cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status})

    def _ready(self, status: str) -> _Object:
        time = format_time(self._cluster.now // 10**9 * 10**9)
        return {"type": "Ready", "status": status, "lastTransitionTime": time}

    # Queries.

    def nodes(self) -> dict[str, _Object]:
        """Return the nodes by name."""
        return {node["metadata"]["name"]: node for node in self._cluster.list("Node")[0]}

    def pods(self) -> list[_Object]:
        """Return the pods that have not ended."""
        return [pod for pod in self._cluster.list("Pod")[0] if not is_terminated(pod)]

    def cpu(self, name: str) -> int:
        """Return how many CPUs a node has."""
        return self._cpus[name]

    # Events of nodes.

    def change(self) -> str:
        """Make a random change, and return its name."""
        what: str = self._random.choice(
            ("fail", "fail", "taint", "heal", "node goes", "node comes", "heartbeat", "foreign", "foreign goes")
        )
        name = self._random.choice(list(self._cpus))
        if what in ("fail", "taint", "node goes") and self._random.random() < 0.8:
            # Nodes where it matters.
            name = self._random.choice([target_of(pod) for pod in self.pods() if target_of(pod)] or [name])
        node = self.nodes().get(name)
        if what == "foreign":
            self._create_foreign(name)
        elif what == "foreign goes":
            self._delete_foreign(name)
        elif what == "node comes" and node is None and not self._is_target(name):
            self._create(name)
        elif node is None:
            return "nothing"
        elif what == "fail":
            self._put_ready(name, self._random.choice(("False", "Unknown")))
        elif what == "taint":
            self._cluster.patch("Node", name, {"spec": {"taints": [_TAINT]}})
        elif what == "heal" and not self._is_target(name):
            self.heal(name)
        elif what == "node goes":
            self._cluster.delete("Node", name)
        elif what == "heartbeat":
            ready = {**node["status"]["conditions"][0], "lastHeartbeatTime": format_time(self._cluster.now)}
            self._cluster.patch("Node", name, {"status": {"conditions": [ready]}}, subresource="status")
        return what

    def heal(self, name: str) -> None:
        """Make a node healthy again."""
        self._cluster.patch("Node", name, {"spec": {"taints": None}})
        if self.nodes()[name]["status"]["conditions"][0]["status"] != "True":
            self._put_ready(name, "True")

    def heal_all(self) -> None:
        """Make all nodes healthy again, and remove pods that Kueue has not placed."""
        for name in self._cpus:
            self._delete_foreign(name)
            if name in self.nodes():
                self.heal(name)
            else:
                self._create(name)

    def touch(self) -> None:
        """Change a node in a way that makes Kueue try waiting workloads again."""
        annotations = {"metadata": {"annotations": {"touched": str(self._cluster.version)}}}
        self._cluster.patch("Node", next(iter(self._cpus)), annotations)

    def _put_ready(self, name: str, status: str) -> None:
        patch = {"status": {"conditions": [self._ready(status)]}}
        self._cluster.patch("Node", name, patch, subresource="status")

    def _is_target(self, name: str) -> bool:
        """Return whether a pod on a node, or on its way there, dates from before the node failed."""
        is_well = name in self.nodes() and _is_well(self.nodes()[name])
        return not is_well and any(target_of(pod) == name for pod in self.pods())

    def _create_foreign(self, name: str) -> None:
        self._n_made += 1
        metadata = {"name": f"foreign-{self._n_made}", "namespace": "system"}
        spec = {"containers": [_container()], "nodeName": name}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}
        self._cluster.create(made)

    def _delete_foreign(self, node: str) -> None:
        for pod in self._cluster.list("Pod")[0]:
            if pod["metadata"]["namespace"] == "system" and pod["spec"]["nodeName"] == node:
                self._cluster.delete("Pod", pod["metadata"]["name"], namespace="system")

    # Events of pods.

    def schedule(self, pod: _Object) -> str:
        """Bind a pod that waits for nothing else, and return the node; empty if none fits."""
        selector = object_at(pod, "spec", "nodeSelector")
        for name, node in self.nodes().items():
            labels = node["metadata"]["labels"]
            fits = all(labels.get(key) == value for key, value in selector.items())
            if fits and _is_well(node) and self._used(name) < self._cpus[name]:
                patch = {"spec": {"nodeName": name}}
                metadata = pod["metadata"]
                self._cluster.patch("Pod", metadata["name"], patch, namespace=metadata["namespace"])
                return name
        return ""

    def _used(self, name: str) -> int:
        return sum(_cpus_of(pod) for pod in self.pods() if pod["spec"].get("nodeName") == name)

    def is_lost(self, pod: _Object) -> bool:
        """Return whether a pod is on a node, or must go to one, that is gone or has failed."""
        target = target_of(pod)
        node = self.nodes().get(target)
        return bool(target) and (node is None or not _is_well(node))


def target_of(pod: _Object) -> str:
    """Return the node of a pod, or the only one to which it may go; empty if any will do."""
    target: str = pod["spec"].get("nodeName") or pod["spec"].get("nodeSelector", {}).get(HOST, "")
    return target


def is_gated(pod: _Object) -> bool:
    """Return whether a pod waits behind a gate."""
    return bool(pod["spec"].get("schedulingGates"))


def is_terminated(pod: _Object) -> bool:
    """Return whether a pod has ended."""
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def _is_well(node: _Object) -> bool:
    return node["status"]["conditions"][0]["status"] == "True" and not node["spec"].get("taints")


def _container() -> _Object:
    return {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}


def _cpus_of(pod: _Object) -> int:
    return sum(int(container["resources"]["requests"]["cpu"]) for container in pod["spec"]["containers"])
