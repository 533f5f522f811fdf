"""Orchestrated preemption: workers may preempt one after the other (rules/06 §8)."""

from __future__ import annotations

from kueuecore._conditions import condition, is_true, transition_time
from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.multikueue.settings import MULTIKUEUE
from kueuecore.multikueue.workload_group import Group, status_patch
from kueuecore.times import format_time
from kueuecore.writes import Write

__all__ = ["open_gate"]


def open_gate(group: Group) -> tuple[Write | None, int | None]:
    """Return the command that lets the next worker preempt, if it may start now, and when to look again.

    The next worker is the one that has waited longest; ties go to the first in the config.
    """
    opened: int | None = None
    waiting: list[tuple[int, int, str]] = []
    for index, (name, worker) in enumerate(group.workers.items()):
        if worker.workload is None:
            continue
        gate = _gate(worker.workload)
        if text_at(gate, "position") == "Open":
            opened = max(opened or 0, transition_time(gate))
        elif is_true(worker.workload, "BlockedOnPreemptionGates"):
            since = transition_time(condition(worker.workload, "BlockedOnPreemptionGates"))
            waiting.append((since, index, name))
    if not waiting:
        return None, None
    timeout = group.settings.preemption_timeout_ns
    if opened is not None and (left := timeout - (group.now - opened)) > 0:
        return None, left
    _, _, name = min(waiting)
    copy = group.copy_on(name)
    return status_patch(name, copy, _opened(copy, group.now)), timeout


def _gate(copy: JsonObject) -> JsonObject | None:
    gates = list_at(copy, "status", "preemptionGates")
    return next((object_at(gate) for gate in gates if text_at(gate, "name") == MULTIKUEUE), None)


def _opened(copy: JsonObject, now: int) -> JsonObject:
    status = object_at(copy, "status")
    opened: JsonObject = {
        "name": MULTIKUEUE,
        "position": "Open",
        "lastTransitionTime": format_time(now // 10**9 * 10**9),
    }
    others: list[JsonValue] = [
        gate for gate in list_at(status, "preemptionGates") if text_at(gate, "name") != MULTIKUEUE
    ]
    return {**status, "preemptionGates": [*others, opened]}
