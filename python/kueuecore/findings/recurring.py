"""Simulates recurring work: whenever a workload ends, another like it arrives.

One workload ends at a time, the one admitted first, and a copy of it is created at that moment. Once a state returns,
everything repeats forever: a workload that was not admitted in between never will be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeAlias

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.findings.effort import OF_A_CYCLE, OF_A_ROUND, Effort
from kueuecore.findings.facts import Facts
from kueuecore.findings.manifest_fields import work_of
from kueuecore.states import Stage
from kueuecore.steady_state import Ending, settle
from kueuecore.times import END_NS, SECOND_NS, format_time
from kueuecore.world import DEFAULT_NAMESPACE

__all__ = ["MAX_WORKLOADS", "Key", "starved"]

Key: TypeAlias = tuple[str, str]
"""Namespace and name of a workload."""

_ROUNDS_EACH = 10
MAX_WORKLOADS = 100
"""In a tree with more, nothing is played."""


def starved(facts: Facts, effort: Effort, *, only: Key | None = None) -> Mapping[Key, frozenset[Key]]:
    """Find workloads that are never admitted while others recur, and the workloads admitted meanwhile.

    Workloads of one queue that differ in nothing but their names are as good as each other: a state returns when each
    place is taken by one like the one before.

    Returns nothing if there are more than 100 workloads, if they preempt each other in a loop, if every workload is
    admitted again and again, if no state returns within ten rounds per workload, or if the effort ends before.

    Args:
        facts: The objects.
        effort: The work that it may take.
        only: Stop as soon as this workload is admitted again and again.
    """
    n_rounds = _ROUNDS_EACH * len(facts.workloads)
    if len(facts.workloads) > MAX_WORKLOADS or facts.now + n_rounds * SECOND_NS > END_NS:
        return {}
    play = _Recurring(facts)
    admitted_in: list[frozenset[Key]] = []
    seen: dict[Hashable, int] = {}
    for n in range(n_rounds):
        if not effort.spend(OF_A_ROUND) or not play.settles(effort) or not play.running or play.has_served(only):
            return {}
        state = play.state()
        if state in seen:
            running = play.those_like(chain.from_iterable(admitted_in[seen[state] :]))
            return {key: running for key in play.waiting() if key not in running}
        seen[state] = n
        admitted_in.append(frozenset(play.running))
        play.end_first()
    return {}


class _Recurring:
    """An engine in which every workload that ends is created again."""

    def __init__(self, facts: Facts) -> None:
        self._engine = facts.engine.fork()
        self._now = facts.now
        self._is_at_rest = False
        self._trusted = facts.world.trusted
        self._objects = {key: _as_created(workload.object) for key, workload in facts.workloads.items()}
        # A dump may leave out the namespace; the engine then holds the workload without one.
        self._namespaces = {
            _key(workload.namespace, workload.name): workload.namespace for workload in self._engine.workloads()
        }
        holding = (
            workload
            for workload in self._engine.workloads()
            if workload.stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED)
        )
        self.running = {_key(workload.namespace, workload.name): str(workload.flavors) for workload in holding}
        """The workloads that hold quota, in the order in which they got it, with their flavors."""
        self._n_admissions = Counter(self.running.keys())
        self._by_age = dict.fromkeys(sorted(self._objects, key=lambda key: _age(self._objects[key])))
        self._waits_for_more = set(self._objects)
        self._kinds = {key: work_of(facts.workloads[key]) for key in self._objects}

    def settles(self, effort: Effort) -> bool:
        """Run cycles until nothing changes; False if that never happens, or takes too much effort."""
        settled = settle(self._engine, now=self._now, max_cycles=10_000, was_at_rest=self._is_at_rest)
        self._is_at_rest = True
        if not effort.spend(OF_A_CYCLE * len(settled.decisions)):
            return False
        for decision in settled.decisions:
            for gone in (*decision.preemptions, *decision.evictions):
                self.running.pop(_key(gone.namespace, gone.name), None)
            for admitted in decision.admissions:
                key = _key(admitted.namespace, admitted.name)
                self.running[key] = str([sorted(pod_set.flavors.items()) for pod_set in admitted.pod_sets])
                self._n_admissions[key] += 1
                if self._n_admissions[key] > 1:
                    self._waits_for_more.discard(key)
        if any(
            event.reason.startswith("Evicted") for event in settled.events
        ):  # also between cycles, as time has passed
            self.running = {key: row for key, row in self.running.items() if self._holds(key)}
        return settled.ending is Ending.SETTLED

    def _holds(self, key: Key) -> bool:
        state = self._engine.workload(key[1], namespace=self._namespaces[key])
        return state.stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED)

    def has_served(self, only: Key | None) -> bool:
        """Whether a workload, or else every one, has been admitted at least twice."""
        return not self._waits_for_more if only is None else only not in self._waits_for_more

    def those_like(self, keys: Iterable[Key]) -> frozenset[Key]:
        """All workloads that are like one of these."""
        kinds = {self._kinds[key] for key in keys}
        return frozenset(key for key, kind in self._kinds.items() if kind in kinds)

    def waiting(self) -> Iterator[Key]:
        """The pending workloads, by ClusterQueue and in queue order."""
        for name in self._engine.cluster_queues():
            yield from (_key(workload.namespace, workload.name) for workload in self._engine.pending(name))

    def state(self) -> Hashable:
        """All workloads by age, each with what it asks for and its place in the order of running or of pending ones.

        Times matter only in that they determine these orders, nodes in that pods of running ones are on them.
        """
        on_nodes: dict[Key, list[Hashable]] = {}
        for placed in self._engine.placements():
            pods = (placed.pod_set, tuple((domain.values, domain.count) for domain in placed.domains))
            on_nodes.setdefault(_key(placed.namespace, placed.name), []).append(pods)
        running = enumerate(self.running.items())
        places: dict[Key, Hashable] = {key: (n, item, tuple(on_nodes.get(key, ()))) for n, (key, item) in running}
        for name in self._engine.cluster_queues():
            queued = enumerate(self._engine.pending(name))
            places.update(
                (_key(workload.namespace, workload.name), (n, workload.place, name)) for n, workload in queued
            )
        return tuple((self._kinds[key], places.get(key)) for key in self._by_age)

    def end_first(self) -> None:
        """End the workload that was admitted first, and create it again a second later."""
        key = next(iter(self.running))
        del self.running[key]
        namespace, name = self._namespaces[key], key[1]
        self._now += SECOND_NS
        self._engine.finish(name, namespace=namespace, now=self._now)
        self._engine.delete("Workload", name, namespace=namespace, now=self._now)
        self._by_age[key] = self._by_age.pop(key)  # now the youngest
        plain = self._objects[key]
        metadata: JsonObject = {**object_at(plain, "metadata"), "creationTimestamp": format_time(self._now)}
        self._engine.apply({**plain, "metadata": metadata}, now=self._now, trusted=self._trusted)


def _key(namespace: str, name: str) -> Key:
    return namespace or DEFAULT_NAMESPACE, name


def _as_created(plain: JsonObject) -> JsonObject:
    """The Workload as it was created, without status."""
    metadata = {key: entry for key, entry in object_at(plain, "metadata").items() if key != "generation"}
    return {key: value for key, value in plain.items() if key != "status"} | {"metadata": metadata}


def _age(plain: JsonObject) -> tuple[str, str]:
    """What orders Workloads by age; those of the same second by uid (rules/05 §3)."""
    return text_at(plain, "metadata", "creationTimestamp"), text_at(plain, "metadata", "uid")
