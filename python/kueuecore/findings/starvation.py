"""Workloads that could run, and never do while others come again (rules/05 §4)."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.labels import names_of
from kueuecore.findings.recurring import starved
from kueuecore.findings.smallest_world import named, smallest_world
from kueuecore.findings.workloads import may_run

__all__ = ["starving_workloads"]


@rule("KC604", "starvation", Severity.NOTE, "a workload that never gets quota if those that end come again")
def starving_workloads(facts: Facts) -> Iterator[Hit]:
    """The first of each ClusterQueue. It fits if nothing else runs: those that never do have findings of their own."""
    waiting = starved(facts)
    if not waiting:
        return
    able = may_run(facts)
    reported = set()
    for key, running in waiting.items():
        namespace, _, name = key.partition("/")
        queue = facts.states[namespace, name].cluster_queue
        if (namespace, name) not in able or queue in reported:
            continue
        reported.add(queue)

        def starves(some: Facts, key: str = key) -> bool:
            return key in starved(some)

        world = smallest_world(facts, {key, *running}, starves)
        others = sorted(starved(world)[key])
        yield hit(
            facts.workloads[namespace, name],
            f"it fits, and is never admitted if each of {names_of(others)} comes again whenever it ends; "
            f"it takes no more than {named(world)}",
            remedy="use StrictFIFO, let it preempt them (preemption.withinClusterQueue), or give it quota of its own",
            world=[it.object for it in world.given],
        )
