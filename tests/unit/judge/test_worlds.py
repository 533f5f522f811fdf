"""Worlds for a released Kueue: each follows from its seed, and holds nothing that the release would refuse."""

from __future__ import annotations

from collections import Counter

import pytest

from kueuecore._json import object_at, text_at
from kueuecore.releases import Release
from tests.judge.gates import settled
from tests.judge.whole import is_whole
from tests.judge.worlds import families, world

RELEASES = ("0.19.2", "0.17.0")


def test_a_seed_is_one_world() -> None:
    release = Release.named("0.19.2")
    assert world(7, release) == world(7, release)
    assert world(7, release) != world(8, release)


@pytest.mark.parametrize("name", RELEASES)
def test_enough_worlds_have_nodes_and_fair_shares(name: str) -> None:
    release = Release.named(name)
    found = Counter(family for seed in range(300) for family in families(world(seed, release)))
    assert min(found["with topology"], found["with fair sharing"]) > 300 / 5
    assert min(found.values()) > 0
    assert len(found) >= 19


@pytest.mark.parametrize("name", RELEASES)
def test_only_gates_that_the_release_has_are_set(name: str) -> None:
    release = Release.named(name)
    defaults = {
        feature_gate.name: feature_gate.default for feature_gate in release.feature_gates() if not feature_gate.locked
    }
    for seed in range(300):
        for gate, on in world(seed, release)["featureGates"].items():
            assert defaults[gate] is not on


@pytest.mark.parametrize("name", RELEASES)
def test_every_world_is_valid_and_whole(name: str) -> None:
    assert all(is_whole(world(seed, Release.named(name))) for seed in range(200))


def test_a_case_is_not_whole_without_what_it_names_or_with_a_part_of_an_object() -> None:
    case = world(1, Release.named("0.19.2"))
    for kind in ("Namespace", "LocalQueue", "ClusterQueue", "ResourceFlavor"):
        assert not is_whole({**case, "objects": [object_ for object_ in case["objects"] if object_["kind"] != kind]})
    workload = next(
        event["object"] for event in case["input"]["events"] if text_at(event, "object", "kind") == "Workload"
    )
    event = {"at": 0, "op": "create", "object": {**workload, "spec": {**workload["spec"], "podSets": [{}]}}}
    assert not is_whole({**case, "input": {"events": [event]}})


def test_a_gate_goes_off_with_what_it_needs() -> None:
    gates = settled({"TASFailedNodeReplacement": False, "NoSuchGate": True}, Release.named("0.19.2"))
    assert gates == {
        "TASFailedNodeReplacement": False,
        "TASFailedNodeReplacementFailFast": False,
        "TASReplaceNodeOnPodTermination": False,
    }


def test_queues_have_no_workloads_of_the_same_time() -> None:
    for seed in range(100):
        case = world(seed, Release.named("0.19.2"))
        queues: dict[str, set[str]] = {}
        for event in case["input"]["events"]:
            workload = object_at(event, "object")
            if workload.get("kind") == "Workload":
                stamp = text_at(workload, "metadata", "creationTimestamp")
                queues.setdefault(stamp, set()).add(text_at(workload, "spec", "queueName"))
        assert all(len(queue) == 1 for queue in queues.values())


def test_with_nodes_and_fair_shares_all_queues_have_one_root() -> None:
    n = 0
    for seed in range(200):
        case = world(seed, Release.named("0.19.2"))
        if not {"with topology", "with fair sharing"} <= set(families(case)):
            continue
        n += 1
        things = [*case["objects"], *(object_at(event, "object") for event in case["input"]["events"])]
        assert all(text_at(thing, "spec", "cohortName") for thing in things if thing.get("kind") == "ClusterQueue")
        roots = {
            thing["metadata"]["name"]
            for thing in things
            if thing.get("kind") == "Cohort" and not text_at(thing, "spec", "parentName")
        }
        assert roots <= {"c1"}
    assert n > 10
