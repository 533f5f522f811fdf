"""The commands `run` and `gates`."""

from __future__ import annotations

import argparse

from kueuecore.cli.documents import json_document, yaml_documents
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.outcome import RunOutcome
from kueuecore.cli.report import report
from kueuecore.cli.state_file import read_state
from kueuecore.cli.streams import is_utf8, output, to_stderr, write
from kueuecore.cli.table import Style, table
from kueuecore.configuration import feature_gates
from kueuecore.findings.checking import findings_of
from kueuecore.findings.facts import Facts
from kueuecore.findings.registry import RULES_OF_RUN
from kueuecore.states import Stage
from kueuecore.steady_state import Ending

__all__ = ["gates", "run"]


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore run`; returns the exit code."""
    style = Style.of(output(), options.color)
    state = read_state(options, span=options.span)
    outcome = RunOutcome(state.engine, state.world, state.settled, state.now)
    if not options.quiet:
        engine = state.engine
        given, configuration = state.given, engine.configuration
        facts = Facts(state.world, engine, given=given, configuration=configuration, now=state.now, settled=engine)
        to_stderr(*(f"warning: {finding.problem}" for finding in findings_of(facts, RULES_OF_RUN)))
    match options.output:
        case "json":
            write(json_document(outcome))
        case "yaml":
            write(yaml_documents(outcome, is_ascii=not is_utf8()))
        case form:
            write(report(outcome, style, wide=form == "wide", events=options.events) + "\n")
    return _exit_code(outcome, fail_on_pending=options.fail_on_pending)


def gates(options: argparse.Namespace) -> int:
    """Run `kueuecore gates`; returns the exit code."""
    rows = [[gate.name, "on" if gate.default else "off", gate.stage, gate.what] for gate in feature_gates()]
    write(table(["GATE", "DEFAULT", "STAGE", "WHAT IT DOES"], rows, Style.of(output(), options.color)) + "\n")
    return ExitCode.OK


def _exit_code(outcome: RunOutcome, *, fail_on_pending: bool) -> ExitCode:
    if outcome.settled.ending is not Ending.SETTLED:
        return ExitCode.UNSETTLED
    if any(row.undecided for row in outcome.workloads):
        return ExitCode.UNDECIDED
    is_any_pending = any(row.state.stage is Stage.PENDING for row in outcome.workloads)
    if fail_on_pending and (is_any_pending or outcome.world.waiting):
        return ExitCode.PENDING
    return ExitCode.OK
