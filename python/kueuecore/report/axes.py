"""The axes. Time has its own labels, as no library writes spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from kueuecore.report.figure import COLORS, WIDTH

__all__ = ["color_of", "count_axis", "inline", "time_axis"]

# Vega expressions: 30s, 5m, 1m15s, 1h, 1h20m, 3d, 3d12h.
_MINUTES = (
    "datum.value < 3600 ? floor(datum.value / 60) + 'm' + "
    "(datum.value % 60 ? pad(datum.value % 60, 2, '0', 'left') + 's' : '')"
)
_HOURS = (
    "floor(datum.value / 3600) + 'h' + (datum.value % 3600 ? pad(datum.value % 3600 / 60, 2, '0', 'left') + 'm' : '')"
)
_DAYS = "floor(datum.value / 86400) + 'd' + (datum.value % 86400 ? floor(datum.value % 86400 / 3600) + 'h' : '')"
_LABEL = (
    "datum.value === 0 ? '0' : datum.value < 60 ? datum.value + 's' : "
    f"{_MINUTES} : datum.value < 86400 ? {_HOURS} : {_DAYS}"
)
# The names in a legend, in pixels.
_LETTER, _SYMBOL = 7, 48
_NICE = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)


def time_axis(field: str, seconds: float, *, title: str = "time since the start", channel: Any = alt.X) -> Any:
    """Make an axis for a time in seconds, with ticks at whole minutes, hours or days.

    Args:
        field: The column.
        seconds: The length of the run.
        title: Its title.
        channel: `alt.X`, or `alt.Y` for a vertical axis.
    """
    every = next((it for it in _NICE if seconds / it <= 10), 86400 * max(1, -(-int(seconds) // 864000)))
    ticks = [round(index * every, 1) for index in range(int(seconds // every) + 1)]
    axis = alt.Axis(values=ticks, labelExpr=_LABEL, title=title, grid=False)
    return channel(f"{field}:Q", axis=axis, scale=alt.Scale(domain=[0, seconds], nice=False, clamp=True))


def color_of(names: tuple[str, ...], field: str) -> Any:
    """Give each queue its colour, the same in all charts.

    Args:
        names: The queues with a colour of their own, and possibly one for the others.
        field: The column.
    """
    colors = [COLORS[index % len(COLORS)] for index in range(len(names))]
    # Long names with the same beginning would be cut to the same text.
    width = _LETTER * max(map(len, names), default=0) + _SYMBOL
    legend = alt.Legend(columns=max(1, min(4, WIDTH // width)), labelLimit=WIDTH - _SYMBOL)
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=list(names), range=colors), legend=legend)


def count_axis(most: int, title: str) -> Any:
    """Make an axis for a count: whole numbers only.

    Args:
        most: The largest count.
        title: What is counted.
    """
    axis = alt.Axis(title=title, format=",d")
    if most < 8:
        axis.values = [*range(most + 1)]
    return axis


def inline(rows: Sequence[Mapping[str, object]]) -> Any:
    """Return rows as data embedded in the chart."""
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]  # altair has no type for it
