"""Two values merged as server-side apply merges them, and fields taken out of a value."""

from __future__ import annotations

from typing import Any, TypeAlias

from kueuecore.testing.api_server.field_sets import FieldSet, steps
from kueuecore.testing.api_server.shapes import Merging, Shape

__all__ = ["merged", "removed"]

_Json: TypeAlias = Any  # any value of JSON; which one is looked at where it matters


def merged(live: _Json, config: _Json, shape: Shape) -> _Json:
    """What becomes of a value when a configuration is applied to it.

    Example:
        >>> from kueuecore.testing.api_server.shapes import ANY
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
        items = {step: merged(there[step], it, shape.items) if step in there else it for step, it in wanted.items()}
        return list(_in_order(there, items).values())
    return config


def _in_order(there: dict[str, _Json], items: dict[str, _Json]) -> dict[str, _Json]:
    """The items of a list: applied ones in their order, and the others before the next one that both have."""
    result: dict[str, _Json] = {}
    live = iter(there)
    waiting = next(live, None)
    for step, it in items.items():
        while waiting is not None and (waiting not in items or waiting in result):
            result.setdefault(waiting, there[waiting])
            waiting = next(live, None)
        result[step] = it
    return result | {step: it for step, it in there.items() if step not in items}


def removed(value: _Json, fields: FieldSet, claimed: FieldSet, shape: Shape) -> _Json:
    """A value without some fields of it.

    Args:
        value: The value.
        fields: What goes: whatever is below branches without branches of their own and those with `.`, or those alone.
        claimed: What somebody owns; a map or a list of which nothing is left goes, unless somebody owns it as such.
        shape: How it merges.
    """
    if isinstance(value, dict):
        result = dict(value)
        for name, it in value.items():
            tree = fields.get(f"f:{name}")
            if tree is None:
                continue
            claim = claimed.get(f"f:{name}")
            rest = None if _is_whole(tree) else removed(it, tree, claim or {}, shape.at(name))
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
                # What identifies an item stays as long as it does.
                keys = {key: item[key] for key in shape.keys if key in item}
                left.append({**keys, **removed(item, tree, claimed.get(step, {}), shape.items), **keys})
        return left
    return value


def _is_whole(tree: FieldSet) -> bool:
    return not tree or "." in tree
