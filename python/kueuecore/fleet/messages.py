"""Decides which messages cross the link to a worker, and whether a request still applies to the object there."""

from __future__ import annotations

from kueuecore._json import JsonObject, text_at, texts_at
from kueuecore.multikueue import Delete
from kueuecore.multikueue.settings import ORIGIN_LABEL

__all__ = ["is_meant", "is_watched"]


def is_meant(command: Delete, there: JsonObject) -> bool:
    """Return whether the preconditions of a deletion hold."""
    wanted = {"uid": command.uid, "resourceVersion": command.resource_version}
    return all(text_at(there, "metadata", key) == value for key, value in wanted.items() if value)


def is_watched(manifest: JsonObject) -> bool:
    """Return whether the manager watches an object: all queues, and otherwise only what some manager has created."""
    return text_at(manifest, "kind") in ("ClusterQueue", "LocalQueue") or (
        ORIGIN_LABEL in texts_at(manifest, "metadata", "labels")
    )
