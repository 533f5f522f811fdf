"""Text from objects, as shown to people: on one line, without control of the terminal, never megabytes long.

`rust/wire/src/field_error.rs` does the same for errors made in Rust. Data (JSON and YAML) stay as they are.
"""

from __future__ import annotations

import re

__all__ = ["LONGEST", "escaped", "quoted", "shortened", "shown"]

LONGEST = 253
"""How many characters of a name or a value are shown; no name in Kubernetes is longer."""

_LONGEST_MESSAGE = 32 * 1024  # nor does a condition have more
_ESCAPES = {"\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r"}
# As it stands in quotes: an escape counts as one.
_CHARACTER = r'(?:\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)|[^"\\])'
_LONG = re.compile(rf'"({_CHARACTER}{{{LONGEST + 1},}})"|\S{{{LONGEST + 1},}}', re.DOTALL)
_BEGINNING = re.compile(rf"{_CHARACTER}{{0,{LONGEST}}}", re.DOTALL)


def shown(text: str) -> str:
    r"""Make a message safe to show: escape it, and shorten its quotes, its words and the whole.

    Example:
        >>> print(shown("LocalQueue \x1b[31mred doesn't exist\n"), len(shown("a" * 1_000_000)))
        LocalQueue \x1b[31mred doesn't exist\n 256
    """
    if len(text) > LONGEST:
        text = _LONG.sub(_cut, text)
    return escaped(text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}...")


def shortened(text: str) -> str:
    """A name or a value; of one that is longer than any name, the beginning.

    Of two that a slash joins (a namespace and a name, the prefix and the name of a label), the beginning of each.
    """
    if len(text) <= LONGEST:
        return text
    parts = text.split("/") if text.count("/") == 1 else [text]
    return "/".join(part if len(part) <= LONGEST else f"{part[:LONGEST]}..." for part in parts)


def escaped(text: str) -> str:
    r"""The text with all that does not print (controls, line ends, text direction) written as Go's `%q` writes it.

    Example:
        >>> print(escaped("a\nb\x1b[2J\x9b\u2028\u202e"))
        a\nb\x1b[2J\u009b\u2028\u202e
    """
    return text if text.isprintable() else "".join(it if it.isprintable() else _escape(it) for it in text)


def quoted(text: str) -> str:
    r"""A name or a value in quotes, as Go's `%q` writes it; of a long one the beginning.

    Example:
        >>> print(quoted('say "no"\n'))
        "say \"no\"\n"
    """
    inner = shortened(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped(inner)}"'


def _cut(match: re.Match[str]) -> str:
    if match[1] is None:
        return shortened(match[0])
    parts = match[1].split("/") if match[1].count("/") == 1 else [match[1]]
    return f'"{"/".join(map(_beginning, parts))}"'


def _beginning(quoted_text: str) -> str:
    """As of `shortened`; no escape is cut in two."""
    match = _BEGINNING.match(quoted_text)
    return quoted_text if match is None or match.end() == len(quoted_text) else f"{match[0]}..."


def _escape(character: str) -> str:
    code = ord(character)
    if character in _ESCAPES:
        return f"\\{_ESCAPES[character]}"
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"  # how Python holds a byte of a file name that is not UTF-8
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
