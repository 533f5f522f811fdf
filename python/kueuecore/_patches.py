"""Makes and applies JSON merge patches (RFC 7386). Pure functions on plain JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kueuecore._json import JsonObject, JsonValue, text_at

__all__ = ["merge_patch", "patched", "transplanted", "whole_seconds"]

# Lists in a status whose entries have names. Others write there too, so keep their entries.
_KEYED = {"conditions": "type", "admissionChecks": "name"}
_FRACTION = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+Z")


def merge_patch(before: JsonObject, after: JsonObject) -> JsonObject:
    """Return the merge patch that turns `before` into `after`: whole lists, `None` for removed fields.

    Example:
        >>> merge_patch({"a": 1, "b": {"c": 2, "d": 3}, "e": 4}, {"a": 1, "b": {"c": 5, "d": 3}})
        {'b': {'c': 5}, 'e': None}
    """
    patch: JsonObject = {}
    for name, value in after.items():
        old = before.get(name)
        if name not in before or old != value:
            both = isinstance(old, dict) and isinstance(value, dict)
            patch[name] = merge_patch(old, value) if both else value  # type: ignore[arg-type]  # both are
    patch |= {name: None for name in before if name not in after}
    return patch


def patched(before: JsonObject, patch: JsonObject) -> JsonObject:
    """Apply a merge patch to an object.

    Example:
        >>> patched({"a": 1, "b": {"c": 2, "d": 3}}, {"a": None, "b": {"c": 5}})
        {'b': {'c': 5, 'd': 3}}
    """
    after = dict(before)
    for name, value in patch.items():
        if value is None:
            after.pop(name, None)
        elif isinstance(value, dict):
            old = before.get(name)
            after[name] = patched(old if isinstance(old, dict) else {}, value)
        else:
            after[name] = value
    return after


def transplanted(stored: JsonObject, before: JsonObject, after: JsonObject) -> JsonObject:
    """Apply the changes between two renderings of a status to the stored status.

    What did not change stays as stored, including unknown fields.

    Args:
        stored: The status as the API server has it.
        before: The engine's rendering of it.
        after: The engine's rendering of the new status.

    Example:
        >>> transplanted({"x": 1, "admission": {"y": "1000m"}}, {"admission": {"y": "1"}}, {"clusterName": "z",
        ...              "admission": {"y": "1"}})
        {'x': 1, 'admission': {'y': '1000m'}, 'clusterName': 'z'}
    """
    result = dict(stored)
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if key := _KEYED.get(name):
            entries = _merged(_objects(stored.get(name)), _objects(old), _objects(new), key)
            if entries:
                result[name] = list(entries)
            else:
                result.pop(name, None)
        elif new is None:
            result.pop(name, None)
        elif isinstance(new, dict):
            there = stored.get(name)
            result[name] = transplanted(
                there if isinstance(there, dict) else {}, old if isinstance(old, dict) else {}, new
            )
        else:
            result[name] = new
    return result


def _merged(
    stored: list[JsonObject], before: list[JsonObject], after: list[JsonObject], key: str
) -> Iterable[JsonObject]:
    old = {text_at(entry, key): entry for entry in before}
    new = {text_at(entry, key): entry for entry in after}
    there = {text_at(entry, key): entry for entry in stored}
    for name in dict.fromkeys((*there, *new)):
        if name in old and name not in new:
            continue
        unchanged = name not in new or (name in there and old.get(name) == new[name])
        yield there[name] if unchanged else new[name]


def _objects(value: JsonValue) -> list[JsonObject]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def whole_seconds(value: JsonValue) -> JsonValue:
    """Cut times to whole seconds, as Kubernetes writes them.

    Example:
        >>> whole_seconds({"lastTransitionTime": "2026-01-01T00:00:00.75Z"})
        {'lastTransitionTime': '2026-01-01T00:00:00Z'}
    """
    if isinstance(value, dict):
        return {name: row if name == "message" else whole_seconds(row) for name, row in value.items()}
    if isinstance(value, list):
        return [whole_seconds(row) for row in value]
    if isinstance(value, str) and (match := _FRACTION.fullmatch(value)):
        return f"{match[1]}Z"
    return value
