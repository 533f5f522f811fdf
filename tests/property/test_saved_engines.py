"""An engine that is saved and loaded goes on as if nothing had happened, wherever that is done."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.testing import START, History, Play, first_difference, histories, observe, shown
from tests.builders import T0, cluster_queue, flavor, local_queue, workload
from tests.property.worlds import Json

assert settings.default is not None, "tests/conftest.py loads a profile"
# Every history is played twice.
few = settings(max_examples=settings.default.max_examples // 3)


def begun(history: History) -> Play:
    """An engine with a journal, and with the objects of a history."""
    engine = Engine(history.parsed_configuration(), keeps_journal=True)
    engine.apply(json.dumps(list(history.objects)).encode(), now=START)
    return Play(engine)


def reloaded(engine: Engine) -> Engine:
    """What is read of a file into which an engine was written."""
    return Engine.load(json.loads(json.dumps(engine.save())), configuration=engine.configuration)


@few
@given(st.data(), histories())
def test_an_engine_that_was_saved_decides_as_the_other_one(data: Any, history: History) -> None:
    with shown(history):
        first = data.draw(st.integers(0, len(history.moves)))
        going, saved = begun(history), begun(history)
        for move in history.moves[:first]:
            going.do(move)
            saved.do(move)
        loaded = Play(reloaded(saved.engine), seconds=saved.seconds)
        assert json.dumps(observe(loaded.engine)) == json.dumps(observe(going.engine))
        for move in history.moves[first:]:
            assert first_difference(loaded.do(move).to_json(), going.do(move).to_json()) is None
        assert json.dumps(observe(loaded.engine)) == json.dumps(observe(going.engine))
        assert loaded.engine.now == going.engine.now
        assert loaded.engine.next_wake() == going.engine.next_wake()


def busy() -> Engine:
    """One with a workload that was admitted, one that waits, and one that came in columns."""
    engine = Engine(keeps_journal=True)
    engine.apply([flavor(), cluster_queue(cpu=1), local_queue(), workload("a"), workload("b", created=1)], now=T0)
    engine.cycle(T0)
    engine.submit(namespace="ns", local_queues=["lq"], queue=[0], requests={"cpu": [500]}, now=T0)
    engine.take_written()
    return engine


def test_what_has_come_in_columns_and_was_taken_is_saved_too() -> None:
    engine = busy()
    loaded = reloaded(engine)
    assert loaded.workloads() == engine.workloads()
    assert loaded.take_written() == engine.take_written()
    assert loaded.save() == engine.save()
    # A fork takes the past of its engine along.
    fork = loaded.fork()
    fork.cycle(T0)
    assert reloaded(fork).workloads() == fork.workloads()


def test_what_was_refused_and_what_was_asked_is_not_remembered() -> None:
    engine = busy()
    before = engine.save()
    with pytest.raises(ValueError, match="problem"):
        engine.apply(b'{"kind": "ClusterQueue"}')
    engine.pending("cq")
    assert engine.save() == before


@pytest.mark.parametrize("damage", ["calls", "configuration", "now", "digest", "modelsReadiness", "format"])
def test_a_damaged_save_is_refused(damage: str) -> None:
    saved: Json = copy.deepcopy(dict[str, Any](busy().save()))
    saved[damage] = {"calls": saved["calls"][1:], "configuration": {}, "now": 5, "digest": "x", "format": "y"}.get(
        damage, True
    )
    with pytest.raises(ValueError, match=r"^this (is not a valid save|was saved as)"):
        Engine.load(saved)
    assert saved.pop(damage) is not None
    with pytest.raises(ValueError, match=r"^this (is not a valid save|was saved as)"):
        Engine.load(saved)


def test_another_configuration_is_refused() -> None:
    other = Configuration.parse(
        "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nmanageJobsWithoutQueueName: true"
    )
    with pytest.raises(ValueError, match="had another Configuration: give that one"):
        Engine.load(busy().save(), configuration=other)


def test_an_engine_without_a_journal_is_not_saved() -> None:
    with pytest.raises(ValueError, match="make it with keeps_journal=True"):
        Engine().save()
