"""Dominant resource shares: how much of what can be lent a node borrows (rules/02 §6)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kueuecore.reference import amount
from kueuecore.reference.forest import Node
from kueuecore.reference.objects import Amounts, FlavorResource
from kueuecore.reference.quota import Usage


@dataclass(frozen=True)
class Share:
    """The share of a node.

    Args:
        ratio: 1000 times the borrowed part of what is lendable, for the resource where it is largest.
        weight: Weight of the node.
        resource: That resource.
        borrowed: The flavors and resources in which the node exceeds its own quota.
    """

    ratio: float
    weight: float
    resource: str = ""
    borrowed: frozenset[FlavorResource] = frozenset()

    @property
    def weighted(self) -> float:
        """The share divided by the weight (rules/02 §6)."""
        if self.ratio == 0:
            return 0.0
        return math.inf if self.weight == 0 else self.ratio / self.weight

    @property
    def order(self) -> tuple[bool, float]:
        """The sort key of shares; a borrower with weight 0 is above all others (rules/02 §6)."""
        is_above = self.weight == 0 and self.ratio != 0
        return is_above, self.ratio if is_above else self.weighted

    def is_borrowing_on(self, requests: Amounts) -> bool:
        """Return whether it exceeds its own quota in something that is requested (rules/02 §6)."""
        return any(requested > 0 and fr in self.borrowed for fr, requested in requests.items())


def share(usage: Usage, node: Node, extra: Amounts | None = None) -> Share:
    """Return the dominant resource share of a node below a Cohort, if it used something extra (rules/02 §6)."""
    over: dict[str, int] = {}
    borrowed = []
    for fr, quota in node.subtree.items() if node.parent is not None else ():
        above = amount.subtract(amount.add((extra or {}).get(fr, 0), usage.at(node, fr)), quota)
        if above > 0:
            borrowed.append(fr)
            over[fr[1]] = amount.add(over.get(fr[1], 0), above)
    lendable = node.parent.lendable if node.parent is not None else {}
    ratios = {
        name: float(over[name]) * 1000.0 / float(lendable[name]) for name in sorted(over) if lendable.get(name, 0) > 0
    }
    dominant = max(ratios, key=lambda name: ratios[name], default="")
    return Share(ratios.get(dominant, 0.0), node.weight, dominant, frozenset(borrowed))
