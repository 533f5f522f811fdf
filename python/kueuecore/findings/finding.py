"""What a finding is, and what a rule is that finds some."""

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
    """It works, and hardly as meant."""
    NOTE = "note"
    """It may be meant; worth a look."""

    @property
    def rank(self) -> int:
        """A number that is higher the worse it is."""
        return _RANKS[self]


_RANKS = {Severity.NOTE: 0, Severity.WARNING: 1, Severity.ERROR: 2}


@dataclass(frozen=True, slots=True)
class Hit:
    """What a rule has found, before it is known whether anybody wants to hear of it.

    Args:
        manifest: The object that it is about, whose annotation may silence it.
        problem: What it says.
        world: The smallest set of objects that shows it, where one object does not.
    """

    manifest: Manifest
    problem: Problem
    world: tuple[JsonObject, ...] = ()


def hit(manifest: Manifest, message: str, *, field: str = "", remedy: str, world: Iterable[JsonObject] = ()) -> Hit:
    """What is odd about a field of an object, with file and line.

    Args:
        manifest: The object.
        message: What is odd, without a full stop.
        field: Path of the field; empty for the object as a whole.
        remedy: What to do, as an instruction.
        world: The smallest set of objects that shows it.
    """
    return Hit(manifest, manifest.problem(message, field=field, remedy=remedy), tuple(world))


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing to look for.

    Args:
        code: Its number, such as `KC101`; it never changes.
        name: Its name, such as `unused-flavor`; neither does this.
        severity: How bad it is.
        summary: What it looks for, as a noun phrase for a table.
        find: Looks for it.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    find: Callable[[Facts], Iterator[Hit]] = field(repr=False, compare=False)


def rule(code: str, name: str, severity: Severity, summary: str) -> Callable[[Callable[[Facts], Iterator[Hit]]], Rule]:
    """Make a rule of the function below; the arguments are those of `Rule`."""

    def made(find: Callable[[Facts], Iterator[Hit]]) -> Rule:
        return Rule(code, name, severity, summary, find)

    return made


@dataclass(frozen=True, slots=True)
class Finding:
    """Something odd about an object.

    As text it is `file:line: severity code name: object: field: message; remedy`, on one line.

    Args:
        rule: The rule that found it.
        problem: Object, field, file, line, what is odd and what to do.
        world: The smallest set of objects that shows it, where one object does not: preemption loops, starvation.
    """

    rule: Rule
    problem: Problem
    world: tuple[JsonObject, ...] = field(default=(), repr=False)

    @property
    def code(self) -> str:
        """Number of the rule."""
        return self.rule.code

    @property
    def name(self) -> str:
        """Name of the rule."""
        return self.rule.name

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.rule.severity

    @property
    def object(self) -> ObjectRef | None:
        """The object that it is about."""
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
