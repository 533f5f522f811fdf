"""The tree of cohorts as nested lists, with quotas, limits and usage."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kueuecore.report.facts import Facts, amount, unit_of

__all__ = ["TreeNode", "cohort_tree"]


@dataclass
class TreeNode:
    """A cohort or ClusterQueue with its children.

    Args:
        kind: `Cohort` or `ClusterQueue`.
        name: Its name.
        says: Its quotas, with the average usage of each.
        below: Its children, by name.
    """

    kind: str
    name: str
    says: list[str] = field(default_factory=list)
    below: list[TreeNode] = field(default_factory=list)


def cohort_tree(facts: Facts) -> list[TreeNode]:
    """Return the roots of the tree at the end of the run: cohorts, then ClusterQueues without one."""
    used = _mean_usage(facts)
    nodes: dict[tuple[str, str], TreeNode] = {}
    parents: dict[tuple[str, str], str | None] = {}
    for row in facts.run.engine.quota():
        key = (row.kind, row.name)
        node = nodes.setdefault(key, TreeNode(row.kind, row.name))
        parents[key] = row.parent
        mean = used.get((row.name, row.flavor, row.resource))
        quota = "no limit" if row.nominal is None else row.nominal
        limits = [
            f"{word} {value}"
            for word, value in (("borrows up to", row.borrowing_limit), ("lends up to", row.lending_limit))
            if value is not None
        ]
        reported = f"{row.flavor}/{row.resource}: quota {quota}"
        if row.kind == "ClusterQueue" and mean is not None:
            unit, suffix = unit_of(row.resource)
            reported += f", {amount(mean / unit)}{suffix} used on average"
        node.says.append(", ".join([reported, *limits]))
    roots = []
    for key in sorted(nodes):
        parent = parents[key]
        if parent is None:
            roots.append(nodes[key])
        else:
            nodes.setdefault(("Cohort", parent), TreeNode("Cohort", parent)).below.append(nodes[key])
    # A cohort that exists only as a parent has no row of its own.
    named = {id(root) for root in roots}
    lost = [node for key, node in nodes.items() if key not in parents and id(node) not in named]
    return sorted([*roots, *lost], key=lambda root: (root.kind != "Cohort", root.name))


def _mean_usage(facts: Facts) -> dict[tuple[str, str, str], float]:
    """Return the average usage over time by ClusterQueue, flavor and resource."""
    names, pairs = facts.table["cluster_queue"].words or (), facts.pairs
    cells = facts.table["cluster_queue"].values * max(len(pairs), 1) + facts.table["flavor"].values
    distinct, place = np.unique(cells, return_inverse=True)
    means = np.bincount(place, facts.numbers("usage")) / np.maximum(np.bincount(place), 1)
    found = {}
    for cell, mean in zip(distinct.tolist(), means.tolist(), strict=True):
        queue, pair = divmod(cell, len(pairs))
        found[names[queue], *pairs[pair]] = mean
    return found
