"""The order of an assignment in whole slices; pods get their ranks in it, so the shorter one is last (rules/08 §8)."""

from __future__ import annotations

from kueuecore.reference.topology.assignment import TopologyAssignment
from kueuecore.reference.topology.capacity import FlavorNodes


def pods_above(nodes: FlavorNodes, assignment: TopologyAssignment, depth: int) -> dict[tuple[str, ...], int]:
    """Return the number of pods in each domain of a level, in the order of the assignment."""
    counts: dict[tuple[str, ...], int] = {}
    for values, count in assignment.domains:
        path = nodes.path(values)[: depth + 1]
        counts[path] = counts.get(path, 0) + count
    return counts


def tail_last(nodes: FlavorNodes, assignment: TopologyAssignment, depth: int, size: int) -> TopologyAssignment:
    """Move the domains of the shorter slice to the end."""
    tail = assignment.n_pods % size
    holders = [path for path, count in pods_above(nodes, assignment, depth).items() if count % size == tail]
    if tail == 0 or not holders:
        return assignment
    ordered = sorted(assignment.domains, key=lambda domain: nodes.path(domain[0])[: depth + 1] == holders[0])
    return TopologyAssignment(assignment.levels, tuple(ordered))


def has_whole_slices(nodes: FlavorNodes, assignment: TopologyAssignment, depth: int, size: int) -> bool:
    """Return whether each domain has whole slices, apart from the last."""
    counts = list(pods_above(nodes, assignment, depth).values())
    return all(count % size == 0 for count in counts[:-1])
