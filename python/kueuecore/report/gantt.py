"""When jobs waited and ran, with arrows from preemptors to their victims; many jobs as counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from kueuecore.report.axes import color_of, inline, time_axis
from kueuecore.report.facts import Facts, clock, counted, steps_until_next
from kueuecore.report.figure import WIDTH, Figure, svg
from kueuecore.report.timed import Timed
from kueuecore.simulation.run import StepKind

__all__ = ["MAX_JOBS", "bars_chart", "counts_chart", "gantt_figure", "is_too_many", "row_axis", "why_counts"]

MAX_JOBS = 2000
"""With more jobs, the chart shows how many run at once."""
_KINDS = list(StepKind)
_HIGHEST, _LEAST_ROW, _MAX_ROW = 1000, 0.5, 16
# Names need this much height in each row, and this much width.
_NAMED_ROW, _NAMES, _LONGEST = 10, 170, 28
_BINS = 120
# A few jobs that preempt each other forever would make an endless page.
_MAX_SPANS = 6000


def gantt_figure(facts: Facts) -> Figure:
    """Draw a bar for each run of each job; with too many of them, how many jobs run at once, by queue."""
    starts, ends, workloads, is_run = _spans(facts)
    jobs = facts.results.jobs
    if is_too_many(len(jobs), len(starts)):
        return _counts(facts, starts[is_run], ends[is_run], workloads[is_run])
    return _bars(facts, starts, ends, workloads, is_run)


def _spans(facts: Facts) -> tuple[Any, Any, Any, Any]:
    """Return start, end and workload of each span in which a job waited or ran, and whether it ran."""
    run = facts.run
    kinds = [StepKind.CREATED, StepKind.ADMITTED, StepKind.STOPPED, StepKind.FINISHED, StepKind.DELETED]
    steps, ends = steps_until_next(run, kinds)
    is_run = steps["kind"] == _KINDS.index(StepKind.ADMITTED)
    is_wait = np.isin(steps["kind"], [_KINDS.index(StepKind.CREATED), _KINDS.index(StepKind.STOPPED)])
    seconds = [(entry - run.start) / 1e9 for entry in (steps["time"], ends)]
    keep = is_run | is_wait
    return seconds[0][keep], seconds[1][keep], steps["workload"][keep].astype(np.int64), is_run[keep]


def _bars(facts: Facts, starts: Any, ends: Any, workloads: Any, is_run: Any) -> Figure:
    homes = facts.homes
    first: dict[int, float] = {}
    for workload, start in zip(workloads.tolist(), starts.tolist(), strict=True):
        first[workload] = min(first.get(workload, start), start)
    order = sorted(first, key=lambda value: (homes[value], first[value], value))
    row_of = {workload: row for row, workload in enumerate(order)}
    names = [_name(facts, value) for value in order]
    verb = {True: "ran", False: "waited"}
    spans = zip(workloads.tolist(), starts.tolist(), ends.tolist(), is_run.tolist(), strict=True)
    data = [
        {
            "row": row_of[span],
            "t": round(start, 3),
            "u": round(end, 3),
            "queue": homes[span],
            "runs": runs,
            "title": f"{names[row_of[span]]} {verb[runs]} {clock(end - start)}, from {facts.when(start)}",
        }
        for span, start, end, runs in spans
        if runs or end > start
    ]
    y = row_axis(len(order))
    chart = bars_chart(facts, data, names, facts.job_names, y)
    taken = _preemptions(facts)
    arrows = [*_arrows(taken, names, row_of)]
    if arrows:
        lines = alt.Chart(inline(arrows)).mark_rule(strokeWidth=1, color="currentColor", opacity=0.8)
        heads = alt.Chart(inline(arrows)).mark_point(
            shape="triangle-up", filled=True, size=40, color="currentColor", opacity=1
        )
        chart += lines.encode(x="t:Q", y="row:Q", y2="to:Q", description="title:N")
        chart += heads.encode(x="t:Q", y="to:Q", angle=alt.Angle("angle:Q", scale=None), description="title:N")
    evicted = int((facts.results.jobs["evictions"].values > 0).sum())
    says = f"{counted(len(order), 'job')}, {evicted:,} of them evicted; {counted(len(taken), 'preemption')}."
    return Figure(
        title="Jobs",
        says=says,
        note="A row for each job: a thin line while it waits, a bar while it runs; point at one to see which it is. "
        "Arrows point from the preempting job to the preempted one.",
        picture=svg(chart, name="jobs", has_titles=True),
        header=("preempted", "by", "why"),
        rows=[[_name(facts, victim), _name(facts, by), why] for _, victim, by, why in taken],
    )


def row_axis(n_rows: int) -> Any:
    """Make the vertical axis of a chart with a row for each job, the first at the top."""
    scale = alt.Scale(domain=[-0.5, n_rows - 0.5], reverse=True, nice=False)
    return alt.Y("row:Q", scale=scale, axis=None)


def bars_chart(
    time: Timed, data: Sequence[Mapping[str, object]], names: Sequence[str], bands: tuple[str, ...], y: Any
) -> Any:
    """Draw a thin line for each wait and a bar for each run, with names beside the rows if there is room.

    Args:
        time: The time of the run.
        data: The waits and runs: `row`, from `t` to `u`, `runs`, their colour's name `queue`, and a `title`.
        names: What each row is called.
        bands: The names that have colours.
        y: The axis of the rows.
    """
    step = min(_MAX_ROW, max(_LEAST_ROW, _HIGHEST / max(len(names), 1)))
    width = WIDTH - (_NAMES if step >= _NAMED_ROW else 0)
    base = alt.Chart(inline(data), width=width, height=max(60, round(step * len(names))))
    x = time_axis("t", time.seconds, dates=time.dates)
    bars = {"x": x, "x2": "u:Q", "y": y, "color": color_of(bands, "queue"), "description": "title:N"}
    waits = base.transform_filter("!datum.runs").mark_rule(strokeWidth=1, opacity=0.85).encode(**bars)
    thick = max(1.5, step * 0.7)
    chart: Any = waits + base.transform_filter("datum.runs").mark_rule(strokeWidth=thick, strokeCap="butt").encode(
        **bars
    )
    return chart + _names_beside(names, y) if step >= _NAMED_ROW else chart


def counts_chart(
    time: Timed, starts: Any, ends: Any, homes: Any, bands: tuple[str, ...]
) -> tuple[Any, list[list[str]]]:
    """Draw how many jobs run at once, and return it with a row for each band.

    Args:
        time: The time of the run.
        starts: When each run begins, in seconds from the start, shape (n,).
        ends: When it ends.
        homes: The band of each.
        bands: The names that have colours.
    """
    edges = np.linspace(0, time.seconds, _BINS + 1)
    data, rows = [], []
    for name in bands:
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
            x=time_axis("t", time.seconds, dates=time.dates),
            y=alt.Y("n:Q", stack="zero", title="running jobs"),
            color=color_of(bands, "queue"),
        )
    )
    return chart, rows


def is_too_many(n_jobs: int, n_spans: int) -> bool:
    """Return whether there are too many jobs, or waits and runs, for a bar each."""
    return n_jobs > MAX_JOBS or n_spans > _MAX_SPANS


def why_counts(n_jobs: int) -> str:
    """Say why a chart shows how many jobs run at once."""
    too_many = f"{MAX_JOBS:,} jobs" if n_jobs > MAX_JOBS else f"{_MAX_SPANS:,} waits and runs"
    return f"With more than {too_many}, the chart shows how many run at once instead of a bar for each."


def _arrows(
    taken: Sequence[tuple[float, int, int, str]], names: Sequence[str], row_of: Mapping[int, int]
) -> Iterator[dict[str, object]]:
    """Yield an arrow from the row of each preempting job to that of the preempted one."""
    for time, victim, by, why in taken:
        if victim in row_of and by in row_of:
            row, to = row_of[by], row_of[victim]
            title = f"{names[row]} preempts {names[to]}: {why}"
            yield {"t": time, "row": row, "to": to, "angle": 180 if to > row else 0, "title": title}


def _preemptions(facts: Facts) -> list[tuple[float, int, int, str]]:
    """Return when a job was preempted, which, by which, and why."""
    taken, reasons = facts.run.preemption_table, facts.run.engine.names().reasons
    columns = [taken[name].tolist() for name in ("time", "workload", "preemptor", "reason")]
    rows = zip(*columns, strict=True)
    return [(round((time - facts.run.start) / 1e9, 3), victim, by, reasons[why]) for time, victim, by, why in rows]


def _name(facts: Facts, workload: int) -> str:
    return facts.run.workload_keys[workload] or "-"


def _names_beside(names: Sequence[str], y: Any) -> Any:
    """Write the name of the job beside each row, cut if it is long; its end tells jobs of one work apart."""
    own = [name.rpartition("/")[2] for name in names]
    shown = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 13]}…{name[-12:]}" for name in own]
    rows = [{"row": row, "name": name} for row, name in enumerate(shown)]
    text: dict[str, Any] = {"align": "right", "dx": -8, "fontSize": 10, "color": "currentColor", "limit": _NAMES}
    return alt.Chart(inline(rows)).mark_text(**text).encode(x=alt.value(0), y=y, text="name:N")


def _counts(facts: Facts, starts: Any, ends: Any, workloads: Any) -> Figure:
    homes = np.array(facts.homes, dtype=object)[workloads]
    chart, rows = counts_chart(facts, starts, ends, homes, facts.job_names)
    n_jobs = len(facts.results.jobs)
    return Figure(
        title="Jobs",
        says=f"{counted(n_jobs, 'job')}; {counted(len(facts.run.preemption_table), 'preemption')}.",
        note=f"{why_counts(n_jobs)} {facts.left_out}",
        picture=svg(chart, name="jobs"),
        header=("ClusterQueue", "runs", "most at once"),
        rows=rows,
    )
