"""Calls and events of a MultiKueue `Manager`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from kueuecore.errors import KueuecoreError
from kueuecore.multikueue import Connect, ConnectionReason, Manager
from kueuecore.writes import Answer, Write
from tests.attack.case import Case, size_of
from tests.attack.documents import FULL_WORKLOAD, JOBS, KINDS, WORKLOAD
from tests.attack.doors.calls import Call, case_of
from tests.attack.doors.controller import versioned
from tests.attack.values import Hostile, damaged
from tests.builders import at

__all__ = ["draw"]

_EVENTS = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
_PARTS = (*KINDS, *JOBS)
_JOB = next(job for job in JOBS if job["kind"] == "Job")


def _owned() -> dict[str, Any]:
    """A Workload of the job that is to run in a worker."""
    made = copy.deepcopy(FULL_WORKLOAD)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-Job", "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    made["status"]["admissionChecks"] = [{**made["status"]["admissionChecks"][0], "name": "mk"}]
    return made


def _managing() -> Manager:
    """A manager with one connected worker, and a job for it."""
    manager = Manager()
    kinds = {(kind["kind"], kind["metadata"]["name"]): kind for kind in KINDS}
    for key in (("MultiKueueCluster", "c1"), ("MultiKueueConfig", "conf"), ("AdmissionCheck", "mk")):
        manager.observe({"type": "ADDED", "object": versioned(kinds[key], "1")}, now=at(1))
    manager.turn(at(1))
    manager.connected("c1", now=at(1))
    job = {**_JOB, "spec": {**_JOB["spec"], "managedBy": "kueue.x-k8s.io/multikueue"}, "status": {}}
    for plain in (job, _owned()):
        manager.observe({"type": "ADDED", "object": versioned(plain, "1")}, now=at(1))
    return manager


def _state(manager: Manager) -> Callable[[], object]:
    return lambda: (
        manager.is_connected("c1"),
        manager.next_wake(at(3)),
        repr(manager.attempts("full", namespace="ns")),
    )


def _done(manager: Manager, *, write: Write, found: Any, error: str, now: Any) -> bool:
    return manager.done(write, Answer(found, error), now=now)


def draw(rng: Random) -> Case:
    """A wrong call, or wrong events and what comes of them."""
    if rng.random() < 0.4:
        return _events(rng)
    manager = _managing()
    name = rng.choice(
        ["observe", "observe", "observe", "resync", "connected", "connection_failed", "connection_pending",
         "connection_lost", "source_changed", "is_connected", "turn", "next_wake", "attempts", "done"]
    )  # fmt: skip
    given: dict[str, Any]
    match name:
        case "observe":
            event = {"type": rng.choice(_EVENTS), "object": versioned(rng.choice(_PARTS))}
            given = {"event": event, "now": at(2), "cluster": rng.choice(["", "c1"])}
        case "resync":
            given = {"kind": rng.choice(["Workload", "Job"]), "objects": [versioned(WORKLOAD)], "now": at(2)}
            given |= {"cluster": rng.choice(["", "c1"]), "resource_version": "200"}
        case "connection_failed":
            reason = rng.choice(list(ConnectionReason))
            given = {"cluster": "c1", "reason": reason, "message": "m", "now": at(2), "is_missing": False}
        case "connection_pending":
            given = {"cluster": "c1", "message": "m", "now": at(2)}
        case "is_connected":
            given = {"cluster": "c1"}
        case "turn" | "next_wake":
            given = {"now": at(2)}
        case "attempts":
            given = {"name": "full", "namespace": "ns"}
        case "done":
            commands = [command for command in manager.turn(at(2)).commands if not isinstance(command, Connect)]
            if not commands:
                return _events(rng)
            found, error = versioned(commands[0].manifest), rng.choice(["", "refused"])
            given = {"write": commands[0], "found": found, "error": error, "now": at(3)}
        case _:
            given = {"cluster": "c1", "now": at(2)}
    call = Call(
        f"Manager.{name}",
        partial(_done, manager) if name == "done" else getattr(manager, name),
        given,
        _state(manager),
        lambda _: manager.turn(at(9)),
        others=("kinds", "list", "answer"),
    )
    return case_of(rng, call, parts=_PARTS)


def _events(rng: Random) -> Case:
    """Whatever it took, its turns come to an end."""
    manager = _managing()
    objects = [versioned(part, str(100 + n)) for n, part in enumerate(rng.sample([*_PARTS, _owned(), _owned()], 4))]
    damages = [damaged(rng, object_, parts=_PARTS) for object_ in objects]
    sent = [(rng.choice(_EVENTS), rng.choice(["", "c1"]), damage) for damage in damages]
    confirms = rng.random() < 0.7

    def act() -> None:
        for kind, cluster, damage in sent:
            for each in ("ADDED", kind):
                try:
                    manager.observe({"type": each, "object": damage.value}, now=at(2), cluster=cluster)
                except (KueuecoreError, TypeError, ValueError, Hostile):
                    continue
        for second in range(3, 6):
            for command in manager.turn(at(second)).commands:
                if isinstance(command, Connect):
                    continue
                answer = Answer() if confirms else Answer(error="refused", code=404 if second == 5 else 0)
                manager.done(command, answer, now=at(second))
            manager.next_wake(at(second))

    reported = " | ".join(f"{kind} {cluster} {damage.what}" for kind, cluster, damage in sent)
    return Case(f"events: {reported}", act, sum(size_of(damage.value) for damage in damages), seconds=4)
