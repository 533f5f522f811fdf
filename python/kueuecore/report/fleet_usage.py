"""The use of quota in a fleet: for each resource, a row of the picture for each cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt

from kueuecore.report.axes import color_of, inline, time_axis
from kueuecore.report.facts import amount, unit_of
from kueuecore.report.figure import OTHERS, WIDTH, Figure, svg
from kueuecore.report.fleet_facts import FleetFacts, by_rows

__all__ = ["fleet_usage_figures"]

_MOST = 4
_MAX_QUEUES = 8
_ROW = 90
# Beside a row, in pixels: the amounts, a letter of the cluster's name, and the most for both.
_AMOUNTS, _LETTER, _MAX_BESIDE = 50, 7, 300
# Leave out the line of a quota that is this many times the usage.
_MAX_ABOVE = 5
_UNLIMITED = float(2**63 - 1)


def fleet_usage_figures(facts: FleetFacts) -> Iterator[Figure]:
    """Yield a figure for each resource, the most used first."""
    table = facts.results.utilisation
    shares: dict[str, float] = {}
    for resource, share in by_rows(table, "resource", "share"):
        shares[resource] = max(shares.get(resource, 0.0), share or 0.0)
    for index, resource in enumerate(sorted(shares, key=lambda name: (-shares[name], name))[:_MOST]):
        yield _usage_figure(facts, resource, f"usage{index}")


def _usage_figure(facts: FleetFacts, resource: str, name: str) -> Figure:
    unit, suffix = unit_of(resource)
    # Resources are few, and rows many.
    quotas = facts.quotas
    words = quotas["resource"].words or ()
    rows = np.flatnonzero(np.isin(quotas["resource"].values, [at for at, word in enumerate(words) if word == resource]))
    queues = _queues(facts, rows)
    given = [(cluster, _of_cluster(facts, rows, cluster)) for cluster in facts.clusters]
    given = [(cluster, own) for cluster, own in given if own.size]
    charts = [
        _row(facts, own, cluster, queues, unit, is_first=at == 0, is_last=at == len(given) - 1)
        for at, (cluster, own) in enumerate(given)
    ]
    says, table = _in_words(facts, resource, unit, suffix)
    return Figure(
        title=f"{resource} in use",
        says=says,
        note=f"A row for each cluster{f', in{suffix}' if suffix else ''}; colours are ClusterQueues there. The dashed "
        f"line is the sum of nominal quotas, unless it is far above. The manager's quota is held by what runs on "
        f"workers; it was without a worker where its row is shaded. {facts.left_out}",
        picture=svg(alt.vconcat(*charts, spacing=8), name=name),
        header=("cluster", "flavor", "nominal", "mean usage", "most", "utilisation"),
        rows=table,
    )


def _queues(facts: FleetFacts, rows: npt.NDArray[np.int64]) -> tuple[str, ...]:
    """Return the ClusterQueues with colours of their own: those that use most, anywhere."""
    column = facts.quotas["cluster_queue"]
    words = column.words or ()
    usage = np.bincount(column.values[rows], facts.quotas["usage"].values[rows].astype(np.float64), len(words))
    used = [at for at in np.lexsort((np.array(words), -usage)).tolist() if usage[at] > 0]
    names = sorted(words[at] for at in used[:_MAX_QUEUES])
    return (*names, *([OTHERS] if len(used) > len(names) else []))


def _of_cluster(facts: FleetFacts, rows: npt.NDArray[np.int64], cluster: str) -> npt.NDArray[np.int64]:
    words = facts.quotas["cluster"].words or ()
    if cluster not in words:
        return rows[:0]
    own: npt.NDArray[np.int64] = rows[facts.quotas["cluster"].values[rows] == words.index(cluster)]
    return own


def _row(
    facts: FleetFacts,
    rows: npt.NDArray[np.int64],
    cluster: str,
    queues: tuple[str, ...],
    unit: float,
    *,
    is_first: bool,
    is_last: bool,
) -> Any:
    """Draw what is used in one cluster, and when the manager was without it."""
    quotas = facts.quotas
    times, place = np.unique(facts.seconds_of(quotas, "time")[rows], return_inverse=True)
    words = quotas["cluster_queue"].words or ()
    band = np.array([queues.index(word) if word in queues else len(queues) - 1 for word in words], np.int64)
    bands = np.maximum(band, 0)[quotas["cluster_queue"].values[rows]] if queues else np.zeros(len(rows), np.int64)
    n_bands = max(len(queues), 1)
    shape = (len(times), n_bands)
    usage = np.bincount(place * n_bands + bands, quotas["usage"].values[rows] / unit, shape[0] * n_bands)
    usage = usage.reshape(shape)
    nominal = np.bincount(place, quotas["nominal"].values[rows].astype(np.float64) / unit, len(times))
    most = float(usage.sum(axis=1).max(initial=0))
    has_line = bool(nominal.max(initial=0) <= max(_MAX_ABOVE * most, 0.0)) or not most
    top = max(most, float(nominal.max(initial=0)) if has_line and nominal.max(initial=0) < _UNLIMITED / unit else 0.0)
    # The same room on the left in each row, or their times would not be one above the other.
    beside = min(_MAX_BESIDE, _AMOUNTS + 20 + _LETTER * max(map(len, facts.clusters)))
    name: dict[str, Any] = {"titleAngle": 0, "titleAlign": "right", "titleBaseline": "middle", "titleX": -_AMOUNTS}
    axis = alt.Axis(tickCount=3, minExtent=beside, maxExtent=beside, titleLimit=beside - _AMOUNTS, **name)
    scale = alt.Scale(domain=[0, top or 1.0], nice=False)
    y = alt.Y("amount:Q", stack="zero", title=cluster, axis=axis, scale=scale)
    data = [
        {"t": round(t, 3), "queue": queue, "amount": round(float(usage[at, column]), 3)}
        for column, queue in enumerate(queues or ("",))
        for at, t in enumerate(times.tolist())
    ]
    color = color_of(queues, "queue") if is_first else alt.Color("queue:N", legend=None)
    x = time_axis("t", facts.seconds, dates=facts.dates)
    if not is_last:
        # One axis is enough, below all rows.
        x = x.axis(labels=False, title=None, grid=False)
    base = alt.Chart(inline(data), width=WIDTH - beside, height=_ROW)
    chart: Any = _outages(facts, cluster, top or 1.0)
    chart += base.mark_area(interpolate="step-after").encode(x=x, y=y, color=color)
    if has_line and top:
        line = [{"t": round(t, 3), "quota": quota} for t, quota in zip(times.tolist(), nominal.tolist(), strict=True)]
        dashed: dict[str, Any] = {"color": "currentColor", "strokeDash": [5, 4], "strokeWidth": 1.5}
        chart += alt.Chart(inline(line)).mark_line(interpolate="step-after", **dashed).encode(x="t:Q", y="quota:Q")
    return chart


def _outages(facts: FleetFacts, cluster: str, top: float) -> Any:
    """Shade the times in which the manager was without a worker."""
    outages = facts.results.outages
    columns = (outages["cluster"].to_list(), *(facts.seconds_of(outages, name).tolist() for name in ("begin", "end")))
    data = [{"t": t, "u": u, "amount": 0, "top": top} for name, t, u in zip(*columns, strict=True) if name == cluster]
    shade = alt.Chart(inline(data)).mark_rect(color="currentColor", opacity=0.12)
    return shade.encode(x="t:Q", x2="u:Q", y="amount:Q", y2="top:Q")


def _in_words(facts: FleetFacts, resource: str, unit: float, suffix: str) -> tuple[str, list[list[str]]]:
    """Return a sentence about the cluster with the largest share in use, and the rows of the table."""
    rows, best = [], ("", 0.0)
    columns = ("cluster", "flavor", "resource", "nominal", "mean_usage", "most", "share")
    for cluster, flavor, of, *numbers, share in by_rows(facts.results.utilisation, *columns):
        if of != resource:
            continue
        best = max(best, (cluster, share or 0.0), key=lambda it: it[1])
        amounts = ["unlimited" if it is None else f"{amount(it / unit)}{suffix}" for it in numbers]
        rows.append([cluster, flavor, *amounts, "-" if share is None else f"{share:.1%}"])
    says = f"{best[0]} uses most of its quota, {best[1]:.1%} on average." if best[1] else "Not used."
    return says, rows
