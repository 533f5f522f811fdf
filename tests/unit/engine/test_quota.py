"""What a ClusterQueue may use, borrow and lend, and who comes back when that changes."""

from typing import Any

from kueuecore.objects import (
    Cohort,
)
from kueuecore.states import Stage
from tests.builders import (
    at,
    cluster_queue,
    condition,
    group,
    local_queue,
    quota,
    settle,
    stage,
    usage,
    workload,
    world,
)


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
