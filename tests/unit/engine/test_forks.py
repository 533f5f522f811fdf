"""A fork and its parent, and what an engine says of itself."""

from typing import Any

from kueuecore.engine import Engine
from tests.builders import (
    at,
    cluster_queue,
    local_queue,
    settle,
    snapshot,
    workload,
    world,
)


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
