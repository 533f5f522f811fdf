"""Merges values as server-side apply does, and removes fields from a value."""

from __future__ import annotations

from typing import Any, TypeAlias

from kueuecore_apiserver.field_sets import FieldSet, steps
from kueuecore_apiserver.shapes import Merging, Shape

__all__ = ["merged", "removed"]

_Json: TypeAlias = Any  # Any JSON value; checked where the type matters.


def merged(live: _Json, config: _Json, shape: Shape) -> _Json:
    """Return a value after a configuration was applied to it.

    Example:
        >>> from kueuecore_apiserver.shapes import ANY
        >>> merged({"a": {"b": 1}, "c": [1]}, {"a": {"d": 2}, "c": [2]}, ANY)
        {'a': {'b': 1, 'd': 2}, 'c': [2]}
    """
    if config is None or shape.merging is Merging.ATOMIC or type(live) is not type(config):
        return config
    if isinstance(config, dict):
        result = dict(live)
        for name, value in config.items():
            result[name] = merged(live[name], value, shape.at(name)) if name in live else value
        return result
    if isinstance(config, list) and shape.merging in (Merging.KEYED, Merging.SET):
        there, wanted = steps(live, shape), steps(config, shape)
        items = {
            step: merged(there[step], number, shape.items) if step in there else number
            for step, number in wanted.items()
        }
        return list(_in_order(there, items).values())
    return config


def _in_order(there: dict[str, _Json], items: dict[str, _Json]) -> dict[str, _Json]:
    """Order the items of a list: applied ones in their order, the others before the next item that both have."""
    result: dict[str, _Json] = {}
    live = iter(there)
    waiting = next(live, None)
    for step, item in items.items():
        while waiting is not None and (waiting not in items or waiting in result):
            result.setdefault(waiting, there[waiting])
            waiting = next(live, None)
        result[step] = item
    return result | {step: json for step, json in there.items() if step not in items}


def removed(value: _Json, fields: FieldSet, claimed: FieldSet, shape: Shape) -> _Json:
    """Return a value without some of its fields.

    Args:
        value: The value.
        fields: What to remove: whole values where a branch ends or has `.`, else only what its branches name.
        claimed: What has an owner; an emptied map or list is removed, unless it has an owner itself.
        shape: How it merges.
    """
    if isinstance(value, dict):
        result = dict(value)
        for name, row in value.items():
            tree = fields.get(f"f:{name}")
            if tree is None:
                continue
            claim = claimed.get(f"f:{name}")
            rest = None if _is_whole(tree) else removed(row, tree, claim or {}, shape.at(name))
            if rest or (rest is not None and claim is not None and _is_whole(claim)):
                result[name] = rest
            else:
                del result[name]
        return result
    if isinstance(value, list):
        left = []
        for step, item in steps(value, shape).items():
            tree = fields.get(step)
            if tree is None:
                left.append(item)
            elif not _is_whole(tree):
                # The keys of an item stay as long as the item.
                keys = {key: item[key] for key in shape.keys if key in item}
                left.append({**keys, **removed(item, tree, claimed.get(step, {}), shape.items), **keys})
        return left
    return value


def _is_whole(tree: FieldSet) -> bool:
    return not tree or "." in tree
