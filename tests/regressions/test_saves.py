"""What `save` and `journal` give, in the hands of others: damaged, forged with a right digest, of another version."""

# What was refused is looked at where it is caught, as some forgeries say what was saved.
# ruff: noqa: PT017

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kueuecore import version
from kueuecore.controller import Controller
from kueuecore.engine import Engine
from kueuecore.journal import digest_of
from kueuecore.provisioning import ProvisioningController
from tests.builders import T0, at, cluster_queue, flavor, local_queue, snapshot, workload

Json = dict[str, Any]

ODD: list[Any] = [
    *(None, True, False, 0, -1, 1, 0.5, float("nan"), float("inf"), 2**63, -(2**63), 10**400, "", "x", "\ud800", "\0"),
    *([], {}, [None], [[]], [{}], {"text": None}, {"bytes": "!"}, {"bytes": 5}, {"text": "x", "bytes": ""}, {"": []}),
]


MISSING, TWICE = object(), object()


def signed(saved: Json) -> Json:
    """With the digest that a forger would give it."""
    plain = {name: value for name, value in saved.items() if name != "digest"}
    return {**plain, "digest": digest_of(plain)}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in plain data."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def all_forgeries(saved: Json) -> Iterator[Json]:
    """The save with each place missing, twice, or with something odd there."""
    for place in places(saved)[1:]:
        for value in (*ODD, MISSING, TWICE):
            forged = copy.deepcopy(saved)
            target: Any = forged
            for key in place[:-1]:
                target = target[key]
            if value is MISSING:
                del target[place[-1]]
            elif value is not TWICE:
                target[place[-1]] = value
            elif isinstance(target, list):
                target.insert(place[-1], target[place[-1]])
            yield forged


def reported() -> Engine:
    """An engine with one call of each kind made on it."""
    engine = Engine(keeps_journal=True)
    engine.apply([flavor(), cluster_queue(cpu=1), local_queue(), workload("a"), workload("b", created=1)], now=T0)
    engine.take_written()
    engine.cycle(T0)
    engine.confirm("a", namespace="ns")
    engine.note_readiness("a", namespace="ns", now=at(1), are_ready=True)
    engine.evict("a", namespace="ns", now=at(1), stopped=False)
    engine.release("a", namespace="ns", now=at(2))
    engine.forget("a", namespace="ns", now=at(2))
    engine.submit(namespace="ns", local_queues=["lq"], queue=[0], requests={"cpu": 200}, now=at(3))
    engine.reconcile(at(3))
    engine.finish("b", namespace="ns", now=at(4))
    engine.delete("Workload", "b", namespace="ns", now=at(5))
    return engine


def controller() -> Controller:
    """A controller with an open write, what a job has done, and an object that has gone."""
    found = Controller()
    objects = [flavor(), cluster_queue(cpu=1), local_queue(), local_queue("old"), workload("a"), workload("b")]
    for number, each in enumerate(objects, start=1):
        manifest: Json = each.to_manifest()
        manifest["metadata"] = {**manifest["metadata"], "resourceVersion": str(number)}
        found.observe({"type": "ADDED", "object": manifest}, now=T0)
        if manifest["metadata"]["name"] == "old":
            found.observe({"type": "DELETED", "object": manifest}, now=T0)
    found.resync("Namespace", [{"metadata": {"name": "ns", "resourceVersion": "9"}}], now=T0, resource_version="9")
    found.turn(T0)
    found.finished("b", namespace="ns")
    return found


def test_what_was_told_is_replayed_whole() -> None:
    journal = reported().journal()
    assert len({call[0] for call in dict[str, Any](journal)["calls"]}) == 12
    replayed = Engine.replay(json.loads(json.dumps(journal)))
    assert snapshot(replayed) == snapshot(reported())
    assert replayed.save() == reported().save()


def test_whatever_is_forged_is_refused_by_value_or_loaded_whole() -> None:
    for saved in all_forgeries(dict(reported().journal())):
        for attempt in (saved, signed(saved)):
            try:
                replayed = Engine.replay(attempt)
            except ValueError as error:
                assert str(error).startswith(("this ", "the saved engine had another Configuration"))
            else:
                # To Python, false is 0; and the format may be the one of old.
                names = {"digest": "", "format": ""}
                assert {**replayed.journal(), **names} == {**attempt, **names}


def test_whatever_is_forged_of_a_controller_is_refused_by_value() -> None:
    saved = json.loads(json.dumps(controller().save()))
    assert saved["reports"]
    assert saved["versions"]["gone"]
    for attempt in all_forgeries(saved):
        for checks in ([], [ProvisioningController()]):
            try:
                Controller.load(signed(attempt), now=T0, checks=checks).turn(T0)
            except ValueError as error:
                assert str(error)


@pytest.mark.parametrize("saved", [None, [], "x", 5, {}, {1: 2}, {"format": "kueuecore.engine/2", 1: 2, None: 3}])
def test_what_is_no_save_is_refused_by_value(saved: Any) -> None:
    for read in (Engine.load, Engine.replay):
        with pytest.raises(ValueError, match=r"^this "):
            read(saved)
    with pytest.raises(ValueError, match=r"^this "):
        Controller.load(saved, now=T0)


def test_what_is_too_deep_or_no_plain_data_is_refused_by_value() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for odd in (endless, {1}, b"x", object(), {1: 1, "a": 2}):
        with pytest.raises(ValueError, match=r"^this is not a valid journal: it is not plain data"):
            Engine.replay({**reported().journal(), "calls": odd})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "field", ["format", "version", "digest", "modelsReadiness", "batchesRetries", "now", "calls", "configuration"]
)
@pytest.mark.parametrize("odd", [np.array([1, 2]), np.zeros(1, dtype=[("a", "<i8")]), [[]], {"a": {1}}], ids=range(4))
def test_an_odd_field_is_refused_by_value(field: str, odd: Any) -> None:
    with pytest.raises(ValueError, match=r"^this (is not a valid journal|was saved (as|by))"):
        Engine.replay({**reported().journal(), field: odd})
    with pytest.raises(ValueError, match=r"^this (is not a valid save|was saved as)"):
        Controller.load({**controller().save(), field: odd}, now=T0)


def test_a_call_that_the_saved_engine_cannot_have_done_is_refused_with_its_number() -> None:
    saved: Json = dict(reported().journal())
    saved["calls"] = [*saved["calls"], ["finish", T0, "ns", "nobody", "Succeeded", ""]]
    with pytest.raises(
        ValueError, match=r'^this is not a valid journal: calls\[12\], finish, is refused: .*"ns/nobody"'
    ):
        Engine.replay(signed(saved))
    saved["calls"][-1] = ["finish", T0, "ns", "nobody", "Succeeded"]
    with pytest.raises(ValueError, match=r"calls\[12\]: finish has 4 arguments, not 3"):
        Engine.replay(signed(saved))
    saved["calls"][-1] = ["apply", T0, {"text": ""}, 1]
    with pytest.raises(ValueError, match=r"calls\[12\]\[3\] must be true or false"):
        Engine.replay(signed(saved))


def test_a_journal_of_another_version_is_refused_by_both_names() -> None:
    saved: Json = dict(reported().journal())
    assert saved["version"] == version.version()
    saved["version"] = "0.0.7"
    expected = rf"^this was saved by kueuecore 0\.0\.7, but this is {version.version()}: "
    with pytest.raises(ValueError, match=expected):
        Engine.replay(signed(saved))


def test_what_save_gave_before_there_were_snapshots_is_replayed() -> None:
    old = signed({**reported().journal(), "format": "kueuecore.engine/2"})
    with pytest.raises(ValueError, match=r"^this is the journal of an engine, not its state: use Engine\.replay\(\)"):
        Engine.load(old)  # type: ignore[arg-type]
    assert Engine.replay(old).save() == reported().save()


def test_a_snapshot_of_another_version_or_format_is_refused_by_both_names() -> None:
    saved = reported().save()
    ours = version.version().encode()
    other = saved.replace(bytes([len(ours)]) + ours, b"\x050.0.7", 1)
    with pytest.raises(
        ValueError, match=rf"^this was saved by kueuecore 0\.0\.7, but this is {version.version()}: load it"
    ):
        Engine.load(other)
    with pytest.raises(
        ValueError, match=r'^this was saved as "kueuecore\.engine/9", and only "kueuecore\.engine/8" can'
    ):
        Engine.load(saved.replace(b"engine/8", b"engine/9", 1))


def test_a_damaged_snapshot_is_refused_wherever_the_damage_is() -> None:
    saved = reported().save()
    for place in range(len(saved)):
        for bit in (1, 128):
            damaged = bytearray(saved)
            damaged[place] ^= bit
            with pytest.raises(ValueError, match=r"^this (is not a|was saved|is a damaged save)"):
                Engine.load(bytes(damaged))
        with pytest.raises(ValueError, match=r"^this (is not a|was saved)"):
            Engine.load(saved[:place])
    with pytest.raises(ValueError, match=r"^this is not a whole save: \d+ bytes follow its header, but \d+ are there"):
        Engine.load(saved + b"x")


def test_an_engine_is_neither_copied_nor_pickled() -> None:
    engine = reported()
    for attempt in (
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
        lambda it: copy.deepcopy([it]),
        lambda it: pickle.dumps(it, 0),
    ):
        with pytest.raises(TypeError, match=r"use fork\(\) for a copy, or save\(\)"):
            attempt(engine)
