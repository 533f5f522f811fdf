"""Pods that wait in vain for a node: a controller fails them, as Kueue's node controller does (rules/08 §13.4)."""

from __future__ import annotations

from typing import Any

from kueuecore.controller import Controller, Turn
from kueuecore.times import SECOND_NS
from kueuecore.writes import Answer, Verb, Write
from tests.unit.controller.world import World, thing, workload

HOST = "kubernetes.io/hostname"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"
WRITTEN = {
    "type": "TerminatedByKueue",
    "status": "True",
    "reason": "UnschedulableOnAssignedNode",
    "message": "Pod terminated by Kueue NodeController due to node taint",
}


class Nodes(World):
    """A node with a pod of workload `w` on it, and the taint that keeps another one away."""

    def __init__(self) -> None:
        super().__init__(controller=Controller(status_delay_seconds=None))
        flavor = self.cluster.get("ResourceFlavor", "default-flavor")
        self.cluster.update({**flavor, "spec": {"topologyName": "hosts", "nodeLabels": {"site": "here"}}})
        hosts = thing("Topology", "hosts", {"levels": [{"nodeLabel": HOST}]})
        self.cluster.create(hosts)
        self.node: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n", "labels": {HOST: "n", "site": "here"}},
            "spec": {},
            "status": {
                "allocatable": {"cpu": "4", "pods": "9"},
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            },
        }
        self.see("ADDED", self.node)
        asked = workload("w")
        asked["spec"]["podSets"][0]["topologyRequest"] = {"required": HOST}
        self.cluster.create(asked)
        self.settle()
        self.see("ADDED", pod("runs", "Running", nodeName="n"))
        self.node["spec"]["taints"] = [{"key": "k", "effect": "NoSchedule"}]
        self.see("MODIFIED", self.node)
        assert self.turn().objects == ()

    def see(self, kind: str, manifest: dict[str, Any]) -> None:
        """What a watch says of a node or pod."""
        metadata = manifest["metadata"]
        version = int(metadata.get("resourceVersion", "0")) + 1
        metadata.update(uid=metadata["name"], resourceVersion=str(version))
        assert self.controller.observe({"type": kind, "object": manifest}, now=self.now)

    def waiting(self) -> tuple[dict[str, Any], Turn]:
        """A pod that comes too late, and the next turn."""
        late = pod("late", "Pending", conditions=[{"type": "PodScheduled", "status": "False"}])
        self.see("ADDED", late)
        assert self.controller.next_wake(self.now) == self.now
        return late, self.turn()


def pod(name: str, phase: str, *, conditions: list[Any] | None = None, **spec: Any) -> dict[str, Any]:
    annotations = {"kueue.x-k8s.io/workload": "w", REQUIRED: HOST}
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeSelector": {HOST: "n"}, "containers": containers, **spec},
        "status": {"phase": phase, "conditions": conditions or []},
    }


def version_of(turn: Turn) -> str:
    manifest: Any = only_write(turn).manifest
    version: str = manifest["metadata"]["resourceVersion"]
    return version


def only_write(turn: Turn) -> Write:
    (write,) = turn.objects
    return write


def test_a_pod_that_comes_too_late_for_its_node_is_failed_in_the_version_that_was_seen() -> None:
    world = Nodes()
    late, turn = world.waiting()
    write = only_write(turn)
    assert (write.verb, write.subresource, str(write.object), write.workload) == (
        Verb.UPDATE,
        "status",
        'Pod "default/late"',
        ("", ""),
    )
    failed = {**WRITTEN, "lastTransitionTime": "2026-01-01T00:00:04Z"}
    assert write.manifest == late | {
        "status": {"phase": "Failed", "conditions": [*late["status"]["conditions"], failed]}
    }
    assert world.turn().objects == (), "it is on its way"


def test_a_pod_that_has_failed_needs_no_other_write() -> None:
    world = Nodes()
    late, turn = world.waiting()
    late["status"] = only_write(turn).manifest["status"]
    world.see("MODIFIED", {**late, "metadata": dict(late["metadata"])})
    world.cluster.now += 60 * SECOND_NS
    assert world.turn().objects == ()
    assert world.controller.next_wake(world.now) is None


def test_a_write_that_was_refused_is_sent_again_later_or_for_the_next_version() -> None:
    world = Nodes()
    late, turn = world.waiting()
    world.controller.done(only_write(turn), Answer(error="conflict"), now=world.now)
    assert world.controller.next_wake(world.now) == world.now + SECOND_NS
    assert version_of(world.turn()) == "1"
    world.see("MODIFIED", {**late, "metadata": dict(late["metadata"])})
    assert version_of(world.turn()) == "2"


def test_a_pod_that_goes_or_gets_its_node_is_left_alone() -> None:
    for change in ("DELETED", "MODIFIED"):
        world = Nodes()
        late, turn = world.waiting()
        world.controller.done(only_write(turn), Answer(error="conflict"), now=world.now)
        bound = {**late, "metadata": dict(late["metadata"]), "spec": {**late["spec"], "nodeName": "n"}}
        world.see(change, bound)
        world.cluster.now += 60 * SECOND_NS
        assert world.turn().objects == ()
