"""`kueuecore upgrade` for a scenario: what another release of Kueue changes about a whole run, and why."""

from __future__ import annotations

import argparse
import json
import math

from kueuecore._json import JsonObject, JsonValue
from kueuecore._numbers import number_text
from kueuecore._spans import seconds
from kueuecore._text import counted, shown
from kueuecore.cli.ci_output import report_in_ci
from kueuecore.cli.commands.compare import comparison_document, measures_table
from kueuecore.cli.documents import document_head, experiments_document, release_document, yaml_document
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.progress import ctrl_c_raises, upgrade_progress
from kueuecore.cli.streams import is_utf8, output, to_stderr
from kueuecore.cli.table import Style, table
from kueuecore.cli.upgrade_document import switch_document
from kueuecore.cli.upgrade_report import switch_lines
from kueuecore.errors import ManifestError
from kueuecore.releases import DEFAULT_RELEASE, Release
from kueuecore.scenarios import read_scenario
from kueuecore.studies import processes
from kueuecore.upgrades.scenarios import FirstDifference, RunCause, ScenarioUpgrade, upgrade_scenario

__all__ = ["upgrade_scenario_command"]

# What makes no sense for a scenario, which has its own.
_OF_STATES = ("config", "feature_gates", "trusted", "now", "namespace_labels", "assume_checks_active", "span")
_MEASURES = ("mean_wait_seconds", "p95_wait_seconds", "never_admitted", "evictions", "lost_seconds")
_HEADS = ("MEAN WAIT", "P95 WAIT", "NEVER ADMITTED", "EVICTIONS", "WORK LOST")


def upgrade_scenario_command(options: argparse.Namespace) -> int:
    """Run `kueuecore upgrade` for a scenario; returns the exit code."""
    useless = [f"--{state.replace('_', '-')}".replace("span", "for") for state in _OF_STATES if getattr(options, state)]
    if useless:
        remedy = f"leave out {' and '.join(useless)}"
        raise ManifestError.of("a scenario has its own cluster and time", remedy=remedy, file=options.paths[0])
    new_release = options.new or Release.named(DEFAULT_RELEASE)
    old = read_scenario(options.paths[0], release=options.old)
    if options.old is None and old.release == new_release:
        message = f"the scenario is of {old.release.title} itself, or says no release"
        raise ManifestError.of(message, remedy="name the one that runs now: --from 0.17", file=options.paths[0])
    new = read_scenario(options.paths[0], release=new_release)
    seeds = range(old.seed, old.seed + options.seeds)
    with (
        ctrl_c_raises(),
        processes(min(options.workers, 2 * len(seeds)) if len(seeds) > 1 else 1) as executor,
        upgrade_progress(quiet=options.quiet) as progress,
    ):
        found = upgrade_scenario(old, new, seeds=seeds, executor=executor, most_runs=options.runs, progress=progress)
    if not options.quiet:
        to_stderr(*(f"warning: {shown(warning)}" for warning in found.comparison.warnings))
    match options.output:
        case "json":
            text = json.dumps(_document(found), indent=2) + "\n"
        case "yaml":
            text = yaml_document(_document(found), is_ascii=not is_utf8())
        case form:
            style = Style.of(output(), options.color)
            text = _report(found, style.wide() if form == "wide" else style) + "\n"
    report_in_ci(options, "kueuecore upgrade", text, lambda: _report(found, Style()))
    return ExitCode.PENDING if options.fail_on_difference and found.comparison.is_any else ExitCode.OK


def _report(found: ScenarioUpgrade, style: Style) -> str:
    return "\n".join([*found.comparison.notices[1], _differences(found, style)])


def _differences(found: ScenarioUpgrade, style: Style) -> str:
    jobs = counted(found.comparison.total.n_jobs, "job")
    if not found.comparison.is_any:
        return f"Nothing changes: {jobs} fare the same under {found.old.title} and {found.new.title}"
    between = f"{found.old.title} -> {found.new.title.removeprefix('Kueue ')}"
    new = found.comparison.total[found.comparison.others[0]]
    n_same = found.comparison.total.n_jobs - new.n_less - new.n_more
    head = f"{between}: of {jobs}, {new.n_less} wait less, {new.n_more} wait longer, {n_same} unchanged"
    parts = [head, measures_table(found.comparison, style)]
    if found.first is not None:
        parts.append(_first(found.first, found.seed))
    parts += ["\n".join(switch_lines(cause.switch, style)) for cause in found.causes]
    if found.causes:
        parts.append(_without(found, style))
    else:
        stopped = f"stopped after {counted(found.n_runs, 'run')} of mixtures; --runs raises the limit"
        parts.append(stopped if found.is_stopped else "cause not found")
    return "\n\n".join(parts)


def _first(first: FirstDifference, seed: int) -> str:
    before, after = (
        f"{'never admitted' if math.isnan(wait) else f'waits {seconds(wait)}'} in {queue or '-'}"
        + (f", evicted {counted(evictions, 'time')}" if evictions else "")
        for wait, evictions, queue in zip(first.wait_seconds, first.evictions, first.cluster_queues, strict=True)
    )
    job = f"job {first.number}, of {first.work}, which arrives after {seconds(first.created_seconds)}"
    return shown(f"the first that fares otherwise (seed {seed}) is {job}: {before} -> {after}")


def _without(found: ScenarioUpgrade, style: Style) -> str:
    """The figures of the new release, and with each cause taken back alone."""
    rows = [[cause.switch.name, *_figures(cause), _kept(cause)] for cause in found.causes]
    return table(["WITHOUT", *_HEADS, "WHAT KEEPS THE OLD BEHAVIOUR"], rows, style, right=_HEADS)


def _figures(cause: RunCause) -> list[str]:
    values = [(name, cause.without.get(name)) for name in _MEASURES]
    return [
        "-" if value is None else seconds(value) if name.endswith("_seconds") else number_text(value)
        for name, value in values
    ]


def _kept(cause: RunCause) -> str:
    if not cause.is_settable:
        return "nothing in the Configuration"
    return f"featureGates: {{{cause.switch.name}: {str(cause.switch.before).lower()}}}"


def _document(found: ScenarioUpgrade) -> JsonObject:
    first = found.first
    return {
        **document_head(found.new),
        **experiments_document(found.comparison.experiments[1]),
        "from": release_document(found.old),
        **comparison_document(found.comparison),
        "seedOfCauses": found.seed,
        "runs": found.n_runs,
        "isStopped": found.is_stopped,
        "first": None
        if first is None
        else {
            "work": first.work,
            "job": first.number,
            "createdSeconds": first.created_seconds,
            "waitSeconds": [None if math.isnan(second) else second for second in first.wait_seconds],
            "evictions": [*first.evictions],
            "clusterQueues": [*first.cluster_queues],
        },
        "causes": [_cause(cause) for cause in found.causes],
    }


def _cause(cause: RunCause) -> JsonValue:
    switch = cause.switch
    gates: JsonValue = {switch.name: switch.before} if cause.is_settable else None
    return {
        **switch_document(switch),
        "without": {name: value for name, value in cause.without.items() if not math.isnan(value)},
        "keeps": gates,
    }
