"""What an engine does with objects, cycle by cycle."""

from typing import Any

import pytest

from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, UnknownObjectError
from kueuecore.objects import (
    Admission,
    AdmissionCheck,
    AdmissionCheckRule,
    Cohort,
    Condition,
    ConditionStatus,
    Container,
    FlavorFungibility,
    FlavorFungibilityPolicy,
    LabelSelector,
    LimitRange,
    LimitRangeItem,
    Namespace,
    PodSet,
    PodSetAssignment,
    PodTemplate,
    PriorityClassRef,
    QueueingStrategy,
    ReclaimablePod,
    StopPolicy,
    Taint,
    TaintEffect,
    WorkloadPriorityClass,
    WorkloadStatus,
)
from kueuecore.states import Stage
from tests.builders import (
    admitted,
    at,
    cluster_queue,
    condition,
    flavor,
    group,
    local_queue,
    quota,
    settle,
    snapshot,
    usage,
    workload,
    world,
)


def stage(engine: Engine, name: str) -> Stage:
    return engine.workload(name, namespace="ns").stage


# One workload from its creation to its end.


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


def test_a_workload_that_never_fits_says_so_and_is_parked() -> None:
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


def test_a_gone_workload_is_not_queued_again_when_forgotten() -> None:
    engine = world(workload("w", 8))
    engine.cycle(at(1))
    assert engine.forget("w", namespace="ns", now=at(2), gone=True) is True
    assert engine.cycle(at(2)).cycle == 0
    assert usage(engine) == "0"


@pytest.mark.parametrize("call", ["finish", "evict", "release", "forget"])
def test_calls_about_an_unknown_workload_are_errors(call: str) -> None:
    engine = world()
    with pytest.raises(UnknownObjectError, match='there is no Workload "ns/nobody"'):
        getattr(engine, call)("nobody", namespace="ns", now=at(1))


def test_asking_about_an_unknown_queue_is_an_error() -> None:
    engine = world(empty=True)
    for ask in (
        lambda: engine.cluster_queue("x"),
        lambda: engine.pending("x"),
        lambda: engine.local_queue("x", namespace="ns"),
    ):
        with pytest.raises(UnknownObjectError, match='Queue "'):
            ask()


def test_deleting_a_kind_that_is_not_kept_lists_those_that_are() -> None:
    with pytest.raises(ValueError, match='"PriorityClass" are not kept; supported: Namespace, ResourceFlavor'):
        world().delete("PriorityClass", "p", now=at(1))


# Order.


def test_higher_priority_goes_first_then_the_older_then_the_smaller_uid() -> None:
    engine = world(
        workload("young", created=9),
        workload("old", created=1),
        workload("b", created=5, uid="b"),
        workload("a", created=5, uid="a"),
        workload("urgent", created=20, priority=5),
        workload("lazy", created=0, priority=-5),
    )
    expected = ["urgent", "old", "a", "b", "young", "lazy"]
    assert [w.name for w in engine.pending("cq")] == expected
    assert [w.position_in_cluster_queue for w in engine.pending("cq")] == list(range(6))
    assert settle(engine, at(30)) == expected


def test_positions_count_within_each_local_queue() -> None:
    engine = world(
        local_queue("other"),
        workload("a", created=1),
        workload("b", created=2, queue="other"),
        workload("c", created=3),
    )
    assert [(w.name, w.local_queue, w.position_in_local_queue) for w in engine.pending("cq")] == [
        ("a", "lq", 0),
        ("b", "other", 0),
        ("c", "lq", 1),
    ]


def test_one_head_of_each_cluster_queue_is_tried_in_a_cycle() -> None:
    engine = world(
        cluster_queue("x", cohort="team"),
        cluster_queue("y", cohort="team"),
        local_queue("to-x", "x"),
        local_queue("to-y", "y"),
        workload("x1", queue="to-x", created=1),
        workload("x2", queue="to-x", created=2),
        workload("y1", queue="to-y", created=0),
    )
    assert admitted(engine.cycle(at(5))) == ["y1", "x1"]
    assert admitted(engine.cycle(at(6))) == ["x2"]


def test_heads_that_borrow_come_after_those_that_do_not() -> None:
    engine = world(
        cluster_queue("x", 4, cohort="team"),
        cluster_queue("y", 4, cohort="team"),
        local_queue("to-x", "x"),
        local_queue("to-y", "y"),
        workload("borrows", 6, queue="to-x", created=1, priority=100),
        workload("keeps", 3, queue="to-y", created=2),
    )
    decision = engine.cycle(at(5))
    assert admitted(decision) == ["keeps"]
    (pending,) = decision.pending
    assert (pending.name, pending.message, pending.reason) == (
        "borrows",
        "Workload no longer fits after processing another workload",
        "WaitingForQuota",
    )
    assert pending.is_parked is False, "it is tried again at once"


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [(QueueingStrategy.STRICT_FIFO, []), (QueueingStrategy.BEST_EFFORT_FIFO, ["small"])],
)
def test_a_head_that_does_not_fit_blocks_only_a_strict_queue(strategy: QueueingStrategy, expected: list[str]) -> None:
    engine = world(
        cluster_queue(queueing_strategy=strategy),
        workload("big", 11, created=1),
        workload("small", 1, created=2),
    )
    names = [name for cycle in range(4) for name in admitted(engine.cycle(at(5 + cycle)))]
    assert names == expected


def test_a_strict_queue_is_not_blocked_by_a_workload_of_a_foreign_namespace() -> None:
    engine = world(
        Namespace("ns", labels={"team": "a"}),
        Namespace("foreign"),
        cluster_queue(queueing_strategy=QueueingStrategy.STRICT_FIFO, namespace_selector=LabelSelector({"team": "a"})),
        workload("mine", created=2),
    )
    foreign: dict[str, Any] = dict(workload("theirs", created=1).to_manifest())
    foreign["metadata"] = {**foreign["metadata"], "namespace": "foreign"}
    queue: dict[str, Any] = {**local_queue().to_manifest(), "metadata": {"name": "lq", "namespace": "foreign"}}
    engine.apply([queue, foreign], now=at(0))
    first = engine.cycle(at(5))
    assert [(p.key, p.reason, p.message) for p in first.pending] == [
        ("foreign/theirs", "Misconfigured", "workload namespace doesn't match ClusterQueue selector")
    ]
    assert admitted(engine.cycle(at(6))) == ["mine"]


def test_equal_workloads_are_parked_with_the_one_that_failed() -> None:
    engine = world(*(workload(f"w{i}", 11, created=i) for i in range(4)), workload("other", 12, created=9))
    decision = engine.cycle(at(10))
    assert [p.name for p in decision.pending] == ["w0"]
    assert decision.parked == ("ns/w1", "ns/w2", "ns/w3")
    assert [w.place for w in engine.pending("cq")] == ["inadmissible"] * 4 + ["active"]
    engine.apply([workload("late", 11, created=20)], now=at(11))
    assert engine.workload("late", namespace="ns").place == "inadmissible", "the mark holds for those that come later"
    engine.apply([workload("urgent", 11, created=21, priority=1)], now=at(11))
    assert engine.workload("urgent", namespace="ns").place == "active", "another priority is another shape"


def test_equal_workloads_are_each_tried_without_the_gate() -> None:
    off = Configuration.parse(
        "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration,"
        " featureGates: {SchedulingEquivalenceHashing: false}}"
    )
    engine = world(*(workload(f"w{i}", 11, created=i) for i in range(3)), configuration=off)
    decision = engine.cycle(at(10))
    assert (decision.parked, [p.name for p in decision.pending]) == ((), ["w0"])
    assert [p.name for p in engine.cycle(at(11)).pending] == ["w1"]


# Quota.


def test_idle_quota_of_the_cohort_is_borrowed_up_to_the_limit() -> None:
    engine = world(
        cluster_queue("cq", cohort="team", quotas={"default": quota(10, borrowing=5)}),
        cluster_queue("idle", cohort="team"),
        workload("w", 15),
        workload("x", 1, created=1),
    )
    assert settle(engine, at(1)) == ["w"]
    rows = {row.name: row for row in engine.quota()}
    assert (rows["cq"].usage, rows["cq"].borrowed, rows["cq"].available) == ("15", "5", "0")
    assert (rows["team"].subtree_quota, rows["team"].usage, rows["idle"].available) == ("20", "15", "5")
    assert engine.cluster_queue("cq").status["flavorsReservation"] == [
        {"name": "default", "resources": [{"name": "cpu", "total": "15", "borrowed": "5"}]}
    ]


def test_quota_beyond_the_lending_limit_is_not_lent() -> None:
    engine = world(
        cluster_queue("cq", 0, cohort="team"),
        cluster_queue("home", cohort="team", quotas={"default": quota(10, lending=3)}),
        workload("big", 4),
        workload("small", 3, created=1),
    )
    assert settle(engine, at(1)) == ["small"]
    status, reason, _ = condition(engine, "big", "QuotaReserved") or ("", "", "")
    assert (status, reason) == ("False", "ExceedsMaxQuota")


def test_more_quota_brings_parked_workloads_back() -> None:
    engine = world(workload("w", 12))
    assert settle(engine, at(1)) == []
    engine.apply([cluster_queue(cpu=12)], now=at(2))
    assert settle(engine, at(3)) == ["w"]


def test_quota_of_a_cohort_brings_parked_workloads_of_its_queues_back() -> None:
    engine = world(cluster_queue(cohort="team"), workload("w", 12))
    assert settle(engine, at(1)) == []
    engine.apply([Cohort("team", resource_groups=[group({"default": quota(2)})])], now=at(2))
    assert settle(engine, at(3)) == ["w"]
    assert engine.delete("Cohort", "team", now=at(4))
    assert [(r.name, r.subtree_quota) for r in engine.quota()] == [("cq", "10"), ("team", "10")]


def test_a_cluster_queue_takes_its_quota_and_usage_to_another_cohort() -> None:
    engine = world(
        cluster_queue(cohort="left"),
        cluster_queue("stays", 5, cohort="left"),
        cluster_queue("there", 7, cohort="right"),
        local_queue("to-stays", "stays"),
        local_queue("to-there", "there"),
        workload("w", 4),
        workload("parked", 14, queue="to-there"),
    )
    assert settle(engine, at(1)) == ["w"]
    engine.apply([cluster_queue(cohort="right")], now=at(2))
    cohorts = {r.name: (r.subtree_quota, r.usage) for r in engine.quota() if r.kind == "Cohort"}
    assert cohorts == {"left": ("5", "0"), "right": ("17", "4")}
    assert settle(engine, at(3)) == []
    engine.finish("w", namespace="ns", now=at(4))
    assert settle(engine, at(5)) == ["parked"]


def test_less_quota_than_is_used_takes_nothing_back() -> None:
    engine = world(workload("w", 8))
    settle(engine, at(1))
    engine.apply([cluster_queue(cpu=3)], now=at(2))
    assert (stage(engine, "w"), usage(engine)) == (Stage.ADMITTED, "8")
    (row,) = engine.quota()
    assert (row.available, row.potential_available) == ("0", "3")


def test_reclaimed_pods_give_their_part_back() -> None:
    engine = world(workload("w", 2, count=5), workload("next", 4, created=1))
    assert settle(engine, at(1)) == ["w"]
    manifest: dict[str, Any] = dict(workload("w", 2, count=5).to_manifest())
    manifest["status"] = {
        **engine.workload("w", namespace="ns").status,
        "reclaimablePods": [{"name": "main", "count": 2}],
    }
    engine.apply(manifest, now=at(2))
    assert usage(engine) == "6"
    assert settle(engine, at(3)) == ["next"]


# What queues depend on.


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


def test_a_workload_in_a_missing_namespace_says_so() -> None:
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


# Flavors.


def two_flavors(**settings: Any) -> Any:
    quotas = {"first": quota(4), "second": quota(4)}
    return cluster_queue(quotas=quotas, **settings)


def test_the_next_flavor_is_taken_when_the_first_is_full() -> None:
    engine = world(
        flavor("first"), flavor("second"), two_flavors(), *(workload(f"w{i}", 3, created=i) for i in range(3))
    )
    assert settle(engine, at(5)) == ["w0", "w1"]
    assert engine.workload("w0", namespace="ns").flavors == {"main": {"cpu": "first"}}
    assert engine.workload("w1", namespace="ns").flavors == {"main": {"cpu": "second"}}
    (_, reason, message) = condition(engine, "w2", "QuotaReserved") or ("", "", "")
    assert reason == "WaitingForQuota"
    assert message == (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor first, 2 more needed, "
        "insufficient unused quota for cpu in flavor second, 2 more needed"
    )


def test_a_tainted_flavor_is_for_those_that_tolerate_it() -> None:
    tainted = flavor("first", node_taints=[Taint("spot", value="yes", effect=TaintEffect.NO_SCHEDULE)])
    engine = world(tainted, flavor("second"), two_flavors(), workload("w", 3), workload("x", 5, created=1))
    decision = engine.cycle(at(1))
    assert engine.workload("w", namespace="ns").flavors == {"main": {"cpu": "second"}}
    assert "untolerated taint {spot yes NoSchedule <nil>} in flavor first" in decision.events[0].message
    (pending,) = engine.cycle(at(2)).pending
    assert pending.reason == "ExceedsMaxQuota"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [(FlavorFungibilityPolicy.MAY_STOP_SEARCH, "first"), (FlavorFungibilityPolicy.TRY_NEXT_FLAVOR, "second")],
)
def test_fungibility_decides_between_borrowing_and_the_next_flavor(
    policy: FlavorFungibilityPolicy, expected: str
) -> None:
    engine = world(
        flavor("first"),
        flavor("second"),
        cluster_queue(
            quotas={"first": quota(1), "second": quota(4)},
            cohort="team",
            flavor_fungibility=FlavorFungibility(when_can_borrow=policy),
        ),
        cluster_queue("lender", cohort="team", quotas={"first": quota(4), "second": quota(4)}),
        workload("w", 3),
    )
    engine.cycle(at(1))
    assert engine.workload("w", namespace="ns").flavors == {"main": {"cpu": expected}}


def test_an_uncovered_resource_is_refused_by_name() -> None:
    engine = world(workload("w", pod_sets=[PodSet(requests={"cpu": 1, "example.com/gpu": 1})]))
    (pending,) = engine.cycle(at(1)).pending
    assert pending.message == (
        "couldn't assign flavors to pod set main: resource example.com/gpu unavailable in ClusterQueue"
    )
    assert pending.reason == "NoMatchingFlavor"


# Partial admission.


@pytest.mark.parametrize(("cpu", "count"), [(10, 10), (7, 7), (3, 3)])
def test_the_largest_count_that_fits_is_admitted(cpu: int, count: int) -> None:
    engine = world(cluster_queue(cpu=cpu), workload("w", 1, count=10, min_count=3))
    (admission,) = engine.cycle(at(1)).admissions
    assert (admission.pod_sets[0].count, dict(admission.pod_sets[0].resource_usage)) == (count, {"cpu": str(count)})
    assert usage(engine) == str(count)


def test_fewer_than_the_least_count_are_not_admitted() -> None:
    engine = world(cluster_queue(cpu=2), workload("w", 1, count=10, min_count=3))
    (pending,) = engine.cycle(at(1)).pending
    assert "current podset request (10) > maximum capacity (2)" in pending.message


def test_without_the_gate_the_least_count_is_dropped() -> None:
    off = Configuration.parse(
        "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, featureGates: {PartialAdmission: false}}"
    )
    engine = world(cluster_queue(cpu=7), workload("w", 1, count=10, min_count=3), configuration=off)
    assert engine.cycle(at(1)).admissions == ()


# Updates of workloads.


def test_a_changed_workload_leaves_the_parked_ones() -> None:
    engine = world(workload("w", 11))
    assert settle(engine, at(1)) == []
    engine.apply([workload("w", 9)], now=at(2))
    assert engine.workload("w", namespace="ns").place == "active"
    assert settle(engine, at(3)) == ["w"]


def test_applying_the_same_again_changes_nothing() -> None:
    things = [workload("w", 11), workload("x", 1, created=1), cluster_queue(), local_queue(), flavor(), Namespace("ns")]
    engine = world(*things)
    settle(engine, at(1))
    before = snapshot(engine)
    engine.apply(things, now=at(1))
    assert snapshot(engine) == before
    assert engine.cycle(at(2)).cycle == 0


def test_an_inactive_workload_is_not_queued() -> None:
    engine = world(workload("w", active=False))
    assert engine.cycle(at(0)).cycle == 0
    engine.apply([workload("w")], now=at(1))
    assert admitted(engine.cycle(at(2))) == ["w"]
    engine.apply([workload("w", active=False)], now=at(3))
    assert usage(engine) == "0", "what an inactive workload holds does not count"


def test_editing_a_priority_class_moves_its_workloads() -> None:
    ref = PriorityClassRef("high")
    engine = world(
        WorkloadPriorityClass("high", value=1),
        workload("plain", created=1, priority=5),
        workload("classy", created=2, priority=1, priority_class_ref=ref),
        workload("own", created=3, priority=7, priority_class_ref=ref),
    )
    assert [w.name for w in engine.pending("cq")] == ["own", "plain", "classy"]
    engine.apply([WorkloadPriorityClass("high", value=1, description="the same value")], now=at(1))
    assert [w.name for w in engine.pending("cq")] == ["own", "plain", "classy"]
    engine.apply([WorkloadPriorityClass("high", value=6)], now=at(1))
    assert [(w.name, w.priority) for w in engine.pending("cq")] == [("classy", 6), ("own", 6), ("plain", 5)]
    assert engine.delete("WorkloadPriorityClass", "high", now=at(2))
    assert [w.priority for w in engine.pending("cq")] == [6, 6, 5]


def test_a_new_priority_class_moves_the_workloads_that_name_it() -> None:
    engine = world(workload("w", priority=1, priority_class_ref=PriorityClassRef("high")))
    engine.apply([WorkloadPriorityClass("high", value=6)], now=at(1))
    assert [w.priority for w in engine.pending("cq")] == [6]


def refuse(engine: Engine, *objects: Any) -> ManifestError:
    before = snapshot(engine)
    with pytest.raises(ManifestError) as caught:
        engine.apply(list(objects), now=at(1))
    assert snapshot(engine) == before
    return caught.value


def test_one_bad_object_refuses_the_whole_batch() -> None:
    engine = world()
    error = refuse(
        engine,
        cluster_queue(cpu=99),
        workload("fine"),
        {**workload("bad").to_manifest(), "spec": {"podSets": [], "queueName": "lq"}},
        {**local_queue("b").to_manifest(), "spec": {"clusterQueue": "NOT A NAME"}},
    )
    assert [(str(p.object), p.index) for p in error.problems] == [
        ('Workload "ns/bad"', 2),
        ('LocalQueue "ns/b"', 3),
    ]
    assert engine.cycle(at(2)).cycle == 0


def test_immutable_fields_are_refused() -> None:
    engine = world(AdmissionCheck("c", controller_name="a"), workload("w", 2))
    engine.cycle(at(1))
    for thing, field, message in [
        (local_queue(to="other"), "spec.clusterQueue", 'Invalid value: "other": field is immutable'),
        (AdmissionCheck("c", controller_name="b"), "spec.controllerName", "field is immutable"),
        (workload("w", 3), "spec.podSets.0", "field is immutable"),
        (workload("w", 2, queue="elsewhere"), "<nil>", "queueName is immutable while workload quota reserved"),
    ]:
        error = refuse(engine, thing)
        assert field == error.field, error
        assert message in str(error)


def test_a_batch_that_contradicts_itself_is_refused_like_one_after_the_other() -> None:
    refuse(world(empty=True), local_queue(to="a"), local_queue(to="b"))


# Reserved workloads from elsewhere.


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


def test_a_fork_and_its_parent_do_not_see_each_other() -> None:
    engine = world(workload("w", 2), workload("x", 3, created=1))
    fork = engine.fork()
    before = snapshot(engine)
    settle(fork, at(1))
    fork.apply([cluster_queue(cpu=1), cluster_queue("new"), workload("y")], now=at(2))
    fork.delete("Workload", "w", namespace="ns", now=at(2))
    assert snapshot(engine) == before
    after = snapshot(fork)
    settle(engine, at(3))
    engine.finish("w", namespace="ns", now=at(4))
    assert snapshot(fork) == after
    assert fork.now == at(2)


def test_a_fork_decides_as_its_parent() -> None:
    engine = world(*(workload(f"w{i}", i % 4 + 1, created=i) for i in range(8)))
    engine.cycle(at(1))
    fork = engine.fork()
    for second in range(2, 9):
        a, b = engine.cycle(at(second)), fork.cycle(at(second))
        assert (a.cycle, a.admissions, a.pending, a.parked, a.events) == (
            b.cycle,
            b.admissions,
            b.pending,
            b.parked,
            b.events,
        )
    assert snapshot(engine) == snapshot(fork)


def test_an_engine_counts_its_workloads_and_is_never_false() -> None:
    engine = Engine()
    assert (len(engine), bool(engine), engine.workloads(), engine.cluster_queues(), engine.quota()) == (
        0,
        True,
        (),
        (),
        (),
    )
    assert engine.cycle(at(0)).cycle == 0
    assert len(world(workload("w"))) == 1


def test_warnings_and_foreign_objects_are_returned() -> None:
    manifest: dict[str, Any] = {**local_queue().to_manifest()}
    manifest["spec"] = {**manifest["spec"], "stopPolcy": "Hold"}
    foreign: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "ns"},
    }
    applied = Engine().apply([manifest, foreign], now=at(0))
    assert [(w.field, str(w.object)) for w in applied.warnings] == [("spec.stopPolcy", 'LocalQueue "ns/lq"')]
    assert [str(f) for f in applied.foreign] == ['Deployment "ns/d"']
