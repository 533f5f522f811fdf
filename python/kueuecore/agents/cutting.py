"""Cuts an answer that is too large, at whole rows."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kueuecore._json import JsonObject, JsonValue

__all__ = ["Left", "cut_to", "size_of"]


@dataclass(frozen=True, slots=True)
class Left:
    """Rows of a list that were left out.

    Args:
        path: The list, such as `searches[0].holders`.
        shown: How many rows it still has.
        left: How many were left out.
    """

    path: str
    shown: int
    left: int

    def to_dict(self) -> JsonObject:
        """Return it as JSON."""
        return {"path": self.path, "shown": self.shown, "left": self.left}


class _List(NamedTuple):
    """A list of a document, with at least two rows."""

    path: str
    rows: list[JsonValue]


def size_of(value: JsonValue) -> int:
    """Return how many bytes a value has as compact JSON."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def cut_to(document: JsonObject, most_bytes: int, *, newest_last: Container[str] = ()) -> list[Left]:
    """Cut the largest lists of a document until it is small enough; a list keeps a row.

    Args:
        document: The document, which is changed.
        most_bytes: How many bytes of compact JSON it may have.
        newest_last: Lists that lose rows at their beginning, rather than at their end.

    Returns:
        What was left out, in the order of the document; the document may still be too large.
    """
    over = size_of(document) - most_bytes
    if over <= 0:
        return []
    before: dict[str, int] = {}
    while over > 0 and (found := list(_lists(document, ""))):
        longest = max(found, key=lambda entry: size_of(entry.rows))
        before.setdefault(longest.path, len(longest.rows))
        index = 0 if longest.path in newest_last else -1
        while over > 0 and len(longest.rows) > 1:
            over -= size_of(longest.rows.pop(index)) + 1
    still = {path: len(rows) for path, rows in _lists(document, "", least=1)}
    return [Left(path, still[path], n - still[path]) for path, n in before.items() if path in still]


def _lists(value: JsonValue, path: str, *, least: int = 2) -> Iterator[_List]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _lists(inner, f"{path}.{name}" if path else name, least=least)
    elif isinstance(value, list):
        if len(value) >= least:
            yield _List(path, value)
        for index, inner in enumerate(value):
            yield from _lists(inner, f"{path}[{index}]", least=least)
