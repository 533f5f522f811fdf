"""Presents a comparison as rows of text, for tables on a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kueuecore._numbers import number_text
from kueuecore._spans import change, seconds
from kueuecore._text import counted
from kueuecore.studies.comparison import Change, Comparison, GroupChange

__all__ = ["group_rows", "has_failures", "headlines", "how_to_read", "measure_rows"]

_NAMES = {
    "mean_wait_seconds": "mean wait",
    "p95_wait_seconds": "95th percentile of waits",
    "never_admitted": "jobs never admitted",
    "failed": "jobs failed",
    "evictions": "evictions",
    "evicted_jobs": "jobs evicted",
    "lost_seconds": "work lost",
    "finished": "jobs finished",
    "makespan_seconds": "makespan",
    "mean_slowdown": "mean slowdown",
    "fairness": "fairness (Jain's index)",
    "copies": "copies on workers",
    "wasted_copies": "wasted copies",
    "copy_wait_seconds": "wait of copies",
}


def headlines(comparison: Comparison) -> list[str]:
    """Say how many jobs wait less and longer than under the baseline, on each other side."""
    n_jobs = comparison.total.n_jobs
    counts = f"{counted(len(comparison.seeds), 'seed')}, {counted(n_jobs, 'job')}"
    sides = [(name, comparison.total[name]) for name in comparison.others]
    said = [
        f"{name}: {side.n_less} wait less, {side.n_more} wait longer, {n_jobs - side.n_less - side.n_more} unchanged"
        for name, side in sides
    ]
    # With one other side there is no doubt who is meant.
    return [counts, *said] if len(said) > 1 else [f"{counts}: {said[0].removeprefix(f'{sides[0][0]}: ')}"]


def how_to_read(comparison: Comparison) -> str:
    """Say what the columns of the tables are."""
    note = f"{', '.join(comparison.names)} and CHANGE are medians over seeds"
    if len(comparison.others) > 1 or comparison.baseline != comparison.names[0]:
        note += f"; CHANGE is from {comparison.baseline}"
    intervals = [comparison.total[name]["evictions"].difference.interval for name in comparison.others]
    return note if all(intervals) else f"{note}; intervals need six seeds or more"


def measure_rows(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return the columns and rows of the measures of all jobs.

    The first column of figures is that of the baseline; each other side has one, and two for its change.
    """
    base, others = comparison.baseline, comparison.others
    header = ["MEASURE", base, *(head for name in others for head in (name, "CHANGE", "95% INTERVAL"))]
    total = comparison.total
    rows = [
        [
            _measure_name(name),
            _value(name, total[base][name]),
            *(cell for side in others for cell in _cells(name, total[side][name])),
        ]
        for name in total[base].measures
    ]
    return header, rows


def group_rows(comparison: Comparison, side: str) -> tuple[list[str], list[list[str]]]:
    """Return the columns and rows of the groups on a side, beside the baseline; those of failed jobs only if any fail.

    Args:
        comparison: The comparison.
        side: The name of the side.
    """
    names = (comparison.baseline, side)
    header = ["WORK", "CLUSTER QUEUE", "JOBS", "LESS", "MORE"]
    header += [*(f"WAIT {name}" for name in names), "CHANGE", "95% INTERVAL"]
    # In most scenarios no job fails, and the table is wide enough.
    fail = any(has_failures(group, names) for group in comparison.groups)
    columns = [*(["failed"] if fail else ()), "evictions", "lost_seconds"]
    heads = {"failed": "FAILED", "evictions": "EVICTIONS", "lost_seconds": "LOST"}
    header += [f"{heads[column]} {name}" for column in columns for name in names]
    rows = []
    for group in comparison.groups:
        base, own = (group[name] for name in names)
        before, after = (it.cluster_queue or "-" for it in (base, own))
        home = before if before == after else f"{before} -> {after}"
        wait = ["-"] * 4
        if "mean_wait_seconds" in own.measures:
            wait = [_value("mean_wait_seconds", base["mean_wait_seconds"])]
            wait += _cells("mean_wait_seconds", own["mean_wait_seconds"])
        rows.append(
            [
                *(group.work, home, str(group.n_jobs), str(own.n_less), str(own.n_more), *wait),
                *(_value(column, it[column]) for column in columns for it in (base, own)),
            ]
        )
    return header, rows


def has_failures(group: GroupChange, names: Sequence[str]) -> bool:
    """Return whether any job of a group fails on one of some sides."""
    return any(any(group[name]["failed"].value.values) for name in names)


def _measure_name(name: str) -> str:
    """Return what a measure is called in tables."""
    what, _, rest = name.partition("/")
    if what == "jobs":
        return f"jobs in {rest}"
    return f"{what} of {rest}" if rest else _NAMES[name]


def _value(name: str, given: Change) -> str:
    return _plain(name)(given.value.median)


def _cells(name: str, given: Change) -> list[str]:
    """Return the measure on a side, its change, and the interval of that."""
    signed = change if name.endswith("_seconds") else _signed
    interval = given.difference.interval
    between = "-" if interval is None else f"{signed(interval[0])} to {signed(interval[1])}"
    return [_value(name, given), signed(given.difference.median), between]


def _plain(name: str) -> Callable[[float | None], str]:
    return seconds if name.endswith("_seconds") else _number


def _number(value: float | None) -> str:
    return "-" if value is None else number_text(value)


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{'+' if value > 0 else ''}{number_text(value)}"
