"""Capacity that comes as nodes: a workload waits for its check, and then gets its place (rules/08 §11.2, §11.10)."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import VirtualCluster
from kueuecore.provisioning import (
    CapacityOutcome,
    CapacityRequest,
    CapacityWithNodes,
    QueuedCapacity,
    RequestCondition,
    ScriptedCapacity,
    Stock,
    VirtualProvisioning,
)
from kueuecore.simulation import JobPlan, StepKind
from kueuecore.times import SECOND_NS
from tests.topologies import BLOCK, HOST, NOW, RACK, flavor, kueue, namespace, node, pod_set, queue, topology, workload

Json = dict[str, Any]

CLASS = "queued-provisioning.gke.io"


def made_nodes(request: CapacityRequest) -> list[Json]:
    """A node for each pod, in a rack of their own."""
    n_pods = sum(pods.count for pods in request.pod_sets)
    return [_pooled(node(f"{request.name}-{index}", "b1", request.name)) for index in range(n_pods)]


def _pooled(made: Json) -> Json:
    made["metadata"]["labels"]["pool"] = "dws"
    return made


def cluster(capacity: CapacityWithNodes | ScriptedCapacity, *more: Json) -> VirtualCluster:
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "dws"}
    check = kueue("AdmissionCheck", "dws", controllerName="kueue.x-k8s.io/provisioning-request", parameters=parameters)
    config = kueue(
        "ProvisioningRequestConfig", "dws", provisioningClassName=CLASS, retryStrategy={"backoffLimitCount": 0}
    )
    strategy = {"admissionChecks": [{"name": "dws"}]}
    objects = [
        namespace(),
        topology(BLOCK, RACK, HOST),
        flavor(nodeLabels={"pool": "dws"}),
        check,
        config,
        *queue(admissionChecksStrategy=strategy),
        *more,
    ]
    return VirtualCluster(objects, now=NOW, checks=[VirtualProvisioning(capacity)])


def after(seconds: float, condition: RequestCondition = RequestCondition.PROVISIONED) -> CapacityOutcome:
    return CapacityOutcome(seconds, condition, "as the script says")


def scripted(*outcomes: CapacityOutcome) -> CapacityWithNodes:
    return CapacityWithNodes(ScriptedCapacity({CLASS: outcomes}), made_nodes)


def status(made: VirtualCluster, name: str = "w") -> Any:
    return made.workload(name, namespace="ns")["status"]


def pods_of(made: VirtualCluster, name: str = "w") -> Any:
    (assignment,) = status(made, name)["admission"]["podSetAssignments"]
    return assignment


def reported(made: VirtualCluster) -> list[tuple[float, StepKind]]:
    return [((step.time - made.start) / SECOND_NS, step.kind) for step in made.steps]


def test_a_workload_waits_for_its_capacity_and_gets_its_place_in_the_second_pass() -> None:
    made = cluster(scripted(after(300)))
    made.submit(workload("w", pod_set(count=2, required=RACK)), JobPlan(run_seconds=60))
    made.advance(made.start + 299 * SECOND_NS)
    assert pods_of(made)["delayedTopologyRequest"] == "Pending"
    assert "topologyAssignment" not in pods_of(made)
    made.advance(made.start + 310 * SECOND_NS)
    assert pods_of(made)["delayedTopologyRequest"] == "Ready"
    (placed,) = pods_of(made)["topologyAssignment"]["slices"]
    assert placed["domainCount"] == 2
    made.advance()
    assert reported(made) == [(0, StepKind.CREATED), (301, StepKind.ADMITTED), (361, StepKind.FINISHED)]


def test_nodes_go_with_the_request_of_a_job_that_was_evicted() -> None:
    made = cluster(scripted(after(10), after(100, RequestCondition.CAPACITY_REVOKED)))
    made.submit(workload("w", pod_set(count=1, required=RACK)), JobPlan(run_seconds=600))
    made.advance(made.start + 50 * SECOND_NS)
    assert made.object("Node", "w-dws-1-0") is not None
    made.advance(made.start + 101 * SECOND_NS)
    assert made.object("Node", "w-dws-1-0") is None
    assert [kind for _, kind in reported(made)][:2] == [StepKind.CREATED, StepKind.ADMITTED]


def test_nodes_go_with_a_workload_that_is_deleted() -> None:
    made = cluster(scripted(after(10)))
    made.submit(workload("w", pod_set(count=1, required=RACK)))
    made.advance(made.start + 50 * SECOND_NS)
    assert made.object("Node", "w-dws-1-0") is not None
    made.delete("Workload", "w", namespace="ns")
    made.advance()
    assert made.object("Node", "w-dws-1-0") is None


def test_a_delayed_workload_without_a_place_keeps_its_quota_and_tries_again() -> None:
    # Nobody brings nodes; somebody adds one later.
    made = cluster(ScriptedCapacity({CLASS: [after(10)]}))
    made.submit(workload("w", pod_set(count=1, required=RACK)), JobPlan(run_seconds=60))
    made.advance(made.start + 100 * SECOND_NS)
    assert [kind for _, kind in reported(made)] == [StepKind.CREATED]
    assert pods_of(made)["delayedTopologyRequest"] == "Pending"
    made.apply(_pooled(node("late", "b1", "r1")))
    made.advance(made.start + 140 * SECOND_NS)
    ((_, _), (admitted, kind)) = reported(made)
    assert kind is StepKind.ADMITTED
    # Attempts come 1, 3, 7, 15 and 31 seconds after the check was ready, and then every 30.
    assert 100 < admitted <= 131


@pytest.mark.parametrize("stock", [2, 4])
def test_orders_for_a_finite_stock_bring_nodes_one_after_the_other(stock: int) -> None:
    capacity = QueuedCapacity({"": Stock(amounts={"cpu": stock}, delay_seconds=30)})
    made = cluster(CapacityWithNodes(capacity, made_nodes))
    for name in ("a", "b"):
        made.submit(workload(name, pod_set(count=2, required=RACK)), JobPlan(run_seconds=100))
    made.advance()
    admitted = [round((step.time - made.start) / SECOND_NS) for step in made.steps if step.kind is StepKind.ADMITTED]
    assert admitted == ([31, 162] if stock == 2 else [31, 32])
    assert sum(step.kind is StepKind.FINISHED for step in made.steps) == 2
