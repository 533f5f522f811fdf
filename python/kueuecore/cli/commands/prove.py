"""`kueuecore prove`: searches a configuration for workloads that loop, starve, or break what it promises."""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kueuecore._text import counted, escaped
from kueuecore.cli.ci_output import add_summary, append_summary, problems_in_ci
from kueuecore.cli.configured_objects import add_configured_objects, configured_objects
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.experiment_option import add_experiments, asked_experiments
from kueuecore.cli.options import step_seconds
from kueuecore.cli.output_files import require_folder, write_with_files
from kueuecore.cli.progress import ctrl_c_raises, ticking
from kueuecore.cli.proof_output import github_lines, json_proof, markdown_proof, text_proof
from kueuecore.cli.streams import OutputError, output, to_stderr
from kueuecore.cli.study_options import add_look, count
from kueuecore.cli.table import Style
from kueuecore.configuration import Configuration
from kueuecore.errors import ManifestError
from kueuecore.experiments import Experiments
from kueuecore.findings import Severity
from kueuecore.proving import OwnProperty, Proof, Property, When, properties_of, prove, save, severity_of

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9-]+")

DESCRIPTION = """\
Searches a configuration for a few workloads, and an order in which they arrive and end, under which
it loops, starves somebody, or breaks what it promises. What it finds is shown step by step. If it
finds nothing, it says what it has tried: that is no proof beyond it.

docs/prove.md lists the properties."""

EXAMPLES = """\
  kueuecore prove queues/                     can any mix of workloads loop?
  kueuecore prove queues/ --config kueue.yaml --budget 10m --property loops
  kueuecore prove queues/ --never 'queues["team-a"].borrowed["default/cpu"] > 8.0'
  kueuecore prove queues/ --always rules.py:team_a_is_served
  kueuecore prove queues/ --experiment reclaimBackoffSeconds=600    would a rule that Kueue lacks help?
  kueuecore prove queues/ --save found/       write each counterexample as a scenario and a policy test
"""


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    given = add_configured_objects(add)
    add_experiments(given)
    wanted = add.add_argument_group("properties; all built-in ones by default")
    names = ", ".join(Property)
    help_text = f"only this one: {names}; repeatable. A broken one then counts, however severe"
    wanted.add_argument(
        "--property", metavar="NAME", dest="properties", choices=[*Property], action="append", help=help_text
    )
    for when, text in ((When.ALWAYS, "in every state"), (When.NEVER, "in no state"), (When.EVENTUALLY, "at last")):
        help_text = f"what holds {text}: FILE.py:FUNCTION, or CEL; repeatable"
        wanted.add_argument(f"--{when}", metavar="PROPERTY", action="append", default=[], help=help_text)
    how = add.add_argument_group("search")
    how.add_argument(
        "--budget", metavar="TIME", type=step_seconds, default=60.0, help="how long, such as 10m; 60s by default"
    )
    help_text = "number of threads; by default one per core"
    how.add_argument("--workers", metavar="N", type=count, default=os.cpu_count() or 1, help=help_text)
    how.add_argument("--seed", metavar="N", type=int, default=0, help="of the moves that are drawn; 0 by default")
    shown = add.add_argument_group("output")
    help_text = "text (the default): step by step; json; github: commands for GitHub Actions"
    shown.add_argument("-o", "--output", choices=["text", "json", "github"], default="text", help=help_text)
    help_text = "exit with 1 if a counterexample is at least this severe; by default error"
    shown.add_argument("--fail-on", choices=[*map(str, Severity)], default="error", help=help_text)
    help_text = "write each counterexample to this folder; its objects, a scenario, and a policy test that fails"
    shown.add_argument("--save", type=_folder, metavar="DIR", help=help_text)
    add_summary(shown)
    add_look(shown)


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore prove`; returns the exit code."""
    with problems_in_ci(options, "kueuecore prove"):
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    style = Style.of(output(), options.color)
    require_folder("--save", options.save)
    own = [OwnProperty.parse(when, text) for when in When for text in getattr(options, when)]
    experiments = asked_experiments(options.experiments)
    manifests, kueue = configured_objects(options)
    configuration = kueue.configuration.with_experiments(experiments)
    properties = options.properties or ([] if own else [*properties_of(configuration)])
    _check_possible(properties, configuration)
    began, doing = time.monotonic(), ["reading"]

    def spent(_: int) -> float:
        return float((time.monotonic() - began) / options.budget)

    def line() -> str:
        return f"{time.monotonic() - began:.0f} of {options.budget:.0f} s: {doing[-1]}"

    with ctrl_c_raises(), ticking(line, quiet=options.quiet):
        proof = prove(
            manifests,
            configuration=configuration,
            properties=[Property(name) for name in properties],
            own=own,
            spent=spent,
            seed=options.seed,
            # More of them than cores only take each other's time.
            n_threads=min(options.workers, os.cpu_count() or 1),
            progress=doing.append,
            trusted=options.trusted,
        )
    if not proof.trees and not options.quiet:
        to_stderr("note: there is no ClusterQueue whose cohorts form a tree, so there is nothing to search")
    n_late = sum(tree.is_late for tree in proof.trees)
    if n_late and not options.quiet and not proof.is_interrupted:
        where = counted(n_late, "tree")
        to_stderr(f"warning: the time was over before anything was tried in {where}; give a longer --budget")
    seconds = time.monotonic() - began
    asked = [*properties, *(it.name for it in own)]
    match options.output:
        case "json":
            text = json_proof(proof, asked, configuration, seconds)
        case "github":
            text = github_lines(proof, experiments)
        case _:
            text = text_proof(proof, asked, seconds, style, experiments)
    write_with_files(text, [*_writers(proof, experiments, options)])
    if proof.is_interrupted:
        return ExitCode.INTERRUPTED
    least = Severity(options.fail_on).rank
    is_bad = any(
        bool(options.properties) or severity_of(counterexample).rank >= least
        for counterexample in proof.counterexamples
    )
    return ExitCode.FOUND if is_bad else ExitCode.OK


def _check_possible(properties: Sequence[str], configuration: Configuration) -> None:
    impossible = [name for name in properties if name not in properties_of(configuration)]
    if impossible:
        message = f"--property {impossible[0]}: nothing can break it without the experiment that it is about"
        raise ManifestError.of(message, remedy="add --experiment timeShareSeconds=600, or leave it out")


def _folder(text: str) -> Path:
    """Parse the name of a folder: an empty one would be the one that the command runs in."""
    if not text:
        raise argparse.ArgumentTypeError('the name of the folder is empty; write "." for the one you are in')
    return Path(text)


def _writers(proof: Proof, experiments: Experiments, options: argparse.Namespace) -> Iterator[Callable[[], None]]:
    """What writes the files."""
    if options.save is not None:
        yield lambda: _save(options.save, proof, quiet=options.quiet)
    if options.summary is not None:
        yield lambda: append_summary(options.summary, markdown_proof(proof, experiments))


def _save(folder: Path, proof: Proof, *, quiet: bool) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, found in enumerate(proof.counterexamples, start=1):
            name = _NOT_IN_A_NAME.sub("-", str(found.breaks)).strip("-")[:40].rstrip("-")
            files = save(found, folder, f"{name}-{number}")
            if not quiet:
                to_stderr(*(f"note: wrote {escaped(str(file))}" for file in files))
    except OSError as error:
        raise OutputError(error.strerror or str(error), what=str(error.filename or folder)) from None
