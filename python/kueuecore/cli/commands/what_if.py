"""`kueuecore what-if`: tries jobs and changes on a copy of a state, and reports what would happen."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore._text import counted, shown
from kueuecore.answers import (
    Deletion,
    Move,
    Question,
    Standing,
    change_state,
    edit_manifests,
    explain,
    moves_between,
    parse_deletion,
)
from kueuecore.answers.obstacles import why_by_fair_sharing
from kueuecore.cli.documents import document_head
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.flavors import flavors_of_pod_sets
from kueuecore.cli.job_names import jobs_with_workloads
from kueuecore.cli.named_workload import named_workload
from kueuecore.cli.outcome import BY_SHARE
from kueuecore.cli.state_file import SettledState, add_state, parsed, read_files, read_state
from kueuecore.cli.streams import output, to_stderr, write
from kueuecore.cli.study_options import add_look
from kueuecore.cli.table import Cell, Painted, Style, table
from kueuecore.decisions import Outcome, PodSetAdmission, WhatIf
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.held_objects import HELD_KINDS
from kueuecore.jobs.topology_assignment import TopologyAssignment
from kueuecore.manifests import Manifest
from kueuecore.scenarios import Edit, parse_edit
from kueuecore.states import Stage, WorkloadState
from kueuecore.steady_state import Ending, Settled, settle
from kueuecore.times import format_time
from kueuecore.waiting_cause import message_or_cause

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Reads a state, runs cycles until nothing changes, as `kueuecore run` does, and tries more jobs on a
copy: each on its own, as the only head of the next cycle. --set and --delete change the copy first.
With --settle all jobs are submitted to the copy, and cycles run again: which workloads would move?
The state itself is not changed."""

EXAMPLES = """\
  kueuecore what-if -f job.yaml                        in the cluster of the current context
  kueuecore what-if state.yaml -f job.yaml             would it get quota, where, and what is preempted?
  kueuecore what-if dump.yaml --trusted -f job.yaml --settle   and what else would move?
  kueuecore what-if state.yaml --settle \\
    --set 'ClusterQueue/team-a:spec.resourceGroups[0].flavors[name=spot].resources[name=cpu].nominalQuota=8'
  kueuecore what-if state.yaml -f job.yaml --set Job/train:spec.parallelism=2 --delete Workload/team-a/old
  kubectl get -o yaml job train | kueuecore what-if saved.engine -f - -o json
"""

_COLORS = {"Fits": "green", "Preempts": "cyan", "Waits": "yellow", "Undecided": "red"}
_MOVE_COLORS = {"admitted": "green", "evicted": "yellow", "deleted": "dim"}


@dataclass(frozen=True, slots=True)
class _Answer:
    """A Workload that is asked about, and what would happen to it."""

    workload: JsonObject
    job: str
    found: WhatIf
    by_share: Mapping[str, str] = field(default_factory=dict)
    """Why fair sharing chose its victims, by their keys."""

    @property
    def key(self) -> str:
        return f"{text_at(self.workload, 'metadata', 'namespace')}/{text_at(self.workload, 'metadata', 'name')}"

    @property
    def outcome(self) -> str:
        return "Undecided" if self.found.undecided else str(self.found.outcome)


@dataclass(frozen=True, slots=True)
class _Rest:
    """How the copy settled."""

    settled: Settled
    moves: tuple[Move, ...]
    n_pending: int


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_state(add)
    asked = add.add_argument_group("question")
    help_text = "jobs or Workloads to try; objects to add with them, too; a file, a directory or -; repeatable"
    asked.add_argument("-f", "--filename", dest="asked", metavar="FILE", action="append", default=[], help=help_text)
    help_text = "set a field in the state or in the files of -f: KIND/NAME:PATH=VALUE; repeatable"
    asked.add_argument("--set", dest="edits", metavar="EDIT", action="append", default=[], help=help_text)
    help_text = "delete an object from the state first: KIND/NAME or KIND/NAMESPACE/NAME; repeatable"
    asked.add_argument("--delete", dest="deletions", metavar="OBJECT", action="append", default=[], help=help_text)
    asked.add_argument(
        "--settle", action="store_true", help="run cycles with the jobs and changes; show which workloads moved"
    )
    out = add.add_argument_group("output")
    out.add_argument(
        "-o", "--output", choices=["table", "json"], default="table", help="json: everything, as one document"
    )
    add_look(out)
    out.add_argument("--fail-on-pending", action="store_true", help="exit with 1 if a workload asked about would wait")


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore what-if`; returns the exit code."""
    edits = [parse_edit(edit) for edit in options.edits]
    deletions = [parse_deletion(deletion) for deletion in options.deletions]
    _check(options, edits)
    manifests = parsed(read_files(options.asked, given=options.given), quiet=options.quiet, strict=options.strict)
    asked, edits = edit_manifests(manifests, edits)
    state = read_state(options)
    question = Question.of(asked, state.world, configuration=state.engine.configuration)
    if not options.quiet:
        to_stderr(*(f"warning: {warning}" for manifest in manifests for warning in manifest.warnings))
        to_stderr(*(f"note: {ignored}; it gets no Workload" for ignored in question.ignored))
        to_stderr(*(f"warning: {problem}; until then the job waits" for problem in question.waiting))
        to_stderr(*(f"note: {name}" for name in question.assumed))
    changed = _changed(state, question, edits, deletions)
    answers = [_answer(changed, workload, question, state.now) for workload in question.workloads]
    rest = _rest(state, changed, question) if options.settle else None
    if options.output == "json":
        write(json.dumps(_document(state, answers, rest), indent=2) + "\n")
    else:
        write(_report(answers, rest, Style.of(output(), options.color)) + "\n")
    fails = options.fail_on_pending
    return _exit_code(answers, rest, fail_on_pending=fails, n_waiting=len(question.waiting))


def _check(options: argparse.Namespace, edits: Sequence[Edit]) -> None:
    if not options.asked and not options.settle:
        remedy = "give jobs with -f, or see what moves with --settle"
        raise ManifestError.of("nothing is asked", remedy=remedy)
    if not options.asked and not edits and not options.deletions:
        remedy = "give jobs with -f, or change the state with --set or --delete"
        raise ManifestError.of("nothing changes, so nothing moves", remedy=remedy)
    if "-" in options.asked and "-" in options.paths:
        raise ManifestError.of("standard input can be read only once", remedy="give the state or the jobs in a file")


def _changed(state: SettledState, question: Question, edits: Sequence[Edit], deletions: Sequence[Deletion]) -> Engine:
    """Fork the state, apply the changes, and add the objects that come with the jobs."""
    changed = state.engine.fork()
    change_state(changed, edits, _of_jobs(deletions, state), now=state.now)
    question.prepare(changed, now=state.now)
    return changed


def _of_jobs(deletions: Sequence[Deletion], state: SettledState) -> list[Deletion]:
    """Replace deletions of jobs by deletions of their Workloads."""
    found = []
    jobs = list(jobs_with_workloads(state.world, state.given)) if deletions else []
    kinds = {kind for _, kind in state.world.integrations if kind not in HELD_KINDS}
    for deletion in deletions:
        made = [
            job.workload
            for job in jobs
            if (job.kind, job.name) == (deletion.kind, deletion.name) and deletion.namespace in ("", job.workload[0])
        ]
        if not made and deletion.kind in kinds:
            named_workload(state, str(deletion))  # says why there is none
        found += [Deletion("Workload", name, namespace) for namespace, name in dict.fromkeys(made)] or [deletion]
    return found


def _answer(changed: Engine, workload: Manifest, question: Question, now: int) -> _Answer:
    key = text_at(workload.object, "metadata", "namespace"), text_at(workload.object, "metadata", "name")
    answer = changed.what_if(workload, now=now)
    return _Answer(workload.object, question.jobs.get(key, ""), answer, _by_share(changed, workload, answer, now))


def _by_share(changed: Engine, workload: Manifest, answer: WhatIf, now: int) -> dict[str, str]:
    """Why fair sharing chose its victims, by their keys."""
    victims = [preemption.key for preemption in answer.preemptions if preemption.reason in BY_SHARE]
    if not victims:
        return {}
    fork = changed.fork()
    fork.apply([workload], now=now)
    namespace, name = (text_at(workload.object, "metadata", text) for text in ("namespace", "name"))
    found = explain(fork, name, namespace=namespace, now=now)
    return {key: why for key in victims if (why := why_by_fair_sharing(found, key))}


def _rest(state: SettledState, changed: Engine, question: Question) -> _Rest:
    changed.apply(question.workloads, now=state.now)
    settled = settle(changed, now=state.now, was_at_rest=True)
    after = changed.workloads()
    metadata = [object_at(workload.object, "metadata") for workload in question.workloads]
    asked = {(text_at(entry, "namespace"), text_at(entry, "name")) for entry in metadata}
    waiting = (workload for workload in after if workload.stage is Stage.PENDING)
    n_pending = sum(not asked or (workload.namespace, workload.name) in asked for workload in waiting)
    moves = moves_between(state.engine.workloads(), after)
    said = {workload.key: workload for workload in after}
    explained = (_with_cause(move, changed, said.get(move.key)) for move in moves)
    return _Rest(settled, tuple(explained), n_pending)


def _with_cause(move: Move, changed: Engine, after: WorkloadState | None) -> Move:
    """The move, with the cause if its workload waits and Kueue does not say why."""
    if move.after is None or after is None or move.after.message:
        return move
    return replace(move, after=replace(move.after, message=message_or_cause(changed, after)))


# Tables.


def _report(answers: Sequence[_Answer], rest: _Rest | None, style: Style) -> str:
    parts = [_answers(answers, style), _placed(answers, style), _preemptions(answers, style)]
    if rest is not None:
        parts += [_ending(rest), _moves(rest.moves, style)]
    return "\n\n".join(filter(None, parts)) or "there is no workload to ask about"


def _answers(answers: Sequence[_Answer], style: Style) -> str:
    rows: list[list[Cell]] = []
    for answer in answers:
        found = answer.found
        message = ": ".join(found.undecided) if found.undecided else found.message
        message = "" if found.outcome is Outcome.FITS else message
        rows.append(
            [
                answer.key,
                text_at(answer.workload, "spec", "queueName") or "-",
                found.cluster_queue or "-",
                Painted(answer.outcome, _COLORS[answer.outcome]),
                str(found.n_ahead),
                _pods(found.pod_sets),
                flavors_of_pod_sets({pod_set.name: pod_set.flavors for pod_set in found.pod_sets}),
                message,
            ]
        )
    header = ["WORKLOAD", "QUEUE", "CLUSTER QUEUE", "OUTCOME", "AHEAD", "PODS", "FLAVORS", "MESSAGE"]
    return table(header, rows, style, right=["AHEAD", "PODS"]) if rows else ""


def _pods(pod_sets: Sequence[PodSetAdmission]) -> str:
    return str(sum(pod_set.count for pod_set in pod_sets)) if pod_sets else "-"


def _placed(answers: Sequence[_Answer], style: Style) -> str:
    """Where pods with a topology would be placed."""
    rows: list[list[Cell]] = []
    for answer in answers:
        for pod_set in answer.found.pod_sets:
            domains = [f"{name}: {n}" for name, n in _domains(pod_set).items()]
            if domains:
                rows.append([answer.key, pod_set.name, ", ".join(domains)])
    return table(["PLACED", "POD SET", "DOMAINS"], rows, style) if rows else ""


def _domains(pod_set: PodSetAdmission) -> dict[str, int]:
    """Pods by node, or by the path of the lowest level."""
    if pod_set.topology_assignment is None:
        return {}
    assignment = TopologyAssignment.of(dict(pod_set.topology_assignment))
    return {"/".join(domain.values): domain.count for domain in assignment.domains}


def _preemptions(answers: Sequence[_Answer], style: Style) -> str:
    rows = [
        [victim.key, victim.cluster_queue, answer.key, victim.reason, victim.message]
        for answer in answers
        for victim in answer.found.preemptions
    ]
    victims = table(["PREEMPTED", "CLUSTER QUEUE", "FOR", "REASON", "MESSAGE"], rows, style) if rows else ""
    by_share = [shown(f"{key} is preempted: {why}") for answer in answers for key, why in answer.by_share.items()]
    return "\n".join([victims, *by_share])


def _ending(rest: _Rest) -> str:
    cycles = counted(len(rest.settled.decisions), "cycle")
    match rest.settled.ending:
        case Ending.SETTLED:
            ending = f"settled after {cycles}"
        case Ending.REPEATING:
            ending = f"never settles: after {cycles} an earlier state came back"
        case Ending.CYCLE_LIMIT:
            ending = f"not settled after {cycles}"
    n_moves = len(rest.moves)
    return f"{ending}: {n_moves} {'workload' if n_moves == 1 else 'workloads'} moved"


def _moves(moves: Sequence[Move], style: Style) -> str:
    rows: list[list[Cell]] = []
    for move in moves:
        after = move.after
        message = after.message if after is not None and not after.has_quota else ""
        what = Painted(move.what, _MOVE_COLORS.get(move.what, ""))
        rows.append([move.key, what, _standing(move.before), _standing(after), message])
    return table(["WORKLOAD", "MOVE", "BEFORE", "AFTER", "MESSAGE"], rows, style) if rows else ""


def _standing(standing: Standing | None) -> str:
    """`Admitted in team-a (spot)`."""
    if standing is None:
        return "-"
    flavors = flavors_of_pod_sets(standing.flavors)
    place = f" in {standing.cluster_queue}" if standing.cluster_queue else ""
    return f"{standing.stage}{place}" + (f" ({flavors})" if standing.has_quota and flavors != "-" else "")


# JSON.


def _document(state: SettledState, answers: Sequence[_Answer], rest: _Rest | None) -> dict[str, Any]:
    document: dict[str, Any] = {**document_head(state.engine.configuration.release), "now": format_time(state.now)}
    document["workloads"] = [_answer_document(answer) for answer in answers]
    if rest is not None:
        document["settled"] = {
            "ending": str(rest.settled.ending),
            "cycles": len(rest.settled.decisions),
            "moves": [
                {
                    "workload": move.key,
                    "move": move.what,
                    "before": _standing_document(move.before),
                    "after": _standing_document(move.after),
                }
                for move in rest.moves
            ],
        }
    return document


def _answer_document(answer: _Answer) -> dict[str, Any]:
    found = answer.found
    return {
        "workload": answer.key,
        "job": answer.job or None,
        "localQueue": text_at(answer.workload, "spec", "queueName"),
        "clusterQueue": found.cluster_queue,
        "would": answer.outcome,
        "ahead": found.n_ahead,
        "podSets": [
            {
                "name": pod_set.name,
                "count": pod_set.count,
                "flavors": dict(pod_set.flavors),
                "resourceUsage": dict(pod_set.resource_usage),
                "domains": _domains(pod_set),
            }
            for pod_set in found.pod_sets
        ],
        "preemptions": [
            {
                "workload": preemption.key,
                "clusterQueue": preemption.cluster_queue,
                "reason": preemption.reason,
                "message": preemption.message,
                "why": answer.by_share.get(preemption.key),
            }
            for preemption in found.preemptions
        ],
        "reason": found.reason,
        "message": found.message,
        "undecided": None if found.undecided is None else dict(zip(("field", "message"), found.undecided, strict=True)),
    }


def _standing_document(standing: Standing | None) -> dict[str, Any] | None:
    if standing is None:
        return None
    return {
        "stage": str(standing.stage),
        "clusterQueue": standing.cluster_queue,
        "flavors": {name: dict(flavors) for name, flavors in standing.flavors.items()},
        "message": standing.message,
    }


def _exit_code(answers: Sequence[_Answer], rest: _Rest | None, *, fail_on_pending: bool, n_waiting: int) -> ExitCode:
    if rest is not None and rest.settled.ending is not Ending.SETTLED:
        return ExitCode.UNSETTLED
    if any(answer.found.undecided for answer in answers):
        return ExitCode.UNDECIDED
    n_pending = rest.n_pending if rest is not None else sum(answer.found.outcome is Outcome.WAITS for answer in answers)
    return ExitCode.PENDING if fail_on_pending and (n_pending or n_waiting) else ExitCode.OK
