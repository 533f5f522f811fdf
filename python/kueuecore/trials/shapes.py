"""Notes in which shapes workloads contend for quota, as seen inside the reference while it decides.

An engine does not show how many candidates a search has tried, or that two heads wanted the same victim.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from kueuecore.reference import nominate
from kueuecore.reference.cache import Snapshot
from kueuecore.reference.cycle import Cycle
from kueuecore.reference.decision import Decision
from kueuecore.reference.forest import Node
from kueuecore.reference.nominate import Entry, replaced_slice
from kueuecore.reference.objects import FlavorResource
from kueuecore.reference.preempt import Need, Target
from kueuecore.reference.totals import Info

__all__ = ["noted_shapes"]

# Searches with more candidates than this per ClusterQueue count as long.
_MANY_PER_QUEUE = 16
# Sums of a few amounts as large as this may saturate.
_HUGE = 2**61


@contextmanager
def noted_shapes() -> Iterator[set[str]]:
    """Yield the shapes that occur inside the reference, as short texts.

    Example:
        >>> from kueuecore.testing import random_history
        >>> from kueuecore.trials.comparison import compare
        >>> with noted_shapes() as seen:
        ...     compare(random_history(1))
        >>> "3 heads in a cycle" in seen
        False
    """
    notes = _Notes()
    with ExitStack() as stack:
        for owner, name, replacement in notes.replacements():
            stack.enter_context(patch.object(owner, name, replacement))
        yield notes.seen


@dataclass
class _Step:
    """The result of one entry of a cycle."""

    entry: Entry
    chain: list[Node]
    wanted: frozenset[FlavorResource]
    overlapped: bool
    n_victims: int
    is_admitted: bool
    is_slice: bool
    is_partial: bool

    @property
    def branch(self) -> Node:
        """Return the child of the root above the ClusterQueue, or the ClusterQueue itself."""
        return self.chain[-2] if len(self.chain) > 1 else self.chain[0]

    def has_huge_amounts(self) -> bool:
        """Return whether it asks for an amount near the largest, or a node above it has such a quota."""
        asked = self.entry.usage
        limits = (self.chain[0].quota(fr) for fr in asked)
        return any(number >= _HUGE for number in asked.values()) or any(limit.nominal >= _HUGE for limit in limits)


class _Notes:
    """Notes what the reference does, by wrapping its functions."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._steps: list[_Step] = []
        # The workloads removed by the current search, by key; None between searches.
        self._tried: dict[str, Info] | None = None
        # Flavors for which each head of the cycle has found targets.
        self._flavors_with_targets: dict[str, set[str]] = defaultdict(set)

    def replacements(self) -> Iterator[tuple[object, str, object]]:
        """Yield what to replace: the object, the name of its function, and the function to call instead."""
        run, process, remove, find = Cycle.run, Cycle._process, Snapshot.remove, nominate.find_targets

        def noted_run(cycle: Cycle) -> Decision:
            self._steps = []
            decision = run(cycle)
            self._end_of_cycle(cycle, decision)
            return decision

        def noted_process(cycle: Cycle, entry: Entry) -> None:
            overlapped, decision = cycle._overlaps(entry.targets), cycle.decision
            # A new assignment may want less.
            wanted = entry.assignment.need_preemption if entry.targets else frozenset()
            n_before, n_admitted = len(decision.preemptions), len(decision.admissions)
            process(cycle, entry)
            assignment, pod_sets = entry.assignment, entry.info.pod_sets
            is_partial = any(a.count < p["count"] for a, p in zip(assignment.pod_sets, pod_sets, strict=False))
            self._steps.append(
                _Step(
                    entry,
                    cycle.snapshot.nodes[entry.info.cluster_queue].chain(),
                    wanted,
                    overlapped,
                    len(decision.preemptions) - n_before,
                    len(decision.admissions) > n_admitted,
                    replaced_slice(entry.info, cycle.snapshot) is not None,
                    is_partial,
                )
            )

        def noted_remove(snapshot: Snapshot, info: Info) -> None:
            if self._tried is not None:
                self._tried[info.key] = info
            remove(snapshot, info)

        def noted_find(snapshot: Snapshot, need: Need) -> list[Target]:
            self._tried = {}
            targets = find(snapshot, need)
            self._end_of_search(snapshot, need, targets)
            self._tried = None
            return targets

        yield Cycle, "run", noted_run
        yield Cycle, "_process", noted_process
        yield Snapshot, "remove", noted_remove
        yield nominate, "find_targets", noted_find

    def _end_of_search(self, snapshot: Snapshot, need: Need, targets: list[Target]) -> None:
        tried = list((self._tried or {}).values())
        if targets:
            self._flavors_with_targets[need.info.key] |= {flavor for flavor, _ in need.frs}
            if len(self._flavors_with_targets[need.info.key]) > 1:
                self.seen.add("targets on several flavors")
        n_queues = len({info.cluster_queue for info in tried})
        if len(tried) <= _MANY_PER_QUEUE * n_queues or not tried:
            return
        end = "suffice" if targets else "do not suffice"
        self.seen.add(f"many candidates {end}")
        if targets and len(targets) > _MANY_PER_QUEUE:
            self.seen.add("many targets of one search")
        if n_queues > 1:
            self.seen.add(f"many candidates of several ClusterQueues {end}")
        if any(info.is_evicted for info in tried):
            self.seen.add("many candidates, some evicted")
        if any(info.priority == need.info.priority for info in tried):
            self.seen.add("many candidates, some of equal priority")
        if snapshot.spec(need.info.cluster_queue).priority_threshold is not None:
            self.seen.add("many candidates below a threshold")
        if snapshot.settings.fair_sharing is not None:
            self.seen.add(f"many candidates, shared fairly, {end}")
        if any(asked >= _HUGE for info in [need.info, *tried] for asked in info.usage.values()) or any(
            asked >= _HUGE for asked in need.requests.values()
        ):
            self.seen.add("many candidates, huge amounts")

    def _end_of_cycle(self, cycle: Cycle, decision: Decision) -> None:
        self._flavors_with_targets.clear()
        steps, seen = self._steps, self.seen
        for n in (3, 6):
            if len(steps) >= n:
                seen.add(f"{n} heads in a cycle")
        for results in decision.target_recomputations.values():
            seen.update(f"recomputed: {result}" for result in results)
        if decision.skipped_preemptions:
            seen.add("skipped preemption")
        if any(step.overlapped for step in steps):
            on = cycle.settings.on("RecomputeAssignmentUponPreemptionTargetsOverlap")
            seen.add(f"overlapping targets, recomputation {'on' if on else 'off'}")
        if cycle.settings.fair_sharing is not None:
            self._note_branches(steps)
        self._note_flavors(cycle, steps)
        self._note_preemptors(steps)

    def _note_branches(self, steps: list[_Step]) -> None:
        trees: dict[Node, list[_Step]] = defaultdict(list)
        for step in steps:
            trees[step.chain[-1]].append(step)
        for tree in (tree for tree in trees.values() if len(tree) >= 3):
            n_levels = max(len(step.chain) - 1 for step in tree)
            decided = [step for step in tree if step.is_admitted or step.n_victims]
            if n_levels >= 3:
                self.seen.add(f"fair sharing, 3 heads, {n_levels} levels")
                if any(not node.weight for step in tree for node in step.chain[:-1]):
                    self.seen.add("fair sharing, 3 heads, deep, a weight of 0")
                if len({step.branch for step in decided}) > 1:
                    self.seen.add("fair sharing, deep, decisions on several branches")
                    if any(step.n_victims for step in decided):
                        self.seen.add("fair sharing, deep, decisions on several branches, a preemption")
                    if any(step.has_huge_amounts() for step in tree):
                        self.seen.add("fair sharing, deep, decisions on several branches, huge amounts")

    def _note_flavors(self, cycle: Cycle, steps: list[_Step]) -> None:
        seen = self.seen
        for step in steps:
            spec = cycle.snapshot.spec(step.chain[0].name)
            used = {flavor for flavor, _ in step.entry.assignment.usage}
            needed = {flavor for flavor, _ in step.entry.assignment.need_preemption}
            is_decided = step.is_admitted or step.n_victims
            if max((len(group.flavors) for group in spec.groups), default=0) >= 5 and is_decided:
                seen.add("5 flavors in a group")
            if len(used) >= 3 and is_decided:
                seen.add("3 flavors for a workload")
            if len(needed) > 1 and step.n_victims:
                seen.add(f"preemption on several flavors, whenCanPreempt {spec.when_can_preempt}")
                if step.has_huge_amounts():
                    seen.add("preemption on several flavors, huge amounts")
        pairs = ((one.wanted, other.wanted) for index, one in enumerate(steps) for other in steps[:index])
        if any(len({flavor for flavor, _ in one & other}) > 1 for one, other in pairs):
            seen.add("two flavors contested by two heads")

    def _note_preemptors(self, steps: list[_Step]) -> None:
        seen = self.seen
        many = [index for index, step in enumerate(steps) if step.n_victims >= 3]
        # Overlapping entries count as having many targets, too, whether they get them or not.
        contest = [step for step in steps if step.n_victims or step.overlapped]
        if len(many) > 1:
            seen.add("several heads preempt many")
            if any(step.is_admitted for step in steps[many[0] : many[-1]]):
                seen.add("several heads preempt many, an admission between")
        if len(contest) < 2 or not any(step.overlapped for step in contest):
            return
        first, last = steps.index(contest[0]), steps.index(contest[-1])
        for text, found in (
            ("3 preemptors", len(contest) >= 3),
            ("an admission between", any(step.is_admitted for step in steps[first:last])),
            ("a slice", any(step.is_slice for step in steps)),
            ("fewer pods", any(step.is_partial and (step.is_admitted or step.n_victims) for step in steps)),
            ("lending limits on 2 levels", _has_limits(contest, "lending_limit")),
            ("borrowing limits on 2 levels", _has_limits(contest, "borrowing_limit")),
            ("huge amounts", any(step.has_huge_amounts() for step in steps)),
        ):
            if found:
                seen.add(f"overlapping targets, {text}")


def _has_limits(steps: list[_Step], limit: str) -> bool:
    """Return whether there are limits on two levels from one of the ClusterQueues upwards."""
    return any(
        sum(any(getattr(quota, limit) is not None for quota in node.quotas.values()) for node in step.chain) > 1
        for step in steps
    )
