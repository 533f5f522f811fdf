"""Nodes that fail in virtual time while Kueue waits for pods: those there are not ready."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import Configuration, VirtualCluster
from kueuecore.simulation import JobPlan, NodeLoss
from kueuecore.times import SECOND_NS
from tests.topologies import BLOCK, HOST, NOW, RACK, flavor, namespace, node, pod_set, queue, topology, workload

Json = dict[str, Any]


def host(name: str, *, ready: str = "True", **spec: Any) -> Json:
    made = node(name, "b1", "r1", cpu=1, ready=ready, **spec)
    made["metadata"]["labels"]["pool"] = "tas"
    return made


def tainted(name: str, *, ready: str = "True") -> Json:
    return host(name, ready=ready, taints=[{"key": "down", "effect": "NoExecute"}])


def cluster(*names: str, recovery: str = "10s") -> VirtualCluster:
    waits = {"timeout": "60s", "recoveryTimeout": recovery, "requeuingStrategy": {"backoffBaseSeconds": 5}}
    objects = [
        namespace(),
        topology(BLOCK, RACK, HOST),
        flavor(nodeLabels={"pool": "tas"}),
        *queue(),
        *map(host, names),
    ]
    return VirtualCluster(objects, configuration=Configuration.trusted({"waitForPodsReady": waits}), now=NOW)


def running(made: VirtualCluster, **job: Any) -> VirtualCluster:
    """The cluster 30 s after its job was submitted, which takes 60 s on nodes a and b."""
    made.submit(workload("w", pod_set(count=2, required=RACK)), JobPlan(run_seconds=60, **job))
    made.advance(made.start + 30 * SECOND_NS)
    return made


def at(made: VirtualCluster, seconds: int) -> VirtualCluster:
    made.advance(made.start + seconds * SECOND_NS)
    return made


def status_of(made: VirtualCluster) -> Json:
    workload: Any = made.workload("w", namespace="ns")
    status: Json = workload["status"]
    return status


def readiness(made: VirtualCluster) -> tuple[str, str, int]:
    """The condition PodsReady: status, reason, and since which second."""
    (found,) = (condition for condition in status_of(made)["conditions"] if condition["type"] == "PodsReady")
    minutes, seconds = found["lastTransitionTime"].rstrip("Z").split(":")[1:]
    return found["status"], found["reason"], int(minutes) * 60 + int(seconds)


def ended(made: VirtualCluster) -> list[tuple[int, str]]:
    return [((step.time - made.start) // SECOND_NS, str(step.kind)) for step in made.advance()]


def test_pods_on_a_node_that_is_not_ready_are_not_until_it_is_back() -> None:
    made = running(cluster("a", "b"), linger_seconds=20)
    made.apply(host("b", ready="Unknown"))
    assert readiness(at(made, 32)) == ("False", "WaitForRecovery", 30)
    made.apply(host("b"))
    assert readiness(at(made, 33)) == ("True", "Recovered", 32)
    assert ended(made) == [(60, "Finished")]


def test_a_job_whose_node_is_not_back_in_time_is_evicted_for_its_pods() -> None:
    made = running(cluster("a", "b"), linger_seconds=100)
    made.apply(host("b", ready="False"))
    at(made, 41)
    (evicted,) = status_of(made)["schedulingStats"]["evictions"]
    assert (evicted["reason"], evicted["underlyingCause"]) == ("PodsReadyTimeout", "WaitForRecovery")
    assert status_of(made)["requeueState"] == {"count": 1, "requeueAt": "2026-01-01T00:00:45Z"}
    made.apply(host("b"))
    assert ended(made) == [(45, "Admitted"), (105, "Finished")]


@pytest.mark.parametrize(("ready", "since"), [(None, 31), ([0, 0], 31), ([4], 35)])
def test_pods_that_replace_those_of_a_deleted_node_take_their_time(ready: list[float] | None, since: int) -> None:
    made = running(cluster("a", "b", "c"), ready_seconds=ready, node_loss=NodeLoss.RUNS_ON)
    made.delete("Node", "b")
    assert readiness(made)[:2] == ("False", "WaitForRecovery")
    assert readiness(at(made, 40)) == ("True", "Recovered", since)
    assert "schedulingStats" not in status_of(made)


def test_replacing_pods_that_take_too_long_are_given_up() -> None:
    made = running(cluster("a", "b", "c", recovery="3s"), ready_seconds=[4])
    made.delete("Node", "b")
    at(made, 40)
    (evicted,) = status_of(made)["schedulingStats"]["evictions"]
    assert (evicted["reason"], evicted["underlyingCause"]) == ("PodsReadyTimeout", "WaitForRecovery")


def test_pods_on_a_tainted_node_stay_ready_until_it_is_not() -> None:
    made = running(cluster("a", "b"), linger_seconds=100)
    made.apply(tainted("b"))
    assert readiness(at(made, 32))[:2] == ("True", "Started")
    made.apply(tainted("b", ready="False"))
    assert readiness(at(made, 34)) == ("False", "WaitForRecovery", 32)
    made.apply(tainted("b"))
    assert readiness(at(made, 36)) == ("True", "Recovered", 34)


def test_pods_that_were_to_be_ready_on_a_lost_node_are_once_it_is_back() -> None:
    made = cluster("a", "b")
    made.submit(
        workload("w", pod_set(count=2, required=RACK)), JobPlan(run_seconds=60, ready_seconds=[10], linger_seconds=100)
    )
    at(made, 5).apply(host("b", ready="False"))
    assert readiness(at(made, 15))[:2] == ("False", "WaitForStart")
    made.apply(host("b"), now=made.start + 20 * SECOND_NS)
    assert readiness(at(made, 25)) == ("True", "Started", 20)
    assert ended(made) == [(80, "Finished")]


def test_nothing_is_reported_where_kueue_does_not_wait_for_pods() -> None:
    objects = [
        namespace(),
        topology(BLOCK, RACK, HOST),
        flavor(nodeLabels={"pool": "tas"}),
        *queue(),
        host("a"),
        host("b"),
    ]
    made = running(VirtualCluster(objects, now=NOW), linger_seconds=100)
    made.apply(host("b", ready="False"))
    assert not any(condition["type"] == "PodsReady" for condition in status_of(at(made, 35))["conditions"])
    assert ended(made) == [(60, "Finished")]
