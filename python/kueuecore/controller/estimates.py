"""Recognises changes of a Workload that say when it may start, and nothing that decisions depend on."""

from __future__ import annotations

from kueuecore._json import JsonObject, object_at, text_at

__all__ = ["ESTIMATED_START", "is_estimate"]

ESTIMATED_START = "kueuecore.dev/estimated-start"
"""The beginning of the names of annotations with the time that a Workload may start."""
# What every write changes.
_OF_VERSION = frozenset({"resourceVersion", "managedFields"})


def is_estimate(manifest: JsonObject, before: JsonObject | None) -> bool:
    """Return whether two versions of a Workload differ only in when it may start."""
    if before is None or text_at(manifest, "kind") != "Workload":
        return False
    notes, noted = (object_at(each, "metadata", "annotations") for each in (manifest, before))
    if notes == noted or _without_estimate(notes) != _without_estimate(noted):
        return False
    return _without_notes(manifest) == _without_notes(before)


def _without_estimate(annotations: JsonObject) -> JsonObject:
    return {name: value for name, value in annotations.items() if not name.startswith(ESTIMATED_START)}


def _without_notes(manifest: JsonObject) -> JsonObject:
    metadata = object_at(manifest, "metadata")
    kept = {name: entry for name, entry in metadata.items() if name not in _OF_VERSION and name != "annotations"}
    return {**manifest, "metadata": kept}
