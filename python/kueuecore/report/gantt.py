"""When jobs waited and ran, with arrows from preemptors to their victims; many jobs as counts."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from kueuecore.report.axes import color_of, inline, time_axis
from kueuecore.report.facts import Facts, counted, steps_until_next
from kueuecore.report.figure import WIDTH, Figure, svg
from kueuecore.simulation.run import StepKind

__all__ = ["MOST_JOBS", "gantt_figure"]

MOST_JOBS = 2000
"""With more jobs, the chart shows how many run at once."""
_KINDS = list(StepKind)
_HIGHEST, _LEAST_ROW, _MOST_ROW = 1000, 0.5, 16
_BINS = 120
# A few jobs that preempt each other forever would make an endless page.
_MOST_SPANS = 6000


def gantt_figure(facts: Facts) -> Figure:
    """Draw a bar for each run of each job; with too many of them, how many jobs run at once, by queue."""
    starts, ends, workloads, is_run = _spans(facts)
    jobs = facts.results.jobs
    if len(jobs) > MOST_JOBS or len(starts) > _MOST_SPANS:
        return _counts(facts, starts[is_run], ends[is_run], workloads[is_run])
    return _bars(facts, starts, ends, workloads, is_run)


def _spans(facts: Facts) -> tuple[Any, Any, Any, Any]:
    """Return start, end and workload of each span in which a job waited or ran, and whether it ran."""
    run = facts.run
    kinds = [StepKind.CREATED, StepKind.ADMITTED, StepKind.STOPPED, StepKind.FINISHED, StepKind.DELETED]
    steps, ends = steps_until_next(run, kinds)
    is_run = steps["kind"] == _KINDS.index(StepKind.ADMITTED)
    is_wait = np.isin(steps["kind"], [_KINDS.index(StepKind.CREATED), _KINDS.index(StepKind.STOPPED)])
    seconds = [(it - run.start) / 1e9 for it in (steps["time"], ends)]
    keep = is_run | is_wait
    return seconds[0][keep], seconds[1][keep], steps["workload"][keep].astype(np.int64), is_run[keep]


def _bars(facts: Facts, starts: Any, ends: Any, workloads: Any, is_run: Any) -> Figure:
    homes, keys = facts.homes, facts.run.workload_keys
    first: dict[int, float] = {}
    for workload, start in zip(workloads.tolist(), starts.tolist(), strict=True):
        first[workload] = min(first.get(workload, start), start)
    order = sorted(first, key=lambda it: (homes[it], first[it], it))
    row_of = {workload: row for row, workload in enumerate(order)}
    spans = zip(workloads.tolist(), starts.tolist(), ends.tolist(), is_run.tolist(), strict=True)
    data = [
        {"row": row_of[it], "t": round(start, 3), "u": round(end, 3), "queue": homes[it], "runs": runs}
        for it, start, end, runs in spans
    ]
    step = min(_MOST_ROW, max(_LEAST_ROW, _HIGHEST / max(len(order), 1)))
    y = alt.Y("row:Q", scale=alt.Scale(domain=[-0.5, len(order) - 0.5], reverse=True, nice=False), axis=None)
    base = alt.Chart(inline(data), width=WIDTH, height=max(60, round(step * len(order))))
    x = time_axis("t", facts.seconds)
    bars = {"x": x, "x2": "u:Q", "y": y, "color": color_of(facts.job_names, "queue")}
    waits = base.transform_filter("!datum.runs").mark_rule(strokeWidth=1, opacity=0.85).encode(**bars)
    thick = max(1.5, step * 0.7)
    runs = base.transform_filter("datum.runs").mark_rule(strokeWidth=thick, strokeCap="butt").encode(**bars)
    chart: Any = waits + runs
    taken = facts.run.preemption_table
    columns = [taken[name].tolist() for name in ("time", "workload", "preemptor")]
    arrows = [
        {"t": round((time - facts.run.start) / 1e9, 3), "row": row_of[by], "to": row_of[victim]}
        for time, victim, by in zip(*columns, strict=True)
        if victim in row_of and by in row_of
    ]
    if arrows:
        for it in arrows:
            it["angle"] = 180 if it["to"] > it["row"] else 0
        lines = alt.Chart(inline(arrows)).mark_rule(strokeWidth=1, color="currentColor", opacity=0.8)
        heads = alt.Chart(inline(arrows)).mark_point(
            shape="triangle-up", filled=True, size=40, color="currentColor", opacity=1
        )
        chart += lines.encode(x="t:Q", y="row:Q", y2="to:Q")
        chart += heads.encode(x="t:Q", y="to:Q", angle=alt.Angle("angle:Q", scale=None))
    evicted = int((facts.results.jobs["evictions"].values > 0).sum())
    says = f"{counted(len(order), 'job')}, {evicted:,} of them evicted; {counted(len(taken), 'preemption')}."
    reasons = facts.run.engine.names().reasons
    columns = [taken[name].tolist() for name in ("workload", "preemptor", "reason")]
    rows = [[keys[victim] or "-", keys[by] or "-", reasons[why]] for victim, by, why in zip(*columns, strict=True)]
    return Figure(
        title="Jobs",
        says=says,
        note="A row for each job: a thin line while it waits, a bar while it runs. Arrows point from the preempting "
        "job to the preempted one.",
        picture=svg(chart, name="jobs"),
        header=("preempted", "by", "why"),
        rows=rows,
    )


def _counts(facts: Facts, starts: Any, ends: Any, workloads: Any) -> Figure:
    homes = np.array(facts.homes, dtype=object)[workloads]
    edges = np.linspace(0, facts.seconds, _BINS + 1)
    data, rows = [], []
    for name in facts.job_names:
        mine = homes == name
        # The number started by each time, minus the number ended.
        begun = np.searchsorted(np.sort(starts[mine]), edges, "right")
        over = np.searchsorted(np.sort(ends[mine]), edges, "right")
        running = begun - over
        data += [{"t": round(float(t), 3), "queue": name, "n": int(n)} for t, n in zip(edges, running, strict=True)]
        rows.append([name, str(int(mine.sum())), str(int(running.max(initial=0)))])
    chart = (
        alt.Chart(inline(data), width=WIDTH, height=240)
        .mark_area(interpolate="step-after")
        .encode(
            x=time_axis("t", facts.seconds),
            y=alt.Y("n:Q", stack="zero", title="running jobs"),
            color=color_of(facts.job_names, "queue"),
        )
    )
    n_jobs = len(facts.results.jobs)
    too_many = f"{MOST_JOBS:,} jobs" if n_jobs > MOST_JOBS else f"{_MOST_SPANS:,} waits and runs"
    return Figure(
        title="Jobs",
        says=f"{counted(n_jobs, 'job')}; {counted(len(facts.run.preemption_table), 'preemption')}.",
        note=f"With more than {too_many}, the chart shows how many run at once instead of a bar for each. "
        f"{facts.left_out}",
        picture=svg(chart, name="jobs"),
        header=("ClusterQueue", "runs", "most at once"),
        rows=rows,
    )
