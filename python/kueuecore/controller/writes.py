"""What a controller has to carry out, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.decisions import Decision, Event
from kueuecore.writes import Write

__all__ = ["Turn", "conditions_that_hold"]


@dataclass(frozen=True, slots=True)
class Turn:
    """The result of one turn of the loop.

    Args:
        decision: The decision of the cycle.
        writes: Merge patches of Workloads to send now, in any order: at most one for each, open until you report how it
            went (`Controller.done`).
        events: Events that belong to no write.
        objects: Writes of other objects, in this order: what check controllers want, variants to create and delete,
            Workloads past their retention, pods to release or to fail, finalizers of Topologies, statuses of queues. A
            watch shows the outcome; report what is refused.
    """

    decision: Decision
    writes: tuple[Write, ...]
    events: tuple[Event, ...]
    objects: tuple[Write, ...] = ()


def conditions_that_hold(manifest: JsonObject) -> dict[str, JsonObject]:
    """Return the conditions of an object that are True, by type."""
    conditions = object_at(manifest, "status").get("conditions")
    return {
        text_at(condition, "type"): condition
        for condition in (conditions if isinstance(conditions, list) else [])
        if isinstance(condition, dict) and condition.get("status") == "True"
    }
