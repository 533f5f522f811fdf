"""Cycles with nodes, and nodes that fail, by the reference model: rules of which no recorded answer says anything."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from kueuecore import Engine
from kueuecore.manifests import to_json_lines
from kueuecore.reference import Decision, World
from tests.topologies import (
    BLOCK,
    HOST,
    NOW,
    RACK,
    flavor,
    kueue,
    namespace,
    node,
    pod,
    pod_set,
    queue,
    topology,
    workload,
)

Json = dict[str, Any]


def world_of(*objects: Json, **gates: bool) -> World:
    """A queue with one flavor of racks and hosts, and what else there is."""
    around = [namespace(), topology(RACK, HOST), flavor()]
    return World([*around, *objects], configuration={"featureGates": gates}, now=NOW)


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"


def placed(decision: Decision) -> dict[str, Json]:
    """By workload, where its first pod set stands, as the API writes it."""
    given = [*decision.admissions, *decision.placements]
    return {each.name: dict(each.pod_sets[0].topology or {}) for each in given}


def host_of(written: Json) -> str:
    """The one host of an assignment."""
    return str(written["slices"][0]["valuesPerLevel"][-1]["universal"])


def test_heads_of_two_queues_choose_other_nodes_in_one_cycle() -> None:
    """rules/08 §11.6: the second is assigned again."""
    world = world_of(node("a", "r"), node("b", "r"), *queue("x"), *queue("y"))
    for name in "xy":
        world.apply([workload(name, pod_set(required=HOST), lq=name)])
    given = placed(world.cycle(at(1)))
    assert {name: host_of(each) for name, each in given.items()} == {"x": "a", "y": "b"}


def test_without_the_gate_the_second_of_them_waits_for_the_next_cycle() -> None:
    """rules/08 §11.6."""
    world = world_of(
        *(node("a", "r"), node("b", "r"), *queue("x"), *queue("y")), TASRecomputeAssignmentWithinSchedulingCycle=False
    )
    for name in "xy":
        world.apply([workload(name, pod_set(required=HOST), lq=name)])
    decision = world.cycle(at(1))
    assert list(placed(decision)) == ["x"]
    assert decision.pending[0].message == "Workload no longer fits after processing another workload"
    assert host_of(placed(world.cycle(at(2)))["y"]) == "b"


def test_pods_that_ask_for_nothing_fit_nowhere_in_the_end() -> None:
    """rules/08 §11.6: there is a place, but it holds none of nothing."""
    world = world_of(node("a", "r"), *queue())
    world.apply(
        [
            workload(
                "w",
                pod_set("leader", cpu=None, preferred=RACK, podSetGroupName="g"),
                pod_set("workers", 1, preferred=RACK, podSetGroupName="g"),
            )
        ]
    )
    assert world.cycle(at(1)).pending[0].message == "Workload no longer fits after processing another workload"


def test_what_a_limit_range_fills_in_is_used_on_nodes_too() -> None:
    """rules/08 §4.5."""
    limits = {"type": "Container", "defaultRequest": {"memory": "1Gi"}}
    defaults = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "ns"},
        "spec": {"limits": [limits]},
    }
    there = node("a", "r", cpu=4)
    there["status"]["allocatable"]["memory"] = "2Gi"
    groups = [
        {
            "coveredResources": ["cpu", "memory"],
            "flavors": [
                {
                    "name": "tas",
                    "resources": [{"name": "cpu", "nominalQuota": 9}, {"name": "memory", "nominalQuota": "9Gi"}],
                }
            ],
        }
    ]
    cluster_queue, local_queue = queue()
    cluster_queue["spec"]["resourceGroups"] = groups
    world = world_of(there, defaults, cluster_queue, local_queue)
    world.apply([workload("w", pod_set(count=2))])
    assert list(placed(world.cycle(at(1)))) == ["w"]
    assert world.snapshot().topologies["tas"].remaining("a") == {"cpu": 2000, "memory": 0, "pods": 108}


def test_multikueue_leaves_topology_to_the_workers() -> None:
    """rules/08 §11.2."""
    check = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": "mk"}}
    check |= {"spec": {"controllerName": "kueue.x-k8s.io/multikueue"}}
    check |= {"status": {"conditions": [{"type": "Active", "status": "True"}]}}
    world = world_of(check, *queue(admissionChecksStrategy={"admissionChecks": [{"name": "mk"}]}))
    world.apply([workload("w", pod_set(required=HOST))])
    pod_sets = world.cycle(at(1)).admissions[0].pod_sets
    assert (pod_sets[0].topology, pod_sets[0].delayed) == (None, "Pending")


def test_without_the_gate_a_flavor_with_a_topology_is_one_like_others() -> None:
    world = world_of(*queue(), TopologyAwareScheduling=False)
    world.apply([workload("w", pod_set(required=HOST))])
    assert placed(world.cycle(at(1))) == {"w": {}}


def test_a_queue_without_its_topology_admits_nobody_until_it_is_there() -> None:
    """rules/08 §1.4."""
    world = world_of(node("a", "r"), *queue())
    world.delete("Topology", "default")
    world.apply([workload("w", pod_set(required=HOST))])
    assert world.cache.readiness("q") == (
        "TopologyNotFound",
        'Can\'t admit new workloads: there is no Topology "default" for TAS flavor "tas".',
    )
    assert world.cycle(at(1)).cycle == 0
    world.apply([topology(RACK, HOST)], now=at(2))
    assert list(placed(world.cycle(at(2)))) == ["w"]


def test_other_levels_let_those_try_again_that_asked_for_them() -> None:
    """rules/08 §1.6."""
    world = world_of(node("a", "b", "r"), *queue())
    world.apply([workload("w", pod_set(required=BLOCK))])
    assert world.cycle(at(1)).pending[0].message.endswith('Flavor "tas" does not contain the requested level')
    world.apply([topology(BLOCK, RACK, HOST)], now=at(2))
    assert list(placed(world.cycle(at(2)))) == ["w"]


@pytest.mark.parametrize("change", ["new node", "pod gone", "pod smaller", "node back"])
def test_who_found_no_node_tries_again_when_there_is_room(change: str) -> None:
    """rules/08 §4.4, §11.11."""
    world = world_of(node("a", "r", cpu=2), pod("p", "a", cpu=2), node("down", "r", ready="False"), *queue())
    world.apply([workload("w", pod_set(required=HOST))])
    assert world.cycle(at(1)).pending[0].is_parked
    assert world.cycle(at(2)).cycle == 0
    match change:
        case "new node":
            world.apply([node("b", "r")], now=at(3))
        case "pod gone":
            world.delete("Pod", "p", namespace="system", now=at(3))
        case "pod smaller":
            world.apply([pod("p", "a", cpu=1)], now=at(3))
        case _:
            world.apply([node("down", "r")], now=at(3))
    assert list(placed(world.cycle(at(3)))) == ["w"]


def test_a_status_without_a_reason_is_refused_and_nothing_of_it_is_written() -> None:
    """rules/08 §11.5: quota is missing for one pod set, nodes for the other, which has no text of its own."""
    world = world_of(node("a", "r", cpu=9), *queue(cpu=9, preemption={"withinClusterQueue": "LowerPriority"}))
    world.apply([workload("low", pod_set(count=5, unconstrained=True))])
    world.cycle(at(1))
    # Ten nodes would be needed for the first, and four CPUs more than are left for the second.
    small = pod_set("small", 1, required=HOST)
    small["template"]["spec"]["nodeSelector"] = {"never": "there"}
    world.apply([workload("w", small, pod_set("large", 6, unconstrained=True), priority=1)])
    decision = world.cycle(at(2))
    assert [(event.name, event.reason) for event in decision.events] == [("w", "")]
    assert world.kind("Workload")["ns/w"]["status"] == {}


# Second passes, and nodes that fail.


def running(*nodes: Json, count: int = 1, **gates: bool) -> World:
    """A workload on the first of the nodes."""
    world = world_of(*nodes, *queue(), **gates)
    world.apply([workload("w", pod_set(count=count, preferred=HOST))])
    assert placed(world.cycle(at(0)))
    world.reconcile(at(0))
    return world


def failed_nodes(world: World) -> list[str]:
    return [each["name"] for each in world.kind("Workload")["ns/w"]["status"].get("unhealthyNodes", [])]


TAINT = {"key": "x", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("after", "has_pods", "gates", "expected"),
    [
        ({"ready": "False"}, False, {}, ["a"]),
        ({"ready": "False"}, True, {}, []),
        ({"ready": "False"}, False, {"TASFailedNodeReplacement": False}, []),
        ({"ready": "False"}, False, {"TASReplaceNodeOnPodTermination": False}, []),
        ({"taints": [TAINT]}, False, {}, ["a"]),
        ({"taints": [TAINT]}, True, {}, []),
        ({"taints": [TAINT]}, True, {"TASReplaceNodeOnPodTermination": False}, ["a"]),
        ({"taints": [TAINT]}, False, {"TASReplaceNodeOnNodeTaints": False}, []),
        ({"taints": [{**TAINT, "effect": "PreferNoSchedule"}]}, False, {}, []),
    ],
)
def test_a_node_is_marked_when_nothing_runs_there_any_more(
    after: Json, has_pods: bool, gates: dict[str, bool], expected: list[str]
) -> None:
    """rules/08 §13.2."""
    world = running(node("a", "r", cpu=2), **gates)
    if has_pods:
        world.apply([pod("p", "a", namespace="ns", annotations={"kueue.x-k8s.io/workload": "w"})])
    world.apply([node("a", "r", cpu=2, **after)], now=at(5))
    assert failed_nodes(world) == expected


def test_without_looking_at_pods_a_node_is_marked_after_half_a_minute() -> None:
    """rules/08 §13.2."""
    world = running(node("a", "r", cpu=2), TASReplaceNodeOnPodTermination=False)
    world.apply([node("a", "r", cpu=2, ready="False")], now=at(1))
    world.reconcile(at(29))
    assert failed_nodes(world) == []
    world.reconcile(at(30))
    assert failed_nodes(world) == ["a"]


def test_a_node_that_is_well_again_is_unmarked_but_its_pass_goes_on() -> None:
    """rules/08 §11.10: the pass knows the workload as it was."""
    world = running(node("a", "r"), node("b", "r"))
    world.apply([node("a", "r", ready="False")], now=at(5))
    assert failed_nodes(world) == ["a"]
    world.apply([node("a", "r")], now=at(6))
    assert failed_nodes(world) == []
    decision = world.cycle(at(6))
    assert {name: host_of(each) for name, each in placed(decision).items()} == {"w": "b"}


def test_a_pass_on_an_older_copy_gets_a_node_beside_another_workload() -> None:
    """rules/08 §11.10: a replica that begins to lead has kept its copy while the leader before moved the pods."""
    world = running(node("a", "r"), node("b", "r"), *queue("other"))
    before = copy.deepcopy(world.kind("Workload")["ns/w"])
    world.apply([node("a", "r", ready="False")], now=at(5))
    moved = json.loads(json.dumps(before).replace('"a"', '"b"'))
    world.apply([moved, node("a", "r"), workload("x", pod_set(required=HOST), lq="other")], now=at(6))
    assert host_of(before["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"]) == "a"
    given = placed(world.cycle(at(7)))
    assert {name: host_of(each) for name, each in given.items()} == {"w": "a", "x": "a"}


def test_a_newer_copy_takes_the_place_of_one_whose_time_has_come() -> None:
    """The same, but the second node fails as well before the replica leads: that pass is on the newer copy."""
    here = [
        namespace(),
        topology(RACK, HOST),
        flavor(),
        *(node(name, "r") for name in "abc"),
        *queue(),
        *queue("other"),
    ]
    world, engine = running(node("a", "r"), node("b", "r"), node("c", "r"), *queue("other")), Engine()
    before = copy.deepcopy(world.kind("Workload")["ns/w"])
    engine.apply(to_json_lines([*here, before]), now=at(4), trusted=True)

    def apply(*objects: Json, seconds: int) -> None:
        world.apply(copy.deepcopy(objects), now=at(seconds))
        engine.apply(to_json_lines(objects), now=at(seconds), trusted=True)
        engine.reconcile(at(seconds))

    apply(node("a", "r", ready="False"), seconds=5)
    apply(json.loads(json.dumps(before).replace('"a"', '"b"')), seconds=10)
    apply(node("b", "r", ready="False"), node("a", "r"), seconds=20)
    apply(workload("x", pod_set(required=HOST), lq="other"), seconds=21)
    places = {name: host_of(each) for name, each in placed(world.cycle(at(22))).items()}
    assert places == {"w": "a", "x": "c"}
    decision = engine.cycle(at(22))
    assert [manifest.name for manifest in (*decision.placed, *decision.admissions)] == ["w", "x"]
    stored = {name: engine.workload(name, namespace="ns").status["admission"] for name in "wx"}
    assert {name: host_of(row["podSetAssignments"][0]["topologyAssignment"]) for name, row in stored.items()} == places


def test_at_a_second_failed_node_a_workload_is_evicted() -> None:
    """rules/08 §13.3."""
    world = running(node("a", "r"), node("b", "r"), count=2)
    world.delete("Node", "a", now=at(5))
    world.delete("Node", "b", now=at(5))
    reported = {c["type"]: c for c in world.kind("Workload")["ns/w"]["status"]["conditions"]}["Evicted"]
    message = "Workload eviction triggered due to multiple TAS assigned node failures, including: a, b"
    assert (reported["status"], reported["reason"], reported["message"]) == ("True", "NodeFailures", message)
    assert failed_nodes(world) == []


@pytest.mark.parametrize(("fails_fast", "expected"), [(True, ["evicted"]), (False, ["SecondPassFailed"])])
def test_without_another_node_a_workload_has_to_go_or_tries_again(fails_fast: bool, expected: list[str]) -> None:
    """rules/08 §11.7."""
    world = running(node("a", "r"), TASFailedNodeReplacementFailFast=fails_fast)
    world.delete("Node", "a", now=at(5))
    assert world.cycle(at(5)).cycle == 0
    decision = world.cycle(at(6))
    reported = ["evicted" for _ in decision.evictions]
    reported += [event.reason for event in decision.events if event.reason == "SecondPassFailed"]
    assert reported == expected


def test_who_is_evicted_from_a_failed_node_may_be_preempted_in_the_same_cycle() -> None:
    """rules/05 §6.4: the cycle sees workloads as they were at its start."""
    preemption = {"withinClusterQueue": "LowerPriority"}
    world = world_of(node("a", "r", cpu=2), *queue(cpu=2, preemption=preemption))
    world.apply([workload("low", pod_set(count=2, preferred=HOST))])
    world.cycle(at(0))
    world.apply([node("a", "r", cpu=2, ready="False")], now=at(1))
    world.apply([node("b", "r", cpu=1)], now=at(2))
    world.apply([workload("high", pod_set(required=HOST), priority=1)])
    decision = world.cycle(at(2))
    reported = {c["type"]: c["reason"] for c in world.kind("Workload")["ns/low"]["status"]["conditions"]}
    assert (reported["Evicted"], reported["Preempted"]) == ("Preempted", "InClusterQueue")
    assert ([each.name for each in decision.preemptions], decision.evictions) == (["low"], [])
    assert world.kind("Workload")["ns/low"]["status"]["schedulingStats"]["evictions"] == [
        {"reason": "Preempted", "underlyingCause": "", "count": 1}
    ]


def test_attempts_at_a_second_pass_come_ever_later() -> None:
    """rules/08 §11.10."""
    world = running(node("a", "r"), TASFailedNodeReplacementFailFast=False)
    world.delete("Node", "a", now=at(0))
    tried = [second for second in range(110) if world.cycle(at(second)).cycle]
    assert tried == [1, 3, 7, 15, 31, 61, 91]


def test_the_pods_of_a_single_pod_stay_where_they_are() -> None:
    """rules/08 §13.6."""
    world = world_of(node("a", "r"), node("b", "r"), *queue())
    owner = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "p"}
    world.apply([workload("w", pod_set(preferred=HOST), ownerReferences=[owner])])
    world.cycle(at(0))
    world.delete("Node", "a", now=at(5))
    assert failed_nodes(world) == ["a"]
    assert world.cycle(at(6)).placements == []
    assert failed_nodes(world) == []


def test_pods_that_wait_for_a_node_in_vain_fail() -> None:
    """rules/08 §13.4."""
    world = running(node("a", "r"), node("b", "r"))
    waits = pod("late", "", namespace="ns", annotations={"kueue.x-k8s.io/workload": "w"})
    del waits["spec"]["nodeName"]
    waits["spec"]["nodeSelector"], waits["status"]["phase"] = {HOST: "a"}, "Pending"
    gated = {**waits, "metadata": {**waits["metadata"], "name": "gated"}}
    gated["spec"] = {**waits["spec"], "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}]}
    world.apply([waits, gated])
    world.apply([node("a", "r", ready="False")], now=at(5))
    phases = {name: each["status"]["phase"] for name, each in world.kind("Pod").items()}
    assert phases == {"ns/late": "Failed", "ns/gated": "Pending"}


# What surprises (docs/anomalies-topology.md).


@pytest.mark.parametrize(
    ("release", "expected", "left"), [("0.20.0", {"x": "a"}, 0), ("0.19.2", {"x": "a", "y": "a"}, -1000)]
)
def test_two_flavors_over_one_node_gave_it_away_twice_in_one_cycle(
    release: str, expected: dict[str, str], left: int
) -> None:
    """rules/08 §4.5: before 0.20.0, what a cycle takes counts for the flavor that is named alone."""
    around = [namespace(), topology(RACK, HOST), flavor(), flavor("other"), node("a", "r")]
    world = World([*around, *queue("x"), *queue("y", flavors=("other",))], configuration={"kueue": release}, now=NOW)
    for name in "xy":
        world.apply([workload(name, pod_set(required=HOST), lq=name)])
    assert {name: host_of(each) for name, each in placed(world.cycle(at(1))).items()} == expected
    assert world.snapshot().topologies["tas"].remaining("a")["cpu"] == left


def test_a_flavor_whose_nodes_are_taken_is_not_passed_over_in_the_same_cycle() -> None:
    """rules/08 §11.1."""
    one, two = flavor("one", nodeLabels={"pool": "one"}), flavor("two", nodeLabels={"pool": "two"})
    nodes = [node("a", "r"), node("b", "r", cpu=4)]
    for each, pool in zip(nodes, ("one", "two"), strict=True):
        each["metadata"]["labels"]["pool"] = pool
    world = world_of(one, two, *nodes, *queue(flavors=("one", "two")))
    world.apply([workload("w", pod_set(count=2, required=HOST))])
    decision = world.cycle(at(1))
    assert not decision.admissions
    assert decision.pending[0].message.startswith('couldn\'t assign flavors to pod set main: topology "default"')


def test_a_second_pass_may_preempt_the_same_workload_again_and_again() -> None:
    """rules/08 §11.7."""
    preemption = {"withinClusterQueue": "LowerPriority"}
    gates = {"TASFailedNodeReplacementFailFast": False}
    world = world_of(node("a", "r"), node("b", "r"), *queue(preemption=preemption), **gates)
    for name, priority in (("high", 1), ("low", 0)):
        world.apply([workload(name, pod_set(preferred=HOST), priority=priority)])
        world.cycle(at(0))
    world.delete("Node", "a", now=at(0))
    preempted = []
    for second in range(1, 8):
        for victim in world.cycle(at(second)).preemptions:
            preempted.append((second, victim.name))
            world.release(victim.name, namespace="ns", now=at(second))
    assert preempted == [(1, "low"), (3, "low"), (7, "low")]


def test_a_topology_without_a_spec_is_not_there() -> None:
    """Row 1 of rules/08 §1."""
    bare = kueue("Topology", "default")
    del bare["spec"]
    tas = flavor(nodeLabels={RACK: "r"})
    objects = [namespace(), bare, node("a", "r"), tas, *queue(), workload("w", pod_set(required=HOST))]
    world, engine = World(objects, now=NOW), Engine()
    engine.apply(objects, now=NOW)
    missing = 'Can\'t admit new workloads: there is no Topology "default" for TAS flavor "tas".'
    assert world.cache.readiness("q") == ("TopologyNotFound", missing)
    assert (engine.cluster_queue("q").reason, engine.cluster_queue("q").message) == ("TopologyNotFound", missing)
    assert not placed(world.cycle(at(1)))
    assert not engine.cycle(now=NOW).admissions
