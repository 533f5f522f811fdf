"""The figures of plans: how waits depend on quota."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import altair as alt

from kueuecore._numbers import number_text
from kueuecore.report.axes import inline, time_axis
from kueuecore.report.facts import clock, counted
from kueuecore.report.figure import WIDTH, Figure, svg
from kueuecore.report.page import render
from kueuecore.studies import Plan, PlanPoint
from kueuecore.studies.quota_scaling import unit_suffix

__all__ = ["plan_html"]

# The chart leaves out waits this many times the target, and quotas this many times the answer.
_HIGHEST, _WIDEST = 4, 2.2
_MEETS, _FAILS = "meets the target", "does not"
_COLORS = {_MEETS: "#3b8f5f", _FAILS: "#c25b3b"}


def plan_html(plans: Sequence[Plan], *, title: str) -> str:
    """Render plans as one page.

    Args:
        plans: The plans, at least one.
        title: Its heading.
    """
    target = plans[0].target
    numbers = [("target", f"{target.figure} ≤ {clock(target.seconds)}")]
    for found in plans:
        needed = "no quota is enough" if found.answer is None else _amount(found, found.answer.n_units)
        numbers.append((f"{found.scale.name} now", _amount(found, float(found.scale.now))))
        numbers.append((f"{found.scale.name} needed", needed))
    n_seeds = counted(len(plans[0].seeds), "seed")
    return render(
        title=title,
        subtitle=f"How much quota keeps waits short: {n_seeds}; the target must be met in {plans[0].n_needed}.",
        figures=[_figure(found, index) for index, found in enumerate(plans)],
        numbers=numbers,
        releases=[plan.release for plan in plans],
        notices=plans[0].notices,
    )


def _figure(found: Plan, index: int) -> Figure:
    answer, target = found.answer, found.target
    widest = found.points[-1].n_units if answer is None else max(_WIDEST * answer.n_units, 1)
    points = [point for point in found.points if point.n_units <= widest]
    finite = [wait for point in points for wait in point.waits if isfinite(wait)]
    highest = max(min(max(finite, default=1.0), _HIGHEST * target.seconds), target.seconds * 1.2, 1.0)
    data = [_drawn(found, point, highest) for point in points]
    if answer is None:
        says = f"No quota meets the target: {target.figure} is {_wait(found.unlimited.wait)} without this limit."
    else:
        wanted = f"{target.says} {clock(target.seconds)} or less"
        says = f"{_amount(found, answer.n_units)} is the smallest quota with which {wanted}."
    return Figure(
        title=f"Waits by quota of {found.scale.name}",
        says=says,
        note="A dot is the wait that counts; a bar spans the seeds with the shortest and the longest wait. "
        "A triangle is a wait beyond the chart, or an endless one. The dashed line is the target; upright lines are "
        "the quota now and the answer.",
        picture=svg(_chart(found, data, highest), name=f"plan{index}"),
        header=("quota", target.figure, "least", "most", "never admitted", "used", "meets it"),
        rows=[_row(found, point) for point in found.points],
    )


def _drawn(found: Plan, point: PlanPoint, highest: float) -> dict[str, Any]:
    return {
        "quota": point.n_units,
        "wait": min(point.wait, highest),
        "low": min(*point.waits, highest),
        "high": min(max(point.waits), highest),
        "meets": _MEETS if found.meets(point) else _FAILS,
        "shape": "dot" if point.wait <= highest else "beyond",
    }


def _chart(found: Plan, data: list[dict[str, Any]], highest: float) -> Any:
    unit = unit_suffix(found.scale.resource) or {"cpu": "cores"}.get(found.scale.resource, "")
    title = f"quota of {found.scale.name}" + (f", {unit}" if unit else "")
    most = max(row["quota"] for row in data)
    x = alt.X(
        "quota:Q", title=title, axis=alt.Axis(format=",d", tickMinStep=1, grid=False), scale=alt.Scale(domain=[0, most])
    )
    y = time_axis("wait", highest, title=f"wait, {found.target.figure}", channel=alt.Y)
    color = alt.Color("meets:N", scale=alt.Scale(domain=[*_COLORS], range=[*_COLORS.values()]))
    shape = alt.Shape(
        "shape:N", scale=alt.Scale(domain=["dot", "beyond"], range=["circle", "triangle-up"]), legend=None
    )
    base = alt.Chart(inline(data), width=WIDTH, height=260)
    target = alt.Chart(inline([{"wait": found.target.seconds}])).mark_rule(strokeDash=[6, 4], color="currentColor")
    # No line between endless waits.
    line = base.transform_filter("datum.shape === 'dot'").mark_line(strokeWidth=1.5, color="#8a94a1")
    bars = base.mark_rule(strokeWidth=5, opacity=0.5)
    dots = base.mark_point(filled=True, size=70, opacity=1)
    marks = _marks(found, most)
    upright = alt.Chart(inline(marks)).mark_rule(strokeWidth=1, color="currentColor", opacity=0.6)
    # Above the chart, away from each other.
    words = [
        alt.Chart(inline([mark]))
        .mark_text(
            align=mark["align"], baseline="bottom", dx=3 if mark["align"] == "left" else -3, color="currentColor"
        )
        .encode(x=x, y=alt.value(-4), text="name:N")
        for mark in marks
    ]
    return (
        alt.layer(target.encode(y=y), *words)
        + upright.encode(x=x)
        + line.encode(x=x, y=y)
        + bars.encode(x=x, y="low:Q", y2="high:Q", color=color)
        + dots.encode(x=x, y=y, color=color, shape=shape)
    )


def _marks(found: Plan, most: float) -> list[dict[str, Any]]:
    """Return where the quota is now, and where the answer is."""
    answer = None if found.answer is None else float(found.answer.n_units)
    now = float(found.scale.now)
    if answer == now:
        marks = [(now, f"now, and the answer: {_amount(found, now)}")]
    else:
        marks = [(now, f"now: {_amount(found, now)}")]
        marks += [] if answer is None else [(answer, f"the answer: {_amount(found, answer)}")]
    shown = [mark for mark in marks if mark[0] <= most]
    right = shown[0][0] if len(shown) > 1 and shown[0][0] < shown[1][0] else None
    return [{"quota": at, "name": name, "align": "right" if at == right else "left"} for at, name in shown]


def _row(found: Plan, point: PlanPoint) -> list[str]:
    used = point.median_utilisation
    return [
        _amount(found, point.n_units),
        *map(_wait, (point.wait, min(point.waits), max(point.waits))),
        number_text(point.median_never),
        "-" if used is None else f"{used:.0%}",
        "yes" if found.meets(point) else "no",
    ]


def _wait(seconds: float) -> str:
    return clock(seconds) if isfinite(seconds) else "forever"


def _amount(found: Plan, n_units: float) -> str:
    return f"{number_text(n_units, is_grouped=True)}{unit_suffix(found.scale.resource)}"
