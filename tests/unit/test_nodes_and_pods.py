"""Nodes, pods and topologies on their way into an engine and out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kueuecore import Engine, ManifestError
from kueuecore.controller import Controller
from kueuecore.manifests import parse_manifests
from kueuecore.objects import (
    ConditionStatus,
    Container,
    Node,
    NodeCondition,
    Pod,
    Taint,
    TaintEffect,
    Topology,
    TopologyLevel,
    from_manifest,
)
from kueuecore.simulation import VirtualCluster
from kueuecore.world import World
from tests.builders import at

NODE = Node(
    "n1",
    labels={"rack": "r1"},
    taints=[Taint("spot", effect=TaintEffect.NO_SCHEDULE)],
    allocatable={"cpu": 8, "pods": 110},
    conditions=[NodeCondition("Ready", status=ConditionStatus.TRUE)],
)
POD = Pod("p", namespace="team", node_name="n1", containers=[Container(requests={"cpu": 1})], phase="Running")
TOPOLOGY = Topology("racks", levels=[TopologyLevel("rack")])


@pytest.mark.parametrize("trusted", [False, True])
def test_nodes_pods_and_topologies_go_in_and_are_deleted_once(trusted: bool) -> None:
    engine = Engine()
    applied = engine.apply([NODE, POD, TOPOLOGY], now=at(0), trusted=trusted)
    assert (applied.warnings, applied.foreign) == ((), ())
    for kind, name, namespace in [("Pod", "p", "team"), ("Node", "n1", ""), ("Topology", "racks", "")]:
        assert not engine.delete(kind, "another", namespace=namespace, now=at(1))
        assert engine.delete(kind, name, namespace=namespace, now=at(1))
        assert not engine.delete(kind, name, namespace=namespace, now=at(1))


def test_a_pod_without_a_namespace_is_in_default() -> None:
    engine = Engine()
    pod: Any = POD.to_manifest()
    del pod["metadata"]["namespace"]
    engine.apply(pod, now=at(0))
    assert engine.delete("Pod", "p", namespace="default", now=at(0))


def test_a_field_of_a_node_that_nobody_knows_is_a_warning() -> None:
    node: Any = NODE.to_manifest()
    node["status"]["allocatible"] = {}
    (warning,) = Engine().apply(node, now=at(0)).warnings
    expected = 'unknown field "status.allocatible", did you mean "allocatable"?'
    assert (warning.field, warning.message) == ("status.allocatible", expected)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda it: it["status"]["allocatable"].update(cpu="lots"), "status.allocatable.cpu: Invalid value"),
        (lambda it: it["spec"]["taints"][0].pop("effect"), r"spec.taints\[0\].effect: Required value"),
        (lambda it: it["status"]["conditions"][0].pop("type"), r"status.conditions\[0\].type: Required value"),
        (lambda it: it["metadata"].pop("name"), "metadata.name: Required value"),
    ],
)
def test_a_node_that_is_wrong_is_refused(change: Callable[[Any], None], expected: str) -> None:
    node = NODE.to_manifest()
    change(node)
    with pytest.raises(ManifestError, match=expected):
        Engine().apply(node, now=at(0))


def test_a_pod_that_is_bound_needs_a_name() -> None:
    pod: Any = POD.to_manifest()
    del pod["metadata"]["name"]
    pod["metadata"]["generateName"] = "p-"
    with pytest.raises(ManifestError, match=r"metadata\.name: Required value: give a name"):
        Engine().apply(pod, now=at(0))
    del pod["spec"]["nodeName"]
    Engine().apply(pod, now=at(0))


def test_the_command_line_reads_them() -> None:
    world = World.of([NODE, POD, TOPOLOGY])
    applied = world.apply_to(Engine(), now=at(0))
    assert (applied.warnings, dict(applied.unread)) == ((), {})


def test_a_virtual_cluster_keeps_them() -> None:
    cluster = VirtualCluster([NODE, POD, TOPOLOGY], now=at(0))
    assert cluster.delete("Node", "n1")
    assert not cluster.delete("Node", "n1")
    assert cluster.delete("Pod", "p", namespace="team")


def test_a_controller_takes_them_in_and_notices_what_is_gone() -> None:
    controller = Controller()
    node: Any = NODE.to_manifest()
    node["metadata"].update(uid="1", resourceVersion="5")
    assert controller.observe({"type": "ADDED", "object": node}, now=at(0))
    assert not controller.observe({"type": "ADDED", "object": node}, now=at(0))
    assert controller.resync("Node", [], now=at(1), resource_version="9") == ()
    assert not controller.observe({"type": "DELETED", "object": node}, now=at(2))


def test_an_unchanged_status_is_no_news() -> None:
    engine, controller = Engine(), Controller()
    node: Any = NODE.to_manifest()
    node["metadata"].update(uid="1", resourceVersion="5")
    ready = node["status"]["conditions"][0]
    for version, (heartbeat, status, n_changes) in enumerate(
        [(1, "True", 1), (2, "True", 1), (3, "False", 2)], start=5
    ):
        ready.update(lastHeartbeatTime=f"2026-01-01T00:00:0{heartbeat}Z", status=status)
        node["metadata"]["resourceVersion"] = str(version)
        engine.apply(node, now=at(0))
        assert engine._core._n_cluster_changes() == n_changes
        assert controller.observe({"type": "MODIFIED", "object": node}, now=at(0))
        assert (controller.next_wake(at(0)) is None) == (heartbeat == 2)
        controller.turn(now=at(0))


def test_a_node_as_a_cluster_lists_it_becomes_an_object() -> None:
    text = """
    apiVersion: v1
    kind: Node
    metadata: {name: n1, labels: {rack: r1}, resourceVersion: "7"}
    spec: {podCIDR: 10.0.0.0/24, taints: [{key: spot, effect: NoSchedule, timeAdded: 2026-01-01T00:00:00Z}]}
    status:
      allocatable: {cpu: "8", pods: "110"}
      capacity: {cpu: "9", pods: "110"}
      conditions: [{type: Ready, status: "True", lastHeartbeatTime: 2026-01-01T00:00:00Z}]
      nodeInfo: {kubeletVersion: v1.34.0}
    """
    (manifest,) = parse_manifests(text)
    node = from_manifest(manifest.object)
    assert isinstance(node, Node)
    assert (node.taints, node.allocatable, node.conditions) == (NODE.taints, NODE.allocatable, NODE.conditions)
    assert node.other == {"podCIDR": "10.0.0.0/24"}
