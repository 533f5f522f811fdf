"""Plain JSON in Python, and access to it without trusting its shape."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["JsonObject", "JsonValue", "int_at", "list_at", "object_at", "text_at", "texts_at"]

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
"""Any JSON value."""
JsonObject: TypeAlias = dict[str, JsonValue]
"""A JSON object: a Kubernetes object, or a part of one."""


def object_at(value: JsonValue, *path: str) -> JsonObject:
    """Return the object at `path`; an empty one if it is absent or something else."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def int_at(value: JsonValue, *path: str, default: int = 0) -> int:
    """Return the whole number at `path`; `default` if it is absent or something else."""
    found = object_at(value, *path[:-1]).get(path[-1])
    return found if isinstance(found, int) and not isinstance(found, bool) else default


def list_at(value: JsonValue, *path: str) -> list[JsonValue]:
    """Return the list at `path`; an empty one if it is absent or something else."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, list) else []


def text_at(value: JsonValue, *path: str) -> str:
    """Return the string at `path`; empty if it is absent or something else."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def texts_at(value: JsonValue, *path: str) -> dict[str, str]:
    """Return the map of strings at `path` (labels, annotations), without entries that are not strings."""
    return {key: text for key, text in object_at(value, *path).items() if isinstance(text, str)}
