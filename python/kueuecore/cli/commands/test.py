"""`kueuecore test`: runs policy tests, and reports the expectations that are not met."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from kueuecore._json import JsonObject, JsonValue
from kueuecore._replaced_files import replaced
from kueuecore._text import shown
from kueuecore.cli.ci_output import add_summary, append_summary, problems_in_ci
from kueuecore.cli.coverage_options import add_coverage, check_coverage_options
from kueuecore.cli.documents import document_head, experiments_document, release_document
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.junit import junit_xml
from kueuecore.cli.kueue_release import add_kueue, asked_release
from kueuecore.cli.output_files import require_file, write_with_files
from kueuecore.cli.progress import ctrl_c_raises, rule_progress, run_progress
from kueuecore.cli.streams import OutputError, output, to_stderr
from kueuecore.cli.study_options import add_look
from kueuecore.cli.table import Style
from kueuecore.errors import ManifestError, Problem
from kueuecore.policy_tests import CaseResult, PolicyTest, policy_test_files, read_policy_tests, run_policy_test
from kueuecore.releases import DEFAULT_RELEASE, Release

if TYPE_CHECKING:
    from kueuecore.policy_tests.coverage import Coverage

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Runs policy tests: YAML files with queues, the jobs that arrive, and the expected outcome of each.
Shows every expectation that is not met, with file and line, the actual outcome, and why."""

EXAMPLES = """\
  kueuecore test examples/policy-tests         all files *_test.yaml in it and its subdirectories
  kueuecore test . -k 'borrows'                tests whose file or name contains this
  kueuecore test . --junit report.xml          for CI
  kueuecore test . -o github --summary "$GITHUB_STEP_SUMMARY"    annotate a pull request
  kueuecore test . --coverage --fail-under 90  which rules of the configuration no test depends on
  kueuecore test . -o json | jq '.tests[] | select(.outcome == "failed")'
"""


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    help_text = "a YAML file of kind PolicyTest, a directory of such files, or - for stdin"
    add.add_argument("paths", metavar="PATH", nargs="+", help=help_text)
    help_text = "run only tests whose FILE::NAME contains this, ignoring case; * and ? are wildcards"
    add.add_argument("-k", dest="pattern", metavar="PATTERN", default="", help=help_text)
    add_kueue(add, over="kueue")
    add_coverage(add)
    out = add.add_argument_group("output")
    help_text = "table (the default); json: everything, as one document; github: commands for GitHub Actions"
    out.add_argument("-o", "--output", choices=["table", "json", "github"], default="table", help=help_text)
    out.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML to this file")
    add_summary(out)
    add_look(out)


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore test`; returns the exit code."""
    with problems_in_ci(options, "kueuecore test"):
        return _run_command(options)


def _run_command(options: argparse.Namespace) -> int:
    check_coverage_options(options)
    require_file("--junit", options.junit)
    require_file("--coverage-report", options.coverage_report)
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
    coverage = _measured(tests, options) if options.coverage else None
    if options.output == "json":
        text = _document(results, options.kueue or default or Release.named(DEFAULT_RELEASE), coverage)
    elif options.output == "github":
        text = _github(results, coverage)
    else:
        text = _report(results, coverage, Style.of(output(), options.color)) + "\n"
    files = [] if options.junit is None else [lambda: _save(junit_xml(results).encode("ascii"), options.junit)]
    if coverage is not None and options.coverage_report is not None:
        from kueuecore.cli.coverage_output import lcov

        files.append(lambda: _save(os.fsencode(lcov(coverage)), options.coverage_report))
    if options.summary is not None:
        files.append(lambda: _summarise(results, coverage, options.summary))
    write_with_files(text, files)
    is_enough = _is_enough(coverage, options.fail_under)
    return ExitCode.OK if is_enough and all(result.has_passed for result in results) else ExitCode.PENDING


def _measured(tests: Sequence[PolicyTest], options: argparse.Namespace) -> Coverage:
    """Measure which rules the tests exercise."""
    from kueuecore.policy_tests.coverage import Measurement
    from kueuecore.studies import processes

    measurement = Measurement(tests)
    # A process takes as long to start as a test to play a hundred times.
    workers = max(1, min(options.workers, measurement.n_plays // 200))
    with ctrl_c_raises(), processes(workers) as executor, rule_progress(quiet=options.quiet) as progress:
        return measurement.run(executor=executor, progress=progress)


def _is_enough(coverage: Coverage | None, least: Fraction | None) -> bool:
    """Whether as many rules are exercised as have to be; says it if not."""
    if coverage is None or least is None or coverage.percent >= least:
        return True
    # Rounded down, or 89.999 % would read as enough.
    percent = int(coverage.percent * 100) / 100
    to_stderr(f"kueuecore: --fail-under: coverage is {percent:.2f} %, below {float(least):g} %")
    return False


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


def _summarise(results: Sequence[CaseResult], coverage: Coverage | None, path: Path) -> None:
    # Few runs want one.
    from kueuecore.cli.policy_test_summary import summary_of_tests

    covered = ""
    if coverage is not None:
        from kueuecore.cli.coverage_output import coverage_table

        covered = coverage_table(coverage, Style())
    append_summary(path, summary_of_tests(results, coverage=covered))


def _save(data: bytes, path: Path) -> None:
    try:
        with replaced(path) as file:
            file.write(data)
    except OSError as error:
        raise OutputError(error.strerror or str(error), what=str(path)) from None


def _report(results: Sequence[CaseResult], coverage: Coverage | None, style: Style) -> str:
    lines = []
    for result in results:
        word, color = ("passed", "green") if result.has_passed else ("FAILED", "red")
        notice = result.test.configuration.experiments.notice
        lines.append(f"{style.paint(word, color)}  {shown(result.test.id)}{f'  {notice}' if notice else ''}")
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
    lines += ["", ", ".join(parts)]
    if coverage is not None:
        from kueuecore.cli.coverage_output import coverage_table

        lines += ["", coverage_table(coverage, style)]
    return "\n".join(lines)


def _github(results: Sequence[CaseResult], coverage: Coverage | None) -> str:
    """A command per unmet expectation, which annotates its line, and those about coverage."""
    from kueuecore.cli.github import github_command

    commands = []
    for result in results:
        for failure in result.failures:
            file, _, line = failure.place.rpartition(":")
            notice = result.test.configuration.experiments.notice
            text = "\n".join(map(shown, [*str(failure.verdict).splitlines(), *filter(None, [notice])]))
            commands.append(github_command("error", text, title=result.test.name, file=file, line=int(line)) + "\n")
    if coverage is not None:
        from kueuecore.cli.coverage_output import github_coverage

        commands.append(github_coverage(coverage))
    return "".join(commands)


def _document(results: Sequence[CaseResult], release: Release, coverage: Coverage | None) -> str:
    n_passed = sum(result.has_passed for result in results)
    document: JsonObject = {
        **document_head(release),
        "counts": {"passed": n_passed, "failed": len(results) - n_passed},
        "tests": [_case(result) for result in results],
    }
    if coverage is not None:
        from kueuecore.cli.coverage_output import coverage_document

        outcomes = {(result.test.file, result.test.line): _outcome(result) for result in results}
        document["coverage"] = coverage_document(coverage, outcomes)
    return json.dumps(document, indent=2) + "\n"


def _outcome(result: CaseResult) -> str:
    return "passed" if result.has_passed else "failed"


def _case(result: CaseResult) -> JsonValue:
    return {
        "file": result.test.file,
        "line": result.test.line,
        "name": result.test.name,
        "kueue": release_document(result.test.configuration.release),
        **experiments_document(result.test.configuration.experiments),
        "outcome": _outcome(result),
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
