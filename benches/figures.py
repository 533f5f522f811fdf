"""Figures: those that were measured, kept in `.benchmarks`, and those to compare them with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benches.machine import ROOT

__all__ = ["FOLDER", "count", "duration", "goals", "keep", "kept", "ratio", "recorded", "table"]

FOLDER = ROOT / ".benchmarks"


def goals() -> Any:
    """What is aimed at, by name."""
    return _read(ROOT / "benches/goals.json")


def recorded() -> Any:
    """What Kueue took, by name: on another day, on another machine."""
    return _read(ROOT / "benches/recorded.json")


def keep(name: str, figures: object) -> None:
    """Keeps figures for the page."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def kept(name: str) -> Any:
    """Figures kept before; `None` if there are none."""
    path = FOLDER / f"{name}.json"
    return _read(path) if path.exists() else None


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def duration(ns: float | None) -> str:
    """Nanoseconds in a unit that suits them, with three digits; `-` for `None`."""
    if ns is None:
        return "-"
    for size, unit in [(1e9, "s"), (1e6, "ms"), (1e3, "µs")]:
        if ns >= size:
            return f"{_three_digits(ns / size)} {unit}"
    return f"{ns:.0f} ns"


def count(number: float | None) -> str:
    """A large number with three digits: `12.3 M`; `-` for `None`."""
    if number is None:
        return "-"
    for size, unit in [(1e9, " G"), (1e6, " M"), (1e3, " k")]:
        if number >= size:
            return _three_digits(number / size) + unit
    return f"{number:.0f}"


def ratio(ours: float | None, theirs: float | None) -> str:
    """How many times smaller ours is; `-` if one is missing."""
    return f"{_three_digits(theirs / ours)}x" if ours and theirs else "-"


def _three_digits(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def table(head: list[str], rows: list[list[str]], *, n_left: int = 1) -> str:
    """A Markdown table with aligned columns, which reads well on a terminal too.

    Args:
        head: Titles.
        rows: Cells.
        n_left: Columns that are aligned left; the others are right.
    """
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(cells: list[str]) -> str:
        padded = [
            cell.ljust(width) if i < n_left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = [("-" * width) if i < n_left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "\n".join([line(head), line(rule), *map(line, rows)])
