"""Sets of fields as in `managedFields` (FieldsV1), and the differences between two versions of an object.

A set is a tree: `f:NAME` is a field of a map, `k:{...}` an item of a list by its keys, `v:VALUE` one of a set. A tree
without branches is the field itself; if both the field and some below it belong to the set, `.` stands for the field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from kueuecore_apiserver.shapes import Merging, Shape

__all__ = [
    "FieldSet",
    "compared",
    "difference",
    "fields_of",
    "intersection",
    "paths",
    "steps",
    "union",
    "without",
]

FieldSet: TypeAlias = dict[str, Any]
"""A set of fields as a tree."""
_Json: TypeAlias = Any  # Any JSON value; checked where the type matters.
_SELF = "."


def _has_self(tree: FieldSet) -> bool:
    return not tree or _SELF in tree


def _tree(has_self: bool, branches: FieldSet) -> FieldSet | None:
    """Return a tree, or None if it is empty."""
    if not branches:
        return {} if has_self else None
    return {_SELF: {}, **branches} if has_self else branches


def _branches(tree: FieldSet) -> Iterator[tuple[str, FieldSet]]:
    return ((step, entry) for step, entry in tree.items() if step != _SELF)


def union(one: FieldSet | None, other: FieldSet | None) -> FieldSet | None:
    """Return what is in either set.

    Example:
        >>> union({"f:a": {}}, {"f:a": {"f:b": {}}, "f:c": {}})
        {'f:a': {'.': {}, 'f:b': {}}, 'f:c': {}}
    """
    if one is None or other is None:
        return other if one is None else one
    result = dict(_branches(one))
    for step, branch in _branches(other):
        both = union(result.get(step), branch)
        if both is not None:
            result[step] = both
    return _tree(_has_self(one) or _has_self(other), result)


def intersection(one: FieldSet, other: FieldSet) -> FieldSet | None:
    """Return what is in both sets."""
    result: FieldSet = {}
    for step, branch in _branches(one):
        both = intersection(branch, other[step]) if step in other else None
        if both is not None:
            result[step] = both
    return _tree(_has_self(one) and _has_self(other), result)


def difference(one: FieldSet, other: FieldSet) -> FieldSet | None:
    """Return what is in the first set but not in the second; what is below a field of the second stays."""
    result: FieldSet = {}
    for step, branch in _branches(one):
        rest = difference(branch, other[step]) if step in other else branch
        if rest is not None:
            result[step] = rest
    return _tree(_has_self(one) and not _has_self(other), result)


def without(one: FieldSet, other: FieldSet) -> FieldSet | None:
    """Return what is in the first set, and neither in the second nor below a field of it."""
    result: FieldSet = {}
    for step, branch in _branches(one):
        rest = branch
        if step in other:
            below = other[step]
            left = None if _has_self(below) else without(branch, below)
            if left is None:
                continue
            rest = left
        result[step] = rest
    return _tree(_has_self(one) and not _has_self(other), result)


def paths(tree: FieldSet, prefix: str = "") -> Iterator[str]:
    """Yield the fields of a set as messages write them: `.spec.containers[name="c"].image`."""
    if prefix and _has_self(tree):
        yield prefix
    for step, branch in _branches(tree):
        yield from paths(branch, prefix + _written(step))


def _written(step: str) -> str:
    kind, text = step[:2], step[2:]
    if kind == "f:":
        return f".{text}"
    if kind == "v:":
        return f"[={text}]"
    keys = ",".join(f"{key}={json.dumps(value)}" for key, value in json.loads(text).items())
    return f"[{keys}]"


def steps(items: Iterable[_Json], shape: Shape) -> dict[str, _Json]:
    """Return the items of a keyed list or a set, by their steps in a tree."""
    if shape.merging is Merging.SET:
        return {f"v:{_compact(item)}": item for item in items}
    return {f"k:{_compact(_key(item, shape))}": item for item in items}


def _key(item: _Json, shape: Shape) -> dict[str, _Json]:
    found = item if isinstance(item, dict) else {}
    own = {key: found.get(key, default) for key, default in sorted(shape.keys.items())}
    return {key: value for key, value in own.items() if value is not None}


def _compact(value: _Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _children(value: _Json, shape: Shape) -> Iterator[tuple[str, _Json, Shape]] | None:
    """Yield the parts of a value; return `None` if it counts as a whole."""
    if shape.merging is Merging.ATOMIC:
        return None
    if isinstance(value, dict):
        return ((f"f:{name}", row, shape.at(name)) for name, row in value.items())
    if isinstance(value, list) and shape.merging in (Merging.KEYED, Merging.SET):
        items = shape.items
        return ((step, other, items) for step, other in steps(value, shape).items())
    return None


def fields_of(value: _Json, shape: Shape, *, is_new: bool = False, depth: int = 0) -> FieldSet:
    """Return the fields of a value.

    Args:
        value: The value.
        shape: How it merges.
        is_new: Whether to include maps and lists themselves, as for what an update adds; else only items of lists.
        depth: How deep in the object it is: the object itself is not a field.
    """
    children = _children(value, shape)
    if children is None:
        return {}
    result: FieldSet = {}
    for step, child, below in children:
        tree = fields_of(child, below, is_new=is_new, depth=depth + 1)
        # An item that is applied is owned as such.
        result[step] = {_SELF: {}, **tree} if tree and step[0] == "k" else tree
    return {_SELF: {}, **result} if result and is_new and depth else result


def compared(old: _Json, new: _Json, shape: Shape, *, depth: int = 0) -> tuple[FieldSet | None, FieldSet | None]:
    """Return what was added or changed, and what was removed, of which only the topmost fields.

    Example:
        >>> from kueuecore_apiserver.shapes import ANY
        >>> compared({"a": 1, "b": {"c": 1}}, {"a": 2, "d": {"e": 1}}, ANY)
        ({'f:a': {}, 'f:d': {'.': {}, 'f:e': {}}}, {'f:b': {}})
    """
    if type(old) is not type(new):
        return fields_of(new, shape, is_new=True, depth=depth), {}
    before, after = _children(old, shape), _children(new, shape)
    if before is None or after is None:
        return {}, None
    there = {step: error for step, error, _ in before}
    changed: FieldSet = {}
    removed: FieldSet = {}
    for step, row, below in after:
        if step not in there:
            changed[step] = fields_of(row, below, is_new=True, depth=depth + 1)
            continue
        was = there.pop(step)
        if was is row or was == row:
            continue
        more, less = compared(was, row, below, depth=depth + 1)
        if more is not None:
            changed[step] = more
        if less is not None:
            removed[step] = less
    removed |= {step: {} for step in there}
    return changed or None, removed or None
