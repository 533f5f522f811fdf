"""The functions that CEL rules may call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, TypeAlias

from cel.stdlib import STDLIB_FUNCTIONS

from kueuecore_apiserver.schemas.go_patterns import go_pattern

__all__ = ["FUNCTIONS", "unknown_functions"]

_Json: TypeAlias = Any

_BUILT_IN = {
    "size", "contains", "startsWith", "endsWith", "matches", "int", "uint", "double", "string", "bytes", "type", "dyn",
    "timestamp", "duration", "getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear",
    "getHours", "getMinutes", "getSeconds", "getMilliseconds", "of", "none", "ofNonZeroValue", "hasValue", "value",
    "orValue", "or", "optional",
}  # fmt: skip


def _is_sorted(items: list[_Json]) -> bool:
    return all(one <= other for one, other in pairwise(items))


def _index_of(found: str | list[_Json], item: _Json, offset: int = 0) -> int:
    if isinstance(found, str):
        return found.find(item, offset)
    return found.index(item) if item in found else -1


def _last_index_of(found: str | list[_Json], item: _Json) -> int:
    if isinstance(found, str):
        return found.rfind(item)
    return len(found) - 1 - found[::-1].index(item) if item in found else -1


def _find(text: str, pattern: str) -> str:
    found = go_pattern(pattern).search(text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match[0] for match in go_pattern(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **STDLIB_FUNCTIONS,
    "isSorted": _is_sorted,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "find": _find,
    "findAll": _find_all,
    "_size": len,
}


def unknown_functions(called: Iterable[str]) -> list[str]:
    """Return which of these functions do not exist here."""
    names = [text for text in called if text[0].isalpha()]
    known = {part for name in FUNCTIONS for part in name.split(".")}
    return [name for name in names if name not in _BUILT_IN and name not in known]
