"""Says what is wrong with how a refused value is written: it is a template's placeholder, or lacks quotes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from kueuecore._text import quoted
from kueuecore._yaml_scalars import plain_value
from kueuecore.errors import Problem

if TYPE_CHECKING:
    from kueuecore._yaml import Scalar

__all__ = ["as_written", "template_remedy"]

_PLACEHOLDER = re.compile(r"(\{\{|\{%)|(\$\{|\$\(?[A-Za-z_])|<[A-Za-z][^<>]*>|__[A-Za-z]\w*__")
_RENDER = "this looks like a template: render it first"
_REFUSED = re.compile(r'((?:Invalid|Unsupported) value)(?:: ("(?:[^"\\]|\\.)*"))?')
_NO_STRING = "must be of type string"


def as_written(problem: Problem, scalar: Scalar | None) -> Problem:
    """Add to the problem of a refused value how it should be written, if it is a placeholder or needs quotes.

    Args:
        problem: The problem.
        scalar: What is written in its field, if that is known.

    Example:
        >>> print(as_written(Problem('Invalid value: "<ns>": a lowercase RFC 1123 label must ...', field="a"), None))
        a: Invalid value: "<ns>"; this looks like a template: render it first, or replace <ns>
    """
    refused = _REFUSED.match(problem.message)
    if refused is None:
        return problem
    for value in filter(None, (scalar and quoted(scalar.text), refused[2])):
        if remedy := template_remedy(value):
            return replace(problem, message=f"{refused[1]}: {value}", remedy=remedy)
    if scalar is None or not scalar.is_plain or _NO_STRING not in problem.message:
        return problem
    read = json.dumps(plain_value(scalar.text))
    why = "" if read == scalar.text else f": without quotes YAML reads {read}"
    return replace(problem, remedy=f'write "{scalar.text}"{why}')


def template_remedy(text: str) -> str:
    """Say what to do about a text with a placeholder; empty if it has none.

    Example:
        >>> template_remedy("team-${TEAM}"), template_remedy("8Gi")
        ('this looks like a template: render it first, for example with `envsubst`', '')
        >>> template_remedy("<your-namespace>")
        'this looks like a template: render it first, or replace <your-namespace>'
    """
    found = _PLACEHOLDER.search(text)
    if found is None:
        return ""
    if found[1]:
        return f"{_RENDER}, for example with `helm template`"
    return f"{_RENDER}, for example with `envsubst`" if found[2] else f"{_RENDER}, or replace {found[0]}"
