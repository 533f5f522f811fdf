"""What goes over the link to a worker, and whether a request still means what is there."""

from __future__ import annotations

from kueuecore._json import JsonObject, text_at, texts_at
from kueuecore.multikueue import Delete
from kueuecore.multikueue.settings import ORIGIN_LABEL

__all__ = ["is_meant", "is_watched"]


def is_meant(command: Delete, there: JsonObject) -> bool:
    """Do the preconditions of a deletion hold?"""
    wanted = {"uid": command.uid, "resourceVersion": command.resource_version}
    return all(text_at(there, "metadata", key) == value for key, value in wanted.items() if value)


def is_watched(manifest: JsonObject) -> bool:
    """Does the manager watch it: all queues, and of the rest what some manager has made?"""
    return text_at(manifest, "kind") in ("ClusterQueue", "LocalQueue") or (
        ORIGIN_LABEL in texts_at(manifest, "metadata", "labels")
    )
