"""An engine that was loaded goes on as the one that was saved, wherever that was; so does one that a journal makes."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kueuecore.configuration import Configuration
from kueuecore.controller import Controller
from kueuecore.engine import Engine
from kueuecore.simulation import VirtualCluster
from kueuecore.testing import START, History, Play, first_difference, histories, observe, shown
from tests.builders import T0, at, cluster_queue, flavor, local_queue, workload
from tests.property.worlds import Json

assert settings.default is not None, "tests/conftest.py loads a profile"
# Every history is played twice.
few = settings(max_examples=settings.default.max_examples // 3)


def begun(history: History, *, keeps_journal: bool = False) -> Play:
    """An engine with the objects of a history."""
    engine = Engine(
        history.parsed_configuration(), batches_retries=history.batches_retries, keeps_journal=keeps_journal
    )
    engine.apply(json.dumps(list(history.objects)).encode(), now=START)
    return Play(engine)


def reloaded(engine: Engine) -> Engine:
    """What is read of the bytes into which an engine was written."""
    saved = engine.save()
    loaded = Engine.load(saved, configuration=engine.configuration)
    assert loaded.save() == saved
    return loaded


def replayed(engine: Engine) -> Engine:
    """What is read of a file into which the journal of an engine was written."""
    return Engine.replay(json.loads(json.dumps(engine.journal())), configuration=engine.configuration)


def assert_same(other: Play, going: Play) -> None:
    """Both give the same answers."""
    assert json.dumps(observe(other.engine)) == json.dumps(observe(going.engine))
    assert other.engine.now == going.engine.now
    assert other.engine.next_wake() == going.engine.next_wake()
    assert other.engine.workload_keys() == going.engine.workload_keys()
    assert other.engine.names() == going.engine.names()
    assert other.engine.save() == going.engine.save()


@few
@given(st.data(), histories())
def test_an_engine_that_was_loaded_decides_as_the_one_that_was_saved(data: Any, history: History) -> None:
    with shown(history):
        loads = data.draw(st.sets(st.integers(0, len(history.moves))))
        going, other = begun(history), begun(history)
        for index, move in enumerate(history.moves):
            if index in loads:
                other = Play(reloaded(other.engine), seconds=other.seconds)
            assert first_difference(other.do(move).to_json(), going.do(move).to_json()) is None
        assert_same(other, going)


@few
@given(st.data(), histories())
def test_an_engine_that_was_replayed_decides_as_the_other_one(data: Any, history: History) -> None:
    with shown(history):
        first = data.draw(st.integers(0, len(history.moves)))
        going, saved = begun(history), begun(history, keeps_journal=True)
        for move in history.moves[:first]:
            going.do(move)
            saved.do(move)
        other = Play(replayed(saved.engine), seconds=saved.seconds)
        for move in history.moves[first:]:
            assert first_difference(other.do(move).to_json(), going.do(move).to_json()) is None
        assert_same(other, going)


def busy() -> Engine:
    """One with a workload that was admitted, one that waits, and one that came in columns."""
    engine = Engine(keeps_journal=True)
    engine.apply([flavor(), cluster_queue(cpu=1), local_queue(), workload("a"), workload("b", created=1)], now=T0)
    engine.cycle(T0)
    engine.submit(namespace="ns", local_queues=["lq"], queue=[0], requests={"cpu": [500]}, now=T0)
    engine.take_written()
    return engine


@pytest.mark.parametrize("read", [reloaded, replayed])
def test_what_has_come_in_columns_and_was_taken_is_kept_too(read: Any) -> None:
    engine = busy()
    other = read(engine)
    assert other.workloads() == engine.workloads()
    assert other.take_written() == engine.take_written()
    assert other.save() == engine.save()
    # A fork takes the past of its engine along.
    fork = engine.fork()
    fork.cycle(T0)
    assert read(fork).workloads() == fork.workloads()


def test_names_and_slots_first_met_in_a_question_are_replayed() -> None:
    engine = busy()
    before = engine.now
    question: Json = workload("c", queue="elsewhere").to_manifest()
    container = question["spec"]["podSets"][0]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"example.com/tpu": "1"}}
    engine.what_if(question, now=at(9))
    assert engine.now == before
    assert replayed(engine).save() == engine.save()
    assert repr(replayed(engine).apply([workload("d")])) == repr(engine.apply([workload("d")]))
    assert replayed(engine).save() == engine.save()


def test_the_engine_of_a_controller_and_of_a_virtual_cluster_is_saved_as_any_other() -> None:
    objects = [flavor(), cluster_queue(cpu=1), local_queue(), workload("a"), workload("b", created=1)]
    controller = Controller()
    for number, object_ in enumerate(objects, start=1):
        manifest: Json = object_.to_manifest()
        manifest["metadata"] = {**manifest["metadata"], "resourceVersion": str(number)}
        controller.observe({"type": "ADDED", "object": manifest}, now=T0)
    controller.resync("Namespace", [{"metadata": {"name": "ns", "resourceVersion": "9"}}], now=T0, resource_version="9")
    controller.turn(T0)
    cluster = VirtualCluster(objects, now=T0)
    cluster.step()
    for engine in (controller.engine, cluster.engine):
        loaded = reloaded(engine)
        assert repr(loaded.cycle(at(5))) == repr(engine.cycle(at(5)))
        assert loaded.save() == engine.save()


def test_what_was_refused_and_what_was_asked_is_not_remembered() -> None:
    engine = busy()
    before = engine.save(), engine.journal()
    with pytest.raises(ValueError, match="problem"):
        engine.apply(b'{"kind": "ClusterQueue"}')
    engine.pending("cq")
    assert (engine.save(), engine.journal()) == before


def test_a_snapshot_does_not_grow_with_what_has_happened() -> None:
    engine = Engine()
    engine.apply([flavor(), cluster_queue(cpu=1), local_queue()], now=T0)
    sizes = []
    for _ in range(3):
        for _ in range(50):
            engine.apply(workload("w"), now=T0)
            engine.cycle(T0)
            engine.delete("Workload", "w", namespace="ns", now=T0)
        sizes.append(len(engine.save()))
    assert max(sizes) - min(sizes) <= 16, "but for longer numbers"


@pytest.mark.parametrize(
    "damage", ["calls", "configuration", "now", "digest", "modelsReadiness", "batchesRetries", "format"]
)
def test_a_damaged_journal_is_refused(damage: str) -> None:
    saved: Json = copy.deepcopy(dict[str, Any](busy().journal()))
    saved[damage] = {"calls": saved["calls"][1:], "configuration": {}, "now": 5, "digest": "x", "format": "y"}.get(
        damage, True
    )
    with pytest.raises(ValueError, match=r"^this (is not a valid journal|was saved as)"):
        Engine.replay(saved)
    assert saved.pop(damage) is not None
    with pytest.raises(ValueError, match=r"^this (is not a valid journal|was saved as)"):
        Engine.replay(saved)


def test_another_configuration_is_refused() -> None:
    other = Configuration.parse(
        "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nmanageJobsWithoutQueueName: true"
    )
    with pytest.raises(ValueError, match="had another Configuration: pass that one"):
        Engine.load(busy().save(), configuration=other)
    with pytest.raises(ValueError, match="had another Configuration: pass that one"):
        Engine.replay(busy().journal(), configuration=other)


def test_an_engine_that_keeps_no_journal_has_none() -> None:
    for engine in (Engine(), Engine.load(busy().save())):
        with pytest.raises(ValueError, match="make it with keeps_journal=True"):
            engine.journal()
