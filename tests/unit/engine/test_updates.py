"""Workloads and classes that change, and batches that are refused whole."""

from typing import Any

import pytest

from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.objects import (
    AdmissionCheck,
    Namespace,
    PriorityClassRef,
    WorkloadPriorityClass,
)
from tests.builders import (
    admitted,
    at,
    cluster_queue,
    flavor,
    local_queue,
    settle,
    snapshot,
    usage,
    workload,
    world,
)


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


def test_a_class_that_changes_for_a_finished_workload_retries_those_that_are_parked() -> None:
    done = workload("done", priority=1, priority_class_ref=PriorityClassRef("high"))
    engine = world(done, workload("large", 99, created=1))
    assert settle(engine, at(1)) == ["done"]
    engine.finish("done", namespace="ns", now=at(2))
    settle(engine, at(3))
    assert [w.place for w in engine.pending("cq")] == ["inadmissible"]
    engine.apply([WorkloadPriorityClass("high", value=6)], now=at(4))
    assert [w.key for w in engine.cycle(at(5)).pending] == ["ns/large"]


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
