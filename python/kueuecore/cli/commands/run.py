"""`kueuecore run`: shows what Kueue would do with the workloads in some manifests."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kueuecore.cli.cluster_options import shown_namespace
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.options import HISTORY_HELP, add_inputs, add_style
from kueuecore.cli.outcome import RunOutcome
from kueuecore.cli.report import report
from kueuecore.cli.state_file import SettledState, read_state
from kueuecore.cli.streams import is_utf8, output, to_stderr, write
from kueuecore.cli.table import Style
from kueuecore.errors import ManifestError
from kueuecore.states import Stage
from kueuecore.steady_state import Ending

if TYPE_CHECKING:
    from kueuecore.histories.timeline import Timeline

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Reads manifests, runs scheduling cycles until nothing changes any more, and shows the outcome.
Time stands still unless you give --for; no workload finishes, and evicted pods stop at once.

Reads Kueue's kinds (v1beta2 and v1beta1), Namespaces, LimitRanges, RuntimeClasses,
PriorityClasses, ResourceClaimTemplates, DeviceClasses, Nodes and Pods. Jobs are turned into Workloads first."""

EXAMPLES = """\
  kueuecore run queues.yaml jobs.yaml         what would happen to these jobs?
  kueuecore run -R manifests/ -o wide         a directory and its subdirectories, with more columns
  kueuecore run . --feature-gates PartialAdmission=false
  kueuecore run manifests/ --fail-on-pending  a check for CI
  kueuecore run manifests/ --history team-a/train   what happened to this one, step by step?
  kubectl get -A -o yaml \\
    ns,resourceflavors,clusterqueues,cohorts,admissionchecks,workloadpriorityclasses,localqueues,workloads \\
    | kueuecore run - --trusted               what would a running Kueue do next?
  kueuecore run . -o json | jq -r '.workloads[] | select(.status == "Pending").message'
"""
_OUTPUT_HELP = """table (the default); wide: more columns, no wrapping; json: everything, as one document;
yaml: the objects with the status that Kueue would write"""


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_inputs(add)
    out = add.add_argument_group("output")
    out.add_argument("-o", "--output", choices=["table", "wide", "json", "yaml"], default="table", help=_OUTPUT_HELP)
    out.add_argument("--events", action="store_true", help="show events too (json always has them)")
    out.add_argument("--history", metavar="WORKLOAD", action="append", default=[], help=HISTORY_HELP)
    add_style(out)


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore run`; returns the exit code."""
    style = Style.of(output(), options.color)
    if options.history and options.output == "yaml":
        raise ManifestError.of("-o yaml has no place for --history", remedy="use -o json, or a table")
    state = read_state(options, span=options.span)
    namespace = shown_namespace(options)
    outcome = RunOutcome(state.engine, state.world, state.settled, state.now, state.after_cycles, namespace)
    timelines = _timelines(state, options.history) if options.history else ()
    if not options.quiet:
        to_stderr(*_warnings(state))
        if namespace and not options.namespace:
            to_stderr(f"note: only workloads in namespace {namespace} are shown; -A shows all")
    match options.output:
        case "json":
            from kueuecore.cli.documents import json_document

            write(json_document(outcome, timelines))
        case "yaml":
            from kueuecore.cli.documents import yaml_documents

            write(yaml_documents(outcome, is_ascii=not is_utf8()))
        case form:
            is_wide = form == "wide"
            write(report(outcome, style, wide=is_wide, events=options.events) + "\n")
            if timelines:
                from kueuecore.cli.history_output import timelines_text

                write("\n" + timelines_text(timelines, style, is_wide=is_wide) + "\n")
    return _exit_code(outcome, fail_on_pending=options.fail_on_pending)


def _timelines(state: SettledState, names: Sequence[str]) -> tuple[Timeline, ...]:
    """The histories of some workloads.

    Raises:
        ManifestError: A name means none of the workloads, or several.
    """
    # Few runs are asked for one.
    from kueuecore.cli.named_workload import named_workload
    from kueuecore.histories.runs import history_of_cycles

    found = []
    for namespace, name in dict.fromkeys(named_workload(state, name) for name in names):
        workload = state.world.workload(name, namespace=namespace)
        objects = (manifest.object for manifest in state.world.manifests)
        after = state.engine.workload(name, namespace=namespace)
        found.append(history_of_cycles(state.settled, after, workload=workload, objects=objects))
    return tuple(found)


def _warnings(state: SettledState) -> list[str]:
    """What `check` would say about the run's objects, as far as a run looks for it."""
    # The rules import much, and `-q` needs none of them.
    from kueuecore.findings.checking import findings_of
    from kueuecore.findings.facts import Facts
    from kueuecore.findings.rules_of_run import RULES_OF_RUN

    engine = state.engine
    given, configuration = state.given, engine.configuration
    facts = Facts(state.world, engine, given=given, configuration=configuration, now=state.now, settled=engine)
    return [f"warning: {finding.problem}" for finding in findings_of(facts, RULES_OF_RUN)]


def _exit_code(outcome: RunOutcome, *, fail_on_pending: bool) -> ExitCode:
    if outcome.settled.ending is not Ending.SETTLED:
        return ExitCode.UNSETTLED
    if any(row.undecided for row in outcome.workloads):
        return ExitCode.UNDECIDED
    is_any_pending = any(row.state.stage is Stage.PENDING for row in outcome.workloads)
    if fail_on_pending and (is_any_pending or outcome.world.waiting):
        return ExitCode.PENDING
    return ExitCode.OK
