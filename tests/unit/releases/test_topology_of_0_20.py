"""What Kueue 0.20 decides otherwise about topology: with its gate or change and without, by engine and reference."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.releases.topology_worlds import (
    BLOCK,
    HOST,
    HOSTS,
    RACK,
    RACKS,
    created,
    domains,
    node,
    places,
    played,
    pod_set,
    says,
    world,
)

Json = dict[str, Any]

NODES, SLICES, LEADERS = "TASNodeFeasibilityForAllLevels", "TASPartialSlices", "TASLeaderPodSetFeasibility"
THREE = [node("n1"), node("n2"), node("n3", "r2")]
TAINT = [{"key": "gpu", "effect": "NoSchedule"}]


def sides(name: str, *args: Any, **parts: Any) -> tuple[Json, Json]:
    """A world with a gate and without."""
    on, off = ({**parts, "gates": {**parts.get("gates", {}), name: is_on}} for is_on in (True, False))
    return world(*args, **on), world(*args, **off)


def required(level: str = RACK, **more: Any) -> Json:
    return {"required": level, **more}


def sliced(size: int, level: str = RACK, **more: Any) -> Json:
    return {"podSetSliceRequiredTopology": level, "podSetSliceSize": size, **more}


# Nodes below the levels of the Topology (rules/08 §5.6).


def test_a_pod_needs_one_node_of_its_rack() -> None:
    on, off = sides(NODES, RACKS, THREE, [created("w", 0, pod_set(1, 6, required()))])
    assert (places(on), places(off)) == (None, [[("b1/r1", 1)]])
    # One of them is the quota's or the topology's word: three nodes have too little CPU.
    assert says(on, 'Total nodes: 3; excluded: resource "cpu": 3')


def test_a_tainted_node_of_a_rack_takes_no_pods() -> None:
    nodes = [node("n1", taints=TAINT), *THREE[1:]]
    on, off = sides(NODES, RACKS, nodes, [created("w", 0, pod_set(2, 3, required()))])
    assert (places(on), places(off)) == (None, [[("b1/r1", 2)]])
    assert says(on, 'excluded: taint "gpu:NoSchedule": 1')
    tolerant = pod_set(2, 3, required(), tolerations=[{"key": "gpu", "operator": "Exists"}])
    assert places(world(RACKS, nodes, [created("w", 0, tolerant)], gates={NODES: True})) == [[("b1/r1", 2)]]


def test_workloads_use_their_rack_and_no_node_of_it() -> None:
    nodes = [node("n1", cpu=2), node("n2", cpu=2)]
    taken = created("before", 0, pod_set(1, 1, required()))
    for count, found in ((1, [[("b1/r1", 1)]]), (2, None)):
        events = [taken, created("w", 5, pod_set(count, 2, required()))]
        assert places(world(RACKS, nodes, events, gates={NODES: True})) == found


def test_an_assignment_names_no_node_that_the_topology_does_not() -> None:
    on, _ = sides(NODES, RACKS, THREE, [created("w", 0, pod_set(3, 3, required(BLOCK)))])
    assert places(on) == [[("b1/r1", 2), ("b1/r2", 1)]]


def test_nobody_may_ask_for_the_level_of_nodes_below_the_topology() -> None:
    on, _ = sides(NODES, RACKS, THREE, [created("w", 0, pod_set(1, 1, required(HOST)))])
    assert places(on) is None
    assert says(on, 'Flavor "tas" does not contain the requested level')


def test_nodes_that_share_a_hostname_stay_apart_below_the_topology() -> None:
    twins = [node(name, labels={HOST: "x"}) for name in ("n1", "n2")]
    events = [created("w", 0, pod_set(1, 6, required()))]
    assert places(world(RACKS, twins, events, gates={NODES: True})) is None
    assert places(world(HOSTS, twins, events, gates={NODES: True})) == [[("x", 1)]]


def test_pod_sets_of_one_workload_see_the_nodes_that_others_took() -> None:
    events = [created("w", 0, pod_set(1, 3, required(), name="a"), pod_set(2, 2, required(), name="b"))]
    on, off = sides(NODES, RACKS, THREE[:2], events)
    # One node has 1 CPU left and the other one 4; the sum would be enough either way.
    assert places(on) == [[("b1/r1", 1)], [("b1/r1", 2)]]
    assert places(off) == [[("b1/r1", 1)], [("b1/r1", 2)]]
    tight = [created("w", 0, pod_set(2, 3, required(), name="a"), pod_set(1, 2, required(), name="b"))]
    on, off = sides(NODES, RACKS, THREE[:2], tight)
    assert (places(on), places(off)) == (None, [[("b1/r1", 2)], [("b1/r1", 1)]])


def test_a_victim_gives_back_room_of_its_rack() -> None:
    low = created("low", 0, pod_set(2, 3, required()))
    high = created("w", 5, pod_set(2, 3, required()), spec={"priority": 10})
    preempts = {"preemption": {"withinClusterQueue": "LowerPriority"}}
    on, _ = sides(NODES, RACKS, THREE[:2], [low, high], queue=preempts)
    assert places(on) == [[("b1/r1", 2)]]


def test_heads_of_one_cycle_do_not_share_a_node_below_their_racks() -> None:
    events = [created(name, 0, pod_set(1, 3, required()), queue=name) for name in ("a", "b", "c")]
    on, _ = sides(NODES, RACKS, THREE[:2], events, queues={"a": "tas", "b": "tas", "c": "tas"})
    assert [places(on, name) for name in ("a", "b", "c")] == [[[("b1/r1", 1)]], [[("b1/r1", 1)]], None]


# A last, shorter slice (rules/08 §7.1).


def rack(name: str, *cpus: int) -> list[Json]:
    return [node(f"{name}-{at}", name, cpu) for at, cpu in enumerate(cpus)]


def test_pods_beyond_whole_slices_make_a_shorter_one() -> None:
    nodes = [*rack("r1", 8, 8), *rack("r2", 8)]
    on, off = sides(SLICES, HOSTS, nodes, [created("w", 0, pod_set(20, 1, sliced(16)))])
    assert places(on) == [[("r1-0", 8), ("r1-1", 8), ("r2-0", 4)]]
    # Without, four pods got no place at all.
    assert places(off) == [[("r1-0", 8), ("r1-1", 8)]]


def test_a_shorter_slice_stays_in_one_domain() -> None:
    nodes = [*rack("r1", 8, 8), *rack("r2", 2), *rack("r3", 2)]
    on, _ = sides(SLICES, HOSTS, nodes, [created("w", 0, pod_set(20, 1, sliced(16)))])
    assert places(on) is None
    assert says(on, 'topology "default" allows to fit only 1 out of 2 slice(s)')


def test_a_shorter_slice_goes_where_all_fits_tightly() -> None:
    nodes = [*rack("r1", 4), *rack("r2", 6), *rack("r3", 8)]
    on, _ = sides(SLICES, HOSTS, nodes, [created("w", 0, pod_set(6, 1, sliced(4, required=BLOCK)))])
    assert places(on) == [[("r2-0", 6)]]


def test_the_domain_of_the_shorter_slice_comes_last() -> None:
    nodes = [*rack("r1", 3), *rack("r2", 4), *rack("r3", 4)]
    on, _ = sides(SLICES, HOSTS, nodes, [created("w", 0, pod_set(10, 1, sliced(4, required=BLOCK)))])
    assert places(on) == [[("r2-0", 4), ("r3-0", 4), ("r1-0", 2)]]


@pytest.mark.parametrize("gates", [{}, {NODES: True}], ids=["hosts", "racks"])
def test_a_leader_and_a_shorter_slice_share_what_there_is(gates: dict[str, bool]) -> None:
    levels = RACKS if gates else HOSTS
    group = {"podSetGroupName": "g", "required": BLOCK}
    sets = [pod_set(1, 2, group, name="leader"), pod_set(6, 1, sliced(4, **group), name="worker")]
    nodes = [*rack("r1", 4), *rack("r2", 4), *rack("r3", 2)]
    on, _ = sides(SLICES, levels, nodes, [created("w", 0, *sets)], gates=gates)
    found = places(on)
    assert found is not None
    assert [sum(count for _, count in place) for place in found] == [1, 6]
    assert found[1][-1][1] == 2


def test_a_shorter_slice_is_made_whole_again_after_a_failure() -> None:
    nodes = [*rack("r1", 2, 2), *rack("r2", 2, 2), *rack("r3", 1, 1, 1)]
    lost = {"at": 10, "op": "delete", "kind": "Node", "key": "r3-1"}
    case = world(HOSTS, nodes, [created("w", 0, pod_set(10, 1, sliced(4, required=BLOCK))), lost], gates={SLICES: True})
    moved = [entry for cycle in played(case)["cycles"] for entry in cycle.get("assigned", ())]
    assert [cycle["key"] for cycle in moved] == ["ns/w"]
    final = played(case)["final"]
    assert "NodeFailures" not in str(final)


# Where a leader may be (rules/08 §5.3).


def group_of(role: str) -> list[Json]:
    group = {"podSetGroupName": "g", "required": RACK}
    leader = pod_set(1, 1, group, name="leader", nodeSelector={"role": role})
    return [leader, pod_set(2, 4, group, name="worker", nodeSelector={"role": "gpu"})]


def roles(cpu: int = 4, *more: Json) -> list[Json]:
    return [node("n1", cpu=cpu, labels={"role": "gpu"}), node("n2", cpu=cpu, labels={"role": "gpu"}), *more]


def test_a_leader_goes_where_no_worker_may() -> None:
    nodes = roles(4, node("n3", labels={"role": "cpu"}))
    on, off = sides(LEADERS, HOSTS, nodes, [created("w", 0, *group_of("cpu"))])
    assert (places(on), places(off)) == ([[("n3", 1)], [("n1", 1), ("n2", 1)]], None)


def test_a_leader_that_may_be_nowhere_lets_its_group_wait() -> None:
    on, off = sides(LEADERS, HOSTS, roles(5), [created("w", 0, *group_of("cpu"))])
    assert (places(on), places(off)) == (None, [[("n1", 1)], [("n1", 1), ("n2", 1)]])


def test_a_leader_shares_the_rack_of_workers_and_not_their_nodes() -> None:
    nodes = roles(4, node("n3", labels={"role": "cpu"}))
    on, _ = sides(LEADERS, RACKS, nodes, [created("w", 0, *group_of("cpu"))], gates={NODES: True})
    assert places(on) == [[("b1/r1", 1)], [("b1/r1", 2)]]


# Changes without a gate.


def with_and_without(change: str, *args: Any, **parts: Any) -> tuple[Json, Json]:
    made = world(*args, **parts)
    return {**made, "changes": {change: True}}, {**made, "changes": {change: False}}


def test_a_pod_set_of_which_no_pods_are_left_frees_its_node() -> None:
    first = created(
        "first", 0, pod_set(1, 4, required(HOST), name="driver"), pod_set(1, 4, required(HOST), name="worker")
    )
    done = {**first["object"], "status": {"reclaimablePods": [{"name": "driver", "count": 1}]}}
    events = [first, {"at": 5, "op": "update", "object": done}, created("w", 10, pod_set(1, 4, required(HOST)))]
    on, off = with_and_without("DonePodSetsLeaveNodes", HOSTS, THREE[:2], events, config={"maxCycles": 30})
    assert places(on) == [[("n1", 1)]]
    assert places(off) is None
    kept = {**on, "featureGates": {"ReclaimablePods": False}}
    assert places(kept) is None


def test_a_pod_set_of_which_some_pods_are_left_keeps_its_node() -> None:
    first = created("first", 0, pod_set(2, 2, required(HOST)))
    done = {**first["object"], "status": {"reclaimablePods": [{"name": "main", "count": 1}]}}
    events = [first, {"at": 5, "op": "update", "object": done}, created("w", 10, pod_set(1, 2, required(HOST)))]
    on, _ = with_and_without("DonePodSetsLeaveNodes", HOSTS, THREE[:1], events, config={"maxCycles": 30})
    assert places(on) is None


def test_flavors_with_the_same_nodes_see_what_a_cycle_places() -> None:
    events = [created(name, 0, pod_set(1, 3, required(HOST)), queue=name) for name in ("a", "b")]
    on, off = with_and_without(
        "CycleUsageReachesAllFlavors",
        HOSTS,
        THREE[:1],
        events,
        queues={"a": "one", "b": "two"},
        config={"maxCycles": 5},
    )
    assert [places(on, name) for name in ("a", "b")] == [[[("n1", 1)]], None]
    assert [places(off, name) for name in ("a", "b")] == [[[("n1", 1)]], [[("n1", 1)]]]


ELASTIC = {"kueue.x-k8s.io/elastic-job": "true"}


def test_a_slice_grows_where_its_predecessor_stands() -> None:
    request = {"unconstrained": True}
    old = created("old", 0, pod_set(2, 1, request), annotations=ELASTIC)
    replaces = {**ELASTIC, "kueue.x-k8s.io/workload-slice-replacement-for": "ns/old"}
    new = created("w", 5, pod_set(4, 1, request), annotations=replaces)
    gates = {"ElasticJobsViaWorkloadSlicesWithTAS": True}
    on, off = with_and_without(
        "ReplacedSliceLeavesNodes", HOSTS, THREE[:1], [old, new], gates=gates, config={"maxCycles": 30}
    )
    assert (places(on), places(off)) == ([[("n1", 4)]], None)
    other = created("other", 2, pod_set(1, 1, required(HOST)))
    full, _ = with_and_without(
        "ReplacedSliceLeavesNodes", HOSTS, THREE[:1], [old, other, new], gates=gates, config={"maxCycles": 30}
    )
    assert places(full) is None


def test_a_slice_grows_beside_its_leader() -> None:
    group = {"unconstrained": True, "podSetGroupName": "g"}

    def slice_of(name: str, at: int, count: int, **annotations: str) -> Json:
        sets = [pod_set(1, 1, group, name="leader"), pod_set(count, 1, group, name="worker")]
        return created(name, at, *sets, annotations={**ELASTIC, **annotations})

    old = slice_of("old", 0, 2)
    new = slice_of("w", 5, 3, **{"kueue.x-k8s.io/workload-slice-replacement-for": "ns/old"})
    gates = {"ElasticJobsViaWorkloadSlicesWithTAS": True}
    on, off = with_and_without("ReplacedSliceLeavesNodes", HOSTS, THREE[:1], [old, new], gates=gates)
    assert (places(on), places(off)) == ([[("n1", 1)], [("n1", 3)]], None)


REPLACES = {**ELASTIC, "kueue.x-k8s.io/workload-slice-replacement-for": "ns/old"}


@pytest.mark.parametrize(
    ("events", "gates", "found"),
    [
        ([], {}, [[("n1", 4)]]),
        # Somebody else is there as well.
        ([created("other", 2, pod_set(1, 1, required(HOST)))], {}, None),
        # What was there has gone, and somebody else has come.
        (
            [
                {"at": 2, "op": "delete", "kind": "Workload", "key": "ns/old"},
                created("other", 3, pod_set(1, 1, required(HOST))),
            ],
            {},
            None,
        ),
        # It has come back without quota, under another UID.
        (
            [
                {"at": 1, "op": "delete", "kind": "Workload", "key": "ns/old"},
                created("other", 2, pod_set(2, 1, required(HOST))),
                created("old", 3, pod_set(9, 1, {"unconstrained": True}), annotations=ELASTIC, uid="another"),
            ],
            {},
            None,
        ),
        ([], {"ElasticJobsViaWorkloadSlicesWithTAS": False}, None),
        ([], {"ElasticJobsViaWorkloadSlices": False, "ElasticJobsViaWorkloadSlicesWithTAS": False}, None),
    ],
    ids=["alone", "full", "released", "another UID", "gate of topology off", "gate of slices off"],
)
def test_only_the_replaced_slice_makes_room(events: list[Json], gates: dict[str, bool], found: Any) -> None:
    request = {"unconstrained": True}
    old = created("old", 0, pod_set(2, 1, request), annotations=ELASTIC)
    new = created("w", 5, pod_set(4, 1, request), annotations=REPLACES)
    on = {"ElasticJobsViaWorkloadSlicesWithTAS": True, **gates}
    case = world(HOSTS, THREE[:1], [old, *events, new], gates=on, config={"maxCycles": 30})
    assert places({**case, "changes": {"ReplacedSliceLeavesNodes": True}}) == found


def placed(sets: Json, *hosts: tuple[str, int]) -> Json:
    """Workload `w`, which has been admitted on these hosts."""
    counts, names = [count for _, count in hosts], [host for host, _ in hosts]
    assignment = {
        "levels": [HOST],
        "slices": [
            {
                "domainCount": len(hosts),
                "podCounts": {"individual": counts},
                "valuesPerLevel": [{"individual": {"roots": names}}],
            }
        ],
    }
    usage = {"flavors": {"cpu": "tas"}, "resourceUsage": {"cpu": str(sum(counts))}, "count": sum(counts)}
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind in ("QuotaReserved", "Admitted")
    ]
    admission = {
        "clusterQueue": "queue-a",
        "podSetAssignments": [{"name": "main", "topologyAssignment": assignment, **usage}],
    }
    event = created("w", 0, sets)
    event["object"]["status"] = {"admission": admission, "conditions": conditions}
    return event


def moved_to(case: Json) -> Any:
    """Where the pods are after a node was replaced; `None` if none was."""
    for cycle in played(case)["cycles"]:
        for found in cycle.get("assigned", ()):
            return list(domains(found["podSets"][0]["topologyAssignment"]))
    return None


def test_pods_that_no_domain_makes_a_slice_of_stay() -> None:
    """Neither 1 nor 3 pods of a rack and the 6 that are lost are whole slices of 4 (rules/08 §13.5)."""
    nodes = [*rack("r1", 4, 6), *rack("r2", 4), *rack("r3", 4)]
    before = placed(pod_set(10, 1, sliced(4, required=BLOCK)), ("r1-0", 1), ("r1-1", 6), ("r2-0", 3))
    lost = {"at": 10, "op": "delete", "kind": "Node", "key": "r1-1"}
    parts: Json = {"gates": {SLICES: False}, "config": {"maxCycles": 30}}
    on, off = with_and_without("LostDomainStopsReplacement", HOSTS, nodes, [before, lost], **parts)
    assert moved_to(on) is None
    assert says(on, "NodeFailures")
    assert moved_to(off) is not None


@pytest.mark.parametrize(
    ("lost", "to", "last"),
    # The last rack that has pods left takes over a tail of which none are.
    [("r1-0", "r1-2", "r3"), ("r3-0", "r2-1", "r2")],
    ids=["slice", "tail"],
)
def test_a_slice_is_made_whole_in_its_own_rack(lost: str, to: str, last: str) -> None:
    nodes = [*rack("r1", 3, 1, 3), *rack("r2", 4, 4), *rack("r3", 2, 2)]
    hosts = [("r1-0", 3), ("r1-1", 1), ("r2-0", 4), ("r3-0", 2)]
    before = placed(pod_set(10, 1, sliced(4, required=BLOCK)), *hosts)
    event = {"at": 10, "op": "delete", "kind": "Node", "key": lost}
    case = world(HOSTS, nodes, [before, event], gates={SLICES: True}, config={"maxCycles": 30})
    expected = sorted((to if host == lost else host, count) for host, count in hosts)
    found = moved_to(case)
    assert sorted(found) == expected
    assert found[-1][0].startswith(last)


def test_a_failed_node_is_known_by_its_hostname() -> None:
    nodes = [node("n1", labels={HOST: "x1"}), node("n2", labels={HOST: "x2"})]
    lost = {"at": 10, "op": "delete", "kind": "Node", "key": "n1"}
    events = [created("w", 0, pod_set(1, 3, required(HOST))), lost]
    on, off = with_and_without("FailuresByHostname", HOSTS, nodes, events)
    moved = [
        [entry["key"] for cycle in played(case)["cycles"] for entry in cycle.get("assigned", ())] for case in (on, off)
    ]
    assert moved == [["ns/w"], []]


def test_only_pods_of_the_workload_keep_a_node_from_failing_for_it() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "other", "namespace": "ns"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running"},
    }
    bad = node("n1")
    bad["status"]["conditions"][0] |= {"status": "False", "lastTransitionTime": "2026-01-01T00:00:10Z"}
    events = [created("w", 0, pod_set(1, 3, required(HOST))), {"at": 10, "op": "update", "object": bad}]
    on, off = with_and_without("OwnPodsProgress", HOSTS, THREE[:2], events, objects=[pod], config={"maxCycles": 100})
    moved = [
        [entry["key"] for cycle in played(case)["cycles"] for entry in cycle.get("assigned", ())] for case in (on, off)
    ]
    assert moved == [["ns/w"], []]


def test_a_node_has_only_the_workloads_of_its_flavors_retried() -> None:
    spare = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "spare"}}
    events = [
        created("big", 0, pod_set(1, 2000, None), queue="b"),
        {"at": 10, "op": "create", "object": node("n9")},
    ]
    on, off = with_and_without(
        "NodeChangesRetryTheirQueues",
        HOSTS,
        THREE[:1],
        events,
        queues={"a": "tas", "b": "spare"},
        objects=[{**spare, "spec": {}}],
        config={"maxCycles": 30},
    )
    assert played(on)["final"]["cycles"] < played(off)["final"]["cycles"]


# With all of it on.


@pytest.mark.parametrize(
    ("count", "request_", "found"),
    [
        (8, required(RACK), {"large": 8}),
        (4, required(RACK), {"small": 4}),
        (14, {"preferred": RACK}, {"large": 10, "small": 4}),
        (14, {"unconstrained": True}, {"large": 8, "small": 6}),
        (4, {"unconstrained": True}, {"small": 4}),
    ],
)
def test_slices_without_a_leader(count: int, request_: Json, found: dict[str, int]) -> None:
    nodes = [*rack("small", 6), *rack("large", 10)]
    case = world(HOSTS, nodes, [created("w", 0, pod_set(count, 1, sliced(2, **request_)))])
    placed = places({**case, "kueue": "v0.20.0"})
    assert placed is not None
    assert {host.partition("-")[0]: n for host, n in placed[0]} == found


def test_too_many_slices_without_a_leader() -> None:
    nodes = [*rack("small", 6), *rack("large", 10)]
    case = world(HOSTS, nodes, [created("w", 0, pod_set(18, 1, sliced(2, required=RACK)))])
    assert says({**case, "kueue": "v0.20.0"}, 'topology "default" allows to fit only 5 out of 9 slice(s)')


@pytest.mark.parametrize("levels", [RACKS, HOSTS], ids=["racks", "hosts"])
@pytest.mark.parametrize("is_balanced", [True, False])
def test_a_group_leaves_nothing_behind_for_the_next_workload(levels: tuple[str, ...], is_balanced: bool) -> None:
    """A leader that was placed before makes no difference to workers without one."""
    gates = {"TASBalancedPlacement": is_balanced}
    group = {"podSetGroupName": "g", "preferred": RACK}
    grouped = created("grouped", 0, pod_set(1, 1, group, name="leader"), pod_set(6, 1, group, name="worker"))
    nodes = [*rack("r1", 4), *rack("r2", 4)]
    alone = created("w", 20, pod_set(6, 1, {"preferred": RACK}))
    end = {"at": 10, "op": "delete", "kind": "Workload", "key": "ns/grouped"}
    first, then = (
        places({**world(levels, nodes, events, gates=gates), "kueue": "v0.20.0"})
        for events in ([alone], [grouped, end, alone])
    )
    assert first == then
    assert first is not None


def test_kueue_0_20_has_it_on() -> None:
    events = [created("w", 0, pod_set(1, 6, required()))]
    assert places({**world(RACKS, THREE, events), "kueue": "v0.20.0"}) is None
    assert places(world(RACKS, THREE, events)) == [[("b1/r1", 1)]]
