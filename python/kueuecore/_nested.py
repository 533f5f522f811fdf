"""Dicts of dicts without empty inner dicts."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["remove"]

_Outer = TypeVar("_Outer")
_Inner = TypeVar("_Inner")
_Value = TypeVar("_Value")


def remove(nested: dict[_Outer, dict[_Inner, _Value]], outer: _Outer, inner: _Inner) -> _Value | None:
    """Remove an entry, and its inner dict if that is empty then; None if there is no such entry."""
    entries = nested.get(outer)
    if entries is None:
        return None
    value = entries.pop(inner, None)
    if not entries:
        del nested[outer]
    return value
