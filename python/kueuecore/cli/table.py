"""Plain text tables, and what a terminal allows: colour and width."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TextIO, TypeAlias

from kueuecore._text import escaped, shortened, shown

__all__ = ["Cell", "Painted", "Style", "table"]

_GAP = "  "
# With less room than this for the last column, its text goes on lines below the row.
_NARROWEST = 40
_INDENT = 4
# Wider cells do not widen their column.
_WIDEST = 1024
# Columns of sentences or lists of names; every other column has one name or value.
_SENTENCES = (
    "MESSAGE",
    "WHY",
    "OBSTACLE",
    "FLAVORS",
    "USAGE",
    "EACH",
    "WHAT IT DOES",
    "ASKS FOR",
    "DOMAINS",
    "ON NODES",
    "EVICTED",
    "WHAT HAPPENED",
)
_COLORS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


@dataclass(frozen=True, slots=True)
class Style:
    """How to write to a stream.

    Args:
        color: With escape sequences for colours?
        width: Columns of the terminal; `None` for no limit.
    """

    color: bool = False
    width: int | None = None

    @classmethod
    def of(cls, stream: TextIO, color: str = "auto") -> Style:
        """The style for a stream: without colour and wrapping unless it is a terminal.

        Args:
            stream: The stream.
            color: `always`, `never`, or `auto`: on a terminal, unless `NO_COLOR` is set.
        """
        terminal = stream.isatty()
        allowed = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        width = shutil.get_terminal_size().columns if terminal else None
        return cls(color == "always" or (color == "auto" and terminal and allowed), width)

    def wide(self) -> Style:
        """The same style without a limit on the width."""
        return replace(self, width=None)

    def paint(self, text: str, color: str) -> str:
        """The text in a colour, or bold; unchanged if the style has no colours."""
        return f"\x1b[{_COLORS[color]}m{text}\x1b[0m" if self.color and text and color else text


@dataclass(frozen=True, slots=True)
class Painted:
    """A cell in a colour.

    Args:
        text: Its text.
        color: Its colour; empty for none.
    """

    text: str
    color: str


Cell: TypeAlias = str | Painted


def table(header: Sequence[str], rows: Sequence[Sequence[Cell]], style: Style, *, right: Sequence[str] = ()) -> str:
    r"""Lay out a table with aligned columns. On a terminal the last column wraps, or goes below its row if too narrow.

    A cell is always one line: unprintable characters are escaped, and long names are cut off.

    Args:
        header: Names of the columns.
        rows: Cells, as many as there are columns.
        style: Colour and width.
        right: Names of the columns that are aligned to the right.

    Example:
        >>> print(table(["NAME", "CPU"], [["main", "1"], ["a", "20"]], Style(), right=["CPU"]))
        NAME  CPU
        main    1
        a      20
    """
    cells = [[_shown(cell, name) for cell, name in zip(row, header, strict=True)] for row in rows]
    widths = [
        max(len(name), *(len(row[column].text) for row in cells if len(row[column].text) <= _WIDEST), 0)
        for column, name in enumerate(header)
    ]
    before = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
    room = None if style.width is None else style.width - before
    line = partial(_line, widths=widths, is_right=[name in right for name in header], style=style)
    lines = [line([Painted(name, "bold") for name in header])]
    for row in cells:
        *others, last = row
        if room is None or len(last.text) <= room:
            lines.append(line(row))
        elif room >= _NARROWEST:
            first, *rest = _wrapped(last.text, room)
            lines.append(line([*others, Painted(first, last.color)]))
            lines += [" " * before + style.paint(piece, last.color) for piece in rest]
        else:
            lines.append(line([*others, Painted("", "")]))
            pieces = _wrapped(last.text, before + room - _INDENT)
            lines += [" " * _INDENT + style.paint(piece, last.color) for piece in pieces]
    return "\n".join(lines)


def _shown(cell: Cell, column: str) -> Painted:
    text, color = (cell.text, cell.color) if isinstance(cell, Painted) else (cell, "")
    return Painted(shown(text) if column in _SENTENCES else escaped(shortened(text)), color)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, _INDENT), break_long_words=False, break_on_hyphens=False) or [""]


def _line(row: Sequence[Painted], widths: Sequence[int], is_right: Sequence[bool], style: Style) -> str:
    padded = []
    for cell, width, right in zip(row, widths, is_right, strict=True):
        space, painted = " " * (width - len(cell.text)), style.paint(cell.text, cell.color)
        padded.append(space + painted if right else painted + space)
    return _GAP.join(padded).rstrip()
