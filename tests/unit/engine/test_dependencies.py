"""Queues, checks, namespaces and limits that workloads depend on."""

import pytest

from kueuecore.engine import Engine
from kueuecore.objects import (
    AdmissionCheck,
    AdmissionCheckRule,
    Condition,
    ConditionStatus,
    Container,
    LabelSelector,
    LimitRange,
    LimitRangeItem,
    Namespace,
    PodSet,
    PodTemplate,
    StopPolicy,
)
from kueuecore.states import Stage
from tests.builders import (
    admitted,
    at,
    cluster_queue,
    flavor,
    local_queue,
    settle,
    stage,
    usage,
    workload,
    world,
)


def test_a_cluster_queue_without_its_flavor_is_inactive() -> None:
    engine = world(workload("w"))
    assert engine.delete("ResourceFlavor", "default", now=at(1))
    state = engine.cluster_queue("cq")
    assert (state.is_active, state.reason) == (False, "FlavorNotFound")
    assert state.message == "Can't admit new workloads: references missing ResourceFlavor(s): default."
    assert engine.cycle(at(2)).cycle == 0
    engine.apply([flavor()], now=at(3))
    assert engine.cluster_queue("cq").message == "Can admit new workloads"
    assert admitted(engine.cycle(at(4))) == ["w"]


def test_a_cluster_queue_without_its_check_is_inactive_until_the_check_is() -> None:
    engine = world(cluster_queue(admission_checks=[AdmissionCheckRule("prov")]), workload("w"))
    assert engine.cluster_queue("cq").message == (
        "Can't admit new workloads: references missing AdmissionCheck(s): prov."
    )
    check = AdmissionCheck("prov", controller_name="x")
    engine.apply([check], now=at(1))
    assert engine.cluster_queue("cq").reason == "AdmissionCheckInactive"
    active = Condition("Active", status=ConditionStatus.TRUE, reason="Active")
    engine.apply([AdmissionCheck("prov", controller_name="x", conditions=[active])], now=at(2), trusted=True)
    assert engine.cluster_queue("cq").is_active
    (admission,) = engine.cycle(at(3)).admissions
    assert admission.is_admitted is False
    assert stage(engine, "w") is Stage.QUOTA_RESERVED


@pytest.mark.parametrize("policy", [StopPolicy.HOLD, StopPolicy.HOLD_AND_DRAIN])
def test_a_stopped_cluster_queue_admits_nothing_until_it_runs_again(policy: StopPolicy) -> None:
    engine = world(cluster_queue(stop_policy=policy), workload("w"))
    assert engine.cluster_queue("cq").message == "Can't admit new workloads: is stopped."
    assert engine.cycle(at(1)).cycle == 0
    assert engine.cluster_queue("cq").pending_workloads == 1, "it keeps its queue"
    engine.apply([cluster_queue()], now=at(2))
    assert admitted(engine.cycle(at(3))) == ["w"]


def test_a_stopped_local_queue_leaves_its_workloads_out_until_it_runs_again() -> None:
    engine = world(workload("w"))
    engine.apply([local_queue(stop_policy=StopPolicy.HOLD)], now=at(1))
    assert engine.cycle(at(2)).cycle == 0
    assert engine.cluster_queue("cq").pending_workloads == 0
    assert engine.workload("w", namespace="ns").place is None
    engine.apply([local_queue()], now=at(3))
    assert admitted(engine.cycle(at(4))) == ["w"]


def test_a_deleted_local_queue_takes_its_pending_workloads_along() -> None:
    engine = world(workload("w"))
    assert engine.delete("LocalQueue", "lq", namespace="ns", now=at(1))
    assert (engine.cycle(at(1)).cycle, engine.cluster_queue("cq").pending_workloads) == (0, 0)
    engine.apply([local_queue()], now=at(2))
    assert admitted(engine.cycle(at(3))) == ["w"]


def test_a_cluster_queue_that_comes_back_finds_its_workloads() -> None:
    engine = world(workload("runs", 4), workload("waits", 9, created=1))
    assert settle(engine, at(1)) == ["runs"]
    assert engine.delete("ClusterQueue", "cq", now=at(2))
    assert (engine.cluster_queues(), engine.quota(), engine.cycle(at(2)).cycle) == ((), (), 0)
    engine.apply([cluster_queue(cpu=13)], now=at(3))
    assert usage(engine) == "4"
    assert settle(engine, at(4)) == ["waits"]


def test_relabelling_a_namespace_opens_a_queue_to_it() -> None:
    engine = world(cluster_queue(namespace_selector=LabelSelector({"team": "a"})), workload("w"))
    (pending,) = engine.cycle(at(1)).pending
    assert (pending.reason, pending.is_parked) == ("Misconfigured", True)
    engine.apply([Namespace("ns", labels={"team": "b"})], now=at(2))
    assert engine.cycle(at(2)).cycle == 0
    engine.apply([Namespace("ns", labels={"team": "a"})], now=at(3))
    assert admitted(engine.cycle(at(4))) == ["w"]


def test_a_workload_of_a_missing_namespace_says_so() -> None:
    engine = world(workload("w"))
    engine.delete("Namespace", "ns", now=at(1))
    (pending,) = engine.cycle(at(1)).pending
    assert pending.reason == "Misconfigured"
    assert pending.message.startswith('workload namespace "ns" does not exist: ')


def test_objects_may_come_in_any_order_one_by_one() -> None:
    engine = Engine()
    for thing in (workload("w", 3), local_queue(), cluster_queue(), flavor(), Namespace("ns")):
        engine.apply([thing], now=at(0))
    assert admitted(engine.cycle(at(1))) == ["w"]


def test_requests_above_limits_are_reported() -> None:
    pod_set = PodSet(template=PodTemplate([Container("c", requests={"cpu": 2}, limits={"cpu": 1})]))
    engine = world(workload("w", pod_sets=[pod_set]))
    (pending,) = engine.cycle(at(1)).pending
    assert pending.message == (
        "resources validation failed: spec.podSets[0].template.spec.containers[0]: "
        'Invalid value: ["cpu"]: requests must not exceed its limits'
    )


def test_limit_ranges_fill_in_and_refuse() -> None:
    items = [LimitRangeItem("Container", default_request={"cpu": "2"}, max={"cpu": "3"})]
    limits = LimitRange("limits", namespace="ns", limits=items)
    big = PodSet(template=PodTemplate([Container("c", requests={"cpu": "4"}, limits={"cpu": "4"})]))
    engine = world(limits, workload("plain", pod_sets=[PodSet()]), workload("big", pod_sets=[big], created=1))
    decision = engine.cycle(at(1))
    assert dict(decision.admissions[0].pod_sets[0].resource_usage) == {"cpu": "2"}
    (pending,) = engine.cycle(at(2)).pending
    assert pending.message == (
        "resources didn't satisfy LimitRange constraints: spec.podSets[0].template.spec.containers[0]: "
        'Invalid value: ["cpu"]: requests must not be above the limitRange max'
    )


@pytest.mark.parametrize("limits_first", [True, False])
def test_limits_that_changed_while_a_workload_ran_count_once_it_is_pending_again(limits_first: bool) -> None:
    items = [LimitRangeItem("Container", default_request={"cpu": "2"})]
    limits = LimitRange("limits", namespace="ns", limits=items)
    engine = world(workload("w", pod_sets=[PodSet()]), *([limits] if limits_first else []))
    engine.cycle(at(1))
    engine.apply([limits], now=at(2))
    engine.evict("w", namespace="ns", now=at(3))
    (admission,) = engine.cycle(at(4)).admissions
    assert dict(admission.pod_sets[0].resource_usage) == {"cpu": "2"}
