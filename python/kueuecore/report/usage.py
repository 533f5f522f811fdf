"""Usage and borrowing by ClusterQueue, as stacked areas, one picture a resource of a flavor; and how many jobs wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np

from kueuecore.report.axes import color_of, count_axis, inline, time_axis
from kueuecore.report.facts import Facts, amount, clock, counted
from kueuecore.report.figure import BORROWED, OTHERS, WIDTH, Figure, svg

__all__ = ["pending_figure", "usage_figures"]

_MOST = 6
_WITHIN = "within its quota"


def usage_figures(facts: Facts) -> Iterator[Figure]:
    """A figure for each flavor and resource, those that are used most first."""
    columns = facts.over_time
    pairs = [f"{flavor}/{resource}" for flavor, resource in zip(columns["flavor"], columns["resource"], strict=True)]
    of_pair = np.array(pairs, dtype=object)
    loads = {}
    for pair in dict.fromkeys(pairs):
        rows = of_pair == pair
        nominal = columns["nominal"][rows].astype(float).sum()
        loads[pair] = columns["usage"][rows].astype(float).sum() / max(nominal, 1)
    for index, pair in enumerate(sorted(loads, key=lambda it: (-loads[it], it))[:_MOST]):
        yield _usage_figure(facts, pair, of_pair == pair, f"usage{index}")


def _usage_figure(facts: Facts, pair: str, rows: Any, name: str) -> Figure:
    columns = facts.over_time
    unit = 1000.0 if pair.endswith("/cpu") else 1.0
    sums: dict[tuple[float, str], list[float]] = {}
    quota: dict[float, float] = {}
    times, owners = columns["t"][rows], columns["cluster_queue"][rows]
    numbers = [columns[column][rows].astype(float) / unit for column in ("usage", "borrowed", "nominal")]
    for t, queue, usage, borrowed, nominal in zip(times, owners, *numbers, strict=True):
        own = sums.setdefault((t, facts.shown(queue)), [0.0, 0.0])
        own[0] += usage - borrowed
        own[1] += borrowed
        quota[t] = quota.get(t, 0.0) + nominal
    data = [
        {"t": round(t, 3), "queue": queue, "kind": kind, "amount": round(amount, 3)}
        for (t, queue), amounts in sums.items()
        for kind, amount in zip((_WITHIN, BORROWED), amounts, strict=True)
    ]
    names = (*facts.queues, OTHERS) if facts.left_out else facts.queues
    areas = (
        alt.Chart(inline(data), width=WIDTH, height=240)
        .mark_area(interpolate="step-after")
        .encode(
            x=time_axis("t", facts.seconds),
            y=alt.Y("sum(amount):Q", stack="zero", title=pair),
            color=color_of(names, "queue"),
            opacity=alt.Opacity("kind:N", scale=alt.Scale(domain=[_WITHIN, BORROWED], range=[1, 0.5]), legend=None),
            order=alt.Order("order:Q"),
            detail="kind:N",
        )
        .transform_calculate(order="datum.queue + datum.kind")
    )
    line = [{"t": round(t, 3), "quota": amount} for t, amount in sorted(quota.items())]
    limit = (
        alt.Chart(inline(line))
        .mark_line(interpolate="step-after", color="currentColor", strokeDash=[5, 4], strokeWidth=1.5)
        .encode(x="t:Q", y="quota:Q")
    )
    totals = {queue: [0.0, 0.0, 0.0] for queue in names}
    n_times = max(len(quota), 1)
    for (_, queue), (within, borrowed) in sums.items():
        own = totals[queue]
        own[0] += (within + borrowed) / n_times
        own[1] = max(own[1], within + borrowed)
        own[2] = max(own[2], borrowed)
    rows_of_table = [[queue, *map(amount, own)] for queue, own in totals.items()]
    most = max(totals, key=lambda it: totals[it][0])
    says = f"{most} uses most, {amount(totals[most][0])} in the mean."
    borrowers = [queue for queue, own in totals.items() if own[2] > 0]
    says += f" {', '.join(borrowers)} borrowed." if borrowers else " Nobody borrowed."
    return Figure(
        title=f"Usage of {pair}",
        says=says,
        note=f"The dashed line is the sum of nominal quotas; the paler part of a band is borrowed. {facts.left_out}",
        picture=svg(areas + limit, name=name),
        header=("ClusterQueue", "mean usage", "most", "most borrowed"),
        rows=rows_of_table,
    )


def pending_figure(facts: Facts) -> Figure:
    """How many jobs wait in each queue over time."""
    columns = facts.over_time
    lengths: dict[tuple[float, str], dict[str, int]] = {}
    for t, queue, pending in zip(
        columns["t"].tolist(), columns["cluster_queue"].tolist(), columns["pending"].tolist(), strict=True
    ):
        # The rows of all resources of a queue say the same.
        lengths.setdefault((t, facts.shown(queue)), {})[queue] = pending
    sums = {key: sum(of.values()) for key, of in lengths.items()}
    names = (*facts.queues, OTHERS) if facts.left_out else facts.queues
    data = [{"t": round(t, 3), "queue": queue, "n": n} for (t, queue), n in sums.items()]
    chart = (
        alt.Chart(inline(data), width=WIDTH, height=200)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=time_axis("t", facts.seconds),
            y=alt.Y("n:Q", axis=count_axis(max(sums.values(), default=0), "jobs that wait")),
            color=color_of(names, "queue"),
        )
    )
    rows, peak = [], ("", 0, 0.0)
    for name in names:
        of = [(n, t) for (t, queue), n in sums.items() if queue == name]
        most, when = max(of, key=lambda it: (it[0], -it[1])) if of else (0, 0.0)
        rows.append([name, str(most), clock(when), str(of[-1][0] if of else 0)])
        peak = max(peak, (name, most, when), key=lambda it: it[1])
    says = (
        f"The longest queue is {peak[0]} with {counted(peak[1], 'job')} after {clock(peak[2])}."
        if peak[1]
        else "No job waits."
    )
    return Figure(
        title="Jobs that wait",
        says=says,
        note=facts.left_out,
        picture=svg(chart, name="pending"),
        header=("ClusterQueue", "most at once", "when", "at the end"),
        rows=rows,
    )
