"""Regular expressions and string formats as an API server, written in Go, understands them."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date
from functools import cache
from urllib.parse import urlsplit

from kueuecore.times import duration_ns

__all__ = ["formats", "go_pattern"]

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7F",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_TOKEN = re.compile(
    r"""\\Q(?P<literal>.*?)(?:\\E|$)
    | \[:(?P<posix>\^?\w+):\]
    | (?P<escape>\\.)
    | \(\?(?P<flags>[imsU]+(?:-[imsU]+)?|-[imsU]+)\)
    | (?P<open>\[\^?)
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


@cache
def go_pattern(pattern: str) -> re.Pattern[str]:
    r"""Compile a regular expression of Go (RE2) for Python's `re`; its `search` finds what Go finds.

    `$` matches only at the end of the text, not before a final line end; classes such as `\d` are ASCII; and flags may
    stand in the middle of a group and apply up to its end.

    Raises:
        ValueError: Python has no equivalent: `(?U)`, `\C`, `\pN`.

    Example:
        >>> bool(go_pattern("^(?i)[a-z]+$").search("AbC")), bool(go_pattern("^a$").search("a\n"))
        (True, False)
    """
    out: list[str] = []
    # How many groups were opened for flags in each open group.
    opened = [0]
    in_class = multiline = False
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if token["literal"] is not None:
            out.append(re.escape(token["literal"]))
        elif in_class and token["posix"] is not None and token["posix"].removeprefix("^") in _POSIX:
            if token["posix"].startswith("^"):
                raise ValueError(f"no pattern for Python: {text} in {pattern!r}")
            out.append(_POSIX[token["posix"]])
        elif token["escape"] is not None:
            if text[1] in "pPCzE":
                if text[1] != "z":
                    raise ValueError(f"no pattern for Python: {text} in {pattern!r}")
                text = r"\Z"
            out.append(text)
        elif in_class:
            in_class = text != "]" or out[-1] in ("[", "[^")
            out.append(f"\\{text}" if token["open"] else text)
        elif token["flags"] is not None:
            if "U" in token["flags"]:
                raise ValueError(f"no pattern for Python: {text} in {pattern!r}")
            multiline = "m" in token["flags"].partition("-")[0]
            out.append(f"(?{token['flags']}:")
            opened[-1] += 1
        elif token["open"]:
            in_class = True
            out.append(text)
        elif text == "(":
            opened.append(0)
            out.append(text)
        elif text == ")":
            out.append(")" * (opened.pop() + 1) if len(opened) > 1 else text)
        elif text == "|" and opened[-1]:
            # Flags apply to the rest of the group, including its other branches.
            raise ValueError(f"no pattern for Python: flags before | in {pattern!r}")
        elif text == "$" and not multiline:
            out.append(r"\Z")
        else:
            out.append(text)
    out.append(")" * opened[0])
    try:
        return re.compile("".join(out), re.ASCII)
    except re.error as error:
        raise ValueError(f"no pattern for Python: {pattern!r}: {error}") from None


_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", re.ASCII)
_HOST = "[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?"
_NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_UUID = "^[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{0}[0-9a-f]{{3}}-?{1}[0-9a-f]{{3}}-?[0-9a-f]{{12}}$"


def _is_date(text: str) -> bool:
    try:
        return len(text) == 10 and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_date_time(text: str) -> bool:
    day, *rest = text.lower().split("t")
    found = _TIME.fullmatch(rest[0]) if rest else None
    return bool(found and _is_date(day) and found[1] <= "23" and found[2] <= "59" and found[3] <= "59")


def _is_duration(text: str) -> bool:
    try:
        duration_ns(text)
    except ValueError:
        return False
    return True


def _is_address(text: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(text).version == version
    except ValueError:
        return False


def _is_network(text: str) -> bool:
    try:
        return "/" in text and bool(ipaddress.ip_interface(text))
    except ValueError:
        return False


def _is_base64(text: str) -> bool:
    try:
        return bool(text) and bool(base64.b64decode(text, validate=True))
    except binascii.Error:
        return False


def _is_uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


def _matches(expression: str, flags: int = 0) -> Callable[[str], bool]:
    pattern = re.compile(expression.removesuffix("$") + r"\Z", re.ASCII | flags)
    return lambda text: pattern.match(text) is not None


def formats() -> dict[str, Callable[[str], bool]]:
    """Return the string formats that are checked, by name without hyphens.

    An API server ignores formats that it does not know. Of those that it does know, `bsonobjectid`, `isbn`, `isbn10`,
    `isbn13`, `creditcard`, `ssn` and `rgbcolor` are ignored here, too.
    """
    return {
        "date": _is_date,
        "datetime": _is_date_time,
        "duration": _is_duration,
        "ipv4": lambda text: _is_address(text, 4),
        "ipv6": lambda text: _is_address(text, 6),
        "cidr": _is_network,
        "mac": _matches("^([0-9a-fA-F]{2}[:-]){5}([0-9a-fA-F]{2}[:-][0-9a-fA-F]{2}[:-])?[0-9a-fA-F]{2}$"),
        "uuid": _matches(_UUID.format("[0-9a-f]", "[0-9a-f]"), re.IGNORECASE),
        "uuid3": _matches(_UUID.format("3", "[0-9a-f]"), re.IGNORECASE),
        "uuid4": _matches(_UUID.format("4", "[89ab]"), re.IGNORECASE),
        "uuid5": _matches(_UUID.format("5", "[89ab]"), re.IGNORECASE),
        "byte": _is_base64,
        "hexcolor": _matches("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
        "hostname": _matches(rf"^(?=.{{1,255}}$){_HOST}(\.{_HOST})*\.?$"),
        "email": _matches(r"^[^@\s<>]+@[^@\s<>]+$"),
        "uri": _is_uri,
        "password": lambda _: True,
        "k8sshortname": _matches(f"^(?=.{{1,63}}$){_NAME}$"),
        "k8slongname": _matches(rf"^(?=.{{1,253}}$){_NAME}(\.{_NAME})*$"),
    }
