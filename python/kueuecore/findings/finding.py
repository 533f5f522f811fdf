"""Findings, and the rules that produce them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from kueuecore._json import JsonObject
from kueuecore.errors import ObjectRef, Problem
from kueuecore.manifests import Manifest

if TYPE_CHECKING:
    from kueuecore.findings.facts import Facts

__all__ = ["Finding", "Hit", "Rule", "Severity", "hit", "rule"]


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """Something does not work."""
    WARNING = "warning"
    """It works, but hardly as intended."""
    NOTE = "note"
    """It may be intended, but is worth a look."""

    @property
    def rank(self) -> int:
        """A number that grows with the severity."""
        return _RANKS[self]


_RANKS = {Severity.NOTE: 0, Severity.WARNING: 1, Severity.ERROR: 2}


@dataclass(frozen=True, slots=True)
class Hit:
    """What a rule found, before annotations are taken into account.

    Args:
        manifest: The object at fault, whose annotation may silence the finding.
        problem: What is wrong, where, and what to do.
        world: The smallest set of objects that shows it, if one object is not enough.
        severity: How bad it is in this case; by default as bad as the rule says.
    """

    manifest: Manifest
    problem: Problem
    world: tuple[JsonObject, ...] = ()
    severity: Severity | None = None


def hit(
    manifest: Manifest,
    message: str,
    *,
    field: str = "",
    remedy: str,
    world: Iterable[JsonObject] = (),
    severity: Severity | None = None,
) -> Hit:
    """Make a hit about a field of an object, with file and line.

    Args:
        manifest: The object.
        message: What is wrong, without a full stop.
        field: Path of the field; empty for the object as a whole.
        remedy: What to do, as an instruction.
        world: The smallest set of objects that shows it.
        severity: How bad it is in this case; by default as bad as the rule says.
    """
    return Hit(manifest, manifest.problem(message, field=field, remedy=remedy), tuple(world), severity)


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of mistake to look for.

    Args:
        code: Its code, such as `KC101`, which never changes.
        name: Its name, such as `unused-flavor`, which never changes either.
        severity: How bad it is.
        summary: What it looks for, as a noun phrase.
        find: Looks for it.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    find: Callable[[Facts], Iterator[Hit]] = field(repr=False, compare=False)


def rule(code: str, name: str, severity: Severity, summary: str) -> Callable[[Callable[[Facts], Iterator[Hit]]], Rule]:
    """Turn the decorated function into a rule; the arguments are those of `Rule`."""

    def made(find: Callable[[Facts], Iterator[Hit]]) -> Rule:
        return Rule(code, name, severity, summary, find)

    return made


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with an object.

    Its text is one line: `file:line: severity code name: object: field: message; remedy`.

    Args:
        rule: The rule that found it.
        problem: Object, field, file, line, what is wrong and what to do.
        world: The smallest set of objects that shows it, for preemption loops and starvation.
        own_severity: How bad it is in this case; by default as bad as the rule says.
    """

    rule: Rule
    problem: Problem
    world: tuple[JsonObject, ...] = field(default=(), repr=False)
    own_severity: Severity | None = field(default=None, repr=False)

    @property
    def code(self) -> str:
        """Code of the rule."""
        return self.rule.code

    @property
    def name(self) -> str:
        """Name of the rule."""
        return self.rule.name

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.own_severity or self.rule.severity

    @property
    def object(self) -> ObjectRef | None:
        """The object at fault."""
        return self.problem.object

    def __str__(self) -> str:
        place, text = self.problem.place, self.without_place
        return f"{place}: {text}" if place else text

    @property
    def without_place(self) -> str:
        """The finding as text, without file and line."""
        bare = Problem(
            self.problem.message, field=self.problem.field, remedy=self.problem.remedy, object=self.problem.object
        )
        return f"{self.severity} {self.code} {self.name}: {bare}"
