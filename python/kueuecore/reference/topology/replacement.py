"""Replaces one failed node of an assignment (rules/08 §13.5, §13.6)."""

from __future__ import annotations

import dataclasses

from kueuecore.reference.topology.assignment import TopologyAssignment, domain_id
from kueuecore.reference.topology.capacity import FlavorNodes
from kueuecore.reference.topology.domains import Ask, Search
from kueuecore.reference.topology.placement import NoPlaceError, place
from kueuecore.reference.topology.slice_order import has_whole_slices, pods_above, tail_last

# The name of no domain: nothing is within it.
_NOWHERE = ","


def replaced(
    search: Search, ask: Ask, old: TopologyAssignment, node: str
) -> tuple[TopologyAssignment, TopologyAssignment]:
    """Place the pods of a node somewhere else.

    Args:
        search: The input of the placement; the workload's usage there counts.
        ask: The pod set.
        old: Where its pods are placed.
        node: The node that failed.

    Raises:
        NoPlaceError: There is no place, or another domain of the assignment no longer has a node.

    Returns:
        The new assignment, and its new part.
    """
    rest, count = old.without(node)
    ask = dataclasses.replace(ask, count=count)
    stale = search.nodes.stale(rest)
    if stale is not None:
        why = "because the existing topologyAssignment is invalid, as it contains the stale domain"
        raise NoPlaceError(f"Cannot replace the node, {why} {stale}")
    within = _required_domain(search.nodes, ask, rest)
    if ask.request.slice_size <= 0:
        raise NoPlaceError("slice topology requested, but slice size not provided")
    looked_for = ask
    if within not in ("", _NOWHERE) and ask.request.constraints and count % ask.request.slice_size:
        # The innermost layer that is filled decides what completes a slice.
        whole = [each for each in reversed(ask.request.constraints) if count % each.size == 0][:1]
        looked_for = dataclasses.replace(ask, request=dataclasses.replace(ask.request, constraints=tuple(whole)))
    made = place(dataclasses.replace(search, within=within), looked_for)[ask.name]
    if not made.domains:
        raise NoPlaceError(f"cannot find replacement assignment for unhealthy node: {node}")
    merged, slices = made.merged(rest, search.nodes.path), ask.request.constraints[:1]
    for outermost in slices if search.settings.on("TASPartialSlices") and ask.request.slice_size > 1 else ():
        if outermost.level in search.nodes.levels:
            depth = search.nodes.levels.index(outermost.level)
            merged = tail_last(search.nodes, merged, depth, outermost.size)
            if not has_whole_slices(search.nodes, merged, depth, outermost.size):
                raise NoPlaceError(f"cannot replace the node {node} without splitting a PodSet slice")
    return merged, made


def _required_domain(nodes: FlavorNodes, ask: Ask, rest: TopologyAssignment) -> str:
    """Return R: the domain in which the pods must stay; empty if they may go anywhere (rules/08 §13.5)."""
    request, levels = ask.request, nodes.levels
    key = request.level(levels, is_implied=ask.is_implied)
    if key not in levels or not rest.domains or request.slice_size <= 0:
        return ""
    if request.constraints and ask.count % request.slice_size:
        broken = [each for each in reversed(request.constraints) if ask.count % each.size]
        constraint = broken[0] if len(request.constraints) > 1 else request.constraints[0]
        if constraint.level not in levels:
            return ""
        found = _incomplete(nodes, rest, levels.index(constraint.level), ask.count, constraint.size)
        return found or (_NOWHERE if nodes.settings.has("LostDomainStopsReplacement") else "")
    if request.required is None:
        return ""
    return _name(nodes, nodes.path(rest.domains[0][0])[: levels.index(key) + 1])


def _name(nodes: FlavorNodes, path: tuple[str, ...]) -> str:
    """Return a name as Kueue does: hostnames are looked up among full paths, so below other levels it finds nothing."""
    return path[-1] if nodes.is_by_host and len(path) == len(nodes.levels) else domain_id(path)


def _incomplete(nodes: FlavorNodes, rest: TopologyAssignment, depth: int, missing: int, size: int) -> str:
    """Return the domain in which the missing pods complete slices, in the last one maybe the shorter slice."""
    counts = pods_above(nodes, rest, depth)
    if not nodes.settings.on("TASPartialSlices"):
        # The first by name, as Kueue leaves it open.
        whole = sorted(path for path, count in counts.items() if (count + missing) % size == 0)
        return _name(nodes, whole[0]) if whole else ""
    tail = (sum(counts.values()) + missing) % size
    for index, (path, count) in enumerate(counts.items(), 1):
        if (count + missing) % size == (tail if index == len(counts) else 0):
            return _name(nodes, path)
    return ""
