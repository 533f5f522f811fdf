"""Single steps in a series of sizes: those whose time grows faster than the work, or might (`make bench-growth`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benches.figures import duration, table
from benches.plots import Line, log_log
from benches.slopes import larger_half, signed, slope

__all__ = ["SERIES", "Series", "growing_plot", "growing_table"]

Figures = Mapping[str, Mapping[str, float]]
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Series:
    """Rows that are alike but for their size.

    Args:
        title: What grows.
        unit: What one of the size is.
        lines: The name of each line, and of its rows: `#` is where the size stands.
    """

    title: str
    unit: str
    lines: Mapping[str, str]


SERIES = {
    "fair-tree": Series(
        "heads in a tree of cohorts",
        "a head",
        {"all fit": "Cycle/fair-5levels/fit/heads=#", "all borrow": "Cycle/fair-5levels/borrow/heads=#"},
    ),
    "preempting": Series(
        "heads that preempt",
        "a head",
        {"cycle": "Cycle/preempt-40/heads=#"},
    ),
    "candidates": Series(
        "candidates in eight flavors",
        "a candidate",
        {"assignment and victims": "Preempt/flavors/8xTryNextFlavor/candidates=#/victims=10"},
    ),
    "placing": Series(
        "nodes",
        "a node",
        {
            "one rack": "Place/required/nodes=#",
            "anywhere": "Place/unconstrained/nodes=#",
            "pods of a new kind": "Place/first/nodes=#",
        },
    ),
}


def points_of(figures: Figures, rows: str) -> list[tuple[float, float]]:
    """Sizes and nanoseconds of the rows of a line, the smallest first."""
    pattern = re.compile(re.escape(rows).replace(re.escape("#"), r"(\d+)"))
    found = ((pattern.fullmatch(name), figure) for name, figure in figures.items())
    return sorted((int(match[1]), figure["best_ns"]) for match, figure in found if match)


def growing_table(figures: Figures, series: Series) -> str:
    """Time and time a unit of each line, and their slopes below."""
    lines = {name: points_of(figures, rows) for name, rows in series.lines.items()}
    sizes = [size for size, _ in next(iter(lines.values()))]
    head = [series.title]
    columns: list[Points] = []
    for name, points in lines.items():
        head += [name, f"{name}, {series.unit}"]
        columns += [points, [(size, ns / size) for size, ns in points]]
    rows = [[f"{size:,.0f}", *(duration(dict(points).get(size)) for points in columns)] for size in sizes]
    rows.append(["slope", *(signed(slope(larger_half(points))) for points in columns)])
    return table(head, rows, n_left=0)


def growing_plot(figures: Figures, series: Series) -> str:
    """The lines of a series as an SVG file."""
    lines = []
    for name, rows in series.lines.items():
        points = points_of(figures, rows)
        lines.append(Line(f"{name}, slope {signed(slope(larger_half(points)))}", points))
    return log_log(f"Time over {series.title}", series.title, lines)
