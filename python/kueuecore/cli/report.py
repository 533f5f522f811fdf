"""The outcome of a run as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kueuecore._json import int_at, text_at
from kueuecore.cli.flavors import flavors_of_pod_sets
from kueuecore.cli.outcome import Row, RunOutcome
from kueuecore.cli.table import Cell, Painted, Style, table
from kueuecore.cli.topology_tables import capacity_table, not_placed_table, placed_table
from kueuecore.states import QuotaRow, Stage
from kueuecore.steady_state import Ending
from kueuecore.times import format_time

__all__ = ["report"]

_COLORS = {"Admitted": "green", "QuotaReserved": "cyan", "Pending": "yellow", "Finished": "dim", "Undecided": "red"}
_SECOND_PASS_NS = 10**9
_CHECK_COLORS = {"Ready": "green", "Pending": "yellow"}
_AMOUNTS = (
    "NOMINAL",
    "TOTAL",
    "USED",
    "BORROWED",
    "AVAILABLE",
    "BORROWING LIMIT",
    "LENDING LIMIT",
    "PODS",
    "PRIORITY",
    "POSITION",
)


def report(outcome: RunOutcome, style: Style, *, wide: bool = False, events: bool = False) -> str:
    """The outcome as text, without a final newline.

    Args:
        outcome: The outcome of a run.
        style: Colour and width.
        wide: More columns, no wrapping?
        events: Show events?
    """
    style = style.wide() if wide else style
    parts = [_summary(outcome, style), _workloads(outcome, style, wide=wide)]
    parts += [
        _checks(outcome, style, wide=wide),
        placed_table(outcome, style, wide=wide),
        not_placed_table(outcome, style),
        _preemptions(outcome, style, wide=wide),
        _inactive(outcome, style),
        _admission_checks(outcome, style, wide=wide),
        *_quota(outcome.quota, style, wide=wide),
        capacity_table(outcome, style, wide=wide),
    ]
    if events:
        parts.append(_events(outcome, style))
    return "\n\n".join(part for part in parts if part)


def _summary(outcome: RunOutcome, style: Style) -> str:
    counts = outcome.counts
    n_workloads, n_cycles = sum(counts.values()), len(outcome.settled.decisions)
    kinds = ", ".join(f"{n} {style.paint(status, _COLORS[status])}" for status, n in counts.items())
    first = f"{_plural(n_workloads, 'workload')}{': ' if kinds else ''}{kinds}"
    match outcome.settled.ending:
        case Ending.SETTLED:
            ending = f"settled after {_plural(n_cycles, 'cycle')}"
        case Ending.REPEATING:
            ending = f"never settles: after {_plural(n_cycles, 'cycle')} an earlier state came back"
        case Ending.CYCLE_LIMIT:
            ending = f"not settled after {_plural(n_cycles, 'cycle')}"
    lines = [f"{first}; {ending}"]
    wake = outcome.engine.next_wake()
    if wake is not None:
        lines.append(_about_time(outcome, wake))
    return "\n".join(lines)


def _about_time(outcome: RunOutcome, wake: int) -> str:
    """When something changes by itself, and how to see it. A second pass is due soon after reading: rules/08 §11.10."""
    first = f"something changes by itself at {format_time(wake)}"
    soon = wake - outcome.engine.now <= _SECOND_PASS_NS
    return f"{first}: {'continue with --for=2s' if soon else f'run again with --now={format_time(wake)}'}"


def _workloads(outcome: RunOutcome, style: Style, *, wide: bool) -> str:
    if not outcome.workloads:
        return ""
    header = ["WORKLOAD", "QUEUE", "CLUSTER QUEUE", "STATUS", "PODS", "FLAVORS", "MESSAGE"]
    if wide:
        header[1:1] = ["JOB", "PRIORITY", "POSITION"]
        header[-1:] = ["USAGE", "REASON", "MESSAGE"]
    rows = []
    for row in outcome.workloads:
        state = row.state
        status = Painted(row.status, _COLORS[row.status])
        message = _message(row, wide=wide)
        cells: list[Cell] = [
            state.key,
            state.local_queue or "-",
            state.cluster_queue or "-",
            status,
            _pods(row),
            flavors_of_pod_sets(row.state.flavors),
            message,
        ]
        if wide:
            cells[1:1] = [row.owner or "-", str(state.priority), "-" if row.position is None else str(row.position)]
            cells[-1:] = [_usage(row), state.reason or "-", message]
        rows.append(cells)
    return table(header, rows, style, right=_AMOUNTS)


def _message(row: Row, *, wide: bool) -> str:
    """Kueue's message; in brackets an explanation of our own where Kueue has none."""
    if row.open_checks:
        checks = "admission check" if len(row.open_checks) == 1 else "admission checks"
        return f"(has quota, waiting for {checks} {', '.join(row.open_checks)})"
    # The STATUS column already says that a workload is admitted.
    return row.message_and_notes if wide or row.state.stage is not Stage.ADMITTED else ""


def _pods(row: Row) -> str:
    """The pods of all pod sets; `4 of 8` if fewer were admitted than asked for."""
    asked = sum(row.counts.values())
    assigned = row.state.status.get("admission", {}).get("podSetAssignments")
    given = sum(int(assignment.get("count", 0)) for assignment in assigned) if assigned else asked
    return str(asked) if given == asked else f"{given} of {asked}"


def _usage(row: Row) -> str:
    assigned = row.state.status.get("admission", {}).get("podSetAssignments", ())
    texts = [
        (f"{assignment['name']}: " if len(assigned) > 1 else "")
        + ", ".join(f"{resource} {amount}" for resource, amount in assignment.get("resourceUsage", {}).items())
        for assignment in assigned
    ]
    return "; ".join(texts) or "-"


def _preemptions(outcome: RunOutcome, style: Style, *, wide: bool) -> str:
    extra = ["MESSAGE"] if wide else []
    rows = [
        [
            preemption.key,
            preemption.cluster_queue,
            preemption.preemptor,
            preemption.reason,
            outcome.why(preemption),
            *([preemption.message] if wide else []),
        ]
        for preemption in outcome.preemptions
    ]
    return table(["PREEMPTED", "CLUSTER QUEUE", "FOR", "REASON", "WHY", *extra], rows, style) if rows else ""


def _checks(outcome: RunOutcome, style: Style, *, wide: bool) -> str:
    """The states of the admission checks of workloads."""
    header = ["WORKLOAD", "ADMISSION CHECK", "STATE", *(["SINCE", "RETRIES"] if wide else []), "MESSAGE"]
    rows: list[list[Cell]] = []
    for row in outcome.workloads:
        for entry in row.checks:
            state = text_at(entry, "state")
            times = [text_at(entry, "lastTransitionTime"), str(int_at(entry, "retryCount"))] if wide else []
            painted = Painted(state, _CHECK_COLORS.get(state, "red"))
            rows.append([row.state.key, text_at(entry, "name"), painted, *times, text_at(entry, "message")])
    return table(header, rows, style, right=["RETRIES"]) if rows else ""


def _admission_checks(outcome: RunOutcome, style: Style, *, wide: bool) -> str:
    """The AdmissionChecks; one without the condition Active is not active."""
    rows = [
        [
            check.name,
            check.controller_name or "-",
            check.active or "-",
            *([check.reason or "-"] if wide else []),
            check.message,
        ]
        for check in outcome.admission_checks
    ]
    header = ["ADMISSION CHECK", "CONTROLLER", "ACTIVE", *(["REASON"] if wide else []), "MESSAGE"]
    return table(header, rows, style) if rows else ""


def _inactive(outcome: RunOutcome, style: Style) -> str:
    rows = [[queue.name, queue.reason, queue.message] for queue in outcome.cluster_queues if not queue.is_active]
    return table(["INACTIVE CLUSTER QUEUE", "REASON", "MESSAGE"], rows, style) if rows else ""


def _quota(quota: Sequence[QuotaRow], style: Style, *, wide: bool) -> list[str]:
    queues = [row for row in quota if row.kind == "ClusterQueue"]
    cohorts = [row for row in quota if row.kind == "Cohort"]
    limits = wide or any(row.borrowing_limit is not None or row.lending_limit is not None for row in quota)
    extra = ["BORROWING LIMIT", "LENDING LIMIT"] if limits else []
    parts = []
    if queues:
        header = ["CLUSTER QUEUE", "COHORT", "FLAVOR", "RESOURCE", "NOMINAL", "USED", "BORROWED", "AVAILABLE", *extra]
        parts.append(table(header, [_quota_cells(row, limits=limits) for row in queues], style, right=_AMOUNTS))
    if cohorts:
        header = ["COHORT", "PARENT", "FLAVOR", "RESOURCE", "NOMINAL", "TOTAL", "USED", "AVAILABLE", *extra]
        parts.append(table(header, [_quota_cells(row, limits=limits) for row in cohorts], style, right=_AMOUNTS))
    return parts


def _quota_cells(row: QuotaRow, *, limits: bool) -> list[Cell]:
    cells: list[Cell] = [row.name, row.parent or "-", row.flavor, row.resource, _amount(row.nominal)]
    if row.kind == "Cohort":
        cells += [_amount(row.subtree_quota), _amount(row.usage)]
    else:
        borrowed = row.borrowed
        cells += [_amount(row.usage), Painted(borrowed, "yellow" if borrowed != "0" else "")]
    cells.append(_amount(row.available))
    return [*cells, row.borrowing_limit or "-", row.lending_limit or "-"] if limits else cells


def _amount(quantity: str | None) -> str:
    return "unlimited" if quantity is None else quantity


def _events(outcome: RunOutcome, style: Style) -> str:
    """Each distinct event once, where it first happened, with its count."""
    counts = Counter(outcome.settled.events)
    rows = [[key.type, key.reason, str(n), key.key, key.message] for key, n in counts.items()]
    return (
        table(["EVENT", "REASON", "COUNT", "WORKLOAD", "MESSAGE"], rows, style, right=["COUNT"])
        if rows
        else "no events"
    )


def _plural(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
