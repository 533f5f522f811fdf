"""A rule about workloads that would fit, but starve while others recur (rules/05 §4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kueuecore._json import text_at
from kueuecore.findings.effort import Effort
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.labels import names_of
from kueuecore.findings.quota_tree import Node
from kueuecore.findings.recurring import MAX_WORKLOADS, Key, starved
from kueuecore.findings.remedies import advice, ways_to_pass
from kueuecore.findings.smallest_world import having_workloads, named, smallest_world, with_objects
from kueuecore.findings.workloads import may_run
from kueuecore.manifests import Manifest
from kueuecore.steady_state import find_preemption_loop

__all__ = ["starving_workloads"]


@dataclass(frozen=True, slots=True)
class _Efforts:
    """The work for all trees together: each part takes a second or two at most."""

    search: Effort = field(default_factory=lambda: Effort(18_000))
    shrinking: Effort = field(default_factory=lambda: Effort(6_000))
    advising: Effort = field(default_factory=lambda: Effort(6_000))


@rule("KC604", "starvation", Severity.NOTE, "a workload that never gets quota while others keep arriving")
def starving_workloads(facts: Facts) -> Iterator[Hit]:
    """Reports the first in each ClusterQueue that fits if nothing else runs; others have findings of their own."""
    able = may_run(facts)
    trees: dict[Node, set[tuple[str, str]]] = {}
    for key, state in facts.states.items():
        path = facts.tree.path(Node("ClusterQueue", state.cluster_queue or ""))
        if path:
            trees.setdefault(path[-1], set()).add(key)
    efforts = _Efforts()
    for root, keys in trees.items():
        if able.isdisjoint(keys):
            continue
        # Cohort trees share nothing but nodes.
        some = _of_tree(facts, root, having_workloads(facts, keys))
        part = with_objects(facts, some) if efforts.search.spend(len(some)) else None
        if part is not None:
            yield from _in_tree(part, able, efforts)
    if efforts.search.is_spent or any(len(keys) > MAX_WORKLOADS and keys & able for keys in trees.values()):
        facts.unfinished.append(
            "KC604 starvation was not tried to the end: too many workloads share quota; check fewer of them at a time"
        )


def _of_tree(facts: Facts, root: Node, some: Iterable[Manifest]) -> list[Manifest]:
    """Those objects without the ClusterQueues and LocalQueues of other trees."""

    def is_here(manifest: Manifest) -> bool:
        kind = text_at(manifest.object, "kind")
        if kind not in ("ClusterQueue", "LocalQueue"):
            return True
        at = ("metadata", "name") if kind == "ClusterQueue" else ("spec", "clusterQueue")
        return facts.tree.path(Node("ClusterQueue", text_at(manifest.object, *at)))[-1:] == (root,)

    return [manifest for manifest in some if is_here(manifest)]


def _in_tree(facts: Facts, able: frozenset[Key], efforts: _Efforts) -> Iterator[Hit]:
    reported = set()
    for key, running in starved(facts, efforts.search).items():
        queue = facts.states[key].cluster_queue
        if key in able and queue not in reported:
            reported.add(queue)
            yield _hit(facts, key, running, efforts)


def _hit(facts: Facts, key: Key, running: frozenset[Key], efforts: _Efforts) -> Hit:
    def starves(some: Facts) -> bool:
        return key in starved(some, efforts.shrinking, only=key)

    def is_well(some: Facts) -> bool:
        served = not starved(some, efforts.advising) and not efforts.advising.is_spent
        return served and find_preemption_loop(some.engine, now=some.now) is None

    world = smallest_world(facts, {key, *running}, starves, efforts.shrinking)
    others = names_of("/".join(key) for key in sorted(running & world.workloads.keys()))
    return hit(
        facts.written(facts.workloads[key]),
        f"it fits, but is never admitted if each of {others} is followed by another like it when it ends; "
        f"these objects suffice: {named(world)}",
        remedy=advice(
            world,
            ways_to_pass(world, facts.states[key]),
            is_well,
            otherwise="give it quota that others cannot borrow, or a higher priority",
        ),
        world=[assignment.object for assignment in world.given],
    )
