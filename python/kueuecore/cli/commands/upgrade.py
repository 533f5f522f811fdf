"""`kueuecore upgrade`: shows what another release of Kueue would decide about a state, and why."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kueuecore._configuration_sources import shown_release
from kueuecore.cli.ci_output import add_summary, problems_in_ci, report_in_ci
from kueuecore.cli.configured import configured
from kueuecore.cli.documents import yaml_document
from kueuecore.cli.dump_commands import deciding_about, given_of
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.options import add_inputs
from kueuecore.cli.progress import ctrl_c_raises, upgrade_progress
from kueuecore.cli.streams import is_utf8, output, to_stderr
from kueuecore.cli.study_options import add_look, count
from kueuecore.cli.table import Style
from kueuecore.cli.upgrade_document import upgrade_document
from kueuecore.cli.upgrade_report import upgrade_report
from kueuecore.cli.upgraded_settings import changed_defaults, upgraded_settings
from kueuecore.configuration import Configuration
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest
from kueuecore.releases import DEFAULT_RELEASE, Release, UnknownReleaseError
from kueuecore.releases.unplayed import unplayed
from kueuecore.steady_state import Ending
from kueuecore.upgrades import MAX_RUNS, Upgrade, upgrade

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Reads a state, runs cycles until nothing changes under two releases of Kueue, as `kueuecore run` does,
and shows what the newer one decides otherwise, with the change of Kueue that causes it: what it does,
its pull request, and the gates that keep the old decision. Also gates and objects that the newer release
refuses, and defaults on which decisions depend. Causes are found by running mixtures of the releases.

A single file of kind Scenario is run to its end under both: who waits less or more, and because of what."""

EXAMPLES = """\
  kueuecore upgrade dump.yaml --trusted --config kueue.yaml --from 0.19 --to 0.20
  kueuecore upgrade manifests/ --from 0.16 -o wide            every workload, to the newest release
  kueuecore upgrade manifests/ --from 0.18 --to 0.19 --fail-on-difference -q       a check for CI
  kueuecore upgrade scenario.yaml --from 0.19 --to 0.20       a whole run in virtual time
  kueuecore upgrade dump.yaml --trusted --from 0.16 -o json | jq '.causes[].switches[].pulls'
"""
_KIND = re.compile(rb"^kind: *[\"']?Scenario\b", re.MULTILINE)
_OUTPUT_HELP = (
    "table (the default); wide: every workload, no wrapping; json or yaml: everything, as one document; github: a "
    "command for GitHub Actions"
)


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_inputs(add, takes_engines=False, asks_release=False)
    between = add.add_argument_group("releases")
    help_text = (
        "the release of Kueue that runs now, such as 0.17 or 0.17.3; by default that of Kueue's Deployment or chart "
        "among the objects"
    )
    between.add_argument("--from", dest="old", metavar="VERSION", type=_release, help=help_text)
    help_text = f"the release that is to run; by default {DEFAULT_RELEASE}"
    between.add_argument("--to", dest="new", metavar="VERSION", type=_release, help=help_text)
    help_text = f"how many mixtures of the two releases to run at most; by default {MAX_RUNS}"
    between.add_argument("--runs", metavar="N", type=count, default=MAX_RUNS, help=help_text)
    help_text = "of a scenario: how many seeds, counting up from its own; by default 1"
    between.add_argument("--seeds", metavar="N", type=count, default=1, help=help_text)
    help_text = "of a scenario: number of processes for its seeds; by default one per core"
    between.add_argument("--workers", metavar="N", type=count, default=os.cpu_count() or 1, help=help_text)
    out = add.add_argument_group("output")
    forms = ["table", "wide", "json", "yaml", "github"]
    out.add_argument("-o", "--output", choices=forms, default="table", help=_OUTPUT_HELP)
    add_summary(out)
    add_look(out)
    out.add_argument("--fail-on-difference", action="store_true", help="exit with 1 if anything differs")


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore upgrade`; returns the exit code."""
    with problems_in_ci(options, "kueuecore upgrade"):
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    if _is_scenario(options.paths):
        # Imported only where it is needed, as it takes numpy.
        from kueuecore.cli.upgraded_scenario import upgrade_scenario_command

        return upgrade_scenario_command(options)
    manifests = given_of(options)
    old = options.old or _release_of(manifests, quiet=options.quiet)
    new = options.new or Release.named(DEFAULT_RELEASE)
    kueue = configured(options.config, options.feature_gates, manifests, kueue=old)
    if not options.quiet:
        to_stderr(*kueue.notes)
    settings = upgraded_settings(kueue, options.feature_gates, new)
    if not options.quiet:
        to_stderr(*_unplayed((kueue.configuration, settings.configuration), manifests))
    given, deciding = deciding_about(manifests, kueue.configuration, options)
    with ctrl_c_raises(), upgrade_progress(quiet=options.quiet) as progress:
        found = upgrade(
            given,
            deciding,
            kueue.configuration,
            settings.configuration,
            with_old_kinds=settings.with_old_kinds,
            most_runs=options.runs,
            progress=progress,
        )
    defaults = tuple(changed_defaults(found, settings.configuration, manifests))
    match options.output:
        case "json":
            text = json.dumps(upgrade_document(found, settings, defaults), indent=2) + "\n"
        case "yaml":
            text = yaml_document(upgrade_document(found, settings, defaults), is_ascii=not is_utf8())
        case form:
            style = Style.of(output(), options.color)
            text = upgrade_report(found, settings, defaults, style, wide=form == "wide") + "\n"
    report_in_ci(options, "kueuecore upgrade", text, lambda: upgrade_report(found, settings, defaults, Style()))
    differs = found.is_any or settings.is_refused or bool(defaults)
    return _exit_code(found, fails=options.fail_on_difference and differs)


def _is_scenario(paths: Sequence[str]) -> bool:
    """Whether a command's paths are one file of kind Scenario."""
    try:
        return len(paths) == 1 and Path(paths[0]).is_file() and bool(_KIND.search(Path(paths[0]).read_bytes()))
    except OSError:
        return False


def _unplayed(configurations: Iterable[Configuration], manifests: Sequence[Manifest]) -> Iterator[str]:
    """What the releases do that kueuecore does not imitate."""
    objects = [manifest.object for manifest in manifests]
    for configuration in configurations:
        has_fair_sharing = bool(configuration.to_dict().get("fairSharing"))
        notes = unplayed(
            configuration.release, objects, fair_sharing=has_fair_sharing, is_enabled=configuration.is_enabled
        )
        yield from (f"note: {note}" for note in notes)


def _release_of(manifests: Sequence[Manifest], *, quiet: bool) -> Release:
    """Return the release that Kueue's Deployment or chart among the objects has, and say so.

    Raises:
        ManifestError: They show none, or several.
    """
    found = shown_release(manifests, option="--from")
    if found is None:
        message = "the objects show no release of Kueue"
        raise ManifestError.of(message, remedy="name the one that runs now: --from 0.17")
    if found.release is None:
        raise ManifestError.of(found.says)
    if not quiet:
        to_stderr(f"{'note' if found.is_certain else 'warning'}: {found.says}")
    return found.release


def _exit_code(found: Upgrade, *, fails: bool) -> ExitCode:
    if found.after.ending is not Ending.SETTLED:
        return ExitCode.UNSETTLED
    if any(fate.stage == "Undecided" for fate in found.after.fates.values()):
        return ExitCode.UNDECIDED
    return ExitCode.PENDING if fails else ExitCode.OK


def _release(text: str) -> Release:
    try:
        return Release.named(text)
    except UnknownReleaseError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
