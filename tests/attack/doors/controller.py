"""Calls and events of a `Controller`."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from kueuecore.controller import Controller, Metrics
from kueuecore.errors import KueuecoreError
from kueuecore.objects import Namespace
from kueuecore.provisioning import ProvisioningController
from kueuecore.writes import Answer, Write
from tests.attack.case import Case, size_of
from tests.attack.documents import FULL_WORKLOAD, KINDS, WORKLOAD
from tests.attack.doors.calls import Call, case_of
from tests.attack.values import Hostile, damaged
from tests.builders import at, cluster_queue, flavor, local_queue, snapshot, workload

__all__ = ["draw", "versioned", "watching"]

_EVENTS = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")


def versioned(plain: dict[str, Any], version: str = "99") -> dict[str, Any]:
    """An object as an API server sends it."""
    plain = copy.deepcopy(plain)
    plain["metadata"] = {"uid": "u99", **plain["metadata"], "resourceVersion": version}
    return plain


def watching() -> Controller:
    """A controller that has seen a small world."""
    controller = Controller(checks=[ProvisioningController()], metrics=Metrics())
    objects = [Namespace("ns"), flavor(), cluster_queue(), local_queue(), workload("w"), workload("b", 20)]
    for number, made in enumerate(objects, start=1):
        plain = json.loads(json.dumps(made.to_manifest()))
        plain["metadata"] = {"uid": f"u{number}", **plain["metadata"]}
        controller.observe({"type": "ADDED", "object": versioned(plain, str(number))}, now=at(1))
    return controller


def _state(controller: Controller) -> Callable[[], object]:
    return lambda: (
        json.dumps(controller.save(), sort_keys=True),
        snapshot(controller.engine),
        controller.engine.now,
        controller.open_writes,
        [controller.watched(kind) for kind in controller.kinds],
    )


def _done(controller: Controller, *, write: Write, found: Any, error: str, now: Any) -> bool:
    return controller.done(write, Answer(found, error), now=now)


def draw(rng: Random) -> Case:
    """A wrong call, or wrong events and what comes of them."""
    if rng.random() < 0.4:
        return _events(rng)
    controller = watching()
    name = rng.choice(
        ["observe", "observe", "observe", "resync", "turn", "next_wake", "done", "finished", "stopped",
         "note_readiness", "workload", "may_run", "watched"]
    )  # fmt: skip
    about: dict[str, Any] = {"name": "w", "namespace": "ns"}
    given: dict[str, Any]
    match name:
        case "observe":
            event = {"type": rng.choice(_EVENTS), "object": versioned(rng.choice(KINDS))}
            given = {"event": event, "now": at(2)}
        case "resync":
            objects = [versioned(WORKLOAD), versioned(FULL_WORKLOAD)]
            given = {"kind": "Workload", "objects": objects, "now": at(2), "resource_version": "200"}
        case "turn" | "next_wake":
            given = {"now": at(2)}
        case "done":
            write = controller.turn(at(2)).writes[0]
            about = dict(controller.workload(write.object.name, namespace="ns") or {})
            answers = [({**about, "status": FULL_WORKLOAD["status"]}, ""), (versioned(about), "refused")]
            found, error = rng.choice(answers)
            given = {"write": write, "found": found, "error": error, "now": at(3)}
        case "finished":
            given = {**about, "reason": "R", "message": "m"}
        case "note_readiness":
            given = {**about, "are_ready": True}
        case "watched":
            given = {"kind": "Workload"}
        case _:
            given = about
    call = Call(
        f"Controller.{name}",
        partial(_done, controller) if name == "done" else getattr(controller, name),
        given,
        _state(controller),
        lambda _: _goes_on(controller),
        others=("kinds", "list", "answer"),
    )
    return case_of(rng, call, parts=KINDS)


def _goes_on(controller: Controller) -> None:
    later = max(controller.engine.now, at(4))
    controller.turn(later)
    controller.next_wake(later)


def _events(rng: Random) -> Case:
    """Whatever it took, its turns come to an end, and a save of it can be loaded."""
    controller = watching()
    damages = [damaged(rng, versioned(kind, str(100 + n)), parts=KINDS) for n, kind in enumerate(rng.sample(KINDS, 4))]
    kinds = [rng.choice(_EVENTS) for _ in damages]
    confirms = rng.random() < 0.7

    def act() -> None:
        for kind, damage in zip(kinds, damages, strict=True):
            for each in ("ADDED", kind):
                try:
                    controller.observe({"type": each, "object": damage.value}, now=at(2))
                except (KueuecoreError, TypeError, ValueError, Hostile):
                    continue
        for second in range(3, 6):
            for write in controller.turn(at(second)).writes:
                if confirms:
                    controller.done(write, Answer(), now=at(second))
                else:
                    controller.done(write, Answer(error="refused", code=404 if second == 5 else 0), now=at(second))
            controller.next_wake(at(second))
        Controller.load(json.loads(json.dumps(controller.save())), now=at(9)).turn(at(9))

    reported = " | ".join(f"{kind} {damage.what}" for kind, damage in zip(kinds, damages, strict=True))
    return Case(f"events: {reported}", act, sum(size_of(damage.value) for damage in damages), seconds=4)
