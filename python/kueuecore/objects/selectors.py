"""Label selectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum

from kueuecore.objects._fields import Value

__all__ = ["LabelSelector", "LabelSelectorOperator", "LabelSelectorRequirement"]


class LabelSelectorOperator(StrEnum):
    """How a requirement compares the value of a label."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


@dataclass(frozen=True, slots=True)
class LabelSelectorRequirement(Value):
    """A condition on one label.

    Args:
        key: The label.
        operator: The comparison.
        values: What it is compared with; empty for Exists and DoesNotExist.
    """

    key: str
    _: KW_ONLY
    operator: LabelSelectorOperator
    values: Sequence[str] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet the requirement. An absent label is not in any list of values."""
        if self.operator is LabelSelectorOperator.IN:
            return labels.get(self.key) in self.values
        if self.operator is LabelSelectorOperator.NOT_IN:
            return labels.get(self.key) not in self.values
        return (self.key in labels) is (self.operator is LabelSelectorOperator.EXISTS)


@dataclass(frozen=True, slots=True)
class LabelSelector(Value):
    """A condition on labels; one without requirements matches everything.

    Args:
        match_labels: Labels with the values that they must have.
        match_expressions: Further conditions; all must hold.

    Example:
        >>> LabelSelector({"team": "a"}).matches({"team": "a", "tier": "gold"})
        True
    """

    match_labels: Mapping[str, str] = field(default_factory=dict)
    _: KW_ONLY
    match_expressions: Sequence[LabelSelectorRequirement] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether `labels` meet every condition."""
        equal = all(labels.get(key) == value for key, value in self.match_labels.items())
        return equal and all(requirement.matches(labels) for requirement in self.match_expressions)
