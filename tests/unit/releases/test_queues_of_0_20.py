"""Queues, flavors and preemption in Kueue 0.20: what the worlds of the changes end in, and what is no change alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kueuecore import Configuration, Engine
from kueuecore._quantities import number
from kueuecore.conformance import answer
from kueuecore.errors import ConfigurationError
from kueuecore.objects import Cohort
from kueuecore.testing.play import first_difference
from tests.builders import admitted, at, cluster_queue, condition, workload, world
from tests.unit.releases.test_changes import compared, sides

Json = dict[str, Any]

WORLDS: dict[str, Json] = {
    case["id"]: case
    for case in map(
        json.loads,
        Path(__file__).with_name("worlds-of-0.20-queues.jsonl").read_text(encoding="utf-8").splitlines(),
    )
}
MANIFEST: Json = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}


def first_steps(case: Json, n: int = 3) -> list[str]:
    """What the first cycles admit (`+`) and preempt (`-`), with the time of each."""
    steps = []
    for cycle in answer(case)["cycles"]:
        names = ["+" + entry["key"].split("/")[1] for entry in cycle.get("admitted") or ()]
        names += ["-" + entry["key"].split("/")[1] for entry in cycle.get("preempting") or ()]
        if names:
            steps.append(f"{cycle.get('t', 0)}: {' '.join(sorted(names))}")
    return steps[:n]


@pytest.mark.parametrize(
    ("name", "on", "off"),
    [
        ("change/OtherResultsEndStickiness", ["32: +high"], ["32: +low"]),
        ("change/PreemptionIsSizedByAssignment/pods", ["3: -v1 -v2"], ["60: -v2", "61: +p"]),
        ("change/PreemptionIsSizedByAssignment/slice", ["1: -v", "2: +new"], []),
        ("change/SameNamedLocalQueuesDiffer", ["43: -v1"], ["43: -v2"]),
        ("gate/FairSharingRefill/poor", ["10: +poor-a +poor-b"], ["10: +poor-a +rich-p"]),
        ("gate/FairSharingRefill/chain", ["10: +a1 +a2 +b1"], ["10: +a1 +b1", "11: +a2"]),
        ("gate/FairSharingReevaluatePreemptionCandidates", ["1: -b-large"], []),
        ("gate/AdmissionFairSharingAnchorAtQuotaReservation", ["30: +b1"], ["30: +a1"]),
        ("change/RemotePrioritiesStay", ["20: +local", "25: +remote"], ["20: +remote", "25: +local"]),
    ],
)
def test_what_a_world_ends_in(name: str, on: list[str], off: list[str]) -> None:
    for side, expected in zip(sides(WORLDS[name]), (on, off), strict=True):
        steps = first_steps(side, 20)
        assert all(step in steps for step in expected), steps
        assert expected or not any("-" in step.split(": ")[1] for step in steps)


def test_eight_join_a_cycle() -> None:
    [first, *_] = first_steps(sides(WORLDS["gate/FairSharingRefill/budget"])[0])
    assert len(first.split(": ")[1].split()) == 9


def of_0_20(**gates: bool) -> Configuration:
    return Configuration.of([MANIFEST], release="0.20.0", feature_gates=gates)


@pytest.mark.parametrize(
    ("gate", "needed"),
    [
        ("AdmissionFairSharingAnchorAtQuotaReservation", "AdmissionFairSharing"),
        ("SchedulingEquivalenceHashingIgnorePodSetName", "SchedulingEquivalenceHashing"),
    ],
)
def test_a_gate_goes_off_with_the_one_that_it_needs(gate: str, needed: str) -> None:
    with pytest.raises(ConfigurationError, match="depends on features that are disabled"):
        of_0_20(**{needed: False})
    of_0_20(**{needed: False, gate: False})


def test_a_cycle_of_cohorts_shows_in_the_queue_while_it_lasts() -> None:
    engine: Engine = world(
        Cohort("a"), Cohort("b", parent_name="a"), cluster_queue(cohort="b"), configuration=of_0_20()
    )
    engine.apply([workload("first")])
    assert admitted(engine.cycle(at(0))) == ["first"]
    engine.apply([Cohort("a", parent_name="b")])
    state = engine.cluster_queue("cq")
    message = 'Can\'t admit new workloads: Cohort "b" has a cycle in hierarchy.'
    assert (state.is_active, state.reason, state.message) == (False, "CohortCycleDetected", message)
    engine.apply([workload("second")])
    assert admitted(engine.cycle(at(1))) == []
    assert condition(engine, "first", "Admitted") is not None
    engine.apply([Cohort("a")])
    assert engine.cluster_queue("cq").reason == "Ready"
    assert admitted(engine.cycle(at(2))) == ["second"]


def case(objects: list[Json], events: list[Json]) -> Json:
    base = WORLDS["change/PreemptionIsSizedByAssignment/pods"]
    plain = {name: value for name, value in base.items() if name != "change"}
    return {**plain, "kueue": "0.20.0", "objects": [*base["objects"][:2], *objects], "input": {"events": events}}


def manifest(kind: str, name: str, spec: Json, status: Json | None = None) -> Json:
    metadata: Json = {"name": name, "uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    if kind in ("LocalQueue", "Workload"):
        metadata["namespace"] = "ns"
    made = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}
    return made if status is None else {**made, "status": status}


def queue(**quotas: str) -> list[Json]:
    groups = [
        {
            "coveredResources": [resource],
            "flavors": [{"name": "default", "resources": [{"name": resource, "nominalQuota": quota}]}],
        }
        for resource, quota in quotas.items()
    ]
    spec: Json = {"resourceGroups": groups, "namespaceSelector": {}}
    spec["preemption"] = {"withinClusterQueue": "LowerPriority"}
    return [manifest("ClusterQueue", "team", spec), manifest("LocalQueue", "a", {"clusterQueue": "team"})]


def pod_set(name: str, count: int, group: str = "", *, limits: Json | None = None, **requests: str) -> Json:
    resources: Json = {"requests": requests} if limits is None else {"limits": limits}
    pod = {"containers": [{"name": "c", "image": "i", "resources": resources}], "restartPolicy": "Never"}
    made: Json = {"name": name, "count": count, "template": {"spec": pod}}
    return {**made, "topologyRequest": {"podSetGroupName": group}} if group else made


def played(of: Json) -> Json:
    """The answer of the engine, which is that of the reference."""
    by_engine = answer(of)
    assert first_difference(compared(by_engine), compared(answer(of, by="reference"))) is None
    return by_engine


def test_members_of_a_group_that_stand_apart_each_find_their_victims() -> None:
    objects = [*queue(cpu="5", memory="1Gi")]
    low = [
        manifest("Workload", name, {"queueName": "a", "priority": 0, "podSets": [wanted]})
        for name, wanted in (("v-cpu", pod_set("main", 1, cpu="5")), ("v-memory", pod_set("main", 1, memory="1Gi")))
    ]
    pod_sets = [
        pod_set("leader", 1, "g", cpu="1"),
        pod_set("other", 1, memory="1Gi"),
        pod_set("worker", 2, "g", cpu="2"),
    ]
    high = manifest("Workload", "p", {"queueName": "a", "priority": 9, "podSets": pod_sets})
    events = [{"at": 0, "op": "create", "object": entry, "runSeconds": 60} for entry in low]
    cycles = played(case(objects, [*events, {"at": 3, "op": "create", "object": high, "runSeconds": 5}]))["cycles"]
    victims = [entry["key"] for cycle in cycles for entry in cycle.get("preempting") or ()]
    assert sorted(victims) == ["ns/v-cpu", "ns/v-memory"]
    [granted] = [entry for cycle in cycles for entry in cycle.get("admitted") or () if entry["key"] == "ns/p"]
    assert [set_["name"] for set_ in granted["podSets"]] == ["leader", "worker", "other"]


def test_limits_count_as_requests_after_a_backoff_too() -> None:
    status = {
        "requeueState": {"count": 1, "requeueAt": "2026-01-01T00:00:02Z"},
        "conditions": [
            {
                "type": kind,
                "status": value,
                "reason": "AdmissionCheck",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
            for kind, value in (("Evicted", "True"), ("Requeued", "False"))
        ],
    }
    spec = {"queueName": "a", "priority": 0, "podSets": [pod_set("main", 1, limits={"cpu": "3"})]}
    objects = [*queue(cpu="2"), manifest("Workload", "w", spec, status)]
    small = manifest("Workload", "x", {"queueName": "a", "priority": 0, "podSets": [pod_set("main", 1, cpu="1")]})
    cycles = played(case(objects, [{"at": 1, "op": "create", "object": small, "runSeconds": 5}]))["cycles"]
    assert [entry["key"] for cycle in cycles for entry in cycle.get("admitted") or ()] == ["ns/x"]
    said = [
        message["message"] for cycle in cycles for message in cycle.get("messages") or () if message["key"] == "ns/w"
    ]
    assert "current podset request (3)" in said[0]


def test_a_second_reservation_settles_again() -> None:
    """What a workload is charged stays when it loses its reservation (rules/09 §1.3)."""

    def used(*preemptor: Json, is_on: bool) -> float:
        world = WORLDS["gate/AdmissionFairSharingAnchorAtQuotaReservation"]
        sharing = {"usageHalfLifeTime": "1000h", "usageSamplingInterval": "1000h"}
        config = {**world["config"], "admissionFairSharing": sharing, "maxCycles": 120}
        objects = [
            {**object_, "spec": {**object_["spec"], "preemption": {"withinClusterQueue": "LowerPriority"}}}
            if object_["kind"] == "ClusterQueue"
            else object_
            for object_ in world["objects"]
        ]
        gates = {"AdmissionFairSharingAnchorAtQuotaReservation": is_on}
        events = [world["input"]["events"][0], *preemptor]
        final = played(
            {**world, "kueue": "0.20.0", "featureGates": gates, "config": config, "objects": objects}
            | {"input": {"events": events}}
        )["final"]
        return float(number(final["localQueues"]["ns/a"]["consumed"]["cpu"]) or 0)

    first = json.loads(json.dumps(WORLDS["gate/AdmissionFairSharingAnchorAtQuotaReservation"]["input"]["events"][0]))
    high = {**first, "at": 10, "runSeconds": 5}
    high["object"]["metadata"] |= {"name": "high", "uid": "uid-high"}
    high["object"]["spec"] |= {"queueName": "b", "priority": 9}
    # A penalty is half of the 2 CPUs.
    assert round(used(is_on=True), 2) == round(used(is_on=False), 2) == 1
    assert [round(used(high, is_on=is_on), 2) for is_on in (True, False)] == [2, 1]


@pytest.mark.parametrize("state", ["Retry", "Rejected"])
def test_of_checks_only_a_rejection_counts_during_an_eviction(state: str) -> None:
    world = json.loads(json.dumps(sides(WORLDS["change/RejectionCountsDuringEviction"])))
    for side in world:
        [check] = side["input"]["events"][0]["object"]["status"]["admissionChecks"]
        check["state"] = state
    on, off = (compared(played(side)) for side in world)
    assert (on == off) is (state == "Retry")


def test_limits_of_an_init_container_tell_shapes_apart() -> None:
    """Two workloads are of one shape only if their defaults are alike, even if their totals are (rules/05 §4)."""

    def in_namespace(namespace: str, init: str) -> list[Json]:
        item = {"type": "Container", "defaultRequest": {"cpu": init}}
        metadata = {"name": "limits", "namespace": namespace}
        limits: Json = {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": [item]}}
        local_queue = manifest("LocalQueue", "a", {"clusterQueue": "team"})
        local_queue["metadata"]["namespace"] = namespace
        return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, limits, local_queue]

    def said_of_the_second(init: str) -> list[str]:
        pods = pod_set("main", 1, cpu="4")
        pods["template"]["spec"]["initContainers"] = [{"name": "i", "image": "i"}]
        spec = {"queueName": "a", "priority": 0, "podSets": [pods]}
        first, second = manifest("Workload", "v", spec), manifest("Workload", "w", spec)
        second["metadata"]["namespace"] = "other"
        events = [{"at": at, "op": "create", "object": entry} for at, entry in ((0, first), (10, second))]
        objects = [*queue(cpu="2")[:1], *in_namespace("ns", "1"), *in_namespace("other", init)]
        cycles = played(case(objects, events))["cycles"]
        return [
            message["message"]
            for cycle in cycles
            for message in cycle.get("messages") or ()
            if message["key"] == "other/w"
        ]

    assert said_of_the_second("1") == []
    assert any("request (4) > maximum capacity (2)" in name for name in said_of_the_second("2"))
