"""Decides which events cross the link from a worker."""

from __future__ import annotations

from kueuecore._json import JsonObject, text_at, texts_at
from kueuecore.multikueue.settings import ORIGIN_LABEL

__all__ = ["is_watched"]


def is_watched(manifest: JsonObject) -> bool:
    """Return whether the manager watches an object: all queues, and otherwise only what some manager has created."""
    return text_at(manifest, "kind") in ("ClusterQueue", "LocalQueue") or (
        ORIGIN_LABEL in texts_at(manifest, "metadata", "labels")
    )
