"""Filters the watch events of Nodes: most only show that the node is alive (rules/08 §11.11)."""

from __future__ import annotations

from kueuecore._arguments import instance
from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at

__all__ = ["is_heartbeat"]

# These change with every write.
_OF_VERSION = frozenset({"resourceVersion", "managedFields", "generation"})


def is_heartbeat(before: JsonObject, after: JsonObject) -> bool:
    """Return whether two versions of a Node differ in nothing that decides where pods run.

    Labels, annotations, `spec.unschedulable`, taints, `status.allocatable`, the statuses of all conditions, and since
    when it is ready or not count; heartbeat times, images, addresses and volumes do not. A controller ignores such
    events anyway, so drop them only to relieve your own queue.

    Args:
        before: The Node as it was when its last event was passed on, not dropped.
        after: The current Node.

    Raises:
        TypeError: One of them is not plain data.

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
    metadata: JsonObject = {
        name: entry for name, entry in object_at(node, "metadata").items() if name not in _OF_VERSION
    }
    unschedulable, taints = bool(spec.get("unschedulable")), list_at(spec, "taints")
    return [metadata, unschedulable, taints, object_at(status, "allocatable"), conditions]
