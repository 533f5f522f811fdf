"""Finds the names that CEL rules use, and so which fields of a value they can see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from kueuecore_apiserver.schemas.structural_schema import Node

__all__ = ["compares_parts", "escaped", "names_in", "tokens_of"]

_TOKEN = re.compile(
    r"""(?P<text>[rRbB]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"))
    | (?P<name>[A-Za-z_]\w*)
    | (?P<number>\d[\w.]*)
    | (?P<space>\s+)
    | (?P<sign>==|!=|<=|>=|&&|\|\||.)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_KEYWORDS = {
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
}  # fmt: skip
# These return scalars, whatever they are called on.
_SCALAR_CALLS = {"size", "has", "all", "exists", "exists_one", "startsWith", "endsWith", "contains", "matches", "type"}


def tokens_of(source: str) -> list[tuple[str, str]]:
    return [(match.lastgroup or "", match[0]) for match in _TOKEN.finditer(source) if match.lastgroup != "space"]


def names_in(sources: Iterable[str]) -> frozenset[str]:
    """Return all names in the sources of expressions: they read no other field, except by a string in brackets."""
    tokens = [token for source in sources for token in tokens_of(source)]
    texts = {text.strip("'\"") for kind, text in tokens if kind == "text"}
    return frozenset({text for kind, text in tokens if kind == "name"} | texts)


def compares_parts(source: str, node: Node) -> bool:
    """Return whether an expression compares values that have fields, so that all of these fields matter."""
    tokens = tokens_of(source)
    for i, (_, text) in enumerate(tokens):
        if text not in ("==", "!=", "in"):
            continue
        sides = _operand(tokens[:i][::-1], is_before=True), _operand(tokens[i + 1 :], is_before=False)
        if "literal" in sides:
            continue
        if any(_may_have_fields(side, node) for side in sides):
            return True
    # Values that are combined, or passed to a function, may be compared there.
    calls = [one[1] for one, other in pairwise(tokens) if one[0] == "name" and other[1] == "("]
    return any(call not in _SCALAR_CALLS | {"filter", "map"} for call in calls)


def _operand(tokens: Sequence[tuple[str, str]], *, is_before: bool) -> str:
    """Return what a comparison has on one side: `literal`, the name of its last field, or empty if that is unknown.

    Tokens are ordered outwards from the comparison.
    """
    if not tokens:
        return ""
    kind, text = tokens[0]
    if kind in ("text", "number") or text in ("true", "false", "null"):
        return "literal"
    if is_before:
        if kind == "name":
            return text
        return _call(tokens) if text == ")" else ""
    if text == "[":
        inner = [
            token
            for token in tokens[1 : next((i for i, token in enumerate(tokens) if token[1] == "]"), 0)]
            if token[1] != ","
        ]
        return "literal" if inner and all(token[0] in ("text", "number") for token in inner) else ""
    name = ""
    for i, (kind, text) in enumerate(tokens):
        if kind == "name":
            name = text
            if i + 1 < len(tokens) and tokens[i + 1][1] == "(":
                return "literal" if text in _SCALAR_CALLS else ""
        elif text != ".":
            return "" if text in ("(", "[") else name
    return name


def _call(tokens: Sequence[tuple[str, str]]) -> str:
    """Classify the call that ends here, reading backwards: `literal`, or empty."""
    depth = 0
    for i, (_, text) in enumerate(tokens):
        depth += {")": 1, "(": -1}.get(text, 0)
        if depth == 0:
            after = tokens[i + 1] if i + 1 < len(tokens) else ("", "")
            return "literal" if after[1] in _SCALAR_CALLS else ""
    return ""


def _may_have_fields(name: str, node: Node) -> bool:
    """Return whether a value of this name may have fields."""
    if name in ("self", "oldSelf"):
        return _has_fields(node)
    found = [key for part in _all(node) for known, (key, _) in part.properties.items() if escaped(known) == name]
    # A variable may stand for any part.
    return any(map(_has_fields, found or _all(node)))


def _all(node: Node) -> Iterator[Node]:
    yield node
    for part in node.parts():
        yield from _all(part)


def _has_fields(node: Node) -> bool:
    return any(node.properties or node.preserves for node in _all(node))


def escaped(name: str) -> str:
    """Return the name of a field as expressions write it; empty if they cannot."""
    if name in _KEYWORDS:
        return f"__{name}__"
    name = name.replace("__", "__underscores__")
    for sign, word in ((".", "dot"), ("-", "dash"), ("/", "slash")):
        name = name.replace(sign, f"__{word}__")
    return name if name.isidentifier() and name.isascii() else ""
