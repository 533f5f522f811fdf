"""Renders the templates. All text is escaped: names and messages of objects are written by strangers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import quote

import jinja2
from starlette.responses import HTMLResponse

from kueuecore._spans import span
from kueuecore._text import counted, escaped

__all__ = ["Shown", "rendered", "workload_path"]

_LAYOUT = ("\n", "\t")


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page shows.

    Args:
        template: The name of its template, without suffix.
        facts: What the template is filled with.
    """

    template: str
    facts: Mapping[str, object]


def workload_path(key: str) -> str:
    """Return the path of a workload's page."""
    return f"/workloads/{_key(key)}"


def answer_path(key: str, part: str) -> str:
    """Return the path of the answer to a question about a workload."""
    return f"/answers/{part}/{_key(key)}"


def _key(key: str) -> str:
    namespace, _, name = key.partition("/")
    return f"{quote(namespace, safe='')}/{quote(name, safe='')}"


def rendered(template: str, facts: Mapping[str, object], *, status: int = 200) -> HTMLResponse:
    """Render a template as an answer.

    Args:
        template: Its name without suffix.
        facts: What it shows.
        status: The status of the answer.
    """
    return HTMLResponse(_environment().get_template(f"{template}.html.j2").render(facts), status)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kueuecore.ui", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalized,
    )
    environment.filters |= {
        "counted": counted,
        "path": lambda text: quote(str(text), safe=""),
        "answer_path": answer_path,
        "workload_path": workload_path,
        "span": span,
    }
    return environment


def _finalized(value: object) -> object:
    """Show control characters and changes of direction as escapes, but keep the lines of commands and forms."""
    if isinstance(value, str) and not hasattr(value, "__html__") and not value.isprintable():
        return "".join(part if part in _LAYOUT else escaped(part) for part in re.split(r"([\n\t])", value))
    return value
