"""A timeline as a table, and as a part of a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from kueuecore._json import JsonObject, JsonValue
from kueuecore._spans import span
from kueuecore._text import shown
from kueuecore.answers.obstacles import rule_link
from kueuecore.cli.table import Cell, Painted, Style, table
from kueuecore.histories.timeline import Step, Timeline, What
from kueuecore.times import format_time

__all__ = ["timeline_document", "timeline_text", "timelines_text"]

_COLORS = {
    What.QUOTA_RESERVED: "cyan",
    What.ADMITTED: "green",
    What.READY: "green",
    What.WAITING: "yellow",
    What.HELD_BACK: "yellow",
    What.NOT_READY: "yellow",
    What.PREEMPTED: "red",
    What.EVICTED: "red",
    What.DEACTIVATED: "red",
    What.FINISHED: "dim",
    What.DELETED: "dim",
}
# At the beginning and at the end of a wait.
_MAX_WAITING = 3
_COUNTED = {
    "admitted": (What.ADMITTED,),
    "preempted": (What.PREEMPTED,),
    "evicted": (What.EVICTED, What.DEACTIVATED),
}


def timelines_text(timelines: Sequence[Timeline], style: Style, *, is_wide: bool) -> str:
    """The timelines of several workloads, one after the other."""
    return "\n\n".join(timeline_text(timeline, style, is_wide=is_wide) for timeline in timelines)


def timeline_text(timeline: Timeline, style: Style, *, is_wide: bool) -> str:
    """A timeline as text, without a final newline.

    Args:
        timeline: The timeline.
        style: Colour and width.
        is_wide: More columns, no wrapping?
    """
    style = style.wide() if is_wide else style
    parts = [_summary(timeline)]
    if timeline.steps:
        header = ["TIME", "STEP", "RULE", "WHAT HAPPENED"]
        if is_wide:
            header = ["TIME", "AFTER", "STEP", "BY", "RULE", "SOURCES", "REASON", "WHAT HAPPENED"]
        rows = list(_wide_rows(timeline.steps) if is_wide else _rows(timeline.steps))
        parts.append(table(header, rows, style, right=["AFTER"]))
    if timeline.missing:
        parts.append("\n".join(f"not recorded: {shown(sentence)}" for sentence in timeline.missing))
    return "\n\n".join(parts)


def timeline_document(timeline: Timeline) -> JsonObject:
    """A timeline as JSON."""
    steps: list[JsonValue] = [_step(step) for step in timeline.steps]
    return {
        "workload": {"namespace": timeline.namespace, "name": timeline.name, "status": timeline.stage or None},
        "steps": steps,
        "notRecorded": [*timeline.missing],
    }


def _summary(timeline: Timeline) -> str:
    counts = ((what, timeline.count(*kinds)) for what, kinds in _COUNTED.items())
    times = ", ".join(f"{what} {_often(n)}" for what, n in counts if n)
    is_now = f" is {timeline.stage}" if timeline.stage else ""
    so_far = f"; recorded: {times}" if times else "" if timeline.steps else "; nothing is recorded about it"
    return shown(f"{timeline.key}{is_now}{so_far}")


def _often(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")


def _rows(steps: Sequence[Step]) -> Iterator[list[Cell]]:
    """A row for each step; of a long wait, which may have thousands of messages, only the first and the last."""
    for is_waiting, group in groupby(steps, key=lambda step: step.what is What.WAITING):
        alike = list(group)
        n_hidden = len(alike) - 2 * _MAX_WAITING if is_waiting else 0
        if n_hidden < 2:
            yield from map(_row, alike)
            continue
        yield from map(_row, alike[:_MAX_WAITING])
        yield ["...", _what(alike[0]), "-", f"waits: {n_hidden} more messages, which -o wide shows"]
        yield from map(_row, alike[-_MAX_WAITING:])


def _row(step: Step) -> list[Cell]:
    return [_time(step), _what(step), step.rule or "-", step.sentence]


def _wide_rows(steps: Sequence[Step]) -> Iterator[list[Cell]]:
    last: int | None = None
    for step in steps:
        after = "-" if last is None or step.at is None else f"+{span(step.at - last)}"
        last = step.at
        time, what, rule, sentence = _row(step)
        yield [time, after, what, step.by or "-", rule, ", ".join(step.sources) or "-", step.reason or "-", sentence]


def _what(step: Step) -> Painted:
    return Painted(str(step.what), _COLORS.get(step.what, ""))


def _time(step: Step) -> str:
    if step.at is None:
        return f"before {format_time(step.before)}" if step.before is not None else "-"
    return format_time(step.at)


def _step(step: Step) -> JsonObject:
    return {
        "at": None if step.at is None else format_time(step.at),
        "before": None if step.before is None else format_time(step.before),
        "until": None if step.until is None else format_time(step.until),
        "what": str(step.what),
        "by": step.by or None,
        "cluster": step.cluster or None,
        "rule": step.rule or None,
        "link": rule_link(step.rule) if step.rule else None,
        "sentence": step.sentence,
        "reason": step.reason,
        "message": step.message,
        "count": step.count,
        "sources": [*step.sources],
    }
