"""How long jobs waited, as distributions by ClusterQueue, or by cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt

from kueuecore.report.axes import color_of, inline, log_time_axis
from kueuecore.report.facts import Facts, clock
from kueuecore.report.figure import WIDTH, Figure, svg
from kueuecore.scenarios.waits import within_which

__all__ = ["waits_by_name", "waits_figure"]

_PARTS = tuple(percent / 100 for percent in range(101))
_MARKED = (0.5, 0.95)
# With more queues the numbers beside the marks overlap.
_MAX_NUMBERED = 4
_SOONER = {"ClusterQueue": "queue"}


def waits_figure(facts: Facts) -> Figure:
    """Show the share of jobs that waited no longer than each time, from a second on, by ClusterQueue."""
    jobs = facts.results.jobs
    wait, is_null = jobs["wait_seconds"].values, jobs["wait_seconds"].is_null
    has_waited = np.ones(len(wait), np.bool_) if is_null is None else ~is_null
    queues = [facts.shown(job or "") for job in jobs["cluster_queue"].to_list()]
    return waits_by_name(
        np.where(has_waited, wait, np.nan), queues, facts.job_names, what="ClusterQueue", note=facts.left_out
    )


def waits_by_name(
    wait: npt.NDArray[np.float64], groups: Sequence[str], names: tuple[str, ...], *, what: str, note: str
) -> Figure:
    """Show the share of jobs that waited no longer than each time, from a second on.

    Args:
        wait: The wait of each job in seconds; NaN: it was never admitted.
        groups: The group of each job.
        names: The groups, in order.
        what: What the groups are, such as `ClusterQueue`.
        note: What else the reader should know.
    """
    has_waited, group = ~np.isnan(wait), np.array([*groups], dtype=object)
    data: list[dict[str, Any]] = []
    rows = []
    for name in names:
        mine = group == name
        waits = np.sort(wait[mine & has_waited]).tolist()
        n_never = int((mine & ~has_waited).sum())
        if not waits:
            rows.append([name, str(int(mine.sum())), "-", "-", "-", str(n_never)])
            continue
        within = [within_which(waits, part) or 0.0 for part in _PARTS]
        points = zip(within, _PARTS, strict=True)
        data += [{"wait": max(round(point, 3), 1.0), "part": part, "queue": name} for point, part in points]
        shown = [clock(within[index]) for index in (50, 95, 100)]
        rows.append([name, str(int(mine.sum())), *shown, str(n_never)])
    waited = wait[has_waited]
    longest = float(waited.max(initial=0.0))
    says = "No job was admitted."
    if len(waited):
        slow = group[has_waited][int(waited.argmax())]
        says = f"The longest wait is {clock(longest)}, in {slow}." if longest else "No job waited."
    return Figure(
        title="Waits",
        says=says,
        note=f"The further left a curve, the sooner the {_SOONER.get(what, what)} admits. Dots mark the waits within "
        f"which half of the jobs (p50) and 95 % (p95) were admitted. The axis is logarithmic. {note}",
        picture=svg(_chart(names, data, longest), name="waits"),
        header=(what, "jobs", "median wait", "95 %", "longest", "never admitted"),
        rows=rows,
    )


def _chart(names: tuple[str, ...], data: list[dict[str, Any]], longest: float) -> Any:
    x = log_time_axis("wait", longest, title="wait for the first admission")
    axis = alt.Axis(format="%", grid=False, values=[0, 0.25, 0.5, 0.75, 0.95])
    y = alt.Y("part:Q", title="share of the jobs", axis=axis, scale=alt.Scale(domain=[0, 1]))
    color = color_of(names, "queue")
    base = alt.Chart(inline(data), width=WIDTH, height=220).encode(x=x, y=y, color=color)
    lines = base.mark_line(interpolate="step-after", strokeWidth=2).encode(order="part:Q")
    levels = [{"part": part, "name": f"p{part * 100:g}"} for part in _MARKED]
    rules = alt.Chart(inline(levels)).encode(y=y)
    dashed = rules.mark_rule(strokeDash=[2, 4], color="currentColor", opacity=0.6)
    left = rules.mark_text(align="left", baseline="bottom", dx=4, dy=-2, color="currentColor", fontSize=11)
    marked = [entry for entry in data if entry["part"] in _MARKED]
    dots = alt.Chart(inline(marked)).encode(x=x, y=y, color=color).mark_point(filled=True, size=50, opacity=1)
    layers = [dashed, lines, dots, left.encode(text="name:N", x=alt.value(0))]
    if len({entry["queue"] for entry in data}) <= _MAX_NUMBERED:
        texts = [{**entry, "text": clock(entry["wait"])} for entry in marked if entry["wait"] > 1]
        for row, name in enumerate(names):
            # One below the other: they may be close.
            own = alt.Chart(inline([text for text in texts if text["queue"] == name])).encode(x=x, y=y, color=color)
            layers.append(own.mark_text(align="left", baseline="top", dx=6, dy=4 + 13 * row).encode(text="text:N"))
    return alt.layer(*layers)
