"""Markdown for summaries of CI systems, from text that may hold anything."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kueuecore._text import shown

__all__ = ["MAX_ROWS", "code", "details", "fenced", "markdown_table", "more_rows", "plain", "report_summary"]

MAX_ROWS = 50
"""How many rows a table has: GitHub drops a summary of more than 1 MiB."""

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>&#|~$@!])")
_TICKS = re.compile("`+")


def plain(text: str) -> str:
    r"""Escape text, so that Markdown shows it as it is: in a cell of a table, too.

    Example:
        >>> print(plain("a|b <img src=x> *c*\n"))
        a\|b \<img src=x\> \*c\*\\n
    """
    return _SPECIAL.sub(r"\\\1", shown(text))


def code(text: str) -> str:
    r"""Set a name in code; `-` for none.

    Example:
        >>> print(code("team-a/train"), code("a|b"), code("a`b"))
        `team-a/train` a\|b a\`b
    """
    said = shown(text)
    if not said:
        return "-"
    # In cells of tables, a bar ends even code.
    return plain(text) if "`" in said or "|" in said else f"`{said}`"


def fenced(text: str) -> str:
    """Set lines as they are in a block, which they cannot end.

    Args:
        text: The lines, which hold no control characters but line ends.
    """
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table.

    Args:
        header: The names of the columns.
        rows: Cells, which are Markdown without line ends.
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def details(title: str, body: str) -> str:
    """Fold a part away behind its title, which is plain text."""
    said = shown(title).replace("&", "&amp;").replace("<", "&lt;")
    return f"<details><summary>{said}</summary>\n\n{body}\n\n</details>"


def more_rows(n_rows: int) -> str:
    """Return the sentence after a table that has not all of so many rows; empty if it has."""
    return f"and {n_rows - MAX_ROWS} more" if n_rows > MAX_ROWS else ""


def report_summary(title: str, text: str) -> str:
    """Summarise a command by its own report.

    Args:
        title: The command and its result, as in `kueuecore upgrade: nothing changes`.
        text: The report, without colours; empty if the title says it all.
    """
    return f"### {plain(title)}" + (f"\n\n{fenced(text)}" if text else "")
