"""Removes finalizers from Workloads and pods."""

from __future__ import annotations

from kueuecore._json import JsonObject, list_at
from kueuecore.jobs.field_paths import with_value

__all__ = ["without_finalizer"]


def without_finalizer(manifest: JsonObject, finalizer: str) -> JsonObject:
    """Return an object without a finalizer; the same object if it has none of that name.

    Example:
        >>> without_finalizer({"metadata": {"finalizers": ["a", "b"]}}, "a")
        {'metadata': {'finalizers': ['b']}}
    """
    finalizers = list_at(manifest, "metadata", "finalizers")
    if finalizer not in finalizers:
        return manifest
    return with_value(manifest, ("metadata", "finalizers"), [other for other in finalizers if other != finalizer])
