"""Rules about quantities with a likely mistake: bytes for gibibytes, fractions of whole units."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from kueuecore._json import text_at
from kueuecore._quantities import number
from kueuecore._text import quoted
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.manifest_fields import quota_fields
from kueuecore.findings.quota_tree import Node
from kueuecore.manifests import Manifest

__all__ = ["fractional_amounts", "tiny_amounts", "units_that_differ"]

_FIELDS = ("nominalQuota", "borrowingLimit", "lendingLimit")
_BYTES = re.compile(r"memory|ephemeral-storage|hugepages-.*")
_FORM = re.compile(r"[+-]?([0-9.]++)(.*)")
_SMALLEST = 2**20  # bytes: a quota below a mebibyte is a mistake
_FACTOR = 500  # from this ratio on, a suffix was probably forgotten


@dataclass(frozen=True, slots=True)
class _Written:
    """A quantity as written in a manifest."""

    owner: Manifest
    node: Node
    flavor: str
    resource: str
    field: str
    text: str
    value: Fraction

    @property
    def digits(self) -> str:
        """The number before the suffix."""
        match = _FORM.fullmatch(self.text)
        return match[1] if match else self.text

    @property
    def suffix(self) -> str:
        match = _FORM.fullmatch(self.text)
        return match[2] if match else ""


@rule(
    "KC211",
    "fractional-amount",
    Severity.WARNING,
    "a fraction of a resource that is counted whole, such as memory: 64000m",
)
def fractional_amounts(facts: Facts) -> Iterator[Hit]:
    """Everything but cpu is counted in whole units, rounded up (rules/01 §7.1)."""
    for quantity in _quantities(facts):
        if _is_fraction(quantity):
            whole = -(-quantity.value.numerator // quantity.value.denominator)
            unit = (
                f"{whole} bytes of {quantity.resource}"
                if _BYTES.fullmatch(quantity.resource)
                else f"{whole} {quantity.resource}"
            )
            yield hit(
                quantity.owner,
                f"Invalid value: {quoted(quantity.text)}: this is {unit}, as only cpu is counted in thousandths",
                field=quantity.field,
                remedy="write a whole number; for bytes with a suffix such as Gi",
            )


@rule("KC212", "tiny-amount", Severity.WARNING, "memory or storage of a few bytes, such as 64 instead of 64Gi")
def tiny_amounts(facts: Facts) -> Iterator[Hit]:
    """No queue has less than a mebibyte of quota."""
    for quantity in _quantities(facts):
        if _is_tiny(quantity) and not _is_fraction(quantity):
            yield hit(
                quantity.owner,
                f"Invalid value: {quoted(quantity.text)}: this is {int(quantity.value)} bytes of {quantity.resource}",
                field=quantity.field,
                remedy=f"write {quantity.digits}Gi if you mean gibibytes",
            )


@rule("KC213", "units-differ", Severity.WARNING, "a quantity that matches another queue's except for the unit")
def units_that_differ(facts: Facts) -> Iterator[Hit]:
    """64G here and 64Gi there, or 4000 and 4000m, for the same resource and flavor in the same cohort."""
    groups: dict[tuple[Node, str, str], list[_Written]] = {}
    for quantity in _quantities(facts):
        path = facts.tree.path(quantity.node)
        is_meant = quantity.value and not (
            _is_tiny(quantity) or _is_fraction(quantity)
        )  # the others have more specific findings
        if path and is_meant and quantity.field.endswith("nominalQuota"):
            groups.setdefault((path[-1], quantity.flavor, quantity.resource), []).append(quantity)
    for group in groups.values():
        yield from _odd_ones(group)


def _is_fraction(it: _Written) -> bool:
    return it.resource != "cpu" and (it.suffix in ("m", "u", "n") or it.value.denominator != 1)


def _is_tiny(it: _Written) -> bool:
    return _BYTES.fullmatch(it.resource) is not None and 0 < it.value < _SMALLEST


def _odd_ones(group: list[_Written]) -> Iterator[Hit]:
    counts = Counter(written.text for written in group)
    firsts = {written.text: written for written in reversed(group)}
    # Of two that differ, the rarer one is reported; if they are equally frequent, the one that first appears later.
    ranks = {text: rank for rank, text in enumerate(sorted(counts, key=lambda count: -counts[count]))}
    for written in group:
        usual = (
            other for text, other in firsts.items() if ranks[text] < ranks[written.text] and _looks_like(written, other)
        )
        first = next(usual, None)
        if first is not None:
            yield hit(
                written.owner,
                f"Invalid value: {quoted(written.text)}: {first.node.kind} {first.node.name} has {first.text} "
                f"{written.resource} in the same flavor {written.flavor}, {_ratio(written.value, first.value)}",
                field=written.field,
                remedy="write both in the same unit",
            )


def _looks_like(it: _Written, other: _Written) -> bool:
    """Whether both have the same digits with different suffixes, or a cpu seems to have lost its `m`."""
    if it.value == other.value:
        return False
    if it.digits == other.digits and it.suffix != other.suffix and it.digits != "1":
        return True
    larger, smaller = max(it.value, other.value), min(it.value, other.value)
    is_bare = (it if it.value == larger else other).suffix == ""
    return it.resource == "cpu" and is_bare and larger >= 1000 and larger >= _FACTOR * smaller


def _ratio(value: Fraction, other: Fraction) -> str:
    larger = other > value
    factor = float(other / value if larger else value / other)
    return f"{factor:.4g} times {'as much' if larger else 'less'}"


def _quantities(facts: Facts) -> Iterator[_Written]:
    for owner in (*facts.cluster_queues.values(), *facts.cohorts.values()):
        node = Node(text_at(owner.object, "kind"), text_at(owner.object, "metadata", "name"))
        for field in quota_fields(owner):
            for name in _FIELDS:
                text = field.amounts.get(name)
                if (value := number(text)) is not None:
                    path = f"{field.path}.{name}"
                    yield _Written(owner, node, field.flavor, field.resource, path, str(text), value)
