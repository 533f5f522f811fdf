"""A rule about preemption loops, reported with the smallest set of objects that shows them."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore.findings.effort import OF_A_CYCLE, Effort
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.remedies import advice, fewer_policies
from kueuecore.findings.smallest_world import named, smallest_world
from kueuecore.steady_state import PreemptionLoop, settle
from kueuecore.world import DEFAULT_NAMESPACE

__all__ = ["preemption_loops"]

_MAX_SHRINKING = 15_000
"""The work of finding the smallest objects: a second or two."""


@rule("KC603", "preemption-loop", Severity.ERROR, "workloads that preempt each other in an endless loop")
def preemption_loops(facts: Facts) -> Iterator[Hit]:
    """Kueue does not prevent it (docs/anomalies.md). One loop is reported at a time."""
    loop = _loop_in(facts)
    if loop is None:
        return
    keys = frozenset(map(_key, loop.keys))
    shrinking = Effort(_MAX_SHRINKING)
    world = smallest_world(facts, keys, lambda some: _loop_in(some, shrinking) is not None, shrinking)
    loop = _loop_in(world) or loop
    workload = facts.written(facts.workloads[_key(loop.preemptions[0].preemptor)])
    yield hit(
        workload,
        f"workloads preempt each other in a loop, {loop}; these objects suffice: {named(world)}",
        remedy=advice(
            world,
            fewer_policies(world),
            lambda some: _loop_in(some) is None,
            otherwise="give them the same priority, or let fewer ClusterQueues preempt",
        ),
        world=[assignment.object for assignment in world.given],
    )


def _loop_in(facts: Facts, effort: Effort | None = None) -> PreemptionLoop | None:
    """A loop with at least one preemption: workloads may also be evicted in a loop for other reasons."""
    settled = settle(facts.engine.fork(), now=facts.now, max_cycles=10_000)
    if effort is not None and not effort.spend(OF_A_CYCLE * len(settled.decisions)):
        return None
    return settled.loop if settled.loop is not None and settled.loop.preemptions else None


def _key(key: str) -> tuple[str, str]:
    namespace, _, name = key.rpartition("/")
    return namespace or DEFAULT_NAMESPACE, name
