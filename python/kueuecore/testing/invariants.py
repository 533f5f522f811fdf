"""Checks what must hold in every state of an engine, whatever was decided before (docs/invariants.md)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil

from kueuecore._quantities import number
from kueuecore.engine import Engine
from kueuecore.states import QuotaRow
from kueuecore.testing.engine_view import EngineView, holds_quota, is_evicted

__all__ = ["Cell", "Tree", "amount", "check_invariants", "check_seen"]


Cell = tuple[str, str, str]
"""Name of a ClusterQueue or Cohort, flavor, resource."""


@cache
def amount(quantity: str) -> int:
    """Return a quantity in thousandths, the smallest unit of quota; anything smaller is rounded up.

    Example:
        >>> amount("1500m"), amount("2Ki"), amount("1e3")
        (1500, 2048000, 1000000)
    """
    units = number(quantity)
    if units is None:
        raise ValueError(f"{quantity!r} is not a quantity")
    return ceil(units * 1000)


@dataclass(frozen=True, slots=True)
class Tree:
    """Quota and usage of an engine as exact numbers, with the parent of each node.

    Args:
        rows: The rows of `Engine.quota`, by kind and cell.
        exact: Flavors and resources in which no amount is large enough to saturate (rules/02 §1). Only their sums are
            checked.
        lost: All other flavors and resources.
    """

    rows: Mapping[tuple[str, Cell], QuotaRow]
    exact: frozenset[tuple[str, str]]
    lost: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, seen: EngineView, lost: frozenset[tuple[str, str]] = frozenset()) -> Tree:
        """Return the quota tree of an engine; sums in flavors and resources that are `lost` have saturated before."""
        rows = {(row.kind, (row.name, row.flavor, row.resource)): row for row in seen.quota}
        columns = {(row.flavor, row.resource) for row in seen.quota}
        saturated = {(row.flavor, row.resource) for row in seen.quota if _may_saturate(row)}
        return cls(rows, frozenset(columns - saturated - lost), frozenset(saturated | lost))

    def exact_rows(self) -> dict[tuple[str, Cell], QuotaRow]:
        """Return the rows whose amounts are exact."""
        return {key: row for key, row in self.rows.items() if (row.flavor, row.resource) in self.exact}


def check_invariants(engine: Engine) -> None:
    """Check what must hold in every state, between any two calls.

    Args:
        engine: The engine; it is only read.

    Raises:
        AssertionError: An invariant does not hold, which is a bug of kueuecore.

    Example:
        >>> check_invariants(Engine())
    """
    seen = EngineView(engine)
    check_seen(seen, Tree.of(seen), is_ordered="admissionFairSharing" not in engine.configuration.to_dict())


def check_seen(seen: EngineView, tree: Tree, *, is_ordered: bool) -> None:
    """Check the invariants on an existing snapshot.

    Args:
        seen: The snapshot of the engine.
        tree: Its quota.
        is_ordered: Whether queues are ordered by priority first, not by usage (admission fair sharing).
    """
    _check_usage_of_cluster_queues(seen, tree)
    _check_cohorts(tree)
    _check_places(seen)
    if is_ordered:
        _check_order(seen)


def local_quota(row: QuotaRow) -> int:
    """Return what a node keeps for itself: its subtree quota beyond its lending limit (rules/02 §2)."""
    if row.lending_limit is None:
        return 0
    return max(0, known(row.subtree_quota) - amount(row.lending_limit))


def known(quantity: str | None) -> int:
    """Return a quantity that is not unlimited as a number."""
    assert quantity is not None
    return amount(quantity)


def _may_saturate(row: QuotaRow) -> bool:
    # A quarter of the 64-bit range leaves room for the sums of small worlds; cpu is held in thousandths.
    bound = 2**61 * (1 if row.resource == "cpu" else 1000)
    for quantity in (row.nominal, row.subtree_quota, row.usage, row.potential_available, row.available):
        if quantity is None or abs(amount(quantity)) >= bound:
            return True
    limits = (row.lending_limit, row.borrowing_limit)
    return any(quantity is not None and amount(quantity) >= bound for quantity in limits)


def _check_usage_of_cluster_queues(seen: EngineView, tree: Tree) -> None:
    """Check that the usage of a ClusterQueue is the sum of its reservations, without pods that are done."""
    least: dict[Cell, int] = defaultdict(int)
    most: dict[Cell, int] = defaultdict(int)
    for workload in seen.workloads:
        if not holds_quota(workload):
            continue
        done = {pod["name"]: pod["count"] for pod in workload.status.get("reclaimablePods", ())}
        # A workload whose job must stop may be deactivated, too, and then no longer counts.
        may_be_out = is_evicted(workload)
        admission = workload.status["admission"]
        for pod_set in admission["podSetAssignments"]:
            count = pod_set.get("count", 0)
            # With partial admission, pods that never started may be among those that count as done.
            n_left = max(0, count - done.get(pod_set["name"], 0))
            for resource, flavor in pod_set.get("flavors", {}).items():
                cell = (admission["clusterQueue"], flavor, resource)
                reserved = amount(pod_set["resourceUsage"][resource])
                if not may_be_out:
                    least[cell] += reserved * n_left // count if count else reserved
                most[cell] += reserved
    there = seen.orders.keys()
    found = {cell: known(row.usage) for (kind, cell), row in tree.exact_rows().items() if kind == "ClusterQueue"}
    for cell in sorted({*found, *(cell for cell in most if cell[0] in there and cell[1:] in tree.exact)}):
        used = found.get(cell, 0)
        assert least[cell] <= used <= most[cell], (
            f"usage of {cell} is {used}; {least[cell]} to {most[cell]} is reserved"
        )


def _check_cohorts(tree: Tree) -> None:
    """Check that subtree quota is own plus lent quota, and a cohort's usage what its children use beyond their own."""
    # Below a cycle of cohorts nothing is recomputed (rules/02 §4 5).
    rows = {key: row for key, row in tree.exact_rows().items() if _has_root(tree, row)}
    below: dict[Cell, int] = defaultdict(int)
    lent: dict[Cell, int] = defaultdict(int)
    for row in rows.values():
        if row.parent is not None:
            local = local_quota(row)
            below[row.parent, row.flavor, row.resource] += max(0, amount(row.usage) - local)
            lent[row.parent, row.flavor, row.resource] += known(row.subtree_quota) - local
    for (kind, cell), row in rows.items():
        quota, used = known(row.nominal), amount(row.usage)
        if kind == "Cohort":
            quota += lent[cell]
            assert used == below[cell], f"usage of cohort {cell} is {used}, its children take {below[cell]}"
        assert known(row.subtree_quota) == quota, f"subtree quota of {kind} {cell} is {row.subtree_quota}, not {quota}"
        over = max(0, used - quota) if row.parent is not None else 0
        assert amount(row.borrowed) == over, f"{kind} {cell} borrows {row.borrowed}, not {over}"


def _has_root(tree: Tree, row: QuotaRow) -> bool:
    """Return whether the cohorts above a node end in a root, and have all been computed: there is no cycle."""
    above: set[str] = set()
    found: QuotaRow | None = row
    while found is not None and found.parent is not None and found.parent not in above:
        above.add(found.parent)
        found = tree.rows.get(("Cohort", (found.parent, row.flavor, row.resource)))
    return found is not None and found.parent is None


def _check_places(seen: EngineView) -> None:
    """Check that a workload waits in one queue, once, only without quota, and that statuses count it accordingly."""
    states = seen.states
    waiting = [(name, row.key, row.place) for name, order in seen.orders.items() for row in order]
    keys = {key for _, key, _ in waiting}
    assert len(keys) == len(waiting), f"a workload waits twice: {sorted(key for _, key, _ in waiting)}"
    for name, key, place in waiting:
        state = states[key]
        assert state.stage == "Pending", f"{key} waits, but is {state.stage}"
        assert (state.cluster_queue, state.place) == (name, place), f"{key} waits in {name}, {place}: {state}"
    queued = {key for key, state in states.items() if state.place is not None}
    assert queued <= keys, f"queued, but in no ClusterQueue: {sorted(queued - keys)}"
    held = [workload for workload in seen.workloads if holds_quota(workload)]
    reserving = Counter(workload.status["admission"]["clusterQueue"] for workload in held)
    admitted = Counter(
        workload.status["admission"]["clusterQueue"] for workload in held if workload.stage == "Admitted"
    )
    stopping = Counter(workload.status["admission"]["clusterQueue"] for workload in held if is_evicted(workload))
    for name, status in seen.cluster_queues.items():
        counted = (status.pending_workloads, status.reserving_workloads, status.admitted_workloads)
        expected = (len(seen.orders[name]), reserving[name], admitted[name])
        least = (expected[0], *(max(0, n - stopping[name]) for n in expected[1:]))
        fits = all(low <= n <= high for low, n, high in zip(least, counted, expected, strict=True))
        assert fits, f"ClusterQueue {name} counts {counted}, there are {expected}"


def _check_order(seen: EngineView) -> None:
    """Check that higher priorities come first, except for a workload that has preempted and waits for the room."""
    for name, order in seen.orders.items():
        priorities = [row.priority for row in order]
        rest = priorities[1:]
        assert rest == sorted(rest, reverse=True), f"ClusterQueue {name} has its queue in the order {priorities}"
