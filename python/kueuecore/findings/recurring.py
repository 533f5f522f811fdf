"""Simulates recurring work: whenever a workload ends, another like it arrives.

One workload ends at a time, the one admitted first, and a copy of it is created at that moment. Once a state returns,
everything repeats forever: a workload that was not admitted in between never will be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from itertools import chain
from typing import TypeAlias

from kueuecore._json import JsonObject, object_at
from kueuecore.findings.facts import Facts
from kueuecore.states import Stage
from kueuecore.steady_state import Ending, settle
from kueuecore.times import END_NS, format_time
from kueuecore.world import DEFAULT_NAMESPACE

__all__ = ["starved"]

Key: TypeAlias = tuple[str, str]
"""Namespace and name of a workload."""

_SECOND = 10**9
_ROUNDS_EACH = 10
_MOST_WORKLOADS = 100


def starved(facts: Facts) -> Mapping[Key, frozenset[Key]]:
    """Find workloads that are never admitted while others recur, and the workloads admitted meanwhile.

    Returns nothing if there are more than 100 workloads, if they preempt each other in a loop, if every workload is
    admitted again and again, or if no state returns within ten rounds per workload.

    Args:
        facts: The objects.
    """
    n_rounds = _ROUNDS_EACH * len(facts.workloads)
    if len(facts.workloads) > _MOST_WORKLOADS or facts.now + n_rounds * _SECOND > END_NS:
        return {}
    play = _Recurring(facts)
    admitted_in: list[frozenset[Key]] = []
    seen: dict[Hashable, int] = {}
    for n in range(n_rounds):
        if not play.settles() or not play.running or play.has_served_all():
            return {}
        state = play.state()
        if state in seen:
            running = frozenset(chain.from_iterable(admitted_in[seen[state] :]))
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
        self._trusted = facts.world.trusted
        self._objects = {key: _as_created(it.object) for key, it in facts.workloads.items()}
        # A dump may leave out the namespace; the engine then holds the workload without one.
        self._namespaces = {_key(it.namespace, it.name): it.namespace for it in self._engine.workloads()}
        holding = (it for it in self._engine.workloads() if it.stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED))
        self.running = dict.fromkeys(_key(it.namespace, it.name) for it in holding)
        """The workloads that hold quota, in the order in which they got it."""
        self._n_admissions = Counter(self.running.keys())

    def settles(self) -> bool:
        """Run cycles until nothing changes; False if that never happens."""
        settled = settle(self._engine, now=self._now, max_cycles=10_000)
        for decision in settled.decisions:
            for gone in (*decision.preemptions, *decision.evictions):
                self.running.pop(_key(gone.namespace, gone.name), None)
            for admitted in decision.admissions:
                key = _key(admitted.namespace, admitted.name)
                self.running[key] = None
                self._n_admissions[key] += 1
        if any(it.reason.startswith("Evicted") for it in settled.events):  # also between cycles, as time has passed
            self.running = {key: None for key in self.running if self._holds(key)}
        return settled.ending is Ending.SETTLED

    def _holds(self, key: Key) -> bool:
        state = self._engine.workload(key[1], namespace=self._namespaces[key])
        return state.stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED)

    def has_served_all(self) -> bool:
        """Whether every workload has been admitted at least twice."""
        return all(self._n_admissions[key] > 1 for key in self._objects)

    def waiting(self) -> Iterator[Key]:
        """The pending workloads, by ClusterQueue and in queue order."""
        for name in self._engine.cluster_queues():
            yield from (_key(it.namespace, it.name) for it in self._engine.pending(name))

    def state(self) -> Hashable:
        """Running and pending workloads, each in order: times matter only in that they determine this order."""
        queues = [self._engine.pending(name) for name in self._engine.cluster_queues()]
        return tuple(self.running), tuple(tuple((it.key, it.place) for it in queued) for queued in queues)

    def end_first(self) -> None:
        """End the workload that was admitted first, and create it again a second later."""
        key = next(iter(self.running))
        del self.running[key]
        namespace, name = self._namespaces[key], key[1]
        self._now += _SECOND
        self._engine.finish(name, namespace=namespace, now=self._now)
        self._engine.delete("Workload", name, namespace=namespace, now=self._now)
        plain = self._objects[key]
        metadata: JsonObject = {**object_at(plain, "metadata"), "creationTimestamp": format_time(self._now)}
        self._engine.apply({**plain, "metadata": metadata}, now=self._now, trusted=self._trusted)


def _key(namespace: str, name: str) -> Key:
    return namespace or DEFAULT_NAMESPACE, name


def _as_created(plain: JsonObject) -> JsonObject:
    """The Workload as it was created, without status."""
    metadata = {key: it for key, it in object_at(plain, "metadata").items() if key != "generation"}
    return {key: it for key, it in plain.items() if key != "status"} | {"metadata": metadata}
