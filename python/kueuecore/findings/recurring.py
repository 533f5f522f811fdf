"""Work that comes again: each workload that ends is followed by another of the same kind.

One workload ends at a time, the one that was admitted first, and a copy of it is created at that moment. Once the same
state comes back, everything goes on like that for ever: whoever was not admitted in between never is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import chain

from kueuecore._json import JsonObject, object_at
from kueuecore.engine import Engine
from kueuecore.findings.facts import Facts
from kueuecore.states import Stage
from kueuecore.steady_state import Ending, settle
from kueuecore.times import format_time

__all__ = ["starved"]

_SECOND = 10**9
_ROUNDS_EACH = 20
_MOST_WORKLOADS = 500


def starved(facts: Facts) -> dict[str, frozenset[str]]:
    """Workloads that are never admitted while others come again, and who is meanwhile, by keys.

    Nothing where there are more than 500 workloads, where they preempt each other in a circle, or where no state comes
    back within 20 rounds for each workload.

    Args:
        facts: The objects.
    """
    if not facts.workloads or len(facts.workloads) > _MOST_WORKLOADS:
        return {}
    play = _Recurring(facts)
    admitted_in: list[frozenset[str]] = []
    seen: dict[Hashable, int] = {}
    for n in range(_ROUNDS_EACH * len(facts.workloads)):
        if not play.settles() or not play.running:
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
    """An engine in which whoever ends comes again."""

    def __init__(self, facts: Facts) -> None:
        self._engine: Engine = facts.engine.fork()
        self._now = facts.now
        self._trusted = facts.world.trusted
        self._objects = {"/".join(key): _anew(it.object) for key, it in facts.workloads.items()}
        self.running: dict[str, None] = {}
        """Those that hold quota, by key, in the order in which they got it."""

    def settles(self) -> bool:
        """Run cycles until nothing changes; False if that never happens."""
        settled = settle(self._engine, now=self._now, max_cycles=10_000)
        stages = {it.key: it.stage for it in self._engine.workloads()}
        holding = {key for key, stage in stages.items() if stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED)}
        in_order = chain(self.running, (it.key for decision in settled.decisions for it in decision.admissions))
        self.running = dict.fromkeys(key for key in chain(in_order, sorted(holding)) if key in holding)
        return settled.ending is Ending.SETTLED

    def waiting(self) -> Iterator[str]:
        """Those that wait, by ClusterQueue in their order."""
        for queue in self._engine.cluster_queues():
            yield from (it.key for it in self._engine.pending(queue))

    def state(self) -> Hashable:
        """Who runs, in order, and who waits, in order: times count only as far as they give this order."""
        queues = {name: self._engine.pending(name) for name in self._engine.cluster_queues()}
        waiting = tuple((name, tuple((it.key, it.place) for it in queued)) for name, queued in queues.items())
        return tuple(self.running), waiting

    def end_first(self) -> None:
        """The one that was admitted first ends, and comes again a second later."""
        key = next(iter(self.running))
        del self.running[key]
        namespace, _, name = key.partition("/")
        self._now += _SECOND
        self._engine.finish(name, namespace=namespace, now=self._now)
        self._engine.delete("Workload", name, namespace=namespace, now=self._now)
        plain = self._objects[key]
        metadata: JsonObject = {**object_at(plain, "metadata"), "creationTimestamp": format_time(self._now)}
        self._engine.apply({**plain, "metadata": metadata}, now=self._now, trusted=self._trusted)


def _anew(plain: JsonObject) -> JsonObject:
    """A Workload as it is created."""
    metadata = {key: it for key, it in object_at(plain, "metadata").items() if key != "generation"}
    return {key: it for key, it in plain.items() if key != "status"} | {"metadata": metadata}
