"""`kueuecore explain`: shows everything that keeps a workload waiting, or why it was placed where it is."""

from __future__ import annotations

import argparse
import json
import re
from math import isfinite
from typing import Any

from kueuecore._json import text_at
from kueuecore._rows import row_of
from kueuecore._text import shown
from kueuecore.answers import Explanation, explain, obstacles
from kueuecore.answers.explanation import Asked, FlavorTrial, Holder, PodSetTrials, Search
from kueuecore.answers.obstacles import rule_link, why_it_borrows, why_so
from kueuecore.answers.shares import Contender
from kueuecore.cli.cluster_options import shown_namespace
from kueuecore.cli.documents import checks_document, document_head, places_document, workload_head
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.held_nodes import node_tables, nodes_document, nodes_left_out
from kueuecore.cli.holders import holder_tables
from kueuecore.cli.named_workload import WORKLOAD_HELP, named_workload
from kueuecore.cli.outcome import Row, RunOutcome
from kueuecore.cli.queue_notes import QueueNotes
from kueuecore.cli.setbacks import (
    Kept,
    backoff_lines,
    check_lines,
    evicted,
    eviction_lines,
    quota_kept,
    why_kept,
)
from kueuecore.cli.state_file import SettledState, add_state, read_state
from kueuecore.cli.streams import output
from kueuecore.cli.study_options import add_look
from kueuecore.cli.table import Cell, Painted, Style, table
from kueuecore.cli.topology_tables import not_placed_table
from kueuecore.cli.watching import Answer, add_watch, answer_or_watch
from kueuecore.request_origins import RequestOrigins
from kueuecore.states import Stage
from kueuecore.times import format_time

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Reads a state, runs cycles until nothing changes, as `kueuecore run` does, and shows everything behind
the decision about one workload: the obstacles by flavor, resource and cohort, which workloads hold
what it needs, which of them could be preempted and which may not, and the rule for each. For a
workload that already has quota, shows where it would go if it asked again now, and why."""

EXAMPLES = """\
  kueuecore explain state.yaml team-a/train
  kubectl get clusterqueues,cohorts,localqueues,resourceflavors,workloads -A -o yaml |
    kueuecore explain - team-a/train --trusted
  kueuecore explain state.yaml Job/team-a/train -o json | jq '.obstacles[].text'
"""

_MAX_AHEAD = 5
_UID = re.compile(r"\(UID: ([^,)\s]+)")


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_state(add)
    add.add_argument("workload", metavar="WORKLOAD", help=WORKLOAD_HELP)
    out = add.add_argument_group("output")
    help_text = "table (the default); wide: all holders, no wrapping; json: everything, as one document"
    out.add_argument("-o", "--output", choices=["table", "wide", "json"], default="table", help=help_text)
    add_look(out)
    add_watch(out)
    out.add_argument("--fail-on-pending", action="store_true", help="exit with 1 if the workload is pending")


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore explain`; returns the exit code."""
    return answer_or_watch(options, lambda: _answer(options))


def _answer(options: argparse.Namespace) -> Answer:
    state = read_state(options)
    namespace, name = named_workload(state, options.workload, namespace=shown_namespace(options))
    found = explain(state.engine, name, namespace=namespace, now=state.now)
    by = _pushed_out_by(state, found)
    is_pending = found.workload.stage is Stage.PENDING
    code = ExitCode.PENDING if options.fail_on_pending and is_pending else ExitCode.OK
    outcome = RunOutcome(state.engine, state.world, state.settled, state.now)
    row = outcome.workload(name, namespace=namespace)
    kept = quota_kept(state, found)
    document = _document(state, found, outcome, row, by, kept)
    if options.output == "json":
        text = json.dumps(document, indent=2)
    else:
        style = Style.of(output(), options.color)
        is_wide = options.output == "wide"
        first = _summary(found, row, by, kept, state)
        text = _report(state, found, outcome, row, first, style.wide() if is_wide else style, is_wide=is_wide)
    return Answer(f"{text}\n", code, json.dumps({**document, "now": ""}))


def _pushed_out_by(state: SettledState, found: Explanation) -> str:
    """The workload that preempted it; empty if none did, or if it is unknown."""
    key = found.workload.key
    for decision in reversed(state.settled.decisions):
        for preemption in decision.preemptions:
            if preemption.key == key:
                return preemption.preemptor
    for condition in found.workload.status.get("conditions", ()):
        uid = _UID.search(condition.get("message", "")) if condition.get("type") == "Preempted" else None
        if uid is not None:
            for manifest in state.world.manifests:
                if text_at(manifest.object, "metadata", "uid") == uid[1]:
                    where = text_at(manifest.object, "metadata", "namespace")
                    return f"{where}/{text_at(manifest.object, 'metadata', 'name')}"
    return ""


def _origins(state: SettledState, found: Explanation) -> dict[str, str]:
    """Where the requests come from that the job does not make."""
    workload = state.world.workload(found.workload.name, namespace=found.workload.namespace)
    asked = [asked.resource for pod_set in found.pod_sets for trial in pod_set.trials for asked in trial.asked]
    known = RequestOrigins(state.world, state.engine)
    return {fromkey: known.of(fromkey, workload) for fromkey in dict.fromkeys([*found.uncovered, *asked])}


def _report(
    state: SettledState, found: Explanation, outcome: RunOutcome, row: Row, first: str, style: Style, *, is_wide: bool
) -> str:
    left_out = nodes_left_out(outcome.topology_objects, found) if row.not_placed else []
    parts = [
        "\n".join([first, *map(shown, left_out)]),
        _flavors(found, row, style),
        _obstacles(state, found, row, style),
    ]
    parts += [_levels(found, row, style), *holder_tables(found, style, is_wide=is_wide)]
    if row.not_placed:
        parts.append(not_placed_table(outcome, style, only=row))
    parts += node_tables(outcome, found, row, style, is_wide=is_wide)
    return "\n\n".join(part for part in parts if part)


def _summary(found: Explanation, row: Row, by: str, kept: Kept, state: SettledState) -> str:
    workload, now = found.workload, found.now
    place = f" in ClusterQueue {workload.cluster_queue}" if workload.cluster_queue else ""
    message = f": {row.message}" if row.message else ""
    lines = []
    if workload.stage is Stage.PENDING:
        lines.append(f"{workload.key} waits{place}{message}")
        lines += filter(None, [QueueNotes(state.world, state.engine).of(workload)])
        if found.ahead:
            first = found.ahead[:_MAX_AHEAD]
            named = ", ".join(
                f"{ahead.key} (parked)" if ahead.place == "inadmissible" else ahead.key for ahead in first
            )
            more = f" and {len(found.ahead) - _MAX_AHEAD} more" if len(found.ahead) > _MAX_AHEAD else ""
            lines.append(f"ahead of it in the queue: {named}{more}")
            lines += _why_ahead(found)
        elif workload.place is not None:
            lines.append("nothing is ahead of it in the queue")
        lines += [why_kept(queue, head) for queue, head in kept]
        if now.outcome.value != "Waits":
            lines.append(f"as the head of a cycle it would get quota now: {now.outcome.value}")
        elif now.message and now.message != row.message and not found.repeats_status:
            lines.append(f"as the head of a cycle it would still wait: {now.message}")
    else:
        lines.append(f"{workload.key} is {workload.stage}{place}{message}")
        if workload.stage is not Stage.FINISHED:
            answer = ", ".join(filter(None, [now.outcome.value, now.message]))
            lines.append(f"if it asked again now: {answer}")
    if row.open_checks:
        lines.append(f"it is waiting for its admission checks: {', '.join(row.open_checks)}")
    lines += check_lines(row)
    lines += backoff_lines(row, state.now)
    if found.replaces is not None:
        uses = ", ".join(f"{amount} {resource}" for (_, resource), amount in found.replaces.uses.items())
        over = f"its {uses} go over to {workload.name}" if uses else "it holds no quota"
        lines.append(f"{found.replaces.namespace}/{found.replaces.name} is replaced by this workload: {over}")
    lines += eviction_lines(found, by)
    if now.undecided is not None:
        lines.append(f"kueuecore cannot decide about it: {now.undecided[0]}: {now.undecided[1]}")
    return "\n".join(map(shown, lines))


def _why_ahead(found: Explanation) -> list[str]:
    """By which rule those named are ahead, one line for each reason."""
    named: dict[str, list[str]] = {}
    for ahead in found.ahead[:_MAX_AHEAD]:
        named.setdefault(ahead.sentence, []).append(ahead.key)
    lines = [f"  {', '.join(keys)}: {sentence}" for sentence, keys in named.items()]
    if found.is_strict:
        queue = found.workload.cluster_queue
        lines.append(f"  ClusterQueue {queue} is StrictFIFO: nothing behind its head is tried before that has quota")
    return lines


def _name(row: Row, index: int | None) -> str:
    if index is None:
        return "-"
    names = list(row.counts)
    return names[index] if index < len(names) else str(index)


def _flavors(found: Explanation, row: Row, style: Style) -> str:
    rows: list[list[Cell]] = []
    for pod_set in found.pod_sets:
        name = _name(row, pod_set.index)
        rows += [
            [name, trial.flavor, _result(trial), "; ".join(trial.reasons) or why_it_borrows(trial) or "-"]
            for trial in pod_set.trials
        ]
        is_chosen = any(trial.is_chosen for trial in pod_set.trials)
        why = "an earlier flavor is good enough" if is_chosen else "the pod set had already failed"
        rows += [[name, flavor, "not tried", why] for flavor in pod_set.not_tried]
    return table(["POD SET", "FLAVOR", "RESULT", "WHY"], rows, style) if rows else ""


def _result(trial: FlavorTrial) -> Painted:
    color = {"Fit": "green", "Preempt": "cyan"}.get(trial.mode, "yellow")
    borrows = ", borrows" if trial.borrowing_level and trial.mode != "NoFit" else ""
    chosen = ", chosen" if trial.is_chosen else ""
    return Painted(f"{trial.mode}{borrows}{chosen}", color)


def _obstacles(state: SettledState, found: Explanation, row: Row, style: Style) -> str:
    every = obstacles(found, origins=_origins(state, found))
    rows = [
        [_name(row, obstacle.pod_set), obstacle.flavor or "-", obstacle.resource or "-", obstacle.rule, obstacle.text]
        for obstacle in every
    ]
    return table(["POD SET", "FLAVOR", "RESOURCE", "RULE", "OBSTACLE"], rows, style) if rows else ""


def _levels(found: Explanation, row: Row, style: Style) -> str:
    """How each contested request fares at every level of the cohort tree."""
    header = ["POD SET", "FLAVOR", "RESOURCE", "LEVEL", "TOTAL", "USED", "NEEDED", "AVAILABLE", "MISSING"]
    rows: list[list[Cell]] = []
    for pod_set, trial, asked in _contested(found):
        for level in asked.levels:
            missing = Painted(level.missing, "red" if level.binds else "")
            total, available = level.subtree_quota or "unlimited", level.available or "unlimited"
            amounts: list[Cell] = [total, level.usage, level.needed, available, missing]
            rows.append([_name(row, pod_set), trial.flavor, asked.resource, f"{level.kind} {level.name}", *amounts])
    return table(header, rows, style, right=header[4:]) if rows else ""


def _contested(found: Explanation) -> list[tuple[int, FlavorTrial, Asked]]:
    return [
        (pod_set.index, trial, asked)
        for pod_set in found.pod_sets
        for trial in pod_set.trials
        for asked in trial.asked
        if asked.verdict == "Contested"
    ]


def _document(
    state: SettledState, found: Explanation, outcome: RunOutcome, row: Row, by: str, kept: Kept
) -> dict[str, Any]:
    workload = found.workload
    return {
        **document_head(state.engine.configuration.release),
        "now": format_time(state.now),
        "workload": {
            **workload_head(workload),
            "ahead": [ahead.key for ahead in found.ahead],
            "whyAhead": [
                {"workload": ahead.key, "rule": str(ahead.why), "why": ahead.sentence} for ahead in found.ahead
            ],
            "replaces": found.replaces and f"{found.replaces.namespace}/{found.replaces.name}",
            "preemptedBy": by or None,
            "evicted": evicted(found) or None,
            "keptFor": [head.key for _, head in kept],
            "requeueAt": text_at(dict(workload.status), "requeueState", "requeueAt") or None,
            "admissionChecks": checks_document(row),
            "note": QueueNotes(state.world, state.engine).of(workload) or None,
        },
        "would": str(found.now.outcome),
        "reason": found.now.reason,
        "message": found.now.message,
        "obstacles": [
            {
                "podSet": obstacle.pod_set,
                "flavor": obstacle.flavor or None,
                "resource": obstacle.resource or None,
                "rule": obstacle.rule,
                "link": rule_link(obstacle.rule),
                "text": obstacle.text,
            }
            for obstacle in obstacles(found, origins=_origins(state, found))
        ],
        "podSets": [_pod_set(pod_set) for pod_set in found.pod_sets],
        "searches": [
            {
                "contested": [{"flavor": flavor, "resource": resource} for flavor, resource in search.contested],
                "isFound": search.is_found,
                "asksForPlace": search.asks_for_place,
                "holders": [_holder(holder, found, search) for holder in search.holders],
            }
            for search in found.searches
        ],
        "notPlaced": places_document(row),
        "leftOut": nodes_left_out(outcome.topology_objects, found) if row.not_placed else [],
        **nodes_document(outcome, found, row),
    }


def _pod_set(pod_set: PodSetTrials) -> dict[str, Any]:
    return {
        "index": pod_set.index,
        "reasons": list(pod_set.reasons),
        "notTried": list(pod_set.not_tried),
        "unavailable": list(pod_set.unavailable),
        "flavors": [row_of(trial) for trial in pod_set.trials],
    }


def _holder(holder: Holder, found: Explanation, search: Search) -> dict[str, Any]:
    rule, why = why_so(holder, found, search)
    return {
        "namespace": holder.namespace,
        "name": holder.name,
        "clusterQueue": holder.cluster_queue,
        "priority": holder.priority,
        "uses": [
            {"flavor": flavor, "resource": resource, "amount": use} for (flavor, resource), use in holder.uses.items()
        ],
        "verdict": str(holder.fate),
        "rule": rule,
        "link": rule_link(rule),
        "why": why,
        "shares": [
            {
                "strategy": comparison.strategy,
                "ours": _contender(comparison.ours),
                "theirs": _contender(comparison.theirs),
                "passes": comparison.passes,
            }
            for comparison in holder.comparisons
        ],
        "ties": [{"chosen": str(tie.node), "equals": list(map(str, tie.equals))} for tie in holder.ties],
    }


def _contender(contender: Contender) -> dict[str, Any]:
    """An infinite share is null, as JSON has no such number."""
    now, then = (entry if isfinite(entry) else None for entry in (contender.now, contender.then))
    return {"kind": contender.node.kind, "name": contender.node.name, "now": now, "then": then}
