"""Makes JSON patches (RFC 6902). Pure functions on plain JSON."""

from __future__ import annotations

from kueuecore._json import JsonObject, JsonValue

__all__ = ["json_patch"]


def json_patch(before: JsonObject, after: JsonObject) -> list[JsonValue]:
    """Return the JSON patch that turns `before` into `after`: lists grow at their ends, or are replaced as a whole.

    Example:
        >>> json_patch({"a": {"b/c": 1}, "d": [1], "e": 2}, {"a": {"b/c": 2, "f": {}}, "d": [1, 3]})
        [{'op': 'replace', 'path': '/a/b~1c', 'value': 2}, {'op': 'add', 'path': '/a/f', 'value': {}}, {'op': 'add', \
'path': '/d/-', 'value': 3}, {'op': 'remove', 'path': '/e'}]
    """
    operations: list[JsonValue] = []
    _compare(before, after, "", operations)
    return operations


def _compare(before: JsonObject, after: JsonObject, path: str, operations: list[JsonValue]) -> None:
    for name, value in after.items():
        place = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if name not in before:
            operations.append({"op": "add", "path": place, "value": value})
            continue
        old = before[name]
        if isinstance(old, dict) and isinstance(value, dict):
            _compare(old, value, place, operations)
        elif isinstance(old, list) and isinstance(value, list) and value[: len(old)] == old:
            operations += [{"op": "add", "path": f"{place}/-", "value": item} for item in value[len(old) :]]
        elif old != value or type(old) is not type(value):
            operations.append({"op": "replace", "path": place, "value": value})
    for name in before:
        if name not in after:
            operations.append({"op": "remove", "path": f"{path}/{name.replace('~', '~0').replace('/', '~1')}"})
