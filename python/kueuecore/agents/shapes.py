"""Short ways to write JSON Schemas (2020-12)."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import JsonObject, JsonValue

__all__ = [
    "COUNT",
    "FLAG",
    "NUMBER",
    "TEXT",
    "TEXTS",
    "described",
    "free_record",
    "list_of",
    "mapping_of",
    "one_of",
    "optional",
    "record",
]

TEXT: JsonObject = {"type": "string"}
COUNT: JsonObject = {"type": "integer", "minimum": 0}
NUMBER: JsonObject = {"type": "number"}
FLAG: JsonObject = {"type": "boolean"}


def described(shape: JsonObject, text: str) -> JsonObject:
    """Return a schema with a description."""
    return {**shape, "description": text}


def optional(shape: JsonObject) -> JsonObject:
    """Return the schema of a value that may be null."""
    kind = shape.get("type")
    if isinstance(kind, str) and "enum" not in shape:
        return {**shape, "type": [kind, "null"]}
    return {"anyOf": [shape, {"type": "null"}]}


def one_of(*values: str) -> JsonObject:
    """Return the schema of a text that is one of these."""
    choices: list[JsonValue] = [*values]
    return {"type": "string", "enum": choices}


def list_of(shape: JsonObject) -> JsonObject:
    """Return the schema of a list."""
    return {"type": "array", "items": shape}


TEXTS = list_of(TEXT)


def mapping_of(shape: JsonObject) -> JsonObject:
    """Return the schema of an object with any names."""
    return {"type": "object", "additionalProperties": shape}


def record(fields: Mapping[str, JsonObject], *, may_lack: Mapping[str, JsonObject] | None = None) -> JsonObject:
    """Return the schema of an object with certain fields; a later version may add others.

    Args:
        fields: Those that it always has.
        may_lack: Those that it may have.
    """
    required: list[JsonValue] = [*fields]
    return {"type": "object", "properties": {**fields, **(may_lack or {})}, "required": required}


def free_record(text: str) -> JsonObject:
    """Return the schema of an object with a form of its own, such as a Kubernetes object."""
    return {"type": "object", "description": text}
