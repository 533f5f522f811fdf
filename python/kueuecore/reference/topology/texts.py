"""Kueue's messages about pods without a place (rules/08 §10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kueuecore.reference.topology.capacity import FlavorNodes
from kueuecore.reference.topology.domains import Domain
from kueuecore.reference.topology.request import Constraint


def conflict(pod_set: str, part: str, key: str, ours: str, theirs: str) -> str:
    """Report that a check sets a label, annotation or selector that differs from that of the pods."""
    what = f"invalid admission check PodSetUpdate: conflict for {part}: conflict for key={key}"
    return f"invalid podSetUpdate for PodSet {pod_set}, error: {what}, value1={ours}, value2={theirs}"


def no_fit(topology: str, shown: int, needed: int, slice_size: int) -> str:
    """Report how many fit, out of how many."""
    unit = "pod" if slice_size == 1 else "slice"
    if shown == 0:
        return f'topology "{topology}" doesn\'t allow to fit any of {needed} {unit}(s)'
    return f'topology "{topology}" allows to fit only {shown} out of {needed} {unit}(s)'


def no_layers(
    nodes: FlavorNodes, domains: Sequence[Domain], depth: int, count: int, constraints: Iterable[Constraint]
) -> str:
    """Report what fits of each layer of slices, in the domain that takes most."""

    def name(domain: Domain) -> str:
        return domain.path[-1] if nodes.is_by_host and depth == len(nodes.levels) - 1 else ",".join(domain.path)

    best = min(domains, key=lambda domain: (-domain.slices, name(domain)))
    text = f'topology "{nodes.topology}" doesn\'t allow to fit'
    for constraint in constraints:
        target = nodes.levels.index(constraint.level) + 1
        fitting = sum(each.pods // constraint.size for each in best.tree() if len(each.path) == target)
        text += f"; {fitting}/{count // constraint.size} slice(s) fit on level {constraint.level}"
    return text
