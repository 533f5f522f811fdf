"""The axes. Time has its own labels, as no library writes spans."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from kueuecore.report.figure import COLORS, WIDTH

__all__ = ["change_axis", "color_of", "count_axis", "inline", "log_time_axis", "span_text", "time_axis"]

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
_DECADES = (1, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400, 259200, 604800, 2592000, 7776000, 31536000)
_MAX_DECADES = 11
_NICE = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)


def time_axis(
    field: str,
    seconds: float,
    *,
    title: str = "time since the start",
    channel: Any = alt.X,
    dates: Sequence[tuple[float, str]] = (),
) -> Any:
    """Make an axis for a time in seconds, with ticks at whole minutes, hours or days.

    Args:
        field: The column.
        seconds: The length of the run.
        title: Its title.
        channel: `alt.X`, or `alt.Y` for a vertical axis.
        dates: Instead of spans, where ticks are and what they say.
    """
    ticks, label = [date for date, _ in dates], _words(dates)
    if not dates:
        every = _every(seconds)
        ticks, label = [round(index * every, 1) for index in range(int(seconds // every) + 1)], _LABEL
    axis = alt.Axis(values=ticks, labelExpr=label, title="date (UTC)" if dates else title, grid=False)
    return channel(f"{field}:Q", axis=axis, scale=alt.Scale(domain=[0, seconds], nice=False, clamp=True))


def change_axis(field: str, low: float, high: float, *, title: str) -> Any:
    """Make an axis for a span in seconds that may be negative.

    Args:
        field: The column.
        low: The least value.
        high: The largest.
        title: Its title.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    room = (high - low or 1.0) * 0.03
    every = _every(high - low or 1.0)
    ticks = [round(index * every, 1) for index in range(-int(-low // every), int(high // every) + 1)]
    words = [(tick, ("-" if tick < 0 else "+" if tick > 0 else "") + span_text(abs(tick))) for tick in ticks]
    axis = alt.Axis(values=ticks, labelExpr=_words(words), title=title)
    return alt.X(f"{field}:Q", axis=axis, scale=alt.Scale(domain=[low - room, high + room], nice=False))


def log_time_axis(field: str, seconds: float, *, title: str) -> Any:
    """Make a logarithmic axis for spans from a second on; shorter ones are at its left end.

    Args:
        field: The column, at least 1.
        seconds: The longest span.
        title: Its title.
    """
    most = max(seconds, 10.0)
    ticks = [decade for decade in _DECADES if decade <= most]
    while len(ticks) > _MAX_DECADES:
        ticks = ticks[:1] + ticks[2::2]
    words = [(tick, ("≤ " if tick == 1 else "") + span_text(tick)) for tick in ticks]
    axis = alt.Axis(values=ticks, labelExpr=_words(words), title=title, grid=False)
    return alt.X(f"{field}:Q", axis=axis, scale=alt.Scale(type="log", domain=[1, most], nice=False, clamp=True))


def span_text(seconds: float) -> str:
    """Format the tick of an axis.

    Example:
        >>> [span_text(it) for it in (0, 0.5, 75, 3600, 4800, 302400)]
        ['0', '0.5s', '1m15s', '1h', '1h20m', '3d12h']
    """
    if seconds < 60:
        return f"{seconds:g}s" if seconds else "0"
    whole = round(seconds)
    large, small = ("d", "h") if whole >= 86400 else ("h", "m") if whole >= 3600 else ("m", "s")
    size = {"d": 86400, "h": 3600, "m": 60}
    rest = whole % size[large] // size.get(small, 1)
    return f"{whole // size[large]}{large}" + (f"{rest}{small}" if large == "d" else f"{rest:02}{small}") * bool(rest)


def _every(seconds: float) -> float:
    return next((entry for entry in _NICE if seconds / entry <= 10), 86400 * max(1, -(-int(seconds) // 864000)))


def _words(ticks: Sequence[tuple[float, str]]) -> str:
    """Return the Vega expression that labels each tick with its words."""
    return (
        f"({json.dumps([word for _, word in ticks])})[indexof({json.dumps([tick for tick, _ in ticks])}, datum.value)]"
    )


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
    axis = alt.Axis(title=title, format=",d", tickMinStep=1)
    if most < 8:
        axis.values = [*range(most + 1)]
    return axis


def inline(rows: Sequence[Mapping[str, object]]) -> Any:
    """Return rows as data embedded in the chart."""
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]  # altair has no type for it
