"""The charts of sweeps: a curve over one field, a heat map over two, or a panel for each of many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from kueuecore._json import JsonValue
from kueuecore.report.axes import inline, time_axis
from kueuecore.report.figure import WIDTH
from kueuecore.studies import Estimate
from kueuecore.studies.sweep_points import value_text
from kueuecore.times import duration_ns

__all__ = ["SweptMeasure", "curve", "heat_map", "is_heat_map", "panels"]

_POINT, _BEST = "#3b78c2", "#3b8f5f"
_LIGHT, _DARK, _NONE = "#dbe8f7", "#12467f", "#8a94a1"
_HEIGHT, _ROW, _LETTER = 240, 34, 7
# With more columns the numbers in the cells overlap; more rows do not fit on a screen.
_MAX_COLUMNS, _MAX_ROWS = 12, 24
_MAX_SEED_DOTS = 1000
# Above this ratio, small values would overlap on a linear axis.
_LOGARITHMIC = 50
_PANELS_IN_A_ROW = 3


@dataclass(frozen=True, kw_only=True)
class SweptMeasure:
    """A measure at all points.

    Args:
        title: Its name.
        is_time: Whether it is in seconds.
        text: Formats one of its values.
        estimates: Its estimate at each point, over seeds.
        best: The index of the best point.
    """

    title: str
    is_time: bool
    text: Callable[[float], str]
    estimates: Sequence[Estimate]
    best: int

    @property
    def most(self) -> float:
        """The largest value for any seed."""
        return max((value for estimate in self.estimates for value in estimate.values), default=0.0)


def curve(measure: SweptMeasure, values: Sequence[JsonValue], labels: Sequence[str], name: str) -> Any:
    """Draw a measure over one field: medians, their intervals, and the seeds.

    Args:
        measure: The measure.
        values: The value of the field at each point.
        labels: The name of each value.
        name: The name of the field.
    """
    xs, x = _across(values, labels, name, WIDTH)
    y = _up(measure)
    rows: list[dict[str, Any]] = []
    dots: list[dict[str, Any]] = []
    for point, (at, estimate) in enumerate(zip(xs, measure.estimates, strict=True)):
        dots += [{"x": at, "y": value} for value in estimate.values]
        if estimate.median is not None:
            low, high = estimate.interval or (estimate.median,) * 2
            rows.append({"x": at, "y": estimate.median, "low": low, "high": high, "is_best": point == measure.best})
    base = alt.Chart(inline(rows), width=WIDTH, height=_HEIGHT)
    layers = []
    if not isinstance(xs[0], str):
        layers.append(base.mark_line(strokeWidth=1.5, color=_NONE).encode(x=x, y=y))
    layers.append(base.mark_rule(strokeWidth=5, opacity=0.5, color=_POINT).encode(x=x, y="low:Q", y2="high:Q"))
    if len(rows) < len(dots) <= _MAX_SEED_DOTS:
        layers.append(alt.Chart(inline(dots)).mark_circle(size=14, opacity=0.6, color=_POINT).encode(x=x, y=y))
    return alt.layer(*layers, *_medians(base, x, y))


def is_heat_map(fields: Sequence[Sequence[JsonValue]]) -> bool:
    """Return whether two fields form a grid small enough for a heat map.

    Args:
        fields: The values of each field at each point.
    """
    if len(fields) != 2:
        return False
    n_columns, n_rows = sorted(len(_distinct(field)) for field in fields)
    pairs = {(value_text(a), value_text(b)) for a, b in zip(*fields, strict=True)}
    is_whole = len(pairs) == n_columns * n_rows
    return is_whole and n_columns > 1 and n_columns <= _MAX_COLUMNS and n_rows <= _MAX_ROWS


def heat_map(
    measure: SweptMeasure, fields: Sequence[Sequence[JsonValue]], labels: Sequence[Sequence[str]], names: Sequence[str]
) -> Any:
    """Draw a measure over a grid of two fields, with its median in each cell.

    Args:
        measure: The measure.
        fields: The values of both fields at each point.
        labels: The names of these values.
        names: The names of the fields.
    """
    down, across = (0, 1) if len(_distinct(fields[1])) <= _MAX_COLUMNS else (1, 0)
    rows, columns = (_ordered(fields[entry], labels[entry]) for entry in (down, across))
    medians = [estimate.median for estimate in measure.estimates]
    known = [median for median in medians if median is not None]
    data = []
    for point, median in enumerate(medians):
        color = _NONE if median is None else _shade((median - min(known)) / ((max(known) - min(known)) or 1))
        text = "-" if median is None else measure.text(median)
        data.append(
            {
                "row": labels[down][point],
                "column": labels[across][point],
                "color": color,
                "text": f"★ {text}" if point == measure.best else text,
                "ink": _ink(color),
            }
        )
    # Leave the rest of the width to the row labels.
    width = WIDTH - 40 - _LETTER * max(map(len, rows))
    x = alt.X("column:N", sort=columns, title=names[across], axis=_named_axis(columns, width))
    # The title stands above the labels, which may be wider than the measured ones.
    title: dict[str, Any] = {"titleAngle": 0, "titleAlign": "right", "titleAnchor": "end", "titleX": -8, "titleY": -8}
    y = alt.Y("row:N", sort=rows, title=names[down], axis=alt.Axis(grid=False, labelLimit=0, **title))
    base = alt.Chart(inline(data), width=width, height=_ROW * len(rows)).encode(x=x, y=y)
    return alt.layer(
        base.mark_rect().encode(color=alt.Color("color:N", scale=None)),
        base.mark_text(fontSize=12).encode(text="text:N", color=alt.Color("ink:N", scale=None)),
    )


def panels(
    measure: SweptMeasure, fields: Sequence[Sequence[JsonValue]], labels: Sequence[Sequence[str]], names: Sequence[str]
) -> Any:
    """Draw a measure over each of several fields side by side, with a dot for each point.

    Args:
        measure: The measure.
        fields: The values of each field at each point.
        labels: The names of these values.
        names: The names of the fields.
    """
    n_columns = min(len(names), _PANELS_IN_A_ROW)
    width = WIDTH // n_columns - 60
    shown = []
    for place, (values, own, name) in enumerate(zip(fields, labels, names, strict=True)):
        xs, x = _across(values, own, name, width)
        rows = [
            {"x": at, "y": estimate.median, "is_best": point == measure.best}
            for point, (at, estimate) in enumerate(zip(xs, measure.estimates, strict=True))
            if estimate.median is not None
        ]
        base = alt.Chart(inline(rows), width=width, height=_HEIGHT - 40)
        shown.append(alt.layer(*_medians(base, x, _up(measure, is_named=place % n_columns == 0))))
    return alt.concat(*shown, columns=n_columns)


def _medians(base: Any, x: Any, y: Any) -> list[Any]:
    best = base.transform_filter("datum.is_best").mark_point(
        filled=True, size=160, opacity=1, color=_BEST, shape="diamond"
    )
    others = base.transform_filter("!datum.is_best").mark_point(filled=True, size=60, opacity=0.85, color=_POINT)
    return [others.encode(x=x, y=y), best.encode(x=x, y=y)]


def _across(
    values: Sequence[JsonValue], labels: Sequence[str], name: str, width: int
) -> tuple[list[float] | list[str], Any]:
    """Return the position of each point on a field's axis, and the axis."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(values):
        order = _ordered(values, labels)
        axis, scale = _named_axis(order, width), alt.Scale(type="point", padding=0.5)
        return [*labels], alt.X("x:N", sort=order, title=name, axis=axis, scale=scale)
    distinct = sorted(set(numbers))
    is_wide = distinct[0] > 0 and distinct[-1] / distinct[0] >= _LOGARITHMIC
    axis = alt.Axis(grid=False, labelOverlap=True)
    if _angle([*map(value_text, distinct)], width) == 0:
        # Put ticks at the points.
        axis.values = distinct
    scale = alt.Scale(type="log" if is_wide else "linear", zero=False, nice=False, padding=16)
    return numbers, alt.X("x:Q", title=name, axis=axis, scale=scale)


def _up(measure: SweptMeasure, *, is_named: bool = True) -> Any:
    title = measure.title if is_named else ""
    # Leave room for whole dots below the upper edge.
    most = measure.most * 1.05 or 1.0
    if measure.is_time:
        return time_axis("y", most, title=title, channel=alt.Y)
    axis = alt.Axis(title=title, grid=False, tickCount=6)
    return alt.Y("y:Q", axis=axis, scale=alt.Scale(domain=[0, most], nice=False))


def _distinct(values: Sequence[JsonValue]) -> list[str]:
    """Return the distinct values as text: numbers by size, spans by length, others in order of appearance."""
    texts = [*dict.fromkeys(map(value_text, values))]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return sorted(texts, key=float)
    try:
        return sorted(texts, key=duration_ns)
    except ValueError:
        return texts


def _ordered(values: Sequence[JsonValue], labels: Sequence[str]) -> list[str]:
    """Return the names of the distinct values, in their order."""
    name_of = dict(zip(map(value_text, values), labels, strict=True))
    return [name_of[text] for text in _distinct(values)]


def _named_axis(labels: Sequence[str], width: float) -> Any:
    """Make an axis of names: beside each other, or sloping where there is no room, but always whole."""
    return alt.Axis(labelAngle=_angle(labels, width), labelLimit=0, labelOverlap=False, grid=False)


def _angle(labels: Sequence[str], width: float) -> int:
    """Return the angle of labels: horizontal where there is room."""
    return 0 if max(map(len, labels)) * _LETTER <= width / len(labels) - 8 else -35


def _shade(part: float) -> str:
    """Return a shade from light for the least to dark for the most."""
    ends = zip(_channels(_LIGHT), _channels(_DARK), strict=True)
    return "#" + "".join(f"{round(light + (dark - light) * part):02x}" for light, dark in ends)


def _ink(color: str) -> str:
    """Return black or white, whichever is easier to read: the better one always has a contrast of 4.5:1 or more."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in _parts(color)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"


def _channels(color: str) -> list[int]:
    return [int(color[place : place + 2], 16) for place in (1, 3, 5)]


def _parts(color: str) -> list[float]:
    return [channel / 255 for channel in _channels(color)]
