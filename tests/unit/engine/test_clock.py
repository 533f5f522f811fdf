"""Time does not go back: what acts on all that is due refuses an earlier time, what only reports an event does not."""

from __future__ import annotations

import pytest

from kueuecore import Engine
from kueuecore.controller import Controller
from kueuecore.times import nanoseconds
from tests.topologies import Json, namespace, pod_set, queue, workload

NOON, ONE, TWO = (nanoseconds(f"2026-01-01T{hour}:00:00Z") for hour in (12, 13, 14))
REFUSAL = (
    "now: 2026-01-01T12:00:00Z is before 2026-01-01T13:00:00Z, the latest time that a call named: time does not go "
    "back; for an earlier state, fork\\(\\) or save\\(\\) the engine before"
)


def world() -> Engine:
    engine = Engine()
    flavor: Json = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "tas"}}
    engine.apply([namespace(), flavor, *queue(), workload("w", pod_set())], now=ONE)
    return engine


def test_cycles_and_reconciles_refuse_an_earlier_time_and_change_nothing() -> None:
    engine = world()
    before = engine.save()
    for call in (engine.cycle, engine.reconcile):
        with pytest.raises(ValueError, match=REFUSAL):
            call(NOON)
    assert engine.save() == before
    assert [admission.name for admission in engine.cycle(ONE).admissions] == ["w"]
    engine.reconcile(ONE)
    assert engine.cycle(TWO).cycle == 0


def test_an_event_that_is_reported_late_does_not_set_the_clock_back() -> None:
    engine = world()
    engine.apply(workload("late", pod_set()), now=NOON)
    assert engine.now == ONE
    engine.cycle(ONE)
    assert engine.finish("w", namespace="ns", now=NOON)
    assert engine.delete("Workload", "late", namespace="ns", now=NOON)
    assert engine.now == ONE


def test_a_question_may_be_about_any_time() -> None:
    engine = world()
    answers = [engine.what_if(workload("asked", pod_set()), now=at).outcome for at in (NOON, TWO)]
    assert answers[0] == answers[1]
    assert engine.now == ONE


def test_a_fork_has_the_time_of_its_engine() -> None:
    engine = world()
    fork = engine.fork()
    engine.cycle(TWO)
    assert len(fork.cycle(ONE).admissions) == 1
    with pytest.raises(ValueError, match="time does not go back"):
        engine.cycle(ONE)


def test_a_saved_engine_keeps_its_time() -> None:
    loaded = Engine.load(world().save())
    with pytest.raises(ValueError, match=REFUSAL):
        loaded.cycle(NOON)


def test_a_turn_before_something_was_observed_is_refused() -> None:
    controller = Controller()
    controller.observe({"type": "ADDED", "object": workload("w", pod_set())}, now=ONE)
    with pytest.raises(ValueError, match="time does not go back"):
        controller.turn(NOON)
    assert controller.turn(ONE).decision.cycle == 0
