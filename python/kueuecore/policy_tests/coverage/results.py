"""The coverage of a configuration by policy tests, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import groupby

from kueuecore.policy_tests.coverage.rule import Rule

__all__ = ["Coverage", "Exercise", "FileCoverage", "RuleCoverage", "RuleOutcome"]


class RuleOutcome(StrEnum):
    """Whether the decisions of some test depend on a rule."""

    EXERCISED = "exercised"
    MISSED = "missed"
    NOT_MEASURABLE = "notMeasurable"
    """Kueue's validation refuses every other value that was tried."""


@dataclass(frozen=True, slots=True)
class Exercise:
    """The first test found that decides otherwise with another value of a rule.

    Args:
        file: Its file.
        line: The line on which it starts.
        name: Its name.
        variation: The other value, in words.
    """

    file: str
    line: int
    name: str
    variation: str


@dataclass(frozen=True, slots=True)
class RuleCoverage:
    """A rule, and whether a test exercises it.

    Args:
        rule: The rule.
        exercise: How it is exercised; None if it is not.
        is_measurable: Whether any other value of it is valid.
    """

    rule: Rule
    exercise: Exercise | None
    is_measurable: bool = True

    @property
    def outcome(self) -> RuleOutcome:
        """Whether the decisions of some test depend on it."""
        if not self.is_measurable:
            return RuleOutcome.NOT_MEASURABLE
        return RuleOutcome.MISSED if self.exercise is None else RuleOutcome.EXERCISED


class _Counted:
    """Counts rules; those that are not measurable count neither way."""

    __slots__ = ()
    rules: Sequence[RuleCoverage]

    @property
    def n_measurable(self) -> int:
        """How many rules could be measured."""
        return sum(rule.is_measurable for rule in self.rules)

    @property
    def n_exercised(self) -> int:
        """How many rules some test exercises."""
        return sum(rule.outcome is RuleOutcome.EXERCISED for rule in self.rules)

    @property
    def percent(self) -> Fraction:
        """The exercised ones of those that could be measured, in percent; 100 if there are none."""
        return Fraction(100 * self.n_exercised, self.n_measurable) if self.n_measurable else Fraction(100)


@dataclass(frozen=True, slots=True)
class FileCoverage(_Counted):
    """The coverage of the rules in one file.

    Args:
        file: The file; empty for objects made in code.
        rules: Its rules, by line.
    """

    file: str
    rules: tuple[RuleCoverage, ...]

    def lines(self) -> Iterator[tuple[int, tuple[RuleCoverage, ...]]]:
        """Yield each line that has rules, and these."""
        for line, rules in groupby(self.rules, key=lambda covered: covered.rule.line):
            yield line, tuple(rules)

    def missed_lines(self) -> tuple[int, ...]:
        """Return the lines on which a rule is not exercised."""
        return tuple(line for line, rules in self.lines() if any(it.outcome is RuleOutcome.MISSED for it in rules))


@dataclass(frozen=True, slots=True)
class Coverage(_Counted):
    """Which rules of a configuration some policy test exercises.

    Args:
        rules: All rules, by file and line.
    """

    rules: tuple[RuleCoverage, ...]

    def files(self) -> tuple[FileCoverage, ...]:
        """Return the coverage of each file."""
        files = groupby(self.rules, key=lambda covered: covered.rule.file)
        return tuple(FileCoverage(file, tuple(rules)) for file, rules in files)
