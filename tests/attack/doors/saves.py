"""What `save` and `journal` returned, forged, for `load` and `replay`."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from kueuecore import Engine
from kueuecore.controller import Controller
from kueuecore.journal import digest_of
from kueuecore.objects import Namespace
from tests.attack.case import Case, Wrong
from tests.attack.documents import KINDS
from tests.attack.doors.calls import Call, case_of
from tests.attack.doors.controller import watching
from tests.attack.values import Hostile
from tests.builders import T0, at, cluster_queue, flavor, local_queue, workload

__all__ = ["draw"]


def draw(rng: Random) -> Case:
    """A save with a few things wrong, mostly with the right digest: whoever forges one writes that too."""
    signs = rng.random() < 0.6
    load: Callable[..., None]
    if rng.random() < 0.4:
        saved = json.loads(json.dumps(watching().save()))
        name, load, more = "Controller.load", _controller, {"now": at(5)}
    elif rng.random() < 0.5:
        saved = json.loads(json.dumps(_busy().journal()))
        name, load, more = "Engine.replay", _engine, {}
    else:
        damaged = _damaged(rng, _busy().save())
        return case_of(rng, Call("Engine.load", _snapshot, {"saved": damaged}, others=("save",)), parts=KINDS)

    def loaded(saved: Any, **more: Any) -> None:
        load(_signed(saved) if signs else saved, **more)

    # Errors are about a call or a field of the save.
    others = ("save", "saved", "journal", "calls", *(call[0] for call in saved.get("calls", ())))
    return case_of(rng, Call(name, loaded, {"saved": saved, **more}, others=others), parts=KINDS)


def _busy() -> Engine:
    """An engine that has been asked for everything that it keeps."""
    engine = Engine(keeps_journal=True)
    engine.apply([Namespace("ns"), flavor(), cluster_queue(), local_queue(), workload("a"), workload("b", 1)], now=T0)
    engine.submit(namespace="ns", local_queues=["lq"], queue=[0, 0], requests={"cpu": 1}, now=at(1))
    engine.take_written()
    engine.cycle(at(1))
    engine.confirm("a", namespace="ns")
    engine.note_readiness("a", namespace="ns", are_ready=True, now=at(1))
    engine.forget("b", namespace="ns", now=at(1))
    engine.reconcile(at(2))
    engine.evict("b", namespace="ns", reason="R", message="m", now=at(2))
    engine.release("b", namespace="ns", now=at(2))
    engine.finish("a", namespace="ns", now=at(2))
    engine.delete("Workload", "b", namespace="ns", now=at(3))
    return engine


def _signed(saved: Any) -> Any:
    try:
        return {**saved, "digest": digest_of(saved)}
    except (TypeError, ValueError, RecursionError, Hostile):
        return saved


def _damaged(rng: Random, saved: bytes) -> bytes:
    """Bytes of which some are other ones, or missing."""
    damaged = bytearray(saved)
    for _ in range(rng.choice([0, 1, 1, 3])):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    return bytes(damaged[: rng.choice([len(damaged), rng.randrange(len(damaged))])])


def _snapshot(saved: Any) -> None:
    """What is loaded can be saved, in the same bytes, and goes on."""
    engine = Engine.load(saved)
    if engine.save() != saved:
        raise Wrong("other bytes after load and save")
    engine.cycle(max(engine.now, at(9)))


def _engine(saved: Any) -> None:
    """What is replayed has the same journal."""
    engine = Engine.replay(saved)
    again = Engine.replay(json.loads(json.dumps(engine.journal())))
    if again.save() != engine.save():
        raise Wrong("another engine after replay, journal and replay")
    engine.cycle(max(engine.now, at(9)))


def _controller(saved: Any, now: Any) -> None:
    """The same; the save of a controller that has loaded one can be loaded."""
    controller = Controller.load(saved, now=now)
    again = Controller.load(json.loads(json.dumps(controller.save())), now=now)
    if repr(again.save()) != repr(controller.save()):
        raise Wrong("another controller after load, save and load")
    controller.turn(now)
