"""A rule about preemption loops, reported with the smallest set of objects that shows them."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.remedies import advice, fewer_policies
from kueuecore.findings.smallest_world import named, smallest_world
from kueuecore.steady_state import PreemptionLoop, find_preemption_loop
from kueuecore.world import DEFAULT_NAMESPACE

__all__ = ["preemption_loops"]


@rule("KC603", "preemption-loop", Severity.ERROR, "workloads that preempt each other in an endless loop")
def preemption_loops(facts: Facts) -> Iterator[Hit]:
    """Kueue does not prevent it (docs/anomalies.md). One loop is reported at a time."""
    loop = _loop_in(facts)
    if loop is None:
        return
    keys = frozenset(map(_key, loop.keys))
    world = smallest_world(facts, keys, lambda some: _loop_in(some) is not None)
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
        world=[it.object for it in world.given],
    )


def _loop_in(facts: Facts) -> PreemptionLoop | None:
    """A loop with at least one preemption: workloads may also be evicted in a loop for other reasons."""
    loop = find_preemption_loop(facts.engine, now=facts.now)
    return loop if loop is not None and loop.preemptions else None


def _key(key: str) -> tuple[str, str]:
    namespace, _, name = key.rpartition("/")
    return namespace or DEFAULT_NAMESPACE, name
