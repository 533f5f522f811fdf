"""Dominant resource shares: who borrows how much of what there is (rules/02 §6)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kueuecore.reference import amount
from kueuecore.reference.forest import Node
from kueuecore.reference.objects import FlavorResource
from kueuecore.reference.quota import Usage

__all__ = ["LEAST_SHARE", "Share", "compare", "share"]


@dataclass(frozen=True)
class Share:
    """The share of a node.

    Args:
        ratio: 1000 times the borrowed part of what is lendable, of the resource with the most.
        weight: Weight of the node.
        resource: That resource.
        borrowed: The flavors and resources in which the node is over its own quota.
    """

    ratio: float
    weight: float
    resource: str = ""
    borrowed: frozenset[FlavorResource] = frozenset()

    @property
    def weighted(self) -> float:
        """The share by weight (rules/02 §6)."""
        if self.ratio == 0:
            return 0.0
        return math.inf if self.weight == 0 else self.ratio / self.weight

    @property
    def is_borrowing(self) -> bool:
        """Is it over its own quota in anything?"""
        return bool(self.borrowed)

    def is_borrowing_on(self, requests: Mapping[FlavorResource, int]) -> bool:
        """Is it over its own quota in something that is requested? (rules/02 §6)."""
        return any(requested > 0 and fr in self.borrowed for fr, requested in requests.items())


LEAST_SHARE = Share(-1.0, 1.0)
"""Less than every share (rules/02 §6)."""


def compare(a: Share, b: Share) -> int:
    """-1, 0 or 1; a borrower without weight is above all others (rules/02 §6)."""
    zeros = tuple(s.weight == 0 and s.ratio != 0 for s in (a, b))
    if zeros[0] != zeros[1]:
        return 1 if zeros[0] else -1
    left, right = (a.ratio, b.ratio) if zeros[0] else (a.weighted, b.weighted)
    return (left > right) - (left < right)


def share(usage: Usage, node: Node, extra: Mapping[FlavorResource, int] | None = None) -> Share:
    """The dominant resource share of a node below a Cohort (rules/02 §6)."""
    if node.parent is None:
        return Share(0.0, node.weight)
    over: dict[str, int] = {}
    borrowed = []
    for fr, quota in node.subtree.items():
        above = amount.subtract(amount.add((extra or {}).get(fr, 0), usage.at(node, fr)), quota)
        if above > 0:
            borrowed.append(fr)
            over[fr[1]] = amount.add(over.get(fr[1], 0), above)
    if not borrowed:
        return Share(0.0, node.weight)
    lendable = node.parent.lendable
    ratios = {
        resource: float(over[resource]) * 1000.0 / float(lendable[resource])
        for resource in sorted(over)
        if lendable.get(resource, 0) > 0
    }
    dominant = max(ratios, key=lambda resource: ratios[resource], default="")
    return Share(ratios.get(dominant, 0.0), node.weight, dominant, frozenset(borrowed))
