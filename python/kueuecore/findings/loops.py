"""Workloads that preempt each other in a circle, in the smallest set of objects in which they do."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.smallest_world import named, smallest_world
from kueuecore.steady_state import PreemptionLoop, find_preemption_loop

__all__ = ["preemption_loops"]


@rule("KC603", "preemption-loop", Severity.ERROR, "workloads that preempt each other in a circle, for ever")
def preemption_loops(facts: Facts) -> Iterator[Hit]:
    """Kueue does nothing against it (docs/anomalies.md). One circle is reported at a time."""
    loop = _loop_in(facts)
    if loop is None:
        return
    world = smallest_world(facts, loop.keys, lambda some: _loop_in(some) is not None)
    loop = _loop_in(world) or loop
    workload = facts.workloads[_key(loop.preemptions[0].preemptor)]
    yield hit(
        workload,
        f"workloads preempt each other in a circle, {loop}; it takes no more than {named(world)}",
        remedy="give them one priority, or allow fewer of the ClusterQueue's policies of preemption",
        world=[it.object for it in world.given],
    )


def _loop_in(facts: Facts) -> PreemptionLoop | None:
    """A circle in which somebody preempts somebody: workloads may also be evicted in one, for other reasons."""
    loop = find_preemption_loop(facts.engine, now=facts.now)
    return loop if loop is not None and loop.preemptions else None


def _key(key: str) -> tuple[str, str]:
    namespace, _, name = key.partition("/")
    return namespace, name
