"""The figures of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from kueuecore._numbers import number_text
from kueuecore._text import listed
from kueuecore.report.axes import change_axis, color_of, inline
from kueuecore.report.facts import clock, counted
from kueuecore.report.figure import WIDTH, Figure, svg
from kueuecore.report.page import render
from kueuecore.studies import Change, Comparison, GroupChange
from kueuecore.studies.comparison_rows import has_failures, measure_rows

__all__ = ["comparison_html"]

# More bars would be harder to read.
_MAX_GROUPS = 40
_VERDICTS = ("wait less", "wait the same", "wait more")
_SPANS = (("mean_wait_seconds", "mean wait"), ("makespan_seconds", "makespan"), ("lost_seconds", "work lost"))
_COLORS = ("#3b8f5f", "#8a94a1", "#c25b3b")
_BAR = 26


def comparison_html(comparison: Comparison, *, title: str, sides: Mapping[str, str]) -> str:
    """Render a comparison as one page.

    Args:
        comparison: The comparison.
        title: Its heading.
        sides: What each side is, by its name.
    """
    groups = sorted(comparison.groups, key=lambda group: (-_n_changed(group), _name(comparison, group)))[:_MAX_GROUPS]
    n_left = len(comparison.groups) - len(groups)
    left_out = f"Not shown: {counted(n_left, 'group')} with fewer changes." if n_left else ""
    who = [_who(comparison, groups, side, left_out) for side in comparison.others]
    n_seeds = counted(len(comparison.seeds), "seed")
    said = "".join(f" {name} is {what}." for name, what in sides.items())
    return render(
        title=title,
        subtitle=f"{listed(comparison.names)} run the same work, {n_seeds}.{said}",
        figures=[*([*who, _by_how_much(comparison, groups, left_out)] if groups else []), _measures(comparison)],
        numbers=_numbers(comparison),
        releases=comparison.releases,
        notices=[text for texts in comparison.notices for text in texts],
    )


def _numbers(comparison: Comparison) -> list[tuple[str, str]]:
    total, others = comparison.total, comparison.others
    numbers = [("jobs", f"{total.n_jobs:,}")]
    for side in others:
        under = f" under {side}" if len(others) > 1 else ""
        counts = (total[side].n_less, total.n_jobs - total[side].n_less - total[side].n_more, total[side].n_more)
        numbers += [(f"{verdict}{under}", f"{n:,}") for verdict, n in zip(_VERDICTS, counts, strict=True)]
    for name, what in _SPANS:
        changes = [total[side].measures.get(name) for side in comparison.names]
        medians = [change.value.median for change in changes if change is not None]
        known = [clock(median) for median in medians if median is not None]
        if len(known) == len(comparison.names):
            numbers.append((f"{what}, {listed(comparison.names)}", ", ".join(known)))
    if has_failures(total, comparison.names):
        failed = ", ".join(_median(total[side]["failed"]) for side in comparison.names)
        numbers.append((f"failed, {listed(comparison.names)}", failed))
    return numbers


def _n_changed(group: GroupChange) -> int:
    return sum(side.n_less + side.n_more for side in group.sides.values())


def _name(comparison: Comparison, group: GroupChange, side: str = "") -> str:
    """Return what a group is called: its work, and its ClusterQueue on the baseline and on a side."""
    queues = [group[name].cluster_queue or "several queues" for name in (comparison.baseline, *filter(None, [side]))]
    return f"{group.work} in {' / '.join(dict.fromkeys(queues))}"


def _who(comparison: Comparison, groups: Sequence[GroupChange], side: str, left_out: str) -> Figure:
    """Show the share of each group that waits less on a side, and the share that waits more."""
    data, rows = [], []
    names = [_name(comparison, group, side) for group in groups]
    for name, group in zip(names, groups, strict=True):
        n_less, n_more = group[side].n_less, group[side].n_more
        counts = (n_less, group.n_jobs - n_less - n_more, n_more)
        data += [
            {"group": name, "verdict": verdict, "part": n / group.n_jobs, "place": place}
            for place, (verdict, n) in enumerate(zip(_VERDICTS, counts, strict=True))
        ]
        rows.append([name, str(group.n_jobs), *map(str, counts)])
    chart = (
        alt.Chart(inline(data), width=WIDTH - 160, height=_BAR * len(groups))
        .mark_bar()
        .encode(
            x=alt.X("part:Q", title="share of the jobs", axis=alt.Axis(format="%", grid=False), stack="zero"),
            y=alt.Y("group:N", sort=names, title=None),
            color=alt.Color("verdict:N", scale=alt.Scale(domain=[*_VERDICTS], range=[*_COLORS])),
            order="place:Q",
        )
    )
    n_less, n_more = (sum(getattr(group[side], which) for group in groups) for which in ("n_less", "n_more"))
    return Figure(
        title=f"Who waits less, and who more, under {side}",
        says=f"{counted(n_less, 'job')} {'waits' if n_less == 1 else 'wait'} less, {n_more:,} more.",
        note=left_out,
        picture=svg(chart, name=f"who{comparison.names.index(side)}"),
        header=("group", "jobs", *_VERDICTS),
        rows=rows,
    )


def _by_how_much(comparison: Comparison, groups: Sequence[GroupChange], left_out: str) -> Figure:
    """Show the change of each group's mean wait on each side, with its interval."""
    data: list[dict[str, Any]] = []
    others = comparison.others
    for group in groups:
        for side in others:
            change = group[side].measures.get("mean_wait_seconds")
            if change is None or change.difference.median is None:
                continue
            low, high = change.difference.interval or (change.difference.median,) * 2
            # With one other side, a group may say both of its queues.
            name = _name(comparison, group, side if len(others) == 1 else "")
            data.append({"group": name, "side": side, "change": change.difference.median, "low": low, "high": high})
    most = max(data, key=lambda row: abs(row["change"]), default=None)
    says = "No group has a wait on all sides."
    if most is not None and not most["change"]:
        says = "No group waits longer or less on average."
    elif most is not None:
        word = "less" if most["change"] < 0 else "longer"
        under = f" under {most['side']}" if len(others) > 1 else ""
        says = f"The largest change: {most['group']} waits {clock(abs(most['change']))} {word} on average{under}."
    header, rows = _change_rows(comparison, groups)
    return Figure(
        title="By how much",
        says=says,
        note=f"A dot is the median over seeds, a bar its 95 % interval, which needs six seeds. {left_out}",
        picture=svg(_change_chart(data, others, comparison.baseline), name="change"),
        header=header,
        rows=rows,
    )


def _change_chart(data: list[dict[str, Any]], others: Sequence[str], baseline: str) -> Any:
    names = [*dict.fromkeys(row["group"] for row in data)]
    y: dict[str, Any] = {"y": alt.Y("group:N", sort=names, title=None)}
    height = _BAR
    if len(others) > 1:
        y["yOffset"] = alt.YOffset("side:N", sort=[*others])
        height = max(_BAR, 14 * len(others) + 8)
    base = alt.Chart(inline(data), width=WIDTH - 160, height=height * max(len(names), 1))
    ends = [value for row in data for value in (row["low"], row["high"])]
    title = f"change of the mean wait (below 0: {others[0] if len(others) == 1 else f'less than {baseline}'}"
    title += " waits less)" if len(others) == 1 else ")"
    x = change_axis("change", min(ends, default=0.0), max(ends, default=0.0), title=title)
    color = color_of(tuple(others), "side") if len(others) > 1 else alt.value("#3b78c2")
    return (
        alt.Chart(inline([{"zero": 0}])).mark_rule(strokeDash=[4, 4], color="currentColor").encode(x=alt.X("zero:Q"))
        + base.mark_rule(strokeWidth=3).encode(x="low:Q", x2="high:Q", color=color, **y)
        + base.mark_point(filled=True, size=90, opacity=1).encode(x=x, color=color, **y)
    )


def _change_rows(comparison: Comparison, groups: Sequence[GroupChange]) -> tuple[list[str], list[list[str]]]:
    """Return the columns and rows of the groups with the figures of each side."""
    names, others = comparison.names, comparison.others
    fail = any(has_failures(group, names) for group in groups)
    header = ["group", *(f"wait {name}" for name in names)]
    header += [f"{what}{f' {side}' if len(others) > 1 else ''}" for side in others for what in ("change", "interval")]
    header += [f"failed {name}" for name in names] if fail else []
    header += [*(f"evictions {name}" for name in names), *(f"lost {name}" for name in names)]
    rows = []
    for group in groups:
        waits = [group[name].measures.get("mean_wait_seconds") for name in names]
        changes = [cell for side in others for cell in _cells(group[side].measures.get("mean_wait_seconds"))]
        rows.append(
            [
                _name(comparison, group, others[0] if len(others) == 1 else ""),
                *map(_span, waits),
                *changes,
                *(_median(group[name]["failed"]) for name in names if fail),
                *(_median(group[name]["evictions"]) for name in names),
                *(_span(group[name]["lost_seconds"]) for name in names),
            ]
        )
    return header, rows


def _measures(comparison: Comparison) -> Figure:
    """Show the measures of all jobs as a table."""
    header, rows = measure_rows(comparison)
    others = listed(comparison.others)
    return Figure(
        title="All measures",
        says=f"Medians over seeds. A change is that of {others} from {comparison.baseline}, with its 95 % interval.",
        header=[name if name in comparison.names else name.lower() for name in header],
        rows=rows,
    )


def _cells(change: Change | None) -> list[str]:
    if change is None or change.difference.median is None:
        return ["-"] * 2
    interval = change.difference.interval
    between = "-" if interval is None else f"{_signed(interval[0])} to {_signed(interval[1])}"
    return [_signed(change.difference.median), between]


def _span(change: Change | None) -> str:
    return "-" if change is None or change.value.median is None else clock(change.value.median)


def _median(change: Change) -> str:
    return "-" if change.value.median is None else number_text(change.value.median)


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{clock(abs(seconds))}" if seconds else "0"
