"""Words for people, and text from objects made safe to display: one line, no control characters, bounded length.

`rust/wire/src/field_error.rs` does the same for errors made in Rust. Data output (JSON and YAML) is not changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["LONGEST", "MAX_LOGGED", "counted", "escaped", "join", "listed", "logged", "quoted", "shortened", "shown"]

LONGEST = 253
"""The most characters shown of a name or value; no Kubernetes name is longer."""

MAX_LOGGED = 300
"""The most characters of an error in a log."""
_LOGGED_BEGINNING = 215

_MAX_MESSAGE = 32 * 1024  # the limit of a condition's message
_ESCAPES = {"\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r"}
# In quotes: an escape counts as one character.
_CHARACTER = r'(?:\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)|[^"\\])'
_LONG_WORD = re.compile(rf"\S{{{LONGEST + 1},}}")
# A quote that is never closed is taken whole: or each escaped quote in it would search for the end again.
_LONG = re.compile(rf'"({_CHARACTER}{{{LONGEST + 1},}}+)(?:"|(?P<open>\\?\Z))|{_LONG_WORD.pattern}', re.DOTALL)
_BEGINNING = re.compile(rf"{_CHARACTER}{{0,{LONGEST}}}", re.DOTALL)


def join(path: str, key: str) -> str:
    """Return the field path of `key` below `path`, as the API server writes it: labels and the like go in brackets."""
    if not path:
        return key
    return f"{path}[{key}]" if "." in key or "/" in key else f"{path}.{key}"


def shown(text: str) -> str:
    r"""Make a message safe to show: escape it, and cut long quotes, long words and the whole.

    Example:
        >>> print(shown("LocalQueue \x1b[31mred doesn't exist\n"), len(shown("a" * 1_000_000)))
        LocalQueue \x1b[31mred doesn't exist\n 256
    """
    if len(text) > LONGEST:
        text = _LONG.sub(_cut, text)
    return escaped(text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}...")


def logged(said: object) -> str:
    """Return what an error says for a log: its beginning and its end if it has more than 300 characters.

    A server that refuses an object quotes it in the middle, with all that its pods are given.

    Example:
        >>> text = logged(ValueError(f"it is invalid: {'a' * 1_000_000}: field is immutable"))
        >>> len(text), text[:20], text[-25:]
        (300, 'it is invalid: aaaaa', 'aaaaa: field is immutable')
    """
    text = str(said)
    if len(text) <= MAX_LOGGED:
        return text
    return f"{text[:_LOGGED_BEGINNING]} ... {text[_LOGGED_BEGINNING + 5 - MAX_LOGGED :]}"


def shortened(text: str) -> str:
    """Cut a name or value that is longer than any Kubernetes name.

    In `a/b` (namespace and name, or prefix and name of a label) both parts are cut.
    """
    if len(text) <= LONGEST:
        return text
    parts = text.split("/") if text.count("/") == 1 else [text]
    return "/".join(part if len(part) <= LONGEST else f"{part[:LONGEST]}..." for part in parts)


def escaped(text: str) -> str:
    r"""Escape everything unprintable (controls, line ends, text direction) as Go's `%q` does.

    Example:
        >>> print(escaped("a\nb\x1b[2J\x9b\u2028\u202e"))
        a\nb\x1b[2J\u009b\u2028\u202e
    """
    return text if text.isprintable() else "".join(row if row.isprintable() else _escape(row) for row in text)


def quoted(text: str) -> str:
    r"""Quote a name or value as Go's `%q` does, cut if long.

    Example:
        >>> print(quoted('say "no"\n'))
        "say \"no\"\n"
    """
    inner = shortened(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped(inner)}"'


def counted(number: int, thing: str) -> str:
    """Format a number of things.

    Example:
        >>> counted(1, "job"), counted(0, "job")
        ('1 job', '0 jobs')
    """
    return f"{number} {thing}{'' if number == 1 else 's'}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """List words as a sentence does.

    Example:
        >>> listed(["A"]), listed(["A", "B", "C"]), listed(["A", "B"], "or")
        ('A', 'A, B and C', 'A or B')
    """
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _cut(match: re.Match[str]) -> str:
    if match[1] is None:
        return shortened(match[0])
    if match["open"] is not None:
        return _LONG_WORD.sub(lambda entry: shortened(entry[0]), match[0])
    parts = match[1].split("/") if match[1].count("/") == 1 else [match[1]]
    return f'"{"/".join(map(_beginning, parts))}"'


def _beginning(quoted_text: str) -> str:
    """Like `shortened`, without cutting an escape in two."""
    match = _BEGINNING.match(quoted_text)
    return quoted_text if match is None or match.end() == len(quoted_text) else f"{match[0]}..."


def _escape(character: str) -> str:
    code = ord(character)
    if character in _ESCAPES:
        return f"\\{_ESCAPES[character]}"
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"  # Python's surrogate for a byte of a file name that is not UTF-8
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
