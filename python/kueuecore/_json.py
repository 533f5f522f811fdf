"""Plain JSON as Python holds it, and how to look into it without trusting its shape."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["JsonObject", "JsonValue", "int_at", "list_at", "object_at", "text_at", "texts_at"]

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
"""Whatever JSON can hold."""
JsonObject: TypeAlias = dict[str, JsonValue]
"""A JSON object: a Kubernetes object, or a part of one."""


def object_at(value: JsonValue, *path: str) -> JsonObject:
    """The object at `path`; an empty one when there is none or something else stands there."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def int_at(value: JsonValue, *path: str, default: int = 0) -> int:
    """The whole number at `path`; `default` when there is none or something else stands there."""
    found = object_at(value, *path[:-1]).get(path[-1])
    return found if isinstance(found, int) and not isinstance(found, bool) else default


def list_at(value: JsonValue, *path: str) -> list[JsonValue]:
    """The list at `path`; an empty one when there is none or something else stands there."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, list) else []


def text_at(value: JsonValue, *path: str) -> str:
    """The text at `path`; empty when there is none or something else stands there."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def texts_at(value: JsonValue, *path: str) -> dict[str, str]:
    """The map of texts at `path` (labels, annotations), without the entries that are no text."""
    return {key: text for key, text in object_at(value, *path).items() if isinstance(text, str)}
