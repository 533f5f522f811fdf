"""`kueuecore check`: reports mistakes in manifests that an API server accepts, as text or for other programs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from kueuecore._replaced_files import replaced
from kueuecore.cli.ci_output import add_summary, append_summary, problems_in_ci
from kueuecore.cli.configured_objects import add_configured_objects, configured_objects
from kueuecore.cli.documents import yaml_document
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.finding_output import github_commands, json_findings, rules_table, sarif_log, text_lines
from kueuecore.cli.progress import rule_progress
from kueuecore.cli.streams import output, to_stderr, write
from kueuecore.cli.study_options import add_look
from kueuecore.cli.table import Style
from kueuecore.errors import ManifestError
from kueuecore.findings import Finding, Severity, check

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Finds mistakes in manifests that an API server accepts: quota that nobody can use, limits that never
bind, policies without effect, queues that lead nowhere, workloads that can never get quota, and
workloads that preempt each other forever. docs/check.md lists all findings."""

EXAMPLES = """\
  kueuecore check                             what is wrong in the cluster?
  kueuecore check queues/                     what is wrong with these queues?
  kubectl kustomize overlays/prod | kueuecore check -
  kueuecore check -R . --ignore KC2,missing-flavor --fail-on error
  kueuecore check . -o github --summary "$GITHUB_STEP_SUMMARY"    annotate a pull request
  kueuecore check . -o sarif > check.sarif    for code scanning
"""


class _List(argparse.Action):
    """Show all findings and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        write(rules_table(Style.of(output())) + "\n")
        parser.exit()


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_configured_objects(add)
    wanted = add.add_argument_group("which findings, by code, prefix of codes, or name")
    wanted.add_argument("--select", metavar="ID,ID", type=_ids, action="extend", default=[], help="only these findings")
    wanted.add_argument(
        "--ignore", metavar="ID,ID", type=_ids, action="extend", default=[], help="all but these findings"
    )
    wanted.add_argument("--list", action=_List, nargs=0, help="list all findings and exit")
    shown = add.add_argument_group("output")
    help_text = "text (the default): one line each; json; sarif: SARIF 2.1.0; github: commands for GitHub Actions"
    shown.add_argument("-o", "--output", choices=["text", "json", "sarif", "github"], default="text", help=help_text)
    help_text = "exit with 1 if a finding is at least this severe; by default warning"
    shown.add_argument("--fail-on", choices=[*map(str, Severity)], default="warning", help=help_text)
    help_text = "write each preemption loop and starvation to this folder; the smallest objects that show it"
    shown.add_argument("--write-worlds", type=Path, metavar="DIR", help=help_text)
    add_summary(shown)
    add_look(shown)


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore check`; returns the exit code."""
    with problems_in_ci(options, "kueuecore check"):
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    style = Style.of(output(), options.color)
    manifests, kueue = configured_objects(options)
    unfinished: list[str] = []
    with rule_progress(quiet=options.quiet) as progress:
        found = check(
            manifests,
            configuration=kueue.configuration,
            trusted=options.trusted,
            select=options.select,
            ignore=options.ignore,
            progress=progress,
            unfinished=unfinished.append,
            configuration_manifest=kueue.written,
            assumes_active_checks=options.assume_checks_active,
        )
    if options.write_worlds is not None:
        files = _write_worlds(options.write_worlds, found)
        if not options.quiet:
            to_stderr(*(f"note: wrote {file}" for file in files))
    match options.output:
        case "json":
            text = json_findings(found, kueue.configuration.release, unfinished)
        case "sarif":
            text = sarif_log(found)
        case "github":
            text = github_commands(found)
        case _:
            text = text_lines(found, style, unfinished)
    if options.summary is None:
        write(text)
    else:
        _write_with_summary(text, found, unfinished, options.summary)
    is_bad = any(finding.severity.rank >= Severity(options.fail_on).rank for finding in found)
    return ExitCode.FOUND if is_bad else ExitCode.OK


def _write_with_summary(text: str, found: Sequence[Finding], unfinished: Sequence[str], path: Path) -> None:
    # Few runs want one.
    from kueuecore.cli.finding_summary import summary_of_findings
    from kueuecore.cli.output_files import write_with_files

    write_with_files(text, [lambda: append_summary(path, summary_of_findings(found, unfinished))])


def _write_worlds(folder: Path, found: Sequence[Finding]) -> list[Path]:
    """Write a file that `kueuecore run` reads for each finding that has a world; it is as private as the dump."""
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, finding in enumerate((finding for finding in found if finding.world), start=1):
            file = folder / f"{finding.name}-{number}.yaml"
            text = "---\n".join(yaml_document(manifest, is_ascii=True) for manifest in finding.world)
            with replaced(file, mode=0o600) as out:
                out.write(f"# {finding.severity} {finding.code} {finding.name}\n{text}".encode())
            written.append(file)
    except OSError as error:
        message = f"cannot write it: {error.strerror or error}"
        raise ManifestError.of(message, file=str(folder), remedy="name another folder with --write-worlds") from None
    return written


def _ids(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]
