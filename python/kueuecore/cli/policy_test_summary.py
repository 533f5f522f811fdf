"""Results of policy tests as a summary in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from kueuecore._text import escaped
from kueuecore.cli.markdown import MAX_ROWS, code, details, fenced, more_rows, plain
from kueuecore.policy_tests import CaseResult

__all__ = ["summary_of_tests"]


def summary_of_tests(results: Sequence[CaseResult], *, coverage: str = "") -> str:
    """Summarise policy tests: what failed and why, and what passed.

    Args:
        results: The results.
        coverage: The report about coverage, if it was measured.
    """
    failed = [result for result in results if not result.has_passed]
    passed = [result for result in results if result.has_passed]
    counts = [f"{len(failed)} failed"] * bool(failed) + [f"{len(passed)} passed"] * bool(passed)
    parts = [f"### kueuecore test: {', '.join(counts)}"]
    for result in failed[:MAX_ROWS]:
        lines = "\n\n".join("\n".join(map(escaped, str(failure).splitlines())) for failure in result.failures)
        notice = result.test.configuration.experiments.notice
        where = f"{code(result.test.file)}{f', {plain(notice)}' if notice else ''}"
        parts.append(f"**{plain(result.test.name)}** in {where}\n\n{fenced(lines)}")
    parts.append(more_rows(len(failed)))
    if passed:
        names = "\n".join(f"- {plain(_named(result))}" for result in passed[:MAX_ROWS])
        parts.append(details(f"{len(passed)} passed", "\n\n".join(filter(None, [names, more_rows(len(passed))]))))
    if coverage:
        parts.append(fenced(coverage))
    return "\n\n".join(filter(None, parts))


def _named(result: CaseResult) -> str:
    """The name of a test, and the experiments that it is about."""
    return ", ".join(filter(None, [result.test.id, result.test.configuration.experiments.notice]))
