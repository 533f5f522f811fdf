"""What is known to differ from every release of Kueue that plays, and so is not drawn; docs/fidelity.md lists it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kueuecore._json import JsonObject, int_at, object_at, text_at
from kueuecore.testing.history import key_of
from tests.judge.stored import SLICE_OF

__all__ = ["without_known"]


def without_known(
    events: Sequence[JsonObject], config: JsonObject, objects: Sequence[JsonObject]
) -> tuple[list[JsonObject], JsonObject]:
    """Return the events and the settings of a case without what is known to differ; `objects` are there before."""
    config = dict(config)
    has_slices = any(SLICE_OF in object_at(event, "object", "metadata", "annotations") for event in events)
    if has_slices:
        # For a moment Kueue prices a slice and the one that it replaces; the engine prices only the new one.
        config.pop("admissionFairSharing", None)
    pods = object_at(config, "waitForPodsReady")
    if pods.get("blockAdmission"):
        if has_slices:
            # What a slice replaces may change while its cycle waits for pods.
            config["waitForPodsReady"] = {**pods, "blockAdmission": False}
        else:
            # Kueue admits what ended, and says why it waits of what was deleted, while a cycle waited for pods.
            events = [event for event in events if event["op"] != "finish" and not _deletes_work(event)]
    # An API server refuses such a move; in Kueue's memory, those in a backoff stay behind.
    events = list(_without_moves(events, objects))
    if any(_changes_nodes(event) for event in events):
        # A node may fail in the very second in which checks become Ready: who is first is not the same.
        plans = object_at(config, "admissionChecks")
        at_once = {name: {**object_at(plan), "seconds": 0} for name, plan in plans.items() if int_at(plan, "seconds")}
        config |= {"admissionChecks": {**plans, **at_once}} if at_once else {}
    return list(events), config


def _without_moves(events: Sequence[JsonObject], objects: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Yield the events except updates that give a LocalQueue another ClusterQueue."""
    targets = {
        key_of(object_): text_at(object_, "spec", "clusterQueue")
        for object_ in objects
        if object_["kind"] == "LocalQueue"
    }
    for event in events:
        if text_at(event, "object", "kind") == "LocalQueue":
            queue = object_at(event, "object")
            target = text_at(queue, "spec", "clusterQueue")
            if event["op"] == "update" and targets.get(key_of(queue), target) != target:
                continue
            targets[key_of(queue)] = target
        yield event


def _changes_nodes(event: JsonObject) -> bool:
    return event["op"] != "create" and "Node" in (event.get("kind"), text_at(event, "object", "kind"))


def _deletes_work(event: JsonObject) -> bool:
    return event["op"] == "delete" and event.get("kind", "Workload") == "Workload"
