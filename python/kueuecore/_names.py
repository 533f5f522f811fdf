"""Checks names, with the API server's messages.

All limits count bytes, although the API server says "characters" for names and "bytes" for keys.
"""

from __future__ import annotations

import re

__all__ = ["label_key_problems", "label_problems", "subdomain_problems"]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_KEY_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"


def label_problems(text: str) -> list[str]:
    """Return what is wrong with the name of a namespace."""
    problems = []
    if len(text.encode()) > 63:
        problems.append("must be no more than 63 characters")
    if not re.fullmatch(_LABEL, text) and re.fullmatch(_SUBDOMAIN, text):
        problems.append("must not contain dots")
    elif not re.fullmatch(_LABEL, text):
        problems.append(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
            "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
            f"regex used for validation is '{_LABEL}')"
        )
    return problems


def subdomain_problems(text: str, unit: str = "characters") -> list[str]:
    """Return what is wrong with the name of an object."""
    problems = []
    if len(text.encode()) > 253:
        problems.append(f"must be no more than 253 {unit}")
    if not re.fullmatch(_SUBDOMAIN, text):
        problems.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', "
            f"regex used for validation is '{_SUBDOMAIN}')"
        )
    return problems


def label_key_problems(text: str) -> list[str]:
    """Return what is wrong with a label key."""
    rule = (
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
        "character "
        f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_KEY_NAME}')"
    )
    problems = []
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [f"a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in subdomain_problems(prefix, "bytes")]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not re.fullmatch(_KEY_NAME, name):
        problems.append(f"name part {rule}")
    return problems
