"""Usage and borrowing by ClusterQueue as stacked areas, a chart per flavor and resource; and waiting jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np

from kueuecore.report.axes import color_of, count_axis, inline, time_axis
from kueuecore.report.facts import Facts, amount, counted, unit_of
from kueuecore.report.figure import BORROWED, WIDTH, Figure, svg

__all__ = ["pending_figure", "usage_figures"]

_MOST = 6
# Leave out the line of a quota that is this many times the usage.
_MAX_ABOVE = 5
_WITHIN = "within its quota"


def usage_figures(facts: Facts) -> Iterator[Figure]:
    """Yield a figure for each flavor and resource, the most used first."""
    code = facts.table["flavor"].values
    n = len(facts.pairs)
    nominal = np.bincount(code, facts.numbers("nominal"), n)
    loads = np.bincount(code, facts.numbers("usage"), n) / np.maximum(nominal, 1)
    there = np.unique(code).tolist()
    for index, pair in enumerate(sorted(there, key=lambda value: (-loads[value], facts.pairs[value]))[:_MOST]):
        yield _usage_figure(facts, facts.pairs[pair], code == pair, f"usage{index}")


def _usage_figure(facts: Facts, pair: tuple[str, str], rows: Any, name: str) -> Figure:
    what, (unit, suffix) = "/".join(pair), unit_of(pair[1])
    usage, borrowed, nominal = (
        facts.sums(facts.numbers(text), rows) / unit for text in ("usage", "borrowed", "nominal")
    )
    times, names = facts.moments[0], facts.names
    data = [
        {"t": round(t, 3), "queue": queue, "kind": kind, "amount": round(float(amounts[at, band]), 3), "place": place}
        for band, queue in enumerate(names)
        for place, (kind, amounts) in enumerate(((_WITHIN, usage - borrowed), (BORROWED, borrowed)), 2 * band)
        for at, t in enumerate(times.tolist())
    ]
    chart: Any = (
        alt.Chart(inline(data), width=WIDTH, height=240)
        .mark_area(interpolate="step-after")
        .encode(
            x=time_axis("t", facts.seconds, dates=facts.dates),
            y=alt.Y("amount:Q", stack="zero", title=f"{what}{suffix and f',{suffix}'}"),
            color=color_of(names, "queue"),
            opacity=alt.Opacity("kind:N", scale=alt.Scale(domain=[_WITHIN, BORROWED], range=[1, 0.5]), legend=None),
            order="place:Q",
        )
    )
    quota, most_used = nominal.sum(axis=1), float(usage.sum(axis=1).max(initial=0))
    note = "The lighter part of a band is borrowed."
    # A line far above would flatten the areas.
    if quota.max(initial=0) <= _MAX_ABOVE * most_used:
        line = [{"t": round(t, 3), "quota": amount} for t, amount in zip(times.tolist(), quota.tolist(), strict=True)]
        dashed: dict[str, Any] = {"color": "currentColor", "strokeDash": [5, 4], "strokeWidth": 1.5}
        limit = alt.Chart(inline(line)).mark_line(interpolate="step-after", **dashed)
        chart += limit.encode(x="t:Q", y="quota:Q")
        note = f"The dashed line is the sum of nominal quotas. {note}"
    means = usage.mean(axis=0)
    columns = (means, usage.max(axis=0), borrowed.max(axis=0))
    borrowers = [queue for queue, most in zip(names, columns[2], strict=True) if most > 0]
    says = "Not used."
    if most_used:
        says = f"{names[int(means.argmax())]} uses most, {amount(float(means.max()))}{suffix} on average."
        says += f" {', '.join(borrowers)} borrowed." if borrowers else " No queue borrowed."
    return Figure(
        title=f"Usage of {what}",
        says=says,
        note=f"{note} {facts.left_out}",
        picture=svg(chart, name=name),
        header=("ClusterQueue", "mean usage", "most", "most borrowed"),
        rows=[
            [queue, *(f"{amount(entry)}{suffix}" for entry in row)]
            for queue, row in zip(names, np.stack(columns, 1).tolist(), strict=True)
        ],
    )


def pending_figure(facts: Facts) -> Figure:
    """Show how many jobs wait in each queue over time."""
    # All resources of a queue have the same count at a time: use the first row.
    keys = facts.moments[1] * len(facts.table["cluster_queue"].words or ()) + facts.table["cluster_queue"].values
    is_first = np.zeros(len(keys), np.bool_)
    is_first[np.unique(keys, return_index=True)[1]] = True
    waiting = facts.sums(facts.numbers("pending"), is_first).astype(np.int64)
    times, names = facts.moments[0].tolist(), facts.names
    data = [
        {"t": round(t, 3), "queue": queue, "n": n}
        for queue, column in zip(names, waiting.T.tolist(), strict=True)
        for t, n in zip(times, column, strict=True)
    ]
    chart = (
        alt.Chart(inline(data), width=WIDTH, height=200)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=time_axis("t", facts.seconds, dates=facts.dates),
            y=alt.Y("n:Q", axis=count_axis(int(waiting.max(initial=0)), "waiting jobs")),
            color=color_of(names, "queue"),
        )
    )
    most, when = waiting.max(axis=0).tolist(), waiting.argmax(axis=0).tolist()
    longest = int(np.argmax(most))
    says = "No job waits."
    if most[longest]:
        at = facts.happens(times[when[longest]])
        says = f"The longest queue is {names[longest]} with {counted(most[longest], 'job')} {at}."
    ends = waiting[-1].tolist()
    return Figure(
        title="Waiting jobs",
        says=says,
        note=facts.left_out,
        picture=svg(chart, name="pending"),
        header=("ClusterQueue", "most at once", "when", "at the end"),
        rows=[
            [*entry]
            for entry in zip(names, map(str, most), (facts.when(times[at]) for at in when), map(str, ends), strict=True)
        ],
    )
