"""Reads and writes at field paths such as `("spec", "replicatedJobs", 0, "template")`; writes copy objects."""

from __future__ import annotations

from typing import TypeAlias

from kueuecore._json import JsonObject, JsonValue

__all__ = ["Key", "Path", "path_text", "value_at", "with_value", "without_value"]

Path: TypeAlias = "tuple[str | int, ...]"
"""From the top of an object to one of its fields: names, and positions in lists."""


class Key(str):
    """A user's name in a path, a key of a map: errors show it in brackets."""

    __slots__ = ()


def path_text(path: Path) -> str:
    """Return the path as errors show it.

    Example:
        >>> path_text(("spec", "replicatedJobs", 0, "template"))
        'spec.replicatedJobs[0].template'
    """
    return "".join(f"[{name}]" if isinstance(name, int | Key) else f".{name}" for name in path).removeprefix(".")


def value_at(value: JsonValue, path: Path) -> JsonValue:
    """Return the value at `path`; None if there is none."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def with_value(job: JsonObject, path: Path, new: JsonValue) -> JsonObject:
    """Return a copy of `job` with `new` at `path`; missing objects on the path are created.

    Example:
        >>> with_value({"spec": {"a": 1}}, ("spec", "suspend"), True)
        {'spec': {'a': 1, 'suspend': True}}
    """
    result = _with_value(job, path, new)
    return result if isinstance(result, dict) else job


def without_value(job: JsonObject, path: Path) -> JsonObject:
    """Return a copy of `job` without the value at `path`, a field of an object."""
    parent, name = value_at(job, path[:-1]), path[-1]
    if not isinstance(parent, dict) or name not in parent:
        return job
    return with_value(job, path[:-1], {key: value for key, value in parent.items() if key != name})


def _with_value(value: JsonValue, path: Path, new: JsonValue) -> JsonValue:
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        items = list(value) if isinstance(value, list) else []
        items += [{} for _ in range(step + 1 - len(items))]
        items[step] = _with_value(items[step], rest, new)
        return items
    fields = dict(value) if isinstance(value, dict) else {}
    fields[step] = _with_value(fields.get(step), rest, new)
    return fields
