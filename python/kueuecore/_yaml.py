"""Parses YAML into plain JSON values as Kubernetes does.

Kubernetes converts YAML to JSON first, and so do we: `_yaml_scalars` converts the scalars. Equal keys and merges
(`<<`) are taken in the order of the text, so that the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import yaml

from kueuecore._json import JsonObject, JsonValue
from kueuecore._text import join, quoted
from kueuecore._yaml_scalars import json_number, key_text, plain_value, tagged_value
from kueuecore.errors import Problem

__all__ = ["Converter", "Scalar", "Tree", "compose", "find", "syntax_problem", "token_spans", "trees"]

_PLAIN = "plain"  # no tag, and no quotes
_TEXT = "tag:yaml.org,2002:str"
_MERGE = "tag:yaml.org,2002:merge"

_DEEPEST = 200
_OPENING = (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken)
_CLOSING = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)
# How far aliases may expand a text: ten times its size, plus an allowance for small texts that repeat a pod template
# for every job. Without a bound, nine lines of aliases of aliases would fill the memory.
_MULTIPLE = 10
_NODES_ON_TOP = 1_000
_CHARACTERS_ON_TOP = 1_000_000
_NESTING = f"an object has at most {_DEEPEST} levels"


def _loader() -> type[Any]:
    """Return libyaml's loader if available, else the pure one; `_yaml_scalars` decides what plain scalars stand for."""
    base: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]  # the base is chosen at run time
        _depth = 0

        def resolve(self, kind: type[yaml.Node], value: object, implicit: tuple[bool, bool]) -> str:
            return _PLAIN if kind is yaml.ScalarNode and implicit[0] else _TEXT

        # libyaml's composer calls these two around every node, and recurses for every child: without a bound, deep
        # nesting would overflow the process's stack.
        def descend_resolver(self, parent: yaml.Node | None, index: object) -> None:
            self._depth += 1
            if self._depth > _DEEPEST:
                mark = parent.start_mark if parent is not None else None
                raise yaml.composer.ComposerError(None, None, "it is nested too deeply", mark)

        def ascend_resolver(self) -> None:
            self._depth -= 1

    return Loader


Loader = _loader()


class _RedefiningLoader(yaml.composer.Composer, Loader):  # type: ignore[misc,valid-type]  # as above
    """Takes an anchor that is there before, as YAML and kubectl do: an alias means the last one above it."""

    def __init__(self, text: str) -> None:
        Loader.__init__(self, text)
        yaml.composer.Composer.__init__(self)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if not self.check_event(yaml.AliasEvent):
            self.anchors.pop(self.peek_event().anchor, None)
        return super().compose_node(parent, index)


def trees(text: str) -> list[Tree | None]:
    """Return the nodes of each document in `text`, None for an empty one; nothing if it cannot be composed."""
    try:
        return [None if node is None else Tree(node) for node in compose(text)]
    except (yaml.YAMLError, RecursionError):
        return []  # for example JSON indented with tabs


def compose(text: str) -> Iterator[yaml.Node | None]:
    """Yield the nodes of each document in `text`."""
    n_done = 0
    try:
        for node in yaml.compose_all(text, Loader=Loader):
            n_done += 1
            yield node
    except yaml.composer.ComposerError as error:
        if "duplicate anchor" not in f"{error.context}":
            raise
        yield from islice(yaml.compose_all(text, Loader=_RedefiningLoader), n_done, None)


def token_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each token of a text starts and ends: between them are only blanks and comments."""
    depth = 0
    for token in yaml.scan(text, Loader=Loader):
        depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
        # The scanner looks at every open bracket again for each token.
        if depth > _DEEPEST:
            raise yaml.scanner.ScannerError(None, None, "it is nested too deeply", token.start_mark)
        yield token.start_mark.index, token.end_mark.index


# The path of a value: its parent's path, and its key or index there.
_Path: TypeAlias = "tuple[_Path, str | int] | None"


class Converted(NamedTuple):
    """A document as a JSON value."""

    value: JsonValue
    problems: list[Problem]
    """What cannot be converted."""
    duplicates: list[Problem]
    """Duplicate keys, of which the last one counts."""


class Converter:
    """Converts the documents of one text to JSON values.

    Together they may have ten nodes per character of the text plus 1,000, and ten times the text's characters plus
    1,000,000 (keys count each time). Only aliases can exceed that.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._nodes_left = _MULTIPLE * len(text) + _NODES_ON_TOP
        self._characters_left = _MULTIPLE * len(text) + _CHARACTERS_ON_TOP
        self._problems: list[Problem] = []
        self._duplicates: list[Problem] = []
        self._open: set[int] = set()
        self._is_template = False
        self.is_exhausted = False
        """Whether aliases have expanded the text beyond that. Then nothing more is converted."""

    def convert(self, node: yaml.Node) -> Converted:
        """Convert a document."""
        self._problems, self._duplicates = [], []
        return Converted(self._value(node, None), self._problems, self._duplicates)

    def _complain(self, node: yaml.Node, path: _Path, message: str, remedy: str, value: str | None = None) -> None:
        self._problems.append(_problem(node, path, message, remedy, value))

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
            return self._json_scalar(node, path)
        if not self._enter(node, path):
            return None
        result: JsonValue
        if isinstance(node, yaml.MappingNode):
            result = {}
            self._read_mapping(node, path, result)
        else:
            result = [self._value(child, (path, index)) for index, child in enumerate(node.value)]
        self._open.discard(id(node))
        return result

    def _enter(self, node: yaml.Node, path: _Path) -> bool:
        """Enter a list or mapping; return whether that is allowed."""
        if id(node) in self._open:
            self._complain(node, path, "an alias inside its own anchor", "write the value out")
            return False
        if len(self._open) == _DEEPEST:
            self._complain(node, path, "it is nested too deeply", _NESTING)
            return False
        self._open.add(id(node))
        return True

    def _read_mapping(self, node: yaml.MappingNode, path: _Path, into: JsonObject) -> None:
        """Add the entries of a mapping."""
        firsts: dict[str, yaml.Node] = {}
        for key_node, value_node in node.value:
            if key_node.value == "<<" and key_node.tag in (_PLAIN, _MERGE):
                self._merge(value_node, path, into)
                continue
            name = self._key(key_node, path)
            if name is None:
                continue
            if name in firsts:
                remedy = f"remove one of them: the first is on line {firsts[name].start_mark.line + 1}"
                self._duplicates.append(_problem(key_node, (path, name), "duplicate key", remedy))
            else:
                firsts[name] = key_node
            into[name] = self._value(value_node, (path, name))

    def _merge(self, node: yaml.Node, path: _Path, into: JsonObject) -> None:
        """Add the entries of the mappings that `<<` refers to; of several the first one counts."""
        for base in reversed(node.value) if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(base, yaml.MappingNode):
                self._complain(base, path, "`<<` does not refer to a mapping", "refer to a mapping")
            elif self._count(base, path) and self._enter(base, path):
                self._read_mapping(base, path, into)
                self._open.discard(id(base))

    def _key(self, node: yaml.Node, path: _Path) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            from kueuecore._written_values import template_remedy  # few texts are wrong

            is_template = isinstance(node, yaml.MappingNode) and node.flow_style
            remedy = template_remedy("{{") if is_template else "write a plain or quoted string before the colon"
            # A template is full of them, and rendering it takes all away.
            if not (is_template and self._is_template):
                self._complain(node, path, "a key that is not a string", remedy)
            self._is_template = self._is_template or is_template
            return None
        if not self._count(node, path):
            return None
        n_problems = len(self._problems)
        key = key_text(self._scalar(node, (path, node.value)))
        if key is None and len(self._problems) == n_problems:
            self._complain(node, path, f"the key {node.value!r} is not a string", f'write "{node.value}"', node.value)
        return key

    def _json_scalar(self, node: yaml.ScalarNode, path: _Path) -> JsonValue:
        value = self._scalar(node, path)
        if not isinstance(value, float):
            return value
        number = json_number(value)
        if number is None:
            message, remedy = f"JSON has no number {node.value}", f'write "{node.value}" for the string, or a number'
            self._complain(node, path, message, remedy, node.value)
        return number

    def _scalar(self, node: yaml.ScalarNode, path: _Path) -> JsonValue:
        text: str = node.value
        if node.tag == _PLAIN:
            value = plain_value(text)
            # The tag `!` makes a string, but libyaml's nodes do not have it.
            return text if value is not text and self._text.startswith("!", node.start_mark.index) else value
        if node.tag == _TEXT:
            return text
        try:
            return tagged_value(node.tag, text)
        except ValueError as error:
            self._complain(node, path, f"Invalid value: {quoted(text)}: {error}", "remove the tag", text)
            return None


def _problem(node: yaml.Node, path: _Path, message: str, remedy: str, value: str | None = None) -> Problem:
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    return Problem(message, field=_written(path), value=value, remedy=remedy, line=line, column=column)


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
    (
        "did not find expected <document start>",
        "remove a line `...` before it, or start the next object with a line ---",
    ),
    ("did not find expected key", "check the indentation, and close every quote and bracket"),
    ("did not find expected '-' indicator", "indent all entries of the list alike"),
    ("unexpected end of stream", "close the quote"),
    ("undefined alias", "define the anchor (&name) above the alias (*name), in the same document"),
    ("control characters are not allowed", "remove the character, or write it as an escape in double quotes"),
)


def syntax_problem(error: yaml.YAMLError, text: str, first_line: int = 1) -> Problem:
    """Turn a YAML syntax error into a problem with its position and a remedy."""
    from kueuecore._written_values import template_remedy  # few texts are wrong

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
    # Only these break YAML, and not always where they are.
    placeholder = "{{" if "{{" in text else next((name for name in ("{%", "${") if name in found), "")
    remedy = template_remedy(placeholder) or remedy
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
        self._entries: dict[str, tuple[yaml.Node, yaml.Node]] = {str(entry[0].value): entry for entry in node.value}
        self._lengths = sorted(set(map(len, self._entries)), reverse=True)

    def longest(self, path: str) -> tuple[yaml.Node, int, str] | None:
        """Return the entry whose key `path` starts with; keys may contain dots, so the longest match counts."""
        begin = int(path.startswith("["))
        for end in (begin + length for length in self._lengths):
            if path[end : end + begin] == "]" * begin and path[end + begin : end + begin + 1] in ("", ".", "["):
                found = self._entries.get(path[begin:end])
                if found is not None:
                    return found[1], found[0].start_mark.line, path[end + begin :]
        return None


class Scalar(NamedTuple):
    """A scalar as it is written.

    Args:
        text: Its text, without quotes.
        is_plain: Whether it has no quotes and no tag.
    """

    text: str
    is_plain: bool


def find(tree: Tree, path: str) -> tuple[int, Scalar | None]:
    """Return the line, from 0, of a field path such as `spec.resourceGroups[0].flavors[1].name`, and the scalar there.

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
            return line, None
        node, line, rest = step
    return line, Scalar(node.value, node.tag == _PLAIN) if isinstance(node, yaml.ScalarNode) else None


def _entry(node: yaml.SequenceNode, path: str) -> tuple[yaml.Node, int, str] | None:
    match = re.match(r"\[([0-9]{1,9})\]", path)
    if match is None or int(match[1]) >= len(node.value):
        return None
    child = node.value[int(match[1])]
    return child, child.start_mark.line, path[match.end() :]
