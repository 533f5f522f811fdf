"""Where the pods of a pod set are placed (rules/08 §13.5, §14)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Values = tuple[str, ...]
"""Label values of a domain, as an assignment names it: all levels, or only the hostname (rules/08 §8 4)."""
Requests = Mapping[str, int]
"""The requests of one pod."""


@dataclass(frozen=True)
class TopologyAssignment:
    """The number of pods in each domain."""

    levels: tuple[str, ...]
    domains: tuple[tuple[Values, int], ...]

    @property
    def n_pods(self) -> int:
        """The number of all pods."""
        return sum(count for _, count in self.domains)

    def stands_on(self, nodes: set[str]) -> bool:
        """Return whether any of its lowest values is one of these nodes."""
        return any(values[-1] in nodes for values, _ in self.domains)

    def without(self, node: str) -> tuple[TopologyAssignment, int]:
        """Return the rest without a node, and how many pods were on it (rules/08 §13.5)."""
        kept = tuple((values, count) for values, count in self.domains if values[-1] != node)
        gone = [count for values, count in self.domains if values[-1] == node]
        return TopologyAssignment(self.levels, kept), gone[-1] if gone else 0

    def merged(self, other: TopologyAssignment, path: Callable[[Values], Values]) -> TopologyAssignment:
        """Merge two assignments into one entry for each domain, ordered by path (rules/08 §13.5)."""
        counts: dict[Values, int] = {}
        for values, count in (*self.domains, *other.domains):
            counts[values] = counts.get(values, 0) + count
        return TopologyAssignment(self.levels, tuple((v, counts[v]) for v in sorted(counts, key=path)))

    def cut(self, n_pods: int) -> TopologyAssignment:
        """Keep only the first of its pods (rules/08 §14)."""
        kept: list[tuple[Values, int]] = []
        for values, count in self.domains:
            if n_pods <= 0:
                break
            kept.append((values, min(count, n_pods)))
            n_pods -= count
        return TopologyAssignment(self.levels, tuple(kept))


@dataclass
class Assumed:
    """What earlier pod sets of a workload take (rules/08 §11.3).

    Args:
        named: By the domain that their assignments name.
        nodes: By node, if assignments name domains above the nodes.
    """

    named: dict[str, dict[str, int]] = field(default_factory=dict)
    nodes: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """Where pods are placed.

    Args:
        assignment: The assignment.
        nodes: If it names domains above the nodes, the number of pods on each node.
    """

    assignment: TopologyAssignment
    nodes: Mapping[str, int] = field(default_factory=dict)


def domain_id(values: Values) -> str:
    """Return the key under which usage is counted (rules/08 §4.2, §4.5)."""
    return ",".join(values)
