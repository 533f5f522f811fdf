"""The axis of time, with words of its own, as no library writes spans."""

from __future__ import annotations

from typing import Any

import altair as alt

__all__ = ["color_of", "time_axis"]

# Vega's own language: spans as 30s, 5m, 2h, 3d.
_LABEL = (
    "datum.value === 0 ? '0' : datum.value < 60 ? datum.value + 's' : datum.value < 3600 ? round(datum.value / 60) + 'm'"
    " : datum.value < 172800 ? round(datum.value / 360) / 10 + 'h' : round(datum.value / 8640) / 10 + 'd'"
)
_NICE = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)


def time_axis(field: str, seconds: float, *, title: str = "time since the beginning") -> Any:
    """The axis of a time in seconds, with ticks at whole minutes, hours or days.

    Args:
        field: The column.
        seconds: How long the run is.
        title: What it is.
    """
    every = next((it for it in _NICE if seconds / it <= 10), 86400 * max(1, -(-int(seconds) // 864000)))
    ticks = [index * every for index in range(int(seconds // every) + 1)]
    axis = alt.Axis(values=ticks, labelExpr=_LABEL, title=title, grid=False)
    return alt.X(f"{field}:Q", axis=axis, scale=alt.Scale(domain=[0, seconds], nice=False, clamp=True))


def color_of(names: tuple[str, ...], field: str) -> Any:
    """The colour of each queue, the same in all pictures.

    Args:
        names: The queues with a colour of their own, and perhaps one for the others.
        field: The column.
    """
    from kueuecore.report.figure import COLORS

    colors = [COLORS[index % len(COLORS)] for index in range(len(names))]
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=list(names), range=colors))
