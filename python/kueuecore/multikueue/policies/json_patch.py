"""JSON patches (RFC 6902) with JSON pointers (RFC 6901).

Example:
    >>> apply_json_patch({"image": "a", "args": [1]}, [
    ...     {"op": "replace", "path": "/image", "value": "b"}, {"op": "add", "path": "/args/-", "value": 2}])
    {'image': 'b', 'args': [1, 2]}
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable

from kueuecore._json import JsonObject, JsonValue, text_at

__all__ = ["JsonPatchError", "apply_json_patch"]


class JsonPatchError(ValueError):
    """A patch that can not be applied; the message says which operation and why."""


def apply_json_patch(document: JsonObject, operations: Iterable[JsonObject]) -> JsonObject:
    """A document with some operations done, in their order; all or none.

    Raises:
        JsonPatchError: One of them can not be done.
    """
    # Below one key, so that the whole document is no special case.
    root: JsonValue = {"": copy.deepcopy(document)}
    for operation in operations:
        _do(root, operation)
    result = root[""] if isinstance(root, dict) else None
    if not isinstance(result, dict):
        raise JsonPatchError("an object is no mapping any more")
    return result


def _do(root: JsonValue, operation: JsonObject) -> None:
    kind, path = text_at(operation, "op"), text_at(operation, "path")
    match kind:
        case "add" | "replace" | "test" if "value" in operation:
            value = copy.deepcopy(operation["value"])
        case "copy" | "move":
            value = copy.deepcopy(_get(root, text_at(operation, "from")))
        case "remove":
            value = None
        case _:
            raise JsonPatchError(f"{operation} is no operation")
    if kind == "test":
        # As texts, for Python takes True for 1.
        if json.dumps(_get(root, path), sort_keys=True) != json.dumps(value, sort_keys=True):
            raise JsonPatchError(f"at {path!r} there is something else than {value!r}")
        return
    if kind == "move":
        if path.startswith(f"{text_at(operation, 'from')}/"):
            raise JsonPatchError(f"{path!r} is inside of what is moved there")
        _remove(root, text_at(operation, "from"))
    if kind == "remove":
        _remove(root, path)
    elif kind == "replace":
        _get(root, path)
        _set(root, path, value, inserts=False)
    else:
        _set(root, path, value, inserts=True)


def _steps(path: str) -> list[str]:
    if path and not path.startswith("/"):
        raise JsonPatchError(f"{path!r} is no JSON pointer: begin it with a slash")
    return ["", *(step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:])]


def _get(root: JsonValue, path: str) -> JsonValue:
    value = root
    for step in _steps(path):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list):
            value = value[_index(value, step, path)]
        else:
            raise JsonPatchError(f"there is nothing at {path!r}")
    return value


def _parent(root: JsonValue, path: str) -> tuple[JsonValue, str]:
    steps = _steps(path)
    return (_get(root, path.rpartition("/")[0]) if len(steps) > 1 else root), steps[-1]


def _remove(root: JsonValue, path: str) -> None:
    _get(root, path)
    parent, step = _parent(root, path)
    if isinstance(parent, dict):
        del parent[step]
    elif isinstance(parent, list):
        del parent[int(step)]


def _set(root: JsonValue, path: str, value: JsonValue, *, inserts: bool) -> None:
    parent, step = _parent(root, path)
    if isinstance(parent, dict):
        parent[step] = value
    elif not isinstance(parent, list):
        raise JsonPatchError(f"there is nothing to put {path!r} into")
    elif inserts:
        parent.insert(len(parent) if step == "-" else _index([*parent, None], step, path), value)
    else:
        parent[_index(parent, step, path)] = value


def _index(values: list[JsonValue], step: str, path: str) -> int:
    is_number = step.isascii() and step.isdigit() and (step == "0" or not step.startswith("0"))
    if not is_number or int(step) >= len(values):
        raise JsonPatchError(f"there is nothing at {path!r}")
    return int(step)
