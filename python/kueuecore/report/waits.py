"""How long jobs waited, as distributions by ClusterQueue."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from kueuecore.report.axes import color_of, inline, time_axis
from kueuecore.report.facts import Facts, clock
from kueuecore.report.figure import WIDTH, Figure, svg

__all__ = ["waits_figure"]

_POINTS = np.linspace(0, 1, 101)


def waits_figure(facts: Facts) -> Figure:
    """Show the share of jobs that waited no longer than each time."""
    jobs = facts.results.jobs
    wait, is_null = jobs["wait_seconds"].values, jobs["wait_seconds"].is_null
    has_waited = np.ones(len(wait), np.bool_) if is_null is None else ~is_null
    queues = np.array([facts.shown(it or "") for it in jobs["cluster_queue"].to_list()], dtype=object)
    data: list[dict[str, Any]] = []
    rows = []
    for name in facts.job_names:
        mine = queues == name
        waits = np.sort(wait[mine & has_waited])
        n_never = int((mine & ~has_waited).sum())
        if not len(waits):
            rows.append([name, str(int(mine.sum())), "-", "-", "-", str(n_never)])
            continue
        at = np.quantile(waits, _POINTS, method="inverted_cdf")
        points = zip(np.round(at, 3).tolist(), _POINTS.tolist(), strict=True)
        data += [{"wait": it, "part": part, "queue": name} for it, part in points]
        shown = [clock(float(at[index])) for index in (50, 95, 100)]
        rows.append([name, str(int(mine.sum())), *shown, str(n_never)])
    longest = max((it["wait"] for it in data), default=0.0)
    chart = (
        alt.Chart(inline(data), width=WIDTH, height=220)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=time_axis("wait", max(longest, 1.0), title="wait for the first admission"),
            y=alt.Y("part:Q", title="share of the jobs", axis=alt.Axis(format="%")),
            color=color_of(facts.job_names, "queue"),
            order="part:Q",
        )
    )
    slow = max(data, key=lambda it: it["wait"], default=None)
    says = "No job was admitted."
    if slow is not None:
        says = f"The longest wait is {clock(longest)}, in {slow['queue']}." if longest else "No job waited."
    return Figure(
        title="Waits",
        says=says,
        note=f"The further left a curve, the sooner the queue admits. {facts.left_out}",
        picture=svg(chart, name="waits"),
        header=("ClusterQueue", "jobs", "median wait", "95 %", "longest", "never admitted"),
        rows=rows,
    )
