"""Presents a sweep as rows of text, for tables on a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kueuecore._numbers import number_text
from kueuecore._spans import seconds
from kueuecore._text import counted
from kueuecore.studies.sweep_points import called, field_names, value_text
from kueuecore.studies.sweeping import Sweep

__all__ = ["PointRows", "headline", "point_rows"]

_COLUMNS = {
    "mean_wait_seconds": "MEAN WAIT",
    "p95_wait_seconds": "P95 WAIT",
    "never_admitted": "NEVER ADMITTED",
    "failed": "FAILED",
    "evictions": "EVICTIONS",
    "lost_seconds": "LOST",
    "makespan_seconds": "MAKESPAN",
}
_HEADERS = tuple(_COLUMNS.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRows:
    """The points of a sweep as rows.

    Args:
        header: The fields that vary, then the figures.
        rows: A row for each point; figures are medians over seeds.
        legend: What the fields, and values with short names, are in full.
    """

    header: tuple[str, ...]
    rows: list[list[str]]
    legend: tuple[str, ...]


def headline(found: Sweep) -> str:
    """Say how many points and seeds there are."""
    return f"{counted(len(found.points), 'point')}, {counted(len(found.seeds), 'seed')} each"


def point_rows(found: Sweep, order: Sequence[int]) -> PointRows:
    """Return a row for each point.

    Args:
        found: The sweep.
        order: The indices of the points, in the order of the rows.
    """
    targets = [point.target for point in found.points[0]]
    # Leave out what all targets have in common.
    names = targets if len(targets) == 1 else [field_name.upper() for field_name in field_names(targets)]
    rows = []
    values = [[point[place].value for point in found.points] for place in range(len(targets))]
    shorts = [called([point[place] for point in found.points]) for place in range(len(targets))]
    for point in order:
        medians = [found.estimate(point, name).median for name in _COLUMNS]
        rows.append(
            [
                *(short[point] for short in shorts),
                *(_figure(name, median) for name, median in zip(_COLUMNS, medians, strict=True)),
            ]
        )
    legend = [f"{name}: {target}" for name, target in zip(names, targets, strict=True) if name != target]
    if len(targets) == 1:
        names, legend = ["VALUE"], [f"VALUE: {targets[0]}"]
    for name, short, own in zip(names, shorts, values, strict=True):
        said = dict(zip(short, map(value_text, own), strict=True))
        legend += [f"{name} {key}: {text}" for key, text in said.items() if key != text]
    return PointRows(header=(*names, *_HEADERS), rows=rows, legend=tuple(legend))


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return seconds(value) if name.endswith("_seconds") else number_text(value)
