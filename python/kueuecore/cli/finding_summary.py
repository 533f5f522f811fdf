"""Findings as a summary in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kueuecore._text import counted
from kueuecore.cli.markdown import MAX_ROWS, code, markdown_table, more_rows, plain
from kueuecore.findings import Finding, Severity

__all__ = ["summary_of_findings"]


def summary_of_findings(found: Sequence[Finding], unfinished: Sequence[str] = ()) -> str:
    """Summarise findings: the worst first, as a table.

    Args:
        found: The findings.
        unfinished: A sentence for each rule that gave up.
    """
    counts = Counter(finding.severity for finding in found)
    said = ", ".join(counted(n, severity) for severity in Severity if (n := counts[severity])) or "nothing found"
    parts = [f"### kueuecore check: {said}"]
    if found:
        worst_first = sorted(found, key=lambda finding: -finding.severity.rank)
        rows = [_finding(finding) for finding in worst_first[:MAX_ROWS]]
        header = ["Severity", "Finding", "Object", "Where", "What is wrong, and what to do"]
        parts += [markdown_table(header, rows), more_rows(len(found))]
    return "\n\n".join(filter(None, [*parts, *map(plain, unfinished)]))


def _finding(finding: Finding) -> list[str]:
    problem, about = finding.problem, finding.object
    text = ": ".join(filter(None, (problem.field, problem.message)))
    return [
        str(finding.severity),
        f"{finding.code} {finding.name}",
        code(f"{about.kind}/{about.key}" if about else ""),
        code(f"{problem.file}:{problem.line}" if problem.line else problem.file),
        plain(f"{text}; {problem.remedy}" if problem.remedy else text),
    ]
