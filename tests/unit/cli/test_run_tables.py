"""What a run records beside its steps: preemptions, placements, losses of nodes."""

from __future__ import annotations

from typing import Any

from kueuecore import Run, VirtualCluster, simulate
from kueuecore.simulation import Domain, Happening, JobPlan, Operation, StepKind
from tests import topologies
from tests.topologies import BLOCK, HOST, NOW, RACK, flavor, namespace, pod_set, queue, topology, workload

Json = dict[str, Any]

POOL = {"pool": "tas"}


def node(name: str, *place: str, **arguments: Any) -> Json:
    made = topologies.node(name, *place, cpu=2, **arguments)
    made["metadata"]["labels"] |= POOL
    return made


PREEMPTS: Json = {"preemption": {"withinClusterQueue": "LowerPriority"}}
HOSTS: list[Json] = [topology(BLOCK, RACK, HOST), *(node(f"n{i}", "b", f"r{i % 2}") for i in range(4))]
GPU: Json = {"key": "gpu", "effect": "NoSchedule"}
RACKS: list[Json] = [topology(BLOCK, RACK), *HOSTS[1:]]


def world(nodes: list[Json]) -> list[Json]:
    return [namespace(), flavor(nodeLabels=POOL), *nodes, *queue(**PREEMPTS)]


def comes(name: str, at: float, *, pods: int = 1, priority: int = 0, level: str = HOST) -> Happening:
    made = workload(name, pod_set(count=pods, required=level), priority=priority)
    return Happening(at=at, op=Operation.CREATE, object=made, plan=JobPlan(run_seconds=100))


def placed(run: Run) -> list[tuple[int, str | None, str, int]]:
    """Seconds, workload, domain and pods."""
    return [
        ((time - run.start) // 10**9, run.workload_keys[number], str(run.domains[domain]), pods)
        for time, number, _, domain, pods in run.placement_table.tolist()
    ]


def changes(run: Run) -> list[tuple[int, str, bool]]:
    rows = run.node_table.tolist()
    return [((time - run.start) // 10**9, run.node_names[name], is_lost) for time, name, is_lost in rows]


def test_preemptions_name_victim_preemptor_and_reason() -> None:
    quota = [namespace(), flavor("main"), *queue(cpu=2, flavors=("main",), **PREEMPTS)]
    del quota[1]["spec"]["topologyName"]
    events = [
        Happening(
            at=at, op=Operation.CREATE, object=workload(name, pod_set(cpu=2), priority=n), plan=JobPlan(run_seconds=50)
        )
        for n, (name, at) in enumerate({"low": 0, "high": 10}.items())
    ]
    run = simulate(quota, events, now=NOW)
    (row,) = run.preemption_table
    assert (row["time"] - run.start, run.workload_keys[row["workload"]]) == (10 * 10**9, "ns/low")
    assert run.workload_keys[row["preemptor"]] == "ns/high"
    assert run.engine.names().reasons[row["reason"]] == "InClusterQueue"
    assert len(run.placement_table) == len(run.domains) == len(run.node_table) == 0


def test_placements_name_nodes_by_host_and_other_domains_by_their_path() -> None:
    events = [comes("one", 0, level=RACK), comes("rack", 5, pods=4, level=RACK)]
    run = simulate(world(HOSTS), events, now=NOW)
    (at, one, host, n), *rack = placed(run)
    assert (at, one, n) == (0, "ns/one", 1)
    assert [entry[:2] for entry in rack] == [(5, "ns/rack")] * 2
    assert sum(entry[3] for entry in rack) == 4
    assert host not in [entry[2] for entry in rack]
    assert all(domain.levels == (HOST,) for domain in run.domains)
    run = simulate(world(RACKS), events, now=NOW)
    assert [row[1:] for row in placed(run)] == [("ns/one", "b/r0", 1), ("ns/rack", "b/r1", 4)]
    assert run.domains == (Domain((BLOCK, RACK), ("b", "r0")), Domain((BLOCK, RACK), ("b", "r1")))


def test_a_lost_node_and_the_one_in_its_place_are_recorded() -> None:
    events = [
        comes("job", 0, pods=2),
        Happening(at=40, op=Operation.UPDATE, object=node("n0", "b", "r0", ready="False")),
        Happening(at=45, op=Operation.DELETE, kind="Node", key="n3"),
        Happening(at=60, op=Operation.UPDATE, object=HOSTS[1]),
        Happening(at=70, op=Operation.CREATE, object=HOSTS[4]),
    ]
    objects = [*world(HOSTS), node("sick", "b", "r0", ready="False"), node("gpu", "b", "r2", taints=[GPU])]
    run = simulate(objects, events, now=NOW)
    assert changes(run) == [(0, "sick", True), (40, "n0", True), (45, "n3", True), (60, "n0", False), (70, "n3", False)]
    (first, *after), (replaced, *_) = placed(run), [step for step in run.steps if step.kind is StepKind.REPLACED]
    assert first == (0, "ns/job", "n0", 2)
    assert [(at, name) for at, name, *_ in after] == [((replaced.time - run.start) // 10**9, "ns/job")]


def test_nodes_that_change_between_two_steps_are_recorded_too() -> None:
    cluster = VirtualCluster(world(HOSTS), now=NOW)
    cluster.apply(node("n1", "b", "r1", taints=[{"key": "down", "effect": "NoExecute"}]))
    assert changes(cluster.run()) == [(0, "n1", True)]
