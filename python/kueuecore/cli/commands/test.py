"""`kueuecore test`: runs policy tests, and reports the expectations that are not met."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from kueuecore._json import JsonObject, JsonValue
from kueuecore._replaced_files import replaced
from kueuecore._text import shown
from kueuecore.cli.documents import document_head, release_document
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.junit import junit_xml
from kueuecore.cli.kueue_release import add_kueue, asked_release
from kueuecore.cli.output_files import require_file, write_with_files
from kueuecore.cli.progress import run_progress
from kueuecore.cli.streams import OutputError, output, to_stderr
from kueuecore.cli.study_options import add_look
from kueuecore.cli.table import Style
from kueuecore.errors import ManifestError, Problem
from kueuecore.policy_tests import CaseResult, PolicyTest, policy_test_files, read_policy_tests, run_policy_test
from kueuecore.releases import DEFAULT_RELEASE, Release

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Runs policy tests: YAML files with queues, the jobs that arrive, and the expected outcome of each.
Shows every expectation that is not met, with file and line, the actual outcome, and why."""

EXAMPLES = """\
  kueuecore test examples/policy-tests         all files *_test.yaml in it and its subdirectories
  kueuecore test . -k 'borrows'                tests whose file or name contains this
  kueuecore test . --junit report.xml          for CI
  kueuecore test . -o json | jq '.tests[] | select(.outcome == "failed")'
"""


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    help_text = "a YAML file of kind PolicyTest, a directory of such files, or - for stdin"
    add.add_argument("paths", metavar="PATH", nargs="+", help=help_text)
    help_text = "run only tests whose FILE::NAME contains this, ignoring case; * and ? are wildcards"
    add.add_argument("-k", dest="pattern", metavar="PATTERN", default="", help=help_text)
    add_kueue(add, over="kueue")
    out = add.add_argument_group("output")
    out.add_argument(
        "-o", "--output", choices=["table", "json"], default="table", help="json: everything, as one document"
    )
    out.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML to this file")
    add_look(out)


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore test`; returns the exit code."""
    require_file("--junit", options.junit)
    default = asked_release(None)
    tests = [test for test in _read(options.paths, options.kueue, default) if _is_meant(test, options.pattern)]
    if not tests:
        remedy = "try another pattern"
        raise ManifestError.of(f"no test matches {options.pattern!r}", field="-k", remedy=remedy)
    if not options.quiet:
        to_stderr(*dict.fromkeys(f"note: {note}" for test in tests for note in test.notes))
    with run_progress(quiet=options.quiet) as progress:
        results = _run(tests, progress)
    if not options.quiet:
        warnings = dict.fromkeys(warning for result in results for warning in result.warnings)
        to_stderr(*(f"warning: {shown(warning)}" for warning in warnings))
    if options.output == "json":
        text = _document(results, options.kueue or default or Release.named(DEFAULT_RELEASE))
    else:
        text = _report(results, Style.of(output(), options.color)) + "\n"
    write_with_files(text, [] if options.junit is None else [lambda: _save(junit_xml(results), options.junit)])
    return ExitCode.OK if all(result.has_passed for result in results) else ExitCode.PENDING


def _read(paths: Sequence[str], release: Release | None, default: Release | None) -> list[PolicyTest]:
    """Read the tests of all files, each file once.

    Args:
        paths: Files and directories.
        release: The release of Kueue that decides, whatever the files say.
        default: The one that decides where they say none; `None`: the one that their objects show.

    Raises:
        ManifestError: Everything that is wrong with any of the files.
    """
    problems: list[Problem] = []
    tests: list[PolicyTest] = []
    seen: set[str] = set()
    for path in paths:
        try:
            for file in policy_test_files(path):
                if file not in seen:
                    seen.add(file)
                    try:
                        tests += read_policy_tests(file, release=release, default_release=default)
                    except ManifestError as error:
                        problems += error.problems
        except ManifestError as error:
            problems += error.problems
    if problems:
        raise ManifestError(problems)
    return tests


def _run(tests: Sequence[PolicyTest], progress: Callable[[int, int], None] | None) -> list[CaseResult]:
    """Run the tests.

    Raises:
        ManifestError: Everything that is wrong with the objects and jobs of any of them.
    """
    problems: dict[Problem, None] = {}
    results = []
    for index, test in enumerate(tests):
        try:
            results.append(run_policy_test(test))
        except ManifestError as error:
            # Cases of one file share objects, and so their problems.
            problems |= dict.fromkeys(error.problems)
        if progress is not None:
            progress(index + 1, len(tests))
    if problems:
        raise ManifestError(problems)
    return results


def _is_meant(test: PolicyTest, pattern: str) -> bool:
    return fnmatchcase(test.id.casefold(), f"*{pattern.casefold()}*")


def _save(text: str, path: Path) -> None:
    try:
        with replaced(path) as file:
            file.write(text.encode("ascii"))
    except OSError as error:
        raise OutputError(error.strerror or str(error), what=str(path)) from None


def _report(results: Sequence[CaseResult], style: Style) -> str:
    lines = []
    for result in results:
        word, color = ("passed", "green") if result.has_passed else ("FAILED", "red")
        lines.append(f"{style.paint(word, color)}  {shown(result.test.id)}")
    for result in results:
        for failure in result.failures:
            verdict = failure.verdict
            lines += [
                "",
                style.paint(shown(f"{failure.place}: {result.test.name}"), "bold"),
                f"  {shown(verdict.subject)}",
            ]
            lines.append(f"    expected: {shown(verdict.expected)}")
            lines.append(f"    got:      {style.paint(shown(verdict.got), 'red')}")
            lines += [f"    why:      {shown(verdict.why)}"] if verdict.why else []
    n_failed = sum(not result.has_passed for result in results)
    n_passed = len(results) - n_failed
    parts = [style.paint(f"{n_failed} failed", "red")] if n_failed else []
    parts += [style.paint(f"{n_passed} passed", "green")] if n_passed else []
    return "\n".join([*lines, "", ", ".join(parts)])


def _document(results: Sequence[CaseResult], release: Release) -> str:
    n_passed = sum(result.has_passed for result in results)
    document: JsonObject = {
        **document_head(release),
        "counts": {"passed": n_passed, "failed": len(results) - n_passed},
        "tests": [_case(result) for result in results],
    }
    return json.dumps(document, indent=2) + "\n"


def _case(result: CaseResult) -> JsonValue:
    return {
        "file": result.test.file,
        "line": result.test.line,
        "name": result.test.name,
        "kueue": release_document(result.test.configuration.release),
        "outcome": "passed" if result.has_passed else "failed",
        "failures": [
            {
                "file": failure.place.rpartition(":")[0],
                "line": int(failure.place.rpartition(":")[2]),
                "subject": failure.verdict.subject,
                "expected": failure.verdict.expected,
                "got": failure.verdict.got,
                "why": failure.verdict.why or None,
            }
            for failure in result.failures
        ],
    }
