"""Tables of HTML for notebooks: short, escaped, without styles or scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

from kueuecore._text import shown

__all__ = ["MAX_ROWS", "html_table", "html_text"]

MAX_ROWS = 20
"""The most rows that a notebook shows of a table."""


def html_text(text: str) -> str:
    """Make a paragraph of a text, whatever it looks like."""
    return f"<p>{escape(shown(text))}</p>"


def html_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, n_rows: int | None = None, caption: str = ""
) -> str:
    """Make a table of the first rows, and say how many are left.

    Args:
        header: Names of the columns.
        rows: The rows; with `n_rows`, no more are read than are shown.
        n_rows: How many there are; by default as many as `rows`, which are then all read.
        caption: What the table shows.

    Example:
        >>> html_table(["a"], [["<1>"]])
        '<table><thead><tr><th scope="col">a</th></tr></thead><tbody><tr><td>&lt;1&gt;</td></tr></tbody></table>'
    """
    if n_rows is None:
        rows = [*rows]
        n_rows = len(rows)
    head = "".join(f'<th scope="col">{_cell(name)}</th>' for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(text)}</td>' for text in row)}</tr>" for row in islice(rows, MAX_ROWS))
    says = f"<caption>{_cell(caption)}</caption>" if caption else ""
    more = f"<p>{n_rows - MAX_ROWS:,} more of {n_rows:,} rows</p>" if n_rows > MAX_ROWS else ""
    return f"<table>{says}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(text: str) -> str:
    return escape(shown(text))
