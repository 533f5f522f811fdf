"""What `save` returned, forged, for `load`."""

from __future__ import annotations

import json
from random import Random

from kueuecore import Engine
from kueuecore.controller import Controller
from kueuecore.objects import Namespace
from tests.attack.case import Case, Wrong, size_of
from tests.attack.documents import KINDS
from tests.attack.doors.calls import Call, case_of
from tests.attack.doors.controller import watching
from tests.builders import T0, at, cluster_queue, flavor, local_queue, snapshot, workload

__all__ = ["draw"]


def draw(rng: Random) -> Case:
    """A save with a few things wrong."""
    if rng.random() < 0.4:
        saved = json.loads(json.dumps(watching().save()))
        return case_of(
            rng, Call("Controller.load", _controller, {"saved": saved, "now": at(5)}, others=("save",)), parts=KINDS
        )
    engine = Engine(keeps_journal=True)
    engine.apply([Namespace("ns"), flavor(), cluster_queue(), local_queue(), workload("a")], now=T0)
    engine.submit(namespace="ns", local_queues=["lq"], queue=[0, 0], requests={"cpu": 1}, now=at(1))
    engine.cycle(at(1))
    engine.finish("a", namespace="ns", now=at(2))
    saved = json.loads(json.dumps(engine.save()))
    return case_of(rng, Call("Engine.load", _engine, {"saved": saved}, others=("save",)), parts=KINDS)


def _engine(saved: object) -> None:
    """What is loaded can be saved, and is the same again."""
    engine = Engine.load(saved)  # type: ignore[arg-type]
    again = Engine.load(json.loads(json.dumps(engine.save())))
    if repr(snapshot(again)) != repr(snapshot(engine)):
        raise Wrong("another engine after load, save and load")
    engine.cycle(max(engine.now, at(9)))


def _controller(saved: object, now: object) -> None:
    controller = Controller.load(saved, now=now)  # type: ignore[arg-type]
    controller.turn(now)  # type: ignore[arg-type]
    if size_of(controller.save()) < 0:
        raise Wrong("no save")
