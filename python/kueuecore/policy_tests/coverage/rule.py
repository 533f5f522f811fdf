"""A rule of a configuration, and other values that it could have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from kueuecore._json import JsonValue
from kueuecore._quantities import number
from kueuecore._text import join
from kueuecore.errors import ObjectRef
from kueuecore.manifests import Manifest, object_ref
from kueuecore.scenarios.edits import Edit

__all__ = ["FoundRule", "Owner", "Path", "Rule", "Variation", "dotted", "edit", "found_rule", "other_values", "removed"]

Path: TypeAlias = tuple[str | int, ...]
"""The way to a field: names, and indices of list entries."""
_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One place in the manifests that can decide something.

    Args:
        file: The file; empty for an object made in code.
        line: The line, from 1; 0 if the object has no lines.
        object: The object.
        field: The field path, such as `spec.preemption.withinClusterQueue`.
        about: What the field is about, if its path does not say it: a flavor, or its place in the order.
        value: Its value as text; empty if it is not a single one.
    """

    file: str
    line: int
    object: ObjectRef
    field: str
    about: str = ""
    value: str = ""

    @property
    def key(self) -> tuple[str, int, str, str, str, str]:
        """What tells it apart from all others, and its place in their order."""
        return self.file, self.line, self.object.kind, self.object.key, self.field, self.about

    def __str__(self) -> str:
        """Name it without its place: `ClusterQueue team-a spec.stopPolicy: Hold`."""
        name = " ".join(filter(None, (self.object.kind, self.object.key, self.field)))
        about = f" ({self.about})" if self.about else ""
        return f"{name}{about}{f': {self.value}' if self.value else ''}"


@dataclass(frozen=True, slots=True)
class Variation:
    """Another value of a rule.

    Args:
        edits: The edits of its object that set it.
        text: The value in words.
    """

    edits: tuple[Edit, ...]
    text: str


class Owner(StrEnum):
    """The part of a test that a rule is in."""

    OBJECTS = "objects"
    CONFIGURATION = "configuration"
    GATES = "gates"


@dataclass(frozen=True, slots=True)
class FoundRule:
    """A rule in one test.

    Args:
        rule: The rule.
        variations: Other values, the most telling first.
        owner: The part of the test that it is in.
        index: The index of its object in that part.
    """

    rule: Rule
    variations: tuple[Variation, ...]
    owner: Owner = Owner.OBJECTS
    index: int = 0


def found_rule(
    manifest: Manifest,
    path: Path,
    variations: Iterable[Variation],
    *,
    about: str = "",
    value: JsonValue = None,
) -> FoundRule:
    """Return the rule at a field of an object.

    Args:
        manifest: The object.
        path: The field.
        variations: Other values of it.
        about: As in `Rule`.
        value: Its value; None if it is not a single one.
    """
    field = dotted(path)
    text = "" if value is None or isinstance(value, dict | list) else _written(value)
    source = manifest.source
    rule = Rule(
        file=source.file,
        line=source.line_of(field),
        object=object_ref(manifest.object),
        field=field,
        about=about,
        value=text,
    )
    return FoundRule(rule, tuple(variations))


def other_values(path: Path, now: JsonValue, candidates: Sequence[JsonValue]) -> tuple[Variation, ...]:
    """Return a variation for each candidate that differs from the value; None removes the field."""
    return tuple(
        Variation((edit(path, value),), "removed" if value is None else _written(value))
        for value in candidates
        if not _is_same(value, now)
    )


def removed(path: Path) -> Variation:
    """Return the variation without a field or list entry."""
    return Variation((edit(path, None),), "removed")


def edit(path: Path, value: JsonValue) -> Edit:
    """Return the edit that sets a field; None removes it."""
    steps = [f"[{step}]" if isinstance(step, int) else _step(step) for step in path]
    return Edit(path="".join(steps).removeprefix("."), value=value)


def dotted(path: Path) -> str:
    """Return a path as messages write it: `spec.resourceGroups[0].flavors[1]`."""
    text = ""
    for step in path:
        text = f"{text}[{step}]" if isinstance(step, int) else join(text, step)
    return text


def _step(name: str) -> str:
    return f".{name}" if _NAME.fullmatch(name) else f'["{name}"]'


def _is_same(one: JsonValue, other: JsonValue) -> bool:
    if one == other and type(one) is type(other):
        return True
    # Quantities: 1 and 1000m are one value.
    is_amount = number(one) is not None and not isinstance(one, bool) and not isinstance(other, bool)
    return is_amount and number(one) == number(other)


def _written(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and value and all(isinstance(entry, str) for entry in value):
        return f"[{', '.join(map(str, value))}]"
    return "{}" if value == {} else str(value)
