"""Nodes in virtual time: they come, fail, come back and go, and jobs run on, stand still, start over or are evicted."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import ManifestError, VirtualCluster, simulate
from kueuecore.simulation import Happening, JobPlan, NodeLoss, Operation, Step, StepKind
from kueuecore.times import SECOND_NS
from tests.topologies import BLOCK, HOST, NOW, RACK, flavor, namespace, node, pod_set, queue, topology, workload

Json = dict[str, Any]

FLAVOR = flavor(nodeLabels={"pool": "tas"})


def host(name: str, *, ready: str = "True", rack: str = "r1") -> Json:
    made = node(name, "b1", rack, cpu=1, ready=ready)
    made["metadata"]["labels"]["pool"] = "tas"
    return made


def cluster(*names: str) -> VirtualCluster:
    objects = [namespace(), topology(BLOCK, RACK, HOST), FLAVOR, *queue(), *map(host, names)]
    return VirtualCluster(objects, now=NOW)


def reported(made: VirtualCluster, steps: tuple[Step, ...]) -> list[tuple[float, StepKind]]:
    return [((step.time - made.start) / SECOND_NS, step.kind) for step in steps]


def status_of(made: VirtualCluster, name: str = "w") -> Any:
    return made.workload(name, namespace="ns")["status"]


def hosts(made: VirtualCluster, name: str = "w") -> list[str]:
    (assigned,) = status_of(made, name)["admission"]["podSetAssignments"]
    values = assigned["topologyAssignment"]["slices"][0]["valuesPerLevel"][0]
    if "universal" in values:
        return [values["universal"]]
    spread = values["individual"]
    return [f"{spread.get('prefix', '')}{root}{spread.get('suffix', '')}" for root in spread["roots"]]


def submitted(made: VirtualCluster, **job: Any) -> VirtualCluster:
    made.submit(workload("w", pod_set(count=2, required=RACK)), JobPlan(**job))
    return made


LOSSES = [(NodeLoss.RUNS_ON, 60.0), (NodeLoss.WAITS, 61.0), (NodeLoss.STARTS_OVER, 91.0)]


@pytest.mark.parametrize(("loss", "end"), LOSSES)
def test_a_job_whose_node_fails_gets_another_and_its_run_time_accounts_for_it(loss: NodeLoss, end: float) -> None:
    made = submitted(cluster("a", "b", "c"), run_seconds=60, node_loss=loss)
    made.advance(made.start + 30 * SECOND_NS)
    assert hosts(made) == ["a", "b"]
    made.apply(host("b", ready="False"))
    assert reported(made, made.advance()) == [(31.0, StepKind.REPLACED), (end, StepKind.FINISHED)]
    assert hosts(made) == ["a", "c"]
    assert int(made.run().outcome_table["replacements"][0]) == 1


def test_pods_linger_and_run_on_a_failed_node_until_they_are_gone() -> None:
    made = submitted(cluster("a", "b", "c"), run_seconds=60, linger_seconds=20, node_loss=NodeLoss.WAITS)
    made.advance(made.start + 30 * SECOND_NS)
    made.apply(host("b", ready="False"))
    # Gone at 50, replaced at 51.
    assert reported(made, made.advance()) == [(51.0, StepKind.REPLACED), (61.0, StepKind.FINISHED)]


def test_a_job_that_ends_while_its_pods_linger_loses_nothing() -> None:
    made = submitted(cluster("a", "b", "c"), run_seconds=60, linger_seconds=40, node_loss=NodeLoss.STARTS_OVER)
    made.advance(made.start + 30 * SECOND_NS)
    made.apply(host("b", ready="False"))
    assert reported(made, made.advance()) == [(60.0, StepKind.FINISHED)]


def test_a_node_that_comes_back_while_pods_linger_changes_nothing() -> None:
    made = submitted(cluster("a", "b", "c"), run_seconds=60, linger_seconds=40, node_loss=NodeLoss.STARTS_OVER)
    made.advance(made.start + 10 * SECOND_NS)
    made.apply(host("b", ready="False"))
    made.apply(host("b"), now=made.start + 20 * SECOND_NS)
    assert reported(made, made.advance()) == [(60.0, StepKind.FINISHED)]


def test_a_job_without_another_node_is_evicted_and_starts_over_when_one_comes() -> None:
    made = submitted(cluster("a", "b"), run_seconds=60, node_loss=NodeLoss.STARTS_OVER)
    made.advance(made.start + 30 * SECOND_NS)
    assert made.delete("Node", "b")
    seen = reported(made, made.advance(made.start + 100 * SECOND_NS))
    assert seen == [(31.0, StepKind.STOPPED)]
    made.apply(host("d"))
    seen = reported(made, made.advance())
    assert [kind for _, kind in seen] == [StepKind.ADMITTED, StepKind.FINISHED]
    assert seen[1][0] - seen[0][0] == 60
    evictions = status_of(made)["schedulingStats"]["evictions"]
    assert [(eviction["reason"], eviction["count"]) for eviction in evictions] == [("NodeFailures", 1)]


def test_events_let_nodes_come_fail_and_go() -> None:
    objects = [namespace(), topology(BLOCK, RACK, HOST), FLAVOR, *queue()]
    run = simulate(
        objects,
        [
            Happening(at=0, op=Operation.CREATE, object=workload("w", pod_set()), plan=JobPlan(run_seconds=100)),
            Happening(at=10, op=Operation.CREATE, object=host("a")),
            Happening(at=20, op=Operation.CREATE, object=host("b")),
            Happening(at=50, op=Operation.DELETE, kind="Node", key="a"),
            Happening(at=60, op=Operation.UPDATE, object=host("a")),
        ],
        now=NOW,
    )
    kinds = [(round((step.time - run.start) / SECOND_NS), step.kind) for step in run.steps]
    assert kinds[0] == (0, StepKind.CREATED)
    assert [kind for _, kind in kinds[1:]] == [StepKind.ADMITTED, StepKind.REPLACED, StepKind.FINISHED]
    assert kinds[2][0] == 51


def test_a_virtual_cluster_forgets_nodes_that_events_delete() -> None:
    made = cluster("a")
    made.schedule([Happening(at=5, op=Operation.DELETE, kind="Node", key="a")])
    made.schedule([Happening(at=6, op=Operation.UPDATE, object=host("a"))])
    made.advance()
    assert made.object("Node", "a") is None
    assert not made.delete("Node", "a")


def test_an_unknown_node_loss_is_refused() -> None:
    made = cluster("a")
    with pytest.raises(ValueError, match="NodeLoss"):
        made.submit(workload("w", pod_set()), JobPlan(node_loss="Sometimes"))  # type: ignore[arg-type]
    event = {"at": 0, "op": "create", "object": workload("w", pod_set()), "nodeLoss": "Sometimes"}
    with pytest.raises(ManifestError, match="nodeLoss: Invalid value: must be RunsOn, Waits or StartsOver"):
        made.schedule([event])
