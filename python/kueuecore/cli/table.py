"""Plain text tables, and what a terminal allows: colour and width."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TextIO

__all__ = ["Style", "table"]

_GAP = "  "
# With less room than this for the last column, its text goes below the row.
_NARROWEST = 40
_INDENT = 4
_COLORS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Style:
    """How to write to a stream.

    Args:
        color: With escape sequences for colours?
        width: Columns of the terminal; `None`: lines may have any length.
    """

    color: bool = False
    width: int | None = None

    @classmethod
    def of(cls, stream: TextIO, color: str = "auto") -> Style:
        """The style for a stream: plain and complete unless it is a terminal.

        Args:
            stream: Where it goes.
            color: `always`, `never`, or `auto`: on a terminal, unless `NO_COLOR` is set.
        """
        terminal = stream.isatty()
        allowed = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        width = shutil.get_terminal_size().columns if terminal else None
        return cls(color == "always" or (color == "auto" and terminal and allowed), width)

    def wide(self) -> Style:
        """The same without a limit to the width."""
        return replace(self, width=None)

    def paint(self, text: str, color: str) -> str:
        """The text in a colour, or bold, if there are colours."""
        return f"\x1b[{_COLORS[color]}m{text}\x1b[0m" if self.color and text and color else text


def table(header: Sequence[str], rows: Sequence[Sequence[str]], style: Style, *, right: Sequence[str] = ()) -> str:
    r"""A table of aligned columns. On a terminal the last column is wrapped, or goes below its row if there is no room.

    Args:
        header: Names of the columns.
        rows: Cells, as many as there are columns; they may be painted.
        style: Colour and width.
        right: Names of the columns that are aligned to the right.

    Example:
        >>> print(table(["NAME", "CPU"], [["main", "1"], ["a", "20"]], Style(), right=["CPU"]))
        NAME  CPU
        main    1
        a      20
    """
    widths = [max(_length(row[column]) for row in [header, *rows]) for column in range(len(header))]
    before = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
    room = None if style.width is None else style.width - before
    lines = [_line([style.paint(name, "bold") for name in header], widths, header, right)]
    for row in rows:
        *cells, last = row
        if room is None or _length(last) <= room:
            lines.append(_line(row, widths, header, right))
        elif room >= _NARROWEST:
            first, *rest = _wrapped(last, room)
            lines.append(_line([*cells, first], widths, header, right))
            lines += [" " * before + piece for piece in rest]
        else:
            lines.append(_line([*cells, ""], widths, header, right))
            lines += [" " * _INDENT + piece for piece in _wrapped(last, before + room - _INDENT)]
    return "\n".join(lines)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, _INDENT), break_long_words=False, break_on_hyphens=False)


def _line(cells: Sequence[str], widths: Sequence[int], header: Sequence[str], right: Sequence[str]) -> str:
    padded = []
    for cell, width, name in zip(cells, widths, header, strict=True):
        space = " " * (width - _length(cell))
        padded.append(space + cell if name in right else cell + space)
    return _GAP.join(padded).rstrip()


def _length(text: str) -> int:
    """Columns that a text takes, without what only paints it."""
    return len(_ESCAPE.sub("", text))
