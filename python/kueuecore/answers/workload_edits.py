"""Edits of a Workload."""

from __future__ import annotations

from kueuecore._json import JsonObject, JsonValue, text_at
from kueuecore.scenarios.edits import Edit

__all__ = ["edit_of"]


def edit_of(workload: JsonObject, path: str, value: JsonValue) -> Edit:
    """Make an edit of a field of a Workload.

    Example:
        >>> edit_of({"metadata": {"namespace": "a", "name": "w"}}, "spec.priority", 5).target
        'Workload/a/w:spec.priority'
    """
    key = f"{text_at(workload, 'metadata', 'namespace')}/{text_at(workload, 'metadata', 'name')}"
    return Edit(kind="Workload", name=key, path=path, value=value)
