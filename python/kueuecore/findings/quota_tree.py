"""ClusterQueues and cohorts as a tree of quotas: parents, members, and who could lend to whom (rules/02 §2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from kueuecore._quantities import number
from kueuecore.findings.manifest_fields import parent_of
from kueuecore.manifests import Manifest
from kueuecore.states import QuotaRow

__all__ = ["Amount", "Node", "QuotaTree", "Quotas", "plain"]

Amount: TypeAlias = Fraction | float
"""A whole number of units, or `math.inf`."""


class Node(NamedTuple):
    """A ClusterQueue or Cohort, by kind and name."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quota of a node for one resource in one flavor; `None` where there is no limit.

    Args:
        nominal: `nominalQuota`.
        total: The quota of its subtree, without what nodes below do not lend.
        potential: How much could be used here if nothing else ran.
        borrowing_limit: `borrowingLimit`.
        lending_limit: `lendingLimit`.
    """

    nominal: Amount
    total: Amount
    potential: Amount
    borrowing_limit: Amount | None
    lending_limit: Amount | None


class QuotaTree:
    """The quotas of all nodes, as totalled by the engine.

    Args:
        rows: The engine's quota rows.
        cohorts: Cohort objects, by name.
        cluster_queues: ClusterQueues, by name.
    """

    def __init__(
        self, rows: Iterable[QuotaRow], cohorts: Mapping[str, Manifest], cluster_queues: Mapping[str, Manifest]
    ) -> None:
        self.quotas: dict[Node, dict[tuple[str, str], Quotas]] = {}
        for row in rows:
            self.quotas.setdefault(Node(row.kind, row.name), {})[row.flavor, row.resource] = _quotas(row)
        self.parents: dict[Node, Node] = {}
        for kind, objects in (("Cohort", cohorts), ("ClusterQueue", cluster_queues)):
            for name, manifest in objects.items():
                if parent := parent_of(manifest):
                    self.parents[Node(kind, name)] = Node("Cohort", parent)
        self.cycles = self._cycles()
        self.members: dict[Node, list[Node]] = {}
        """The ClusterQueues of each cohort tree, by its root; without those below a cycle."""
        for name in cluster_queues:
            node = Node("ClusterQueue", name)
            if node in self.parents and (path := self.path(node)):
                self.members.setdefault(path[-1], []).append(node)
        self.with_quota: set[Node] = set()
        """The roots of trees in which a Cohort has quota of its own."""
        for name in cohorts:
            node = Node("Cohort", name)
            if any(quota.nominal for quota in self.quotas.get(node, {}).values()) and (path := self.path(node)):
                self.with_quota.add(path[-1])

    def path(self, node: Node) -> tuple[Node, ...]:
        """The path from a node up to its root; empty if there is a cycle."""
        found = [node]
        while (parent := self.parents.get(found[-1])) is not None:
            if parent in found:
                return ()
            found.append(parent)
        return tuple(found)

    def _cycles(self) -> tuple[tuple[Node, ...], ...]:
        """The cycles of cohorts, each starting at its first cohort."""
        found: list[tuple[Node, ...]] = []
        in_circle: set[Node] = set()
        for start in self.parents:
            path = [start]
            while (parent := self.parents.get(path[-1])) is not None and parent not in path:
                path.append(parent)
            if parent == start and start not in in_circle:
                found.append(tuple(path))
                in_circle.update(path)
        return tuple(found)

    def quotas_of(self, node: Node, flavor: str, resource: str) -> Quotas:
        """The quota of a node; zero if it does not list the flavor and resource."""
        return self.quotas.get(node, {}).get((flavor, resource), _NONE)

    def borrowers(self, lender: Node, flavor: str, resource: str) -> Iterator[Node]:
        """ClusterQueues elsewhere in the tree that list the resource and can borrow what a node lends."""
        up = self.path(lender)
        for node in self.members.get(up[-1], ()) if up else ():
            path = self.path(node)
            if lender in path or (flavor, resource) not in self.quotas.get(node, {}):
                continue
            meeting = next(node for node in path if node in up)
            borrowing = (self.quotas_of(node, flavor, resource) for node in path[: path.index(meeting)])
            lending = (self.quotas_of(node, flavor, resource) for node in up[: up.index(meeting)])
            if all(quota.borrowing_limit != 0 for quota in borrowing) and all(
                quota.lending_limit != 0 for quota in lending
            ):
                yield node


def plain(amount: Amount, resource: str) -> str:
    """Format an amount; cpu in thousandths if it is not a whole number.

    Example:
        >>> plain(Fraction(3, 2), "cpu"), plain(Fraction(4), "cpu"), plain(math.inf, "memory")
        ('1500m', '4', 'without limit')
        >>> plain(Fraction(2**31), "memory")
        '2Gi'
    """
    if isinstance(amount, float):
        return "without limit"
    if amount.denominator != 1:
        return f"{math.ceil(amount * 1000)}m"
    whole = int(amount)
    if resource == "cpu" or "memory" not in resource:
        return str(whole)
    for suffix, unit in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if whole and whole % unit == 0:
            return f"{whole // unit}{suffix}"
    return str(whole)


def _quotas(row: QuotaRow) -> Quotas:
    return Quotas(
        _amount(row.nominal),
        _amount(row.subtree_quota),
        _amount(row.potential_available),
        None if row.borrowing_limit is None else _amount(row.borrowing_limit),
        None if row.lending_limit is None else _amount(row.lending_limit),
    )


def _amount(quantity: str | None) -> Amount:
    found = None if quantity is None else number(quantity)
    return math.inf if found is None else found


_NONE = Quotas(Fraction(0), Fraction(0), Fraction(0), None, None)
