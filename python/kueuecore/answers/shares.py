"""Which shares fair sharing compared for a workload, and where it chose between equals, in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

__all__ = ["Contender", "ShareComparison", "ShareTie", "TreeNode", "why_by_share"]

# In the words of the rules: at most the share that the other side is left with, below the one that it has.
_TESTS = {
    "LessThanOrEqualToFinalShare": {-1: "is below", 0: "is equal to", 1: "is above"},
    "LessThanInitialShare": {-1: "is below", 0: "is equal to, not below,", 1: "is above"},
}


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node of a cohort tree.

    Args:
        kind: `ClusterQueue` or `Cohort`.
        name: Its name.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One of the two nodes whose shares are compared, in thousandths as in `status.fairSharing.weightedShare`.

    A share is infinite for a node of weight 0 that borrows; `unweighted` then tells two of them apart.

    Args:
        node: The node: a child of the lowest cohort above both workloads.
        now: Its share now, after earlier victims.
        then: Its share with the preemptor, or without the victim.
        unweighted_now: `now` before it is divided by the weight.
        unweighted_then: `then` before it is divided by the weight.
    """

    node: TreeNode
    now: float
    then: float
    unweighted_now: float
    unweighted_then: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareComparison:
    """A comparison of shares for a candidate (rules/04 §5.4).

    Args:
        strategy: The strategy of `fairSharing.preemptionStrategies` that made it.
        ours: The preemptor's side.
        theirs: The candidate's side.
        order: -1, 0 or 1: whether our share with the preemptor is below, equal to or above the one that the strategy
            compares it with.
        passes: Whether the candidate may be taken.
    """

    strategy: str
    ours: Contender
    theirs: Contender
    order: int
    passes: bool

    def __str__(self) -> str:
        is_final = self.strategy == "LessThanOrEqualToFinalShare"
        against = self.theirs.then if is_final else self.theirs.now
        unweighted = self.theirs.unweighted_then if is_final else self.theirs.unweighted_now
        ours, theirs = _texts(self.ours.then, against)
        if self.ours.then == against == inf:
            ours, theirs = _texts(self.ours.unweighted_then, unweighted)
            return f"of two infinite shares {ours} {_TESTS[self.strategy][self.order]} {theirs} ({self.strategy})"
        return f"{ours} {_TESTS[self.strategy][self.order]} {theirs} ({self.strategy})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareTie:
    """A choice between cohorts of equal shares, which Kueue makes at random (rules/04 §5.3).

    Args:
        node: The cohort that was chosen: the last one by name.
        equals: The others, by name.
    """

    node: TreeNode
    equals: tuple[TreeNode, ...]

    def __str__(self) -> str:
        others = " and ".join(map(str, self.equals))
        return f"the shares of {others} and {self.node} are equal: Kueue takes one at random, here the last by name"


def why_by_share(comparisons: tuple[ShareComparison, ...], ties: tuple[ShareTie, ...] = ()) -> str:
    """Say which nodes were compared, their shares before and after, and what came of it; empty if none were.

    Args:
        comparisons: The comparisons for one workload, the last one decided.
        ties: The choices between equals that led to it.
    """
    parts = []
    if comparisons:
        ours, theirs = comparisons[-1].ours, comparisons[-1].theirs
        now, then = _texts(ours.now, ours.then)
        parts.append(f"{ours.node} has a share of {now} and would have {then} with the preemptor")
        now, then = _texts(theirs.now, theirs.then)
        parts[-1] += f", {theirs.node} has {now} and would have {then} without this workload"
        parts.append("; ".join(map(str, comparisons)))
    sentence = ": ".join(parts)
    return "; ".join(filter(None, [sentence, *map(str, ties)]))


def _texts(*shares: float) -> list[str]:
    """Shares as people read them: with as many decimals as it takes to tell them apart."""
    for n_decimals in (0, 1, 3, 6, 9):
        texts = [f"{share:.{n_decimals}f}" if share != inf else "infinite (weight 0)" for share in shares]
        is_exact = n_decimals > 0 or all(share == inf or share.is_integer() for share in shares)
        if is_exact and len(set(texts)) == len(set(shares)):
            break
    return [text.rstrip("0").rstrip(".") if "." in text else text for text in texts]
