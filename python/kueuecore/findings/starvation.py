"""A rule about workloads that would fit, but starve while others recur (rules/05 §4)."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.labels import names_of
from kueuecore.findings.quota_tree import Node
from kueuecore.findings.recurring import starved
from kueuecore.findings.remedies import advice, ways_to_pass
from kueuecore.findings.smallest_world import named, smallest_world, with_workloads
from kueuecore.findings.workloads import may_run
from kueuecore.steady_state import find_preemption_loop

__all__ = ["starving_workloads"]


@rule("KC604", "starvation", Severity.NOTE, "a workload that never gets quota while others keep arriving")
def starving_workloads(facts: Facts) -> Iterator[Hit]:
    """Reports the first in each ClusterQueue that fits if nothing else runs; others have findings of their own."""
    able = may_run(facts)
    trees: dict[Node, set[tuple[str, str]]] = {}
    for key, state in facts.states.items():
        path = facts.tree.path(Node("ClusterQueue", state.cluster_queue or ""))
        if path:
            trees.setdefault(path[-1], set()).add(key)
    for keys in trees.values():
        # Cohort trees share nothing but nodes.
        part = None if able.isdisjoint(keys) else with_workloads(facts, keys)
        if part is not None:
            yield from _in_tree(part, able)


def _in_tree(facts: Facts, able: frozenset[tuple[str, str]]) -> Iterator[Hit]:
    reported = set()
    for key, running in starved(facts).items():
        queue = facts.states[key].cluster_queue
        if key not in able or queue in reported:
            continue
        reported.add(queue)

        def starves(some: Facts, key: tuple[str, str] = key) -> bool:
            return key in starved(some)

        world = smallest_world(facts, {key, *running}, starves)
        others = names_of("/".join(it) for it in sorted(starved(world)[key]))
        yield hit(
            facts.written(facts.workloads[key]),
            f"it fits, but is never admitted if each of {others} is followed by another like it when it ends; "
            f"these objects suffice: {named(world)}",
            remedy=advice(
                world,
                ways_to_pass(world, queue or ""),
                _all_are_served,
                otherwise="give it quota that others cannot borrow, or a higher priority",
            ),
            world=[it.object for it in world.given],
        )


def _all_are_served(facts: Facts) -> bool:
    return not starved(facts) and find_preemption_loop(facts.engine, now=facts.now) is None
