"""Workloads that hold quota before the engine sees them, and what their LocalQueue counts."""

from typing import Any

from kueuecore.objects import (
    Admission,
    Condition,
    ConditionStatus,
    PodSetAssignment,
    ReclaimablePod,
    WorkloadStatus,
)
from kueuecore.states import Stage
from tests.builders import (
    at,
    cluster_queue,
    local_queue,
    settle,
    stage,
    usage,
    workload,
    world,
)


def reserved(name: str, cpu: int, *, to: str = "cq", flavor_name: str = "default", **settings: Any) -> Any:
    """A workload that another Kueue admitted."""
    assignment = PodSetAssignment("main", flavors={"cpu": flavor_name}, resource_usage={"cpu": cpu}, count=1)
    conditions = [
        Condition(
            kind, status=ConditionStatus.TRUE, reason=kind, message=kind, last_transition_time="2026-01-01T00:00:00Z"
        )
        for kind in ("QuotaReserved", "Admitted")
    ]
    status = WorkloadStatus(
        conditions=conditions, admission=Admission(to, pod_set_assignments=[assignment]), **settings
    )
    return workload(name, cpu, status=status)


def test_reserved_workloads_charge_the_queue_that_their_admission_names() -> None:
    engine = world(cluster_queue("other"), reserved("w", 4, to="other"))
    assert (usage(engine), usage(engine, "other"), stage(engine, "w")) == ("0", "4", Stage.ADMITTED)
    assert engine.cluster_queue("other").admitted_workloads == 1


def test_reserved_workloads_wait_for_their_cluster_queue() -> None:
    engine = world(reserved("w", 4, to="later"))
    engine.apply([cluster_queue("later")], now=at(1))
    assert usage(engine, "later") == "4"


def test_a_reservation_of_a_flavor_that_nobody_declares_counts() -> None:
    engine = world(reserved("w", 4, flavor_name="gone"), workload("x", 10, created=1))
    assert usage(engine, flavor="gone") == "4"
    assert settle(engine, at(1)) == ["x"]
    engine.delete("Workload", "w", namespace="ns", now=at(2))
    assert usage(engine, flavor="gone") == "0"


def test_reclaimable_pods_of_a_reserved_workload_lower_its_usage() -> None:
    engine = world(reserved("w", 4, reclaimable_pods=[ReclaimablePod("main", count=1)]))
    assert usage(engine) == "0"


# Local queues, forks.


def test_status_of_a_local_queue_counts_its_own() -> None:
    engine = world(
        local_queue("other"), workload("a", 3), workload("b", 4, queue="other", created=1), workload("c", 9, created=2)
    )
    settle(engine, at(3))
    state = engine.local_queue("lq", namespace="ns")
    assert (state.pending_workloads, state.reserving_workloads, state.admitted_workloads) == (1, 1, 1)
    assert state.status["flavorsReservation"] == [{"name": "default", "resources": [{"name": "cpu", "total": "3"}]}]
