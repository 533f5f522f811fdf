"""Pods by rack or node over time, and lost nodes."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from kueuecore.report.axes import inline, time_axis
from kueuecore.report.facts import Facts, counted, steps_until_next
from kueuecore.report.figure import FEW_AND_MANY, WIDTH, Figure, svg
from kueuecore.simulation.run import StepKind

__all__ = ["topology_figure"]

_KINDS = list(StepKind)
_BEGINS = (StepKind.ADMITTED, StepKind.REPLACED)
_ENDS = (StepKind.STOPPED, StepKind.FINISHED, StepKind.DELETED)
_BINS = 150
# With more rows, show domains one level up; at the top level, only those with the most pods.
_MAX_ROWS = 64


def topology_figure(facts: Facts) -> Figure | None:
    """Show pods by domain over time; None without placements."""
    placed = facts.run.placement_table
    if not len(placed):
        return None
    paths = [domain.values for domain in facts.run.domains]
    depth = max(map(len, paths))
    while depth > 1 and len({path[:depth] for path in paths}) > _MAX_ROWS:
        depth -= 1
    names = sorted({path[:depth] for path in paths})
    n_domains = len(names)
    if n_domains > _MAX_ROWS:
        held: dict[tuple[str, ...], int] = dict.fromkeys(names, 0)
        for path, n in zip(paths, np.bincount(placed["domain"], placed["pods"], len(paths)).tolist(), strict=True):
            held[path[:depth]] += int(n)
        names = sorted(sorted(names, key=lambda name: (-held[name], name))[:_MAX_ROWS])
    row_of_path = {path: row for row, path in enumerate(names)}
    rows = np.array([row_of_path.get(path[:depth], -1) for path in paths], np.int64)[placed["domain"]]
    shown = _labels(names)
    labels = [*shown.values()]
    starts, ends = _intervals(facts)
    edges = np.linspace(0, facts.seconds, _BINS + 1)
    data, table = [], []
    for row, name in enumerate(names):
        mine = rows == row
        pods = placed["pods"][mine].astype(np.int64)
        counts = _held(starts[mine], pods, edges) - _held(ends[mine], pods, edges)
        # Consecutive times with the same number of pods make one bar.
        cuts = np.flatnonzero(np.diff(counts, prepend=-1))
        for at, n in zip(cuts.tolist(), counts[cuts].tolist(), strict=True):
            following = cuts[cuts > at]
            until = edges[following[0]] if len(following) else facts.seconds
            if n:
                data.append({"row": shown[name], "t": float(edges[at]), "u": float(until), "pods": n})
        table.append([" / ".join(name), str(int(pods.sum())), str(int(counts.max(initial=0)))])
    y = alt.Y("row:N", scale=alt.Scale(domain=labels), title=None, axis=alt.Axis(labelLimit=140, ticks=False))
    colors = alt.Scale(range=list(FEW_AND_MANY), zero=True)
    chart: Any = (
        alt.Chart(inline(data), width=WIDTH, height=max(60, 18 * len(names)))
        .mark_bar(height={"band": 0.85})
        .encode(
            x=time_axis("t", facts.seconds, dates=facts.dates),
            x2="u:Q",
            y=y,
            color=alt.Color("pods:Q", scale=colors, legend=None),
        )
    )
    lost, reported = _lost(facts, shown)
    if lost:
        marks = alt.Chart(inline(lost)).mark_rule(color="#d0312d", strokeWidth=4)
        chart += marks.encode(x="t:Q", x2="u:Q", y=alt.Y("row:N", scale=alt.Scale(domain=labels)))
    n_jobs = len(np.unique(placed["workload"]))
    says = f"Pods of {counted(n_jobs, 'job')} in {counted(n_domains, 'domain')}. {reported}".strip()
    levels = next(domain.levels for domain in facts.run.domains if len(domain.values) >= depth)[:depth]
    return Figure(
        title="Racks and nodes",
        says=says,
        note=f"A row for each domain ({' / '.join(levels)}); darker: more pods. A red line is a lost node."
        + (f" Shows the {len(names)} with the most pods." if len(names) < n_domains else ""),
        picture=svg(chart, name="topology"),
        header=("domain", "pods placed", "most pods at once"),
        rows=table,
    )


def _labels(names: list[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """Return the names of domains without their common prefix, so that they fit on a phone."""
    texts = ["/".join(path) for path in names]
    first, last = texts[0], texts[-1]
    # They are sorted, so the common prefix of the first and last is that of all.
    n = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    # Do not cut words.
    n = max(first.rfind(mark, 0, n) for mark in "-./") + 1
    return {path: text[n:] for path, text in zip(names, texts, strict=True)}


def _intervals(facts: Facts) -> tuple[Any, Any]:
    """Return when each row of the placements begins and ends, in seconds from the start."""
    run, placed = facts.run, facts.run.placement_table
    steps, until = steps_until_next(run, (*_BEGINS, *_ENDS))
    # A job may end the moment it starts, so find the next row by its index and not by its time.
    begins = np.isin(steps["kind"], [_KINDS.index(kind) for kind in _BEGINS])
    times = np.unique(np.concatenate([steps["time"], placed["time"]]))
    keys, wanted = (
        entry["workload"].astype(np.int64) * len(times) + np.searchsorted(times, entry["time"])
        for entry in (steps[begins], placed)
    )
    ends = until[begins][np.searchsorted(keys, wanted, "right") - 1]
    return (placed["time"] - run.start) / 1e9, (ends - run.start) / 1e9


def _held(times: Any, pods: Any, edges: Any) -> Any:
    """Return how many pods have come, or gone, by each time."""
    order = np.argsort(times, kind="stable")
    sums = np.concatenate([[0], np.cumsum(pods[order])])
    return sums[np.searchsorted(times[order], edges, "right")]


def _lost(facts: Facts, shown: dict[tuple[str, ...], str]) -> tuple[list[dict[str, object]], str]:
    """Return when nodes with a row were lost, and how many were lost."""
    rows = {path[-1]: label for path, label in shown.items()}
    found: list[dict[str, object]] = []
    since: dict[int, float] = {}
    times = ((facts.run.node_table["time"] - facts.run.start) / 1e9).tolist()
    nodes, lost = facts.run.node_table["node"].tolist(), facts.run.node_table["is_lost"].tolist()
    for time, node, is_lost in zip(times, nodes, lost, strict=True):
        if is_lost:
            since.setdefault(node, time)
        elif node in since:
            found.append({"node": node, "t": since.pop(node), "u": time})
    found += [{"node": node, "t": time, "u": facts.seconds} for node, time in since.items()]
    if not found:
        return [], ""
    first = min(float(str(row["t"])) for row in found)
    n_nodes = len({row["node"] for row in found})
    reported = f"{counted(n_nodes, 'node')} {'was' if n_nodes == 1 else 'were'} lost, the first {facts.happens(first)}."
    names_of = facts.run.node_names
    for row in found:
        row["row"] = rows.get(names_of[int(str(row["node"]))])
    return [row for row in found if row["row"] is not None], reported
