"""`kueuecore check`: reports mistakes in manifests that an API server accepts, as text or for other programs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from kueuecore._replaced_files import replaced
from kueuecore.cli.cluster_options import add_cluster
from kueuecore.cli.configured import add_configuration, configured
from kueuecore.cli.documents import yaml_document
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.finding_output import github_commands, json_findings, rules_table, sarif_log, text_lines
from kueuecore.cli.namespace_labels import add_namespace_labels, with_namespaces
from kueuecore.cli.progress import rule_progress
from kueuecore.cli.state_file import add_assumed_checks, add_strict, add_trusted, given_objects
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
  kueuecore check . -o github                 annotate a pull request
  kueuecore check . -o sarif > check.sarif    for code scanning
"""


class _List(argparse.Action):
    """Show all findings and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        write(rules_table(Style.of(output())) + "\n")
        parser.exit()


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    help_text = "a YAML or JSON file, a directory, or - for stdin; without any, the cluster"
    add.add_argument("paths", metavar="PATH", nargs="*", help=help_text)
    add_cluster(add)
    given = add.add_argument_group("input")
    given.add_argument("-R", "--recursive", action="store_true", help="read subdirectories too")
    add_configuration(given)
    add_trusted(given)
    add_namespace_labels(given)
    add_assumed_checks(given)
    add_strict(given)
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
    help_text = "write the smallest objects that show each preemption loop or starvation to this folder"
    shown.add_argument("--write-worlds", type=Path, metavar="DIR", help=help_text)
    add_look(shown)


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore check`; returns the exit code."""
    style = Style.of(output(), options.color)
    manifests = with_namespaces(given_objects(options), options.namespace_labels)
    kueue = configured(options.config, options.feature_gates, manifests, kueue=options.kueue)
    if not options.quiet:
        to_stderr(*kueue.notes)
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
            write(json_findings(found, kueue.configuration.release, unfinished))
        case "sarif":
            write(sarif_log(found))
        case "github":
            write(github_commands(found))
        case _:
            write(text_lines(found, style, unfinished))
    is_bad = any(finding.severity.rank >= Severity(options.fail_on).rank for finding in found)
    return ExitCode.FOUND if is_bad else ExitCode.OK


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
