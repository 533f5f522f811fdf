"""Coverage of a configuration by policy tests, as a table, JSON, LCOV and commands for GitHub Actions."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from kueuecore._json import JsonObject, JsonValue
from kueuecore._text import counted, shown
from kueuecore.cli.github import github_command
from kueuecore.cli.table import Style, table
from kueuecore.policy_tests.coverage import Coverage, FileCoverage, RuleCoverage, RuleOutcome

__all__ = ["coverage_document", "coverage_lines", "coverage_table", "github_coverage", "lcov", "percentage"]

_IN_CODE = "(in code)"


def percentage(percent: Fraction) -> str:
    """A percentage as a whole number, which is 0 or 100 only if it is exactly that.

    Example:
        >>> percentage(Fraction(100)), percentage(Fraction(9999, 100)), percentage(Fraction(1, 5))
        ('100%', '99%', '1%')
    """
    whole = round(percent)
    if 0 < percent < 100:
        whole = min(max(whole, 1), 99)
    return f"{whole}%"


def coverage_table(coverage: Coverage, style: Style) -> str:
    """A row per file, with the lines of rules that no test exercises, and a line per such rule."""
    rows = [_row(file.file or _IN_CODE, file, _ranges(file)) for file in coverage.files()]
    header = ["FILE", "RULES", "MISSED", "COVER", "MISSING"]
    text = table(header, [*rows, _row("TOTAL", coverage, "")], style, right=["RULES", "MISSED", "COVER"])
    # The cells of the last column may be empty.
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join([*lines, *([""] if (missing := coverage_lines(coverage)) else []), *missing])


def coverage_lines(coverage: Coverage) -> list[str]:
    """A line per rule that no test exercises, or that cannot be measured."""
    return [shown(f"{_place(it)}{_said(it)}") for it in coverage.rules if it.outcome is not RuleOutcome.EXERCISED]


def coverage_document(coverage: Coverage, outcomes: Mapping[tuple[str, int], str]) -> JsonObject:
    """Everything, as JSON.

    Args:
        coverage: The coverage.
        outcomes: The outcome of each test, by its file and line.
    """
    files: list[JsonValue] = [
        {"file": file.file or None, **_counts(file), "missing": [*file.missed_lines()]} for file in coverage.files()
    ]
    return {**_counts(coverage), "files": files, "rules": [_rule(it, outcomes) for it in coverage.rules]}


def lcov(coverage: Coverage) -> str:
    """An LCOV trace file: a rule is a line, and several rules on one line are its branches.

    What is not on a line of a file on disk is left out, and so are rules that cannot be measured.
    """
    return "".join(_record(file) for file in coverage.files() if file.file and not file.file.startswith("<"))


def github_coverage(coverage: Coverage) -> str:
    """A notice with the total, and one per line with rules that no test exercises."""
    # GitHub shows only the first of them in a step.
    total = f"{counted(coverage.n_measurable, 'rule')}, {coverage.n_exercised} exercised"
    commands = [github_command("notice", f"{percentage(coverage.percent)}: {total}", title="coverage")]
    for file in coverage.files():
        for line, rules in file.lines():
            missed = [str(it.rule) for it in rules if it.outcome is RuleOutcome.MISSED]
            if missed:
                text = f"no test exercises {'; '.join(missed)}"
                commands.append(github_command("notice", text, title="not exercised", file=file.file, line=line))
    return "".join(f"{command}\n" for command in commands)


def _row(name: str, counted_rules: FileCoverage | Coverage, missing: str) -> list[str]:
    n, n_exercised = counted_rules.n_measurable, counted_rules.n_exercised
    return [name, str(n), str(n - n_exercised), percentage(counted_rules.percent), missing]


def _ranges(file: FileCoverage) -> str:
    """The lines of rules that are not exercised; neighbours are joined, whatever lies between two rules."""
    missed, runs = set(file.missed_lines()), list[list[int]]()
    is_in_run = False
    for line, _ in file.lines():
        if line and line in missed:
            if not is_in_run:
                runs.append([])
            runs[-1].append(line)
        is_in_run = line in missed
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _place(covered: RuleCoverage) -> str:
    rule = covered.rule
    place = ":".join(filter(None, (rule.file, str(rule.line or ""))))
    return f"{place}: " if place else ""


def _said(covered: RuleCoverage) -> str:
    why = "; not measurable, as no other value is valid" if not covered.is_measurable else ""
    return f"{covered.rule}{why}"


def _counts(rules: FileCoverage | Coverage) -> JsonObject:
    return {
        "measurable": rules.n_measurable,
        "exercised": rules.n_exercised,
        "missed": rules.n_measurable - rules.n_exercised,
        "notMeasurable": len(rules.rules) - rules.n_measurable,
        "percent": round(float(rules.percent), 2),
    }


def _rule(covered: RuleCoverage, outcomes: Mapping[tuple[str, int], str]) -> JsonValue:
    rule, exercise = covered.rule, covered.exercise
    by: JsonObject | None = None
    if exercise is not None:
        by = {
            "file": exercise.file,
            "line": exercise.line,
            "name": exercise.name,
            "outcome": outcomes[exercise.file, exercise.line],
        }
    return {
        "file": rule.file or None,
        "line": rule.line or None,
        "object": {"kind": rule.object.kind, "namespace": rule.object.namespace or None, "name": rule.object.name},
        "field": rule.field,
        "about": rule.about or None,
        "value": rule.value or None,
        "outcome": str(covered.outcome),
        "exercisedBy": by,
        "otherValue": None if exercise is None else exercise.variation,
    }


def _record(file: FileCoverage) -> str:
    lines, branches, n_hit_branches, n_branches = list[tuple[int, int]](), list[str](), 0, 0
    for line, rules in file.lines():
        hits = [int(it.outcome is RuleOutcome.EXERCISED) for it in rules if it.is_measurable]
        if not line or not hits:
            continue
        lines.append((line, sum(hits)))
        if len(hits) > 1:
            branches += (f"BRDA:{line},0,{branch},{hit}" for branch, hit in enumerate(hits))
            n_branches, n_hit_branches = n_branches + len(hits), n_hit_branches + sum(hits)
    if not lines:
        return ""
    parts = ["TN:", f"SF:{file.file}", *branches]
    parts += [f"BRF:{n_branches}", f"BRH:{n_hit_branches}"] if branches else []
    parts += (f"DA:{line},{n_hits}" for line, n_hits in lines)
    parts += [f"LF:{len(lines)}", f"LH:{sum(n_hits > 0 for _, n_hits in lines)}", "end_of_record"]
    return "\n".join(parts) + "\n"
