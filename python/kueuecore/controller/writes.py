"""What a controller has to carry out, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from kueuecore._events import event_manifest
from kueuecore._json import JsonObject, object_at, text_at
from kueuecore._keyed import Keyed
from kueuecore._kinds import KUEUE
from kueuecore.checks import ObjectWrite
from kueuecore.decisions import Decision, Event

__all__ = ["Turn", "WorkloadWrite", "conditions_that_hold", "workload_event"]


@dataclass(frozen=True, slots=True)
class WorkloadWrite(Keyed):
    """One merge patch (RFC 7386) of one Workload. It is open until it is confirmed or refused.

    Args:
        namespace: Namespace of the Workload.
        name: Name of the Workload.
        uid: UID of the Workload.
        number: Number of the write, from 1.
        subresource: `status`, or empty for the object itself.
        patch: The patch. It holds the `resourceVersion` that it was made for, so that an API server refuses it with a
            conflict (409) if somebody else wrote first.
        gained: Types of the conditions that become True, such as `Admitted` or `Evicted`.
        lost: Types of the conditions that are no longer True.
        events: The events to emit once it is written.
    """

    namespace: str
    name: str
    uid: str
    number: int
    subresource: str
    patch: JsonObject
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()

    def event_manifests(self, now: str) -> tuple[JsonObject, ...]:
        """Return its events as `v1` Events to create.

        Args:
            now: The time as RFC 3339.
        """
        return tuple(workload_event(event, uid=self.uid, now=now) for event in self.events)


@dataclass(frozen=True, slots=True)
class Turn:
    """The result of one turn of the loop.

    Args:
        decision: The decision of the cycle.
        writes: What to write now, in any order and without delay.
        events: Events that belong to no write.
        objects: Writes of other objects, in this order: what check controllers want, variants to create and delete,
            Workloads past their retention, pods to release or to fail, finalizers of Topologies, statuses of queues. A
            watch shows the outcome, or you call `Controller.refuse_object`.
    """

    decision: Decision
    writes: tuple[WorkloadWrite, ...]
    events: tuple[Event, ...]
    objects: tuple[ObjectWrite, ...] = ()


def workload_event(event: Event, *, uid: str, now: str) -> JsonObject:
    """Return an event as a `v1` Event to create; the API server appends to its name.

    Args:
        event: The event.
        uid: UID of its Workload.
        now: The time as RFC 3339.
    """
    about: JsonObject = {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "namespace": event.namespace,
        "name": event.name,
        "uid": uid,
    }
    return event_manifest(about, type=event.type, reason=event.reason, message=event.message, now=now)


def conditions_that_hold(manifest: JsonObject) -> dict[str, JsonObject]:
    """Return the conditions of an object that are True, by type."""
    conditions = object_at(manifest, "status").get("conditions")
    return {
        text_at(condition, "type"): condition
        for condition in (conditions if isinstance(conditions, list) else [])
        if isinstance(condition, dict) and condition.get("status") == "True"
    }
