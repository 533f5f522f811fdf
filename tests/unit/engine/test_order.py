"""Which workload is tried first, and which ones are parked together."""

from typing import Any

import pytest

from kueuecore.configuration import Configuration
from kueuecore.objects import (
    LabelSelector,
    Namespace,
    QueueingStrategy,
)
from tests.builders import (
    admitted,
    at,
    cluster_queue,
    local_queue,
    settle,
    workload,
    world,
)


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
        " featureGates: {SchedulingEquivalenceHashing: false, SchedulingEquivalenceHashingIgnorePodSetName: false}}"
    )
    engine = world(*(workload(f"w{i}", 11, created=i) for i in range(3)), configuration=off)
    decision = engine.cycle(at(10))
    assert (decision.parked, [p.name for p in decision.pending]) == ((), ["w0"])
    assert [p.name for p in engine.cycle(at(11)).pending] == ["w1"]
