"""What the states of the kernels are, for the page: a line for each group of rows."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill

__all__ = ["SHAPES", "group_of", "shapes_of"]

SHAPES = {
    "Cycle": "one cycle with 1,000 heads in 10 cohorts of 100 ClusterQueues: all fit, all borrow, or none fits. With "
    "`shapes=1000` all requests differ",
    "Cycle/5levels": "one cycle in a tree of five levels: a root that lends, four cohorts below each cohort, and "
    "ClusterQueues with a head each below the last ones. All 1,000 fit, or all borrow",
    "Cycle/fair-5levels": "one cycle with fair sharing in such a tree: a root, three levels of cohorts, and "
    "ClusterQueues with a head each",
    "Cycle/preempt": "one cycle in one cohort. Each head is within the quota of its ClusterQueue, which others have "
    "borrowed, and preempts 40 of their workloads. All heads would choose the same, so all but the first are "
    "assigned again",
    "Cycle/topology/preempt": "one cycle on full nodes in eight groups, with 30 resources each. One head of 200 pods "
    "of half a node wants one of the groups, and preempts 100 of the workloads there",
    "Assign": "one flavor assignment in a cohort of 100 ClusterQueues: the first flavor fits, the last one, or none. "
    "With `cold` 96 MiB of other memory are read before each call; the time includes reading the clock, half a "
    "microsecond",
    "Preempt/classical": "one search for victims. Ten ClusterQueues without quota have borrowed all of the preemptor's",
    "Preempt/hierarchical3": "the same with eighty borrowers in a tree of three levels of cohorts",
    "Preempt/fair": "one search with fair sharing. A hundred ClusterQueues have borrowed a little each",
    "Preempt/none-suffices": "one search in vain: all 10,000 candidates together are not enough because workloads "
    "of a higher priority hold the rest. `flat` is one cohort with ten borrowers, `three-levels` a tree with eighty",
    "Preempt/flavors": "one flavor assignment that looks for victims in each of eight flavors, and the victims for it. "
    "Ten ClusterQueues without quota have borrowed all of the preemptor's in all flavors",
    "Place": "one placement of 64 pods on nodes that others have begun to fill, 25 to a rack and 10 racks to a block. "
    "With `leader` one pod more leads them; `slices` are of 16 pods in a rack, `three-layers` of 32 in a block, 8 in a "
    "rack and 2 on a host; `balanced` is `preferred` with TASBalancedPlacement; `first` is `required` on nodes that "
    "such pods have not tried before",
    "Nodes": "a Node is applied unchanged (`heartbeat`) or no longer ready (`failure`), with the consequences for the "
    "workload on it; each of 10,000 nodes has one, with two pods",
    "WhatIf": "the smallest question that needs a view of 1,000 ClusterQueues: what would happen to a workload",
    "Fork": "a copy of the engine with 1,000 ClusterQueues, to experiment on",
    "Workloads": "a workload is applied, waits, and is deleted, beside 50,000 that hold quota",
    "View": "a consistent view of 1,000 ClusterQueues. Kueue copies its state for each cycle. The engine takes none: a "
    "cycle works on the state itself, under a journal, and undoes trials",
}


def group_of(name: str) -> str:
    """The group of a row: the longest of which its name says so.

    Raises:
        KeyError: No line says what its state is.
    """
    groups = [group for group in SHAPES if name.startswith((f"{group}/", f"{group}-"))]
    if not groups:
        raise KeyError(f"{name}: benches/shapes.py does not say what its state is")
    return max(groups, key=len)


def shapes_of(names: Iterable[str]) -> str:
    """A list of the groups of these rows, with what their states are."""
    groups = dict.fromkeys(map(group_of, names))
    lines = (f"- `{group}`: {SHAPES[group]}." for group in groups)
    return "\n".join(fill(line, 120, subsequent_indent="  ", break_on_hyphens=False) for line in lines)
