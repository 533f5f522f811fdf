"""The rules that `kueuecore run` warns about. Apart from the others, which it takes longer to import than to run."""

from __future__ import annotations

from kueuecore.findings import flavors, placement, topology
from kueuecore.findings.finding import Rule

__all__ = ["RULES_OF_RUN"]

_OF_TOPOLOGY = (
    *(variable for variable in vars(topology).values() if isinstance(variable, Rule)),
    placement.domains_too_small,
)

RULES_OF_RUN: tuple[Rule, ...] = (flavors.unmatched_labels, *sorted(_OF_TOPOLOGY, key=lambda entry: entry.code))
"""They explain why pods cannot be placed."""
