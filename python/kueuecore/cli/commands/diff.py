"""`kueuecore diff`: shows which decisions a change of manifests changes, by the same workloads."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kueuecore.cli.ci_output import add_summary, append_summary, problems_in_ci
from kueuecore.cli.configured import add_configuration, configured
from kueuecore.cli.diff_report import Base, diff_as_github_command, diff_document, diff_report, diff_summary
from kueuecore.cli.dump_commands import deciding_about
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.git_revisions import Checkout, checked_out, in_repository
from kueuecore.cli.namespace_labels import add_namespace_labels, with_namespaces
from kueuecore.cli.output_files import write_with_files
from kueuecore.cli.state_file import add_assumed_checks, add_strict, add_trusted, manifests_of, time_of
from kueuecore.cli.streams import output, to_stderr
from kueuecore.cli.study_options import add_look
from kueuecore.cli.table import Style
from kueuecore.configuration import Configuration
from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import Manifest
from kueuecore.steady_state import Ending
from kueuecore.upgrades import Revision, revise

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Reads manifests as they are and as they were, runs cycles until nothing changes with both, as
`kueuecore run` does, and shows the workloads about which the decisions differ. Before is a commit of
the Git repository, or other files. --work adds jobs to both sides: what teams usually submit."""

EXAMPLES = """\
  kueuecore diff manifests/ --work jobs/ --against origin/main       what does this branch change?
  kueuecore diff manifests/ --work jobs/ --against HEAD              what have I changed since the last commit?
  kueuecore diff new/ --before old/ --work jobs/ --fail-on-difference
  kueuecore diff manifests/ --work jobs/ --against origin/main -o github --summary "$GITHUB_STEP_SUMMARY"
"""


@dataclass(frozen=True, slots=True)
class _Side:
    """Objects with their Configuration."""

    manifests: tuple[Manifest, ...]
    configuration: Configuration
    notes: tuple[str, ...]
    left_out: tuple[Problem, ...] = ()


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add.add_argument("paths", metavar="PATH", nargs="+", help="a YAML or JSON file, or a directory")
    before = add.add_argument_group("what to compare with").add_mutually_exclusive_group(required=True)
    help_text = "the same paths in this commit; a branch, a tag or a hash of the Git repository"
    before.add_argument("--against", metavar="COMMIT", help=help_text)
    before.add_argument("--before", metavar="PATH", action="append", default=[], help="other paths; repeatable")
    given = add.add_argument_group("input")
    help_text = "jobs and other objects to add to both sides; from a file or a directory; repeatable"
    given.add_argument("--work", metavar="PATH", action="append", default=[], help=help_text)
    given.add_argument("-R", "--recursive", action="store_true", help="read subdirectories too")
    add_configuration(given)
    help_text = "the current time, such as 2026-01-01T00:00:00Z; by default the newest time in the objects"
    given.add_argument("--now", metavar="TIME", type=time_of, help=help_text)
    add_trusted(given)
    add_namespace_labels(given)
    add_assumed_checks(given)
    add_strict(given)
    out = add.add_argument_group("output")
    help_text = (
        "table (the default); wide: everything, no wrapping; json: everything, as one document; github: a command for "
        "GitHub Actions"
    )
    out.add_argument("-o", "--output", choices=["table", "wide", "json", "github"], default="table", help=help_text)
    add_summary(out)
    add_look(out)
    out.add_argument("--fail-on-difference", action="store_true", help="exit with 1 if a decision differs")
    add.set_defaults(span=0)


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore diff`; returns the exit code."""
    with problems_in_ci(options, "kueuecore diff"):
        new = _side(options.paths, options.config, options)
        name, old = _before(options)
        found = _revision(old, new, options)
    base = Base(name, (*old.left_out, *found.refused))
    if not options.quiet:
        to_stderr(*(f"warning: {problem}" for problem in base.left_out))
    match options.output:
        case "json":
            text = json.dumps(diff_document(found, base, new.configuration.release), indent=2) + "\n"
        case "github":
            text = diff_as_github_command(found, base)
        case form:
            style = Style.of(output(), options.color)
            text = diff_report(found, base, style, wide=form == "wide") + "\n"
    files = [] if options.summary is None else [lambda: append_summary(options.summary, diff_summary(found, base))]
    write_with_files(text, files)
    return _exit_code(found, fails=options.fail_on_difference)


def _before(options: argparse.Namespace) -> tuple[str, _Side]:
    """Read what to compare with; returns its name, too."""
    if options.against is None:
        return ", ".join(options.before), _side(options.before, options.config, options)
    # A Configuration elsewhere is the same on both sides.
    config = [] if options.config is None or not in_repository(options.config) else [options.config]
    with checked_out(options.against, [*options.paths, *config]) as tree:
        left_out: list[Problem] = []
        while True:
            try:
                side = _side_of(tree, options, has_config=bool(config))
                break
            except ManifestError as error:
                # A change that mends a file should be possible.
                if not tree.without(error.problems):
                    raise
                left_out += (replace(problem, file=tree.named(problem.file)) for problem in error.problems)
        manifests = tuple(_named(manifest, tree) for manifest in side.manifests)
        notes = tuple(map(tree.with_names, side.notes))
        return tree.name, replace(side, manifests=manifests, notes=notes, left_out=tuple(left_out))


def _named(manifest: Manifest, tree: Checkout) -> Manifest:
    """Name an object's file as Git does."""
    return replace(manifest, source=replace(manifest.source, file=tree.named(manifest.source.file)))


def _side_of(tree: Checkout, options: argparse.Namespace, *, has_config: bool) -> _Side:
    """Read the objects in a commit; what it lacks is left out."""
    old = {path: tree.path(path) for path in options.paths}
    notes = [f"note: {tree.name} has no {path}" for path, there in old.items() if not there.exists()]
    config = options.config
    if has_config:
        there = tree.path(config)
        if not there.exists():
            notes.append(f"note: {tree.name} has no {config}, so Kueue's own Configuration is used for it")
        config = str(there) if there.exists() else None
    side = _side([str(there) for there in old.values() if there.exists()], config, options, quiet=True)
    return replace(side, notes=(*notes, *side.notes))


def _side(paths: Sequence[str], config: str | None, options: argparse.Namespace, *, quiet: bool = False) -> _Side:
    """Read the objects of one side, with the work."""
    # The last of two objects of one name counts: the work may be a dump, with the queues of today.
    given = [*options.work, *paths]
    quiet = quiet or options.quiet
    # A commit may have none of the paths.
    objects = manifests_of(given, recursive=options.recursive, quiet=quiet, strict=options.strict) if given else ()
    manifests = with_namespaces(objects, options.namespace_labels)
    kueue = configured(config, options.feature_gates, manifests, kueue=options.kueue)
    return _Side(manifests, kueue.configuration, kueue.notes)


def _revision(old: _Side, new: _Side, options: argparse.Namespace) -> Revision:
    if not options.quiet:
        to_stderr(*dict.fromkeys((*new.notes, *old.notes)))
    sides = [deciding_about(side.manifests, side.configuration, options) for side in (old, new)]
    now = max(deciding.now for _, deciding in sides)
    (old_given, deciding_old), (new_given, deciding_new) = (
        (given, replace(deciding, now=now)) for given, deciding in sides
    )
    return revise(old_given, new_given, deciding_old=deciding_old, deciding_new=deciding_new)


def _exit_code(found: Revision, *, fails: bool) -> ExitCode:
    if found.after.ending is not Ending.SETTLED:
        return ExitCode.UNSETTLED
    if any(fate.stage == "Undecided" for fate in found.after.fates.values()):
        return ExitCode.UNDECIDED
    return ExitCode.PENDING if fails and found.differences else ExitCode.OK
