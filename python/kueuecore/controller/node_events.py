"""Which watch events of Nodes are worth a queue's place: most say only that the node still lives (rules/08 §11.11)."""

from __future__ import annotations

from kueuecore._arguments import instance
from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at

__all__ = ["is_heartbeat"]

# These change with every write.
_OF_VERSION = frozenset({"resourceVersion", "managedFields", "generation"})


def is_heartbeat(before: JsonObject, after: JsonObject) -> bool:
    """Whether two versions of a Node differ in nothing that decides where pods run.

    What counts are its labels and annotations, `spec.unschedulable` and taints, `status.allocatable`, the statuses of
    all conditions, and since when it is ready or not. Heartbeat times, images, addresses and volumes do not. A
    controller that gets such an event all the same does nothing with it, so only drop it to spare your own queue.

    Args:
        before: The Node as it was when an event of it was last passed on; after a drop, still that one.
        after: The Node as it is now.

    Raises:
        TypeError: One of them is no plain data.

    Example:
        >>> ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
        >>> node = {"metadata": {"name": "n"}, "status": {"conditions": [ready]}}
        >>> alive = {**ready, "lastHeartbeatTime": "2026-01-01T00:00:40Z"}
        >>> is_heartbeat(node, {**node, "status": {"conditions": [alive]}})
        True
        >>> is_heartbeat(node, {**node, "status": {"conditions": [{**ready, "status": "Unknown"}]}})
        False
    """
    return _what_counts(instance("before", before, dict)) == _what_counts(instance("after", after, dict))


def _what_counts(node: JsonObject) -> list[JsonValue]:
    spec, status = object_at(node, "spec"), object_at(node, "status")
    conditions: JsonObject = {}
    for condition in list_at(status, "conditions"):
        kind = text_at(condition, "type")
        conditions[kind] = text_at(condition, "status")
        if kind == "Ready":
            conditions["since"] = text_at(condition, "lastTransitionTime")
    metadata: JsonObject = {name: it for name, it in object_at(node, "metadata").items() if name not in _OF_VERSION}
    unschedulable, taints = bool(spec.get("unschedulable")), list_at(spec, "taints")
    return [metadata, unschedulable, taints, object_at(status, "allocatable"), conditions]
