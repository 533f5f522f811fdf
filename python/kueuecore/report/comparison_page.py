"""The figures of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from kueuecore._numbers import number_text
from kueuecore.report.axes import change_axis, inline
from kueuecore.report.facts import clock, counted
from kueuecore.report.figure import WIDTH, Figure, svg
from kueuecore.report.page import render
from kueuecore.studies import Change, Comparison, GroupChange

__all__ = ["comparison_html"]

# More bars would be harder to read.
_MAX_GROUPS = 40
_VERDICTS = ("wait less", "wait the same", "wait more")
_SPANS = (("mean_wait_seconds", "mean wait"), ("makespan_seconds", "makespan"), ("lost_seconds", "work lost"))
_COLORS = ("#3b8f5f", "#8a94a1", "#c25b3b")


def comparison_html(comparison: Comparison, *, title: str, edits: Sequence[str] = ()) -> str:
    """Render a comparison as one page.

    Args:
        comparison: The comparison.
        title: Its heading.
        edits: What B changes in A.
    """
    total = comparison.total
    n_same = total.n_jobs - total.n_less - total.n_more
    verdicts = zip(_VERDICTS, (total.n_less, n_same, total.n_more), strict=True)
    numbers = [("jobs", f"{total.n_jobs:,}"), *((name, f"{n:,}") for name, n in verdicts)]
    for name, what in _SPANS:
        change = total.measures.get(name)
        if change is not None and change.a.median is not None and change.b.median is not None:
            numbers.append((f"{what}, A and B", f"{clock(change.a.median)}, {clock(change.b.median)}"))
    if _fail(total):
        numbers.append(("failed, A and B", ", ".join(_medians(total["failed"]))))
    groups = sorted(comparison.groups, key=lambda group: (-(group.n_less + group.n_more), _name(group)))[:_MAX_GROUPS]
    n_left = len(comparison.groups) - len(groups)
    left_out = f"Not shown: {counted(n_left, 'group')} with fewer changes." if n_left else ""
    return render(
        title=title,
        subtitle=f"A and B run the same work, {counted(len(comparison.seeds), 'seed')}."
        + (f" B is A with {'; '.join(edits)}." if edits else ""),
        figures=[_who(groups, left_out), _by_how_much(groups, left_out)] if groups else [],
        numbers=numbers,
        releases=comparison.releases,
    )


def _name(group: GroupChange) -> str:
    before, after = (queue or "several queues" for queue in group.cluster_queues)
    return f"{group.work} in {before}" + (f" / {after}" if after != before else "")


def _who(groups: list[GroupChange], left_out: str) -> Figure:
    """Show the share of each group that waits less, and the share that waits more."""
    data, rows = [], []
    for group in groups:
        counts = (group.n_less, group.n_jobs - group.n_less - group.n_more, group.n_more)
        data += [
            {"group": _name(group), "verdict": verdict, "part": n / group.n_jobs, "place": place}
            for place, (verdict, n) in enumerate(zip(_VERDICTS, counts, strict=True))
        ]
        rows.append([_name(group), str(group.n_jobs), *map(str, counts)])
    chart = (
        alt.Chart(inline(data), width=WIDTH - 160, height=26 * len(groups))
        .mark_bar()
        .encode(
            x=alt.X("part:Q", title="share of the jobs", axis=alt.Axis(format="%", grid=False), stack="zero"),
            y=alt.Y("group:N", sort=[_name(group) for group in groups], title=None),
            color=alt.Color("verdict:N", scale=alt.Scale(domain=[*_VERDICTS], range=[*_COLORS])),
            order="place:Q",
        )
    )
    n_less, n_more = sum(group.n_less for group in groups), sum(group.n_more for group in groups)
    return Figure(
        title="Who waits less, and who more, under B",
        says=f"{counted(n_less, 'job')} {'waits' if n_less == 1 else 'wait'} less, {n_more:,} more.",
        note=left_out,
        picture=svg(chart, name="who"),
        header=("group", "jobs", *_VERDICTS),
        rows=rows,
    )


def _by_how_much(groups: list[GroupChange], left_out: str) -> Figure:
    """Show the change of each group's mean wait, with its interval."""
    data: list[dict[str, Any]] = []
    rows = []
    fail = any(map(_fail, groups))
    for group in groups:
        change = group.measures.get("mean_wait_seconds")
        failed = _medians(group["failed"]) if fail else []
        rows.append(
            [_name(group), *_cells(change), *failed, *_medians(group["evictions"]), *_spans(group["lost_seconds"])]
        )
        if change is None or change.difference.median is None:
            continue
        low, high = change.difference.interval or (change.difference.median,) * 2
        data.append({"group": _name(group), "change": change.difference.median, "low": low, "high": high})
    y = alt.Y("group:N", sort=[_name(group) for group in groups], title=None)
    base = alt.Chart(inline(data), width=WIDTH - 160, height=26 * max(len(data), 1))
    ends = [value for row in data for value in (row["low"], row["high"])]
    title = "change of the mean wait (below 0: B waits less)"
    x = change_axis("change", min(ends, default=0.0), max(ends, default=0.0), title=title)
    chart: Any = (
        alt.Chart(inline([{"zero": 0}])).mark_rule(strokeDash=[4, 4], color="currentColor").encode(x=alt.X("zero:Q"))
        + base.mark_rule(strokeWidth=3, color="#3b78c2").encode(x="low:Q", x2="high:Q", y=y)
        + base.mark_point(filled=True, size=90, color="#3b78c2", opacity=1).encode(x=x, y=y)
    )
    most = max(data, key=lambda row: abs(row["change"]), default=None)
    says = "No group has a wait under both."
    if most is not None and not most["change"]:
        says = "No group waits longer or less on average."
    elif most is not None:
        word = "less" if most["change"] < 0 else "longer"
        says = f"The largest change: {most['group']} waits {clock(abs(most['change']))} {word} on average."
    return Figure(
        title="By how much",
        says=says,
        note=f"A dot is the median over seeds, a bar its 95 % interval, which needs six seeds. {left_out}",
        picture=svg(chart, name="change"),
        header=(
            *("group", "wait A", "wait B", "change", "interval"),
            *(("failed A", "failed B") if fail else ()),
            *("evictions A", "evictions B", "lost A", "lost B"),
        ),
        rows=rows,
    )


def _fail(group: GroupChange) -> bool:
    """Return whether any of its jobs fail."""
    return any((*group["failed"].a.values, *group["failed"].b.values))


def _cells(change: Change | None) -> list[str]:
    if change is None or change.difference.median is None:
        return ["-"] * 4
    interval = change.difference.interval
    between = "-" if interval is None else f"{_signed(interval[0])} to {_signed(interval[1])}"
    return [*_spans(change), _signed(change.difference.median), between]


def _spans(change: Change) -> list[str]:
    return ["-" if entry.median is None else clock(entry.median) for entry in (change.a, change.b)]


def _medians(change: Change) -> list[str]:
    return ["-" if entry.median is None else number_text(entry.median) for entry in (change.a, change.b)]


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{clock(abs(seconds))}" if seconds else "0"
