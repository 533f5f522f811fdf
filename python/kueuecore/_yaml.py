"""Parses YAML into plain JSON values as Kubernetes does, but refuses the traps of YAML 1.1.

Kubernetes converts YAML to JSON first. So do we; but where YAML 1.1 reads plain text as something other than it looks
like (`no`, `017`, `1_000`, `12:30:00`), or keeps the last of two equal keys, we report an error that shows what to
write instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import yaml

from kueuecore._json import JsonObject, JsonValue
from kueuecore.errors import Problem

__all__ = ["Converter", "Text", "find_line", "syntax_problem"]

_TAG = "tag:yaml.org,2002:"
_STR, _INT, _FLOAT = f"{_TAG}str", f"{_TAG}int", f"{_TAG}float"
_BOOL, _NULL, _MERGE, _VALUE = f"{_TAG}bool", f"{_TAG}null", f"{_TAG}merge", f"{_TAG}value"

_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_REAL = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")
# Numbers to Kubernetes' YAML reader, but strings to PyYAML.
_GO_NUMBER = re.compile(r"[-+]?(0[0-9]+|0o[0-7_]+|0x[0-9a-fA-F_]+|[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+)\Z")
_DEEPEST = 200
# How far aliases may expand a text: ten times its size, plus an allowance for small texts that repeat a pod template
# for every job. Without a bound, nine lines of aliases of aliases would fill the memory.
_MULTIPLE = 10
_NODES_ON_TOP = 1_000
_CHARACTERS_ON_TOP = 1_000_000
MOST_DIGITS = 309  # in a whole number: no float64 has more
_BIG = 10**21  # from here on Go writes a whole float with an exponent
_TEMPLATE = "this looks like a template: render it first, for example with `helm template`"
_NESTING = f"an object has at most {_DEEPEST} levels"
_BOOL_WORDS = {"yes": "true", "on": "true", "no": "false", "off": "false"}


def _loader() -> type[Any]:
    """Return libyaml's loader if available, else the pure one; without timestamps, with Kubernetes' numbers."""
    base: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]  # the base is chosen at run time
        yaml_implicit_resolvers: ClassVar = {
            first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{_TAG}timestamp"]
            for first, resolvers in base.yaml_implicit_resolvers.items()
        }

        _depth = 0

        # libyaml's composer calls these two around every node, and recurses for every child: without a bound, deep
        # nesting would overflow the process's stack.
        def descend_resolver(self, parent: yaml.Node | None, index: object) -> None:
            self._depth += 1
            if self._depth > _DEEPEST:
                mark = parent.start_mark if parent is not None else None
                raise yaml.composer.ComposerError(None, None, "it is nested too deeply", mark)
            super().descend_resolver(parent, index)

        def ascend_resolver(self) -> None:
            self._depth -= 1
            super().ascend_resolver()

    Loader.add_implicit_resolver(_INT, _GO_NUMBER, list("-+0123456789"))
    return Loader


Loader = _loader()


@dataclass(slots=True)
class Text:
    """The text of a file; its YAML nodes are composed again when a line number is needed.

    Args:
        text: The text.
        first_line: The line of its file on which the text starts, from 1.
        first_document: The number of its first document in the file, from 1.
    """

    text: str = field(repr=False)
    first_line: int = 1
    first_document: int = 1
    _trees: list[Tree | None] | None = field(default=None, repr=False, compare=False)

    def root(self, document: int) -> Tree | None:
        """Return the nodes of a document in the file; None if the text cannot be composed."""
        if self._trees is None:
            try:
                self._trees = [None if node is None else Tree(node) for node in compose(self.text)]
            except (yaml.YAMLError, RecursionError):
                self._trees = []  # for example JSON indented with tabs
        index = document - self.first_document
        return self._trees[index] if index < len(self._trees) else None


def compose(text: str) -> Iterator[yaml.Node | None]:
    """Yield the nodes of each document in `text`."""
    return iter(yaml.compose_all(text, Loader=Loader))


# The path of a value: its parent's path, and its key or index there.
_Path: TypeAlias = "tuple[_Path, str | int] | None"


class Converter:
    """Converts the documents of one text to JSON values.

    Together they may have ten nodes per character of the text plus 1,000, and ten times the text's characters plus
    1,000,000 (keys count each time). Only aliases can exceed that.

    Args:
        text_length: The length of the text in characters.
    """

    def __init__(self, text_length: int) -> None:
        self._nodes_left = _MULTIPLE * text_length + _NODES_ON_TOP
        self._characters_left = _MULTIPLE * text_length + _CHARACTERS_ON_TOP
        self._problems: list[Problem] = []
        self._open: set[int] = set()
        self.is_exhausted = False
        """Whether aliases have expanded the text beyond that. Then nothing more is converted."""

    def convert(self, node: yaml.Node) -> tuple[JsonValue, list[Problem]]:
        """Return a document as a JSON value, and its problems."""
        self._problems = []
        return self._value(node, None), self._problems

    def _complain(self, node: yaml.Node, path: _Path, message: str, remedy: str, value: str | None = None) -> None:
        mark = node.start_mark
        line, column = mark.line + 1, mark.column + 1
        field = _written(path)
        self._problems.append(Problem(message, field=field, value=value, remedy=remedy, line=line, column=column))

    def _count(self, node: yaml.Node, path: _Path) -> bool:
        """Count a node; return whether it is within the limit."""
        self._nodes_left -= 1
        if isinstance(node, yaml.ScalarNode):
            self._characters_left -= len(node.value)
        if self._nodes_left >= 0 and self._characters_left >= 0:
            return True
        if not self.is_exhausted:
            self.is_exhausted = True
            self._complain(node, path, "the aliases expand to too much text", "write the values out")
        return False

    def _value(self, node: yaml.Node, path: _Path) -> JsonValue:
        if not self._count(node, path):
            return None
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._open:
            self._complain(node, path, "an alias inside its own anchor", "write the value out")
            return None
        if len(self._open) == _DEEPEST:
            self._complain(node, path, "it is nested too deeply", _NESTING)
            return None
        self._open.add(id(node))
        result: JsonValue
        if isinstance(node, yaml.SequenceNode):
            self._check_tag(node, path, f"{_TAG}seq")
            result = [self._value(child, (path, index)) for index, child in enumerate(node.value)]
        else:
            self._check_tag(node, path, f"{_TAG}map")
            result = self._mapping(node, path)
        self._open.discard(id(node))
        return result

    def _mapping(self, node: yaml.Node, path: _Path) -> JsonObject:
        result: JsonObject = {}
        inherited: JsonObject = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                for base in value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]:
                    merged = self._value(base, path)
                    if isinstance(merged, dict):
                        for key, value in merged.items():
                            inherited.setdefault(key, value)
                    else:
                        self._complain(base, path, "`<<` does not refer to a mapping", "refer to a mapping")
                continue
            name = self._key(key_node, path)
            if name is None:
                continue
            line = key_node.start_mark.line + 1
            if name in lines:
                remedy = f"remove one of them: the first is on line {lines[name]}"
                self._complain(key_node, (path, name), "duplicate key", remedy)
            lines.setdefault(name, line)
            result[name] = self._value(value_node, (path, name))
        for key, value in inherited.items():
            result.setdefault(key, value)
        return result

    def _key(self, node: yaml.Node, path: _Path) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            template = isinstance(node, yaml.MappingNode) and node.flow_style
            remedy = _TEMPLATE if template else "write a plain or quoted string before the colon"
            self._complain(node, path, "a key that is not a string", remedy)
            return None
        if not self._count(node, path):
            return None
        n_problems = len(self._problems)
        value = self._scalar(node, (path, node.value), is_key=True)
        if len(self._problems) > n_problems:
            return str(node.value)
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return str(value).lower()
        if value is None or isinstance(value, float):
            self._complain(node, path, f"the key {node.value!r} is not a string", f'write "{node.value}"', node.value)
        return str(node.value)

    def _scalar(self, node: yaml.ScalarNode, path: _Path, *, is_key: bool = False) -> JsonValue:
        text: str = node.value
        if node.tag in (_STR, _VALUE):
            return text
        if node.tag == _NULL:
            return None
        if node.tag == _BOOL:
            word = _BOOL_WORDS.get(text.lower())
            if word is None:
                return text.lower() == "true"
            remedy = f'write "{text}" for the string' + ("" if is_key else f", or {word} for the boolean")
            self._complain(node, path, f"YAML reads the bare word {text} as {word}", remedy, text)
            return None
        if node.tag in (_INT, _FLOAT):
            return self._number(node, path)
        self._check_tag(node, path, "")
        return text

    def _number(self, node: yaml.ScalarNode, path: _Path) -> JsonValue:
        text: str = node.value
        if _DECIMAL.match(text) and len(text) <= MOST_DIGITS:
            return int(text)
        leading_zeros = re.match(r"[-+]?0[0-9]", text) is not None
        if _REAL.match(text) and not leading_zeros:
            number = float(text)
            if abs(number) == float("inf") or len(text) > MOST_DIGITS:
                self._complain(
                    node,
                    path,
                    f"the number {_short(text)} is too large",
                    f'write "{_short(text)}" if it is a string',
                    text,
                )
                return None
            # Kubernetes writes a whole float as an integer, so 1.0 is allowed for an integer.
            return int(number) if number.is_integer() and abs(number) < _BIG else number
        if leading_zeros:
            what = f"YAML reads the bare number {text} as octal"
        elif ":" in text:
            what = f"YAML reads the bare word {text} as a base-60 number"
        elif "_" in text:
            what = f"YAML reads the bare word {text} as a number without its underscores"
        elif text.lower().lstrip("+-0")[:1] in ("x", "b", "o"):
            what = f"the bare number {text} is not decimal"
        else:
            what = f"the number {text} cannot be written in JSON"
        remedy = f'write "{text}" for the string, or a decimal number without leading zeros'
        self._complain(node, path, what, remedy, text)
        return None

    def _check_tag(self, node: yaml.Node, path: _Path, expected: str) -> None:
        if node.tag != expected:
            tag = node.tag.replace(_TAG, "!!")
            self._complain(node, path, f"Kubernetes has no tag {tag}", "remove the tag, or quote the value")


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def join(path: str, key: str) -> str:
    """Return the field path of `key` below `path`, as the API server writes it: labels and the like go in brackets."""
    if not path:
        return key
    return f"{path}[{key}]" if "." in key or "/" in key else f"{path}.{key}"


def _written(path: _Path) -> str:
    """Format a path as the API server writes it."""
    steps = []
    while path is not None:
        path, step = path
        steps.append(step)
    written = ""
    for step in reversed(steps):
        written = f"{written}[{step}]" if isinstance(step, int) else join(written, step)
    return written


_REMEDIES = (
    ("nested too deeply", _NESTING),
    ("mapping values are not allowed", "quote the value if it contains ': ', otherwise check the indentation"),
    ("cannot start any token", "indent with spaces, not tabs; quote values that start with @, ` or %"),
    ("could not find expected ':'", "write 'key: value', with a space after the colon"),
    ("did not find expected key", "check the indentation, and close every quote and bracket"),
    ("did not find expected '-' indicator", "indent all entries of the list alike"),
    ("unexpected end of stream", "close the quote"),
    ("undefined alias", "define the anchor (&name) above the alias (*name), in the same document"),
    ("control characters are not allowed", "remove the character, or write it as an escape in double quotes"),
)


def syntax_problem(error: yaml.YAMLError, text: str, first_line: int = 1) -> Problem:
    """Turn a YAML syntax error into a problem with its position and a remedy."""
    message, line, column = str(error), first_line, 1
    if isinstance(error, yaml.MarkedYAMLError):
        message = error.problem or error.context or "it cannot be read"
        mark = error.problem_mark or error.context_mark
        if mark is not None:
            line, column = first_line + mark.line, mark.column + 1
    elif isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position]
        message = (
            f"the character {error.character!r}: {error.reason}"
            if isinstance(error.character, str)
            else (f"the character U+{error.character:04X}: {error.reason}")
        )
        line, column = first_line + before.count("\n"), len(before) - (before.rfind("\n") + 1) + 1
    remedy = next((remedy for part, remedy in _REMEDIES if part in message), "check indentation and quotes")
    lines = text.splitlines()
    found = lines[line - first_line].strip() if line - first_line < len(lines) else ""
    if "{{" in text:
        remedy = _TEMPLATE
    found = "".join(character if character.isprintable() else "?" for character in found[:80])
    context = f", found: {found}" if found else ""
    return Problem(f"this is not YAML: {message}{context}", remedy=remedy, line=line, column=column)


@dataclass(slots=True)
class Tree:
    """A composed document, for line lookups."""

    root: yaml.Node
    _keys: dict[int, _Keys] = field(default_factory=dict)

    def keys(self, node: yaml.MappingNode) -> _Keys:
        """Return the keys of a mapping, cached: a thousand problems may be about one mapping."""
        return self._keys.get(id(node)) or self._keys.setdefault(id(node), _Keys(node))


class _Keys:
    """The keys of a mapping as they appear in field paths, `key` or `[key]`."""

    def __init__(self, node: yaml.MappingNode) -> None:
        self._entries: dict[str, tuple[yaml.Node, int]] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            for spelling in (key, f"[{key}]"):
                self._entries.setdefault(spelling, (value_node, key_node.start_mark.line))
        self._lengths = sorted(set(map(len, self._entries)), reverse=True)

    def longest(self, path: str) -> tuple[yaml.Node, int, str] | None:
        """Return the entry whose key `path` starts with; keys may contain dots, so the longest match counts."""
        for length in self._lengths:
            if length <= len(path) and path[length : length + 1] in ("", ".", "["):
                found = self._entries.get(path[:length])
                if found is not None:
                    return (*found, path[length:])
        return None


def find_line(tree: Tree, path: str) -> int:
    """Return the line, from 0, of a field path such as `spec.resourceGroups[0].flavors[1].name`.

    For a missing field it is the line of the nearest parent that exists.
    """
    node, line, rest = tree.root, tree.root.start_mark.line, path
    while rest:
        if isinstance(node, yaml.MappingNode):
            step = tree.keys(node).longest(rest.removeprefix("."))
        elif isinstance(node, yaml.SequenceNode):
            step = _entry(node, rest)
        else:
            step = None
        if step is None:
            break
        node, line, rest = step
    return line


def _entry(node: yaml.SequenceNode, path: str) -> tuple[yaml.Node, int, str] | None:
    match = re.match(r"\[([0-9]{1,9})\]", path)
    if match is None or int(match[1]) >= len(node.value):
        return None
    child = node.value[int(match[1])]
    return child, child.start_mark.line, path[match.end() :]
