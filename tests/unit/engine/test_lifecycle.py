"""A workload in an engine, from its creation to its end."""

import pytest

from kueuecore.errors import UnknownObjectError
from kueuecore.states import Stage
from tests.builders import (
    admitted,
    at,
    condition,
    settle,
    stage,
    usage,
    workload,
    world,
)


def test_a_workload_that_fits_is_admitted() -> None:
    engine = world(workload("w", 2, count=3))
    assert engine.has_heads
    decision = engine.cycle(at(5))
    (admission,) = decision.admissions
    assert (admission.key, admission.cluster_queue, admission.is_admitted) == ("ns/w", "cq", True)
    (pod_set,) = admission.pod_sets
    assert (pod_set.name, pod_set.count, pod_set.flavors, pod_set.resource_usage) == (
        "main",
        3,
        {"cpu": "default"},
        {"cpu": "6"},
    )
    assert [(e.type, e.reason, e.message) for e in decision.events] == [
        ("Normal", "QuotaReserved", "Quota reserved in ClusterQueue cq, wait time since queued was 5s"),
        ("Normal", "Admitted", "Admitted by ClusterQueue cq, wait time since reservation was 0s"),
    ]
    assert condition(engine, "w", "QuotaReserved") == ("True", "QuotaReserved", "Quota reserved in ClusterQueue cq")
    assert condition(engine, "w", "Admitted") == ("True", "Admitted", "The workload is admitted")
    assert (stage(engine, "w"), usage(engine), engine.has_heads) == (Stage.ADMITTED, "6", False)
    status = engine.cluster_queue("cq")
    assert (status.pending_workloads, status.reserving_workloads, status.admitted_workloads) == (0, 1, 1)


def test_a_workload_that_never_fits_is_parked_with_a_reason() -> None:
    engine = world(workload("w", 11))
    decision = engine.cycle(at(1))
    (pending,) = decision.pending
    message = (
        "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, "
        "previously considered podsets requests (0) + current podset request (11) > maximum capacity (10)"
    )
    assert (pending.key, pending.reason, pending.message, pending.is_parked) == (
        "ns/w",
        "ExceedsMaxQuota",
        message,
        True,
    )
    assert condition(engine, "w", "QuotaReserved") == ("False", "ExceedsMaxQuota", message)
    assert [(e.type, e.reason, e.message) for e in decision.events] == [("Warning", "ExceedsMaxQuota", message)]
    assert engine.workload("w", namespace="ns").place == "inadmissible"
    assert engine.cycle(at(2)).cycle == 0, "nothing is left to try"


def test_a_workload_that_does_not_fit_now_waits_for_quota() -> None:
    engine = world(workload("first", 8), workload("second", 3, created=1))
    assert settle(engine, at(1)) == ["first"]
    status, reason, message = condition(engine, "second", "QuotaReserved") or ("", "", "")
    assert (status, reason) == ("False", "WaitingForQuota")
    assert message == (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed"
    )


def test_quota_of_a_finished_workload_goes_to_the_next() -> None:
    engine = world(workload("first", 8), workload("second", 8, created=1))
    assert settle(engine, at(1)) == ["first"]
    assert engine.finish("first", namespace="ns", now=at(2)) is True
    assert engine.finish("first", namespace="ns", now=at(2)) is False
    assert condition(engine, "first", "Finished") == ("True", "Succeeded", "Job finished successfully")
    assert settle(engine, at(3)) == ["second"]
    assert stage(engine, "first") is Stage.FINISHED
    assert usage(engine) == "8"


def test_a_deleted_workload_frees_its_quota() -> None:
    engine = world(workload("first", 8), workload("second", 8, created=1))
    settle(engine, at(1))
    assert engine.delete("Workload", "first", namespace="ns", now=at(2)) is True
    assert engine.delete("Workload", "first", namespace="ns", now=at(2)) is False
    assert settle(engine, at(3)) == ["second"]
    with pytest.raises(UnknownObjectError, match='there is no Workload "ns/first"'):
        engine.workload("first", namespace="ns")


def test_an_evicted_workload_holds_its_quota_until_it_has_stopped() -> None:
    engine = world(workload("w", 8))
    engine.cycle(at(1))
    assert engine.evict("w", namespace="ns", now=at(2), message="make room", stopped=False) is True
    assert condition(engine, "w", "Evicted") == ("True", "Preempted", "make room")
    assert (usage(engine), stage(engine, "w")) == ("8", Stage.ADMITTED)
    assert engine.release("w", namespace="ns", now=at(3)) is True
    assert (usage(engine), stage(engine, "w")) == ("0", Stage.PENDING)
    assert engine.release("w", namespace="ns", now=at(3)) is False
    assert admitted(engine.cycle(at(4))) == ["w"]
    assert condition(engine, "w", "Evicted") == ("False", "QuotaReserved", "Previously: make room")


def test_a_forgotten_reservation_leaves_no_trace() -> None:
    engine = world(workload("w", 8))
    before = engine.workload("w", namespace="ns").status
    engine.cycle(at(1))
    assert engine.forget("w", namespace="ns", now=at(2)) is True
    assert engine.workload("w", namespace="ns").status == before
    assert (usage(engine), engine.cluster_queue("cq").pending_workloads) == ("0", 1)
    assert engine.forget("w", namespace="ns", now=at(2)) is False
    assert admitted(engine.cycle(at(3))) == ["w"]


def test_a_reservation_of_an_older_cycle_cannot_be_forgotten() -> None:
    engine = world(workload("w", 2), workload("x", 2, created=1))
    engine.cycle(at(1))
    engine.cycle(at(2))
    assert engine.forget("w", namespace="ns", now=at(3)) is False
    assert usage(engine) == "4"


def test_a_workload_that_is_gone_is_forgotten_and_not_queued_again() -> None:
    engine = world(workload("w", 8))
    engine.cycle(at(1))
    assert engine.forget("w", namespace="ns", now=at(2), gone=True) is True
    assert engine.cycle(at(2)).cycle == 0
    assert usage(engine) == "0"
