"""`kueuecore unblock`: finds the smallest changes that would admit a waiting workload."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from kueuecore._text import shown
from kueuecore.answers import Change, ChangeKind, NotEnough, Unblocking, unblock
from kueuecore.answers.trials import MAX_TRIES
from kueuecore.cli.cluster_options import shown_namespace
from kueuecore.cli.documents import document_head, workload_head
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.named_workload import WORKLOAD_HELP, named_workload
from kueuecore.cli.progress import line_progress
from kueuecore.cli.queue_notes import QueueNotes
from kueuecore.cli.state_file import SettledState, add_state, read_state
from kueuecore.cli.streams import output, write
from kueuecore.cli.study_options import add_look, count
from kueuecore.cli.table import Cell, Painted, Style, table
from kueuecore.request_origins import RequestOrigins
from kueuecore.states import Stage, WorkloadState
from kueuecore.times import format_time
from kueuecore.waiting_cause import message_or_cause

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Reads a state, runs cycles until nothing changes, as `kueuecore run` does, and finds the smallest
changes that would admit a waiting workload: more quota, fewer pods, another flavor, a higher
priority, and so on. Each change is tried on a copy, and one step less is shown not to be enough. The
changes that disturb other workloads least come first."""

EXAMPLES = """\
  kueuecore unblock state.yaml team-a/train
  kueuecore unblock dump.yaml --trusted Job/team-a/train
  kueuecore unblock state.yaml team-a/train --only Quota --only Victims -o json
"""

_COLORS = {"Fits": "green", "Preempts": "cyan"}


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_state(add)
    add.add_argument("workload", metavar="WORKLOAD", help=WORKLOAD_HELP)
    help_text = "look for changes of this kind only; repeatable: " + ", ".join(ChangeKind)
    add.add_argument(
        "--only", metavar="KIND", action="append", choices=list(map(str, ChangeKind)), default=[], help=help_text
    )
    help_text = f"how many changes to try at most; by default {MAX_TRIES}, cheap and likely ones first"
    add.add_argument("--tries", metavar="N", type=count, default=MAX_TRIES, help=help_text)
    out = add.add_argument_group("output")
    out.add_argument(
        "-o", "--output", choices=["table", "json"], default="table", help="json also has the edits to apply"
    )
    add_look(out)
    out.add_argument("--fail-on-pending", action="store_true", help="exit with 1 if the workload is pending")


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore unblock`; returns the exit code."""
    state = read_state(options)
    namespace, name = named_workload(state, options.workload, namespace=shown_namespace(options))
    kinds = [ChangeKind(row) for row in options.only] or list(ChangeKind)
    report = line_progress(quiet=options.quiet)
    found = unblock(
        state.engine,
        name,
        namespace=namespace,
        now=state.now,
        was_at_rest=True,
        kinds=kinds,
        max_tries=options.tries,
        progress=lambda n_tried, changes: report(lambda: _progress(n_tried, changes)),
    )
    if options.output == "json":
        write(json.dumps(_document(state, found), indent=2) + "\n")
    else:
        write(_report(found, _message(state, found.workload), Style.of(output(), options.color)) + "\n")
    is_pending = found.workload.stage is Stage.PENDING
    return ExitCode.PENDING if options.fail_on_pending and is_pending else ExitCode.OK


def _message(state: SettledState, workload: WorkloadState) -> str:
    """Kueue's message or the cause, and where requests come from that the job does not make."""
    message = message_or_cause(state.engine, workload, now=state.now)
    if workload.cluster_queue and workload.message == f"ClusterQueue {workload.cluster_queue} is inactive":
        message += f": {state.engine.cluster_queue(workload.cluster_queue).message}"
    plain = state.world.workload(workload.name, namespace=workload.namespace)
    known = RequestOrigins(state.world, state.engine)
    if workload.message:
        notes = known.notes(message, plain, workload.cluster_queue or "")
        notes = notes or QueueNotes(state.world, state.engine).of(workload)
    else:  # the cause has the rest
        notes = known.in_message(message, plain)
    return f"{message} ({notes})" if notes else message


def _progress(n_tried: int, changes: Sequence[Change]) -> str:
    """How far it has come, with the change so far that disturbs others least."""
    best = min(changes, key=lambda change: change.rank, default=None)
    first = "" if best is None else f", such as {best.what}: {best.before} -> {best.after}"
    return shown(f"{n_tried} changes tried, {len(changes)} found{first}")


def _report(found: Unblocking, message: str, style: Style) -> str:
    state = found.workload
    place = f" in ClusterQueue {state.cluster_queue}" if state.cluster_queue else ""
    if state.stage is not Stage.PENDING:
        return shown(f"{state.key} is {state.stage}{place}")
    first = shown(f"{state.key} waits{place}: {message}" if message else f"{state.key} waits{place}")
    stopped = f"stopped after {found.n_tried} tries; --tries raises the limit, --only chooses the kinds of changes"
    not_tried = [f"not tried: {shown(name)}" for name in found.not_tried]
    if not found.changes:
        none = f"no single change and no pair admits it; {found.n_tried} were tried"
        parts = [first, f"none of the changes tried admits it; {stopped}" if found.is_stopped else none]
        if found.not_enough:
            parts.append(_not_enough(found.not_enough, style))
        return "\n\n".join([*parts, *not_tried])
    rows: list[list[Cell]] = []
    for change in found.changes:
        would = Painted(str(change.outcome), _COLORS[change.outcome])
        moved = str(len(change.moved))
        rows.append([change.what, change.before, change.after, would, moved, ", ".join(change.evicted) or "-"])
    header = ["CHANGE", "FROM", "TO", "OUTCOME", "OTHERS MOVED", "EVICTED"]
    parts = [first, table(header, rows, style, right=["OTHERS MOVED"])]
    if not all(change.is_least for change in found.changes):
        parts.append("victims: found greedily among many candidates; each is needed, but a smaller set might exist")
    if found.is_stopped:
        parts.append(stopped)
    return "\n\n".join([*parts, *not_tried])


def _not_enough(failures: Sequence[NotEnough], style: Style) -> str:
    """What was tried in vain, with what binds then; the same reason only once in a row."""
    rows: list[list[Cell]] = []
    before = ""
    for failure in failures:
        rows.append([failure.what, failure.before, failure.most, "the same" if failure.why == before else failure.why])
        before = failure.why
    return table(["NOT ENOUGH", "FROM", "TO", "WHAT BINDS THEN"], rows, style)


def _document(state: SettledState, found: Unblocking) -> dict[str, Any]:
    workload = found.workload
    return {
        **document_head(state.engine.configuration.release),
        "now": format_time(state.now),
        "workload": workload_head(workload),
        "tried": found.n_tried,
        "isStopped": found.is_stopped,
        "notTried": [*found.not_tried],
        "changes": [_change(change) for change in found.changes],
        "notEnough": [
            {
                "kind": str(enough.kind),
                "what": enough.what,
                "before": enough.before,
                "most": enough.most,
                "why": enough.why,
            }
            for enough in found.not_enough
        ],
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "kind": str(change.kind),
        "what": change.what,
        "before": change.before,
        "after": change.after,
        "edits": [{"target": edit.target, "value": edit.value} for edit in change.step.edits],
        "deletions": [str(deletion) for deletion in change.step.deletions],
        "objects": [*change.step.objects],
        "would": str(change.outcome),
        "preemptions": [
            {
                "workload": preemption.key,
                "clusterQueue": preemption.cluster_queue,
                "reason": preemption.reason,
                "message": preemption.message,
            }
            for preemption in change.preemptions
        ],
        "evicted": list(change.evicted),
        "moved": list(change.moved),
        "isLeast": change.is_least,
    }
