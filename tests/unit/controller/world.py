"""A small cluster with a controller on it, for tests of the controller's loop."""

from __future__ import annotations

from typing import Any

from kueuecore.api_server import ApiServer
from kueuecore.controller import Controller, Turn
from kueuecore.times import SECOND_NS
from kueuecore.writes import Write

START = 1_767_225_600 * SECOND_NS
KUEUE = "kueue.x-k8s.io/v1beta2"
IN_USE = "kueue.x-k8s.io/resource-in-use"
KEPT = ("AdmissionCheck", "ClusterQueue", "ResourceFlavor", "Topology")
"""The kinds that are kept while they are in use; here they have the finalizer from the start."""


def thing(kind: str, name: str, spec: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, **more.pop("metadata", {})}
    if kind in KEPT:
        metadata.setdefault("finalizers", [IN_USE])
    if kind in ("LocalQueue", "Workload"):
        metadata["namespace"] = "default"
    made = {"apiVersion": "v1" if kind == "Namespace" else KUEUE, "kind": kind, "metadata": metadata, **more}
    return made if spec is None else {**made, "spec": spec}


def queue(quota: int | str, **spec: Any) -> dict[str, Any]:
    flavor = {"name": "default-flavor", "resources": [{"name": "cpu", "nominalQuota": quota}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [flavor]}]
    defaults = {"namespaceSelector": {}, "queueingStrategy": "BestEffortFIFO", "stopPolicy": "None"}
    return thing("ClusterQueue", "cluster-queue", {**defaults, "resourceGroups": groups, **spec})


def workload(name: str, cpu: int | str = 1, *, priority: int = 0, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    pod_sets = [{"name": "main", "count": 1, "template": template}]
    return thing(
        "Workload", name, {"queueName": "jobs", "active": True, "priority": priority, "podSets": pod_sets} | spec
    )


class World:
    """A cluster, a controller on it, and what a turn of the two is."""

    def __init__(self, quota: int | str = 2, controller: Controller | None = None, **spec: Any) -> None:
        self.cluster = ApiServer(now=START)
        self.controller = controller or Controller(status_delay_seconds=None)
        self.seen = 0
        for made in (
            thing("Namespace", "default", metadata={"labels": {"kubernetes.io/metadata.name": "default"}}),
            thing("ResourceFlavor", "default-flavor", {}),
            queue(quota, **spec),
            thing("LocalQueue", "jobs", {"clusterQueue": "cluster-queue", "stopPolicy": "None"}),
        ):
            self.cluster.create(made)

    @property
    def now(self) -> int:
        return self.cluster.now

    def watch(self) -> list[bool]:
        news = [(version, event) for version, event in self.cluster.history if version > self.seen]
        self.seen = self.cluster.version
        return [self.controller.observe(event, now=self.now) for _, event in news]

    def turn(self) -> Turn:
        self.watch()
        self.cluster.now += SECOND_NS
        return self.controller.turn(self.now)

    def send(self, write: Write) -> None:
        answer = self.cluster.carry_out(write)
        assert answer.is_accepted
        assert self.controller.done(write, answer, now=self.now)

    def settle(self) -> None:
        for _ in range(20):
            turn = self.turn()
            for write in turn.writes:
                self.send(write)
            wake = self.controller.next_wake(self.now)
            # Parked workloads are retried a second later.
            if not turn.writes and (wake is None or wake > self.now + SECOND_NS):
                return
        raise AssertionError("it never settles")

    def stored(self, name: str) -> dict[str, Any]:
        return self.cluster.get("Workload", name, namespace="default")

    def holding(self) -> list[str]:
        """The names of those that have Admitted in the cluster."""
        return [
            workload["metadata"]["name"]
            for workload in self.cluster.list("Workload")[0]
            if "Admitted" in conditions(workload)
        ]

    def usage(self) -> str:
        return next(row.usage for row in self.controller.engine.quota())


def conditions(manifest: dict[str, Any]) -> dict[str, str]:
    found = manifest.get("status", {}).get("conditions", ())
    return {condition["type"]: condition["reason"] for condition in found if condition["status"] == "True"}
