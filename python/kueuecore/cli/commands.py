"""The commands themselves: from options to output."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kueuecore._text import shortened
from kueuecore.cli.checks import READ_KINDS, with_active_checks
from kueuecore.cli.documents import json_document, yaml_documents
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.outcome import RunOutcome
from kueuecore.cli.report import report
from kueuecore.cli.streams import is_utf8, output, to_stderr, write
from kueuecore.cli.table import Style, table
from kueuecore.configuration import Configuration, feature_gates
from kueuecore.engine import Engine
from kueuecore.errors import ConfigurationError, ManifestError, Problem
from kueuecore.findings.checking import findings_of
from kueuecore.findings.facts import Facts
from kueuecore.findings.objects import repeated
from kueuecore.findings.registry import RULES_OF_RUN
from kueuecore.jobs import INSTALLED_FRAMEWORKS
from kueuecore.manifests import API_VERSIONS, Manifest, read_manifests
from kueuecore.states import Stage
from kueuecore.steady_state import Ending, settle
from kueuecore.times import END_NS
from kueuecore.world import AppliedWorld, World

__all__ = ["configuration_of", "gates", "manifests_of", "run"]

_WITHOUT_FILE = f"""
{{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration,
  integrations: {{frameworks: [{", ".join(INSTALLED_FRAMEWORKS)}]}}}}
"""
# What Python's functions advise, in terms of the command.
_REMEDIES = {
    "pass recursive=True to read its directories too": "add -R to read its directories too",
    "use parse_manifests for a text": "check the name",
}


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore run`; returns the exit code."""
    style = Style.of(output(), options.color)
    configuration = configuration_of(options.config, options.feature_gates)
    manifests = manifests_of(options.paths, recursive=options.recursive)
    world = World.of(manifests, configuration=configuration, trusted=options.trusted)
    newest = world.newest_time()
    now = options.now if options.now is not None else newest if newest is not None else 0
    world = with_active_checks(world, now=now)
    engine = Engine(configuration)
    applied = world.apply_to(engine, now=now)
    if not options.quiet:
        to_stderr(*(f"warning: {problem}" for _, problem in repeated(manifests)), *_notes(world, applied))
    until = min(now + options.span, END_NS)
    outcome = RunOutcome(engine, world, settle(engine, now=now, until=until), now)
    if not options.quiet:
        facts = Facts(world, engine, given=manifests, configuration=configuration, now=now, settled=engine)
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


def configuration_of(file: str | None, gates: Sequence[tuple[str, bool]]) -> Configuration:
    """Kueue's Configuration from a file, or that of a new installation, with feature gates.

    Raises:
        ConfigurationError: One of them is wrong.
    """
    if file is not None:
        return Configuration.read(file, feature_gates=dict(gates))
    try:
        return Configuration.parse(_WITHOUT_FILE, feature_gates=dict(gates))
    except ConfigurationError as error:
        # It can only be about the gates, which stand in no file.
        raise ConfigurationError(
            [Problem(it.message, field="--feature-gates", remedy=it.remedy) for it in error.problems]
        ) from None


def manifests_of(paths: Sequence[str], *, recursive: bool) -> tuple[Manifest, ...]:
    """The objects of some paths.

    Raises:
        ManifestError: Something can not be read, with remedies in terms of the command.
    """
    try:
        return read_manifests(*paths, recursive=recursive)
    except ManifestError as error:
        raise error.with_problems(
            [replace(it, remedy=_REMEDIES.get(it.remedy, it.remedy)) for it in error.problems]
        ) from None


def _notes(world: World, applied: AppliedWorld) -> Iterator[str]:
    for warning in applied.warnings:
        yield f"warning: {warning}"
    for missing in world.waiting:
        yield f"warning: {missing}; until then the job waits"
    for ignored in world.ignored:
        yield f"note: {ignored}; it gets no Workload"
    if world.namespaces:
        yield f"note: added the Namespaces that the objects are in: {', '.join(world.namespaces)}"
    unread = {kind: n for kind, n in applied.unread.items() if kind not in READ_KINDS}
    if unread:
        kinds = ", ".join(f"{shortened(kind)} ({n})" for kind, n in unread.items())
        hint = "; name the Configuration with --config" if "Configuration" in unread else ""
        others = [kind for kind in unread if kind in API_VERSIONS and kind != "Configuration"]
        hint += "".join(f"; a {kind} is read as {API_VERSIONS[kind]}" for kind in others)
        yield f"warning: these kinds are not read: {kinds}{hint}"


def _exit_code(outcome: RunOutcome, *, fail_on_pending: bool) -> ExitCode:
    if outcome.settled.ending is not Ending.SETTLED:
        return ExitCode.UNSETTLED
    if any(row.undecided for row in outcome.workloads):
        return ExitCode.UNDECIDED
    is_any_pending = any(row.state.stage is Stage.PENDING for row in outcome.workloads)
    if fail_on_pending and (is_any_pending or outcome.world.waiting):
        return ExitCode.PENDING
    return ExitCode.OK
