"""Runs cycles until nothing changes: the state that a cluster reaches if nothing else happens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import TypeAlias

from kueuecore._arguments import cycles_of, instance
from kueuecore.decisions import Decision, Event, Preemption, Undecided
from kueuecore.engine import Engine
from kueuecore.times import END_NS, SECOND_NS, TimeLike, nanoseconds

__all__ = ["Ending", "PreemptionLoop", "Settled", "find_preemption_loop", "most_flavors", "settle"]

_Log: TypeAlias = list[tuple[int, tuple[Event, ...] | Decision]]


class Ending(StrEnum):
    """Why `settle` ended."""

    SETTLED = "Settled"
    """Nothing changes anymore."""
    REPEATING = "Repeating"
    """Workloads evict each other in a loop: an earlier state came back after an eviction."""
    CYCLE_LIMIT = "CycleLimit"
    """It was still changing after `max_cycles`."""


@dataclass(frozen=True, slots=True)
class PreemptionLoop:
    """Workloads that evict each other in a loop: without any outside event, the same state comes back.

    Args:
        n_cycles: The cycles that one turn of the loop takes.
        preemptions: The preemptions of one turn, in order.
    """

    n_cycles: int
    preemptions: tuple[Preemption, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the workloads in the loop, sorted."""
        return tuple(sorted({key for preemption in self.preemptions for key in (preemption.key, preemption.preemptor)}))

    def __str__(self) -> str:
        steps = (
            f"{preemption.preemptor} preempts {preemption.key} ({preemption.reason})" for preemption in self.preemptions
        )
        return f"every {self.n_cycles} cycles: {', '.join(steps)}"


@dataclass(frozen=True, slots=True)
class Settled:
    """What `settle` did. The engine is in the final state.

    Args:
        ending: Why it ended.
        decisions: The decision of every cycle, in order.
        undecided: Workloads on which no decision could be made, each once.
        log: All that happened, in order, with its time in nanoseconds since 1970: the decision of each cycle, and the
            events of the reconciling between them.
        loop: The loop, if it ended `Repeating`.
    """

    ending: Ending
    decisions: tuple[Decision, ...]
    undecided: tuple[Undecided, ...]
    log: tuple[tuple[int, tuple[Event, ...] | Decision], ...] = field(repr=False)
    loop: PreemptionLoop | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """All events of the cycles and of the reconciling between them, in order."""
        return tuple(chain.from_iterable(_events(entry) for _, entry in self.log))


def settle(
    engine: Engine,
    *,
    now: TimeLike,
    until: TimeLike | None = None,
    max_cycles: int | None = 1_000_000,
    was_at_rest: bool = False,
    finds_loops: bool = True,
    n_flavors: int | None = None,
) -> Settled:
    """Run cycles until nothing changes. No workload finishes, and time stands still unless `until` is given.

    As time stands still, an engine that batches retries does them at once.

    The job of an evicted workload stops at once, so its quota is free for the next cycle. Admission checks do not
    change, so a workload that waits for one stays `QuotaReserved`.

    Args:
        engine: The engine; it is in the final state afterwards.
        now: The time of everything that happens.
        until: Continue at each later time when time alone changes something (a backoff ends, a failed node must be
            replaced), up to this one; by default not at all.
        max_cycles: Give up after this many cycles; `None`: never.
        was_at_rest: Whether the engine was settled before, so that no evicted workload holds quota. That saves a scan
            of all workloads.
        finds_loops: Whether to check after each eviction if an earlier state came back, which takes a quick scan of
            all workloads. Without it, a loop of evictions ends at `max_cycles`.
        n_flavors: The most flavors of any ClusterQueue, if that is known: it saves a look at all quotas.

    Raises:
        TypeError: `now` or `until` is not a time, or `max_cycles` not a number.
        ValueError: One of them is out of range. Nothing has changed.

    Returns:
        The decisions, the events, and why it ended.

    Example:
        >>> from kueuecore.engine import Engine
        >>> settled = settle(Engine(), now="2026-01-01T00:00:00Z")
        >>> settled.ending, len(settled.decisions)
        (<Ending.SETTLED: 'Settled'>, 0)
    """
    engine = instance("engine", engine, Engine)
    at, limit = nanoseconds(now), cycles_of(max_cycles, "max_cycles")
    end = at if until is None else nanoseconds(until)
    # A head with untried flavors changes nothing until it has tried them all.
    patience = 1 + (most_flavors(engine) if n_flavors is None else n_flavors)
    settled = _settle_at(engine, at, limit, patience, was_at_rest=was_at_rest, finds_loops=finds_loops)
    while settled.ending is Ending.SETTLED and (wake := engine.next_wake(since=at)) is not None and wake <= end:
        at = wake
        left = None if limit is None else limit - len(settled.decisions)
        later = _settle_at(engine, at, left, patience, was_at_rest=was_at_rest, finds_loops=finds_loops)
        settled = _after(settled, later)
    return settled


def _after(first: Settled, second: Settled) -> Settled:
    """Join what happened at one time and at a later one."""
    undecided = {undecided.key: undecided for undecided in (*first.undecided, *second.undecided)}
    decisions, log = (*first.decisions, *second.decisions), (*first.log, *second.log)
    return Settled(second.ending, decisions, tuple(undecided.values()), log, second.loop)


def _settle_at(
    engine: Engine, at: int, limit: int | None, patience: int, *, was_at_rest: bool, finds_loops: bool
) -> Settled:
    log: _Log = []
    decisions: list[Decision] = []
    undecided: dict[str, Undecided] = {}
    # From each state to the number of decisions that led to it.
    seen: dict[int, int] = {}
    loop: PreemptionLoop | None = None
    _reconcile(engine, log, at)
    evicted = [] if was_at_rest else engine._core._evicted_with_quota()
    if _release(engine, evicted, at):
        _reconcile(engine, log, at)
    idle = 0
    ending = Ending.SETTLED
    # A head with untried flavors changes nothing until it has tried them all. To count them takes a look at all quotas.
    while idle == 0 or idle <= most_flavors(engine):
        if limit is not None and len(decisions) >= limit:
            ending = Ending.CYCLE_LIMIT
            break
        # Freed quota brings back parked workloads only in the next cycle, so run it rather than ask for heads now.
        engine._core._retry_at_once(at)
        decision = engine.cycle(at)
        if decision.cycle == 0:
            break
        decisions.append(decision)
        log.append((at, decision))
        for workload in decision.undecided:
            undecided.setdefault(workload.key, workload)
        evicted = [
            (preemption.namespace, preemption.name) for preemption in (*decision.preemptions, *decision.evictions)
        ]
        n_released = _release(engine, evicted, at)
        n_reconciled, n_evicted = _reconcile(engine, log, at)
        idle = 0 if decision.has_changed_something or n_released or n_reconciled else idle + 1
        if finds_loops and (n_released or n_evicted):
            state = _standings(engine)
            if state in seen:
                ending = Ending.REPEATING
                turn = decisions[seen[state] :]
                loop = PreemptionLoop(
                    len(turn), tuple(preemption for decision in turn for preemption in decision.preemptions)
                )
                break
            seen[state] = len(decisions)
    return Settled(ending, tuple(decisions), tuple(undecided.values()), tuple(log), loop)


def find_preemption_loop(engine: Engine, *, now: TimeLike, max_cycles: int | None = 10_000) -> PreemptionLoop | None:
    """Find out whether workloads would evict each other in a loop if nothing else happened and no job ended.

    Kueue does not prevent such loops (see `docs/anomalies.md`). Evicted jobs stop at once. Time stands still, unless
    experiments make workloads wait: then it goes on to the end of each wait.

    Args:
        engine: The engine; only a fork of it runs.
        now: The time.
        max_cycles: Give up after this many cycles; `None`: never.

    Example:
        >>> from kueuecore.engine import Engine
        >>> find_preemption_loop(Engine(), now="2026-01-01T00:00:00Z") is None
        True
    """
    if engine.configuration.experiments:
        return _loop_over_time(engine.fork(), nanoseconds(now), cycles_of(max_cycles, "max_cycles"))
    return settle(engine.fork(), now=now, max_cycles=max_cycles).loop


def _loop_over_time(engine: Engine, at: int, limit: int | None) -> PreemptionLoop | None:
    """Find a loop whose turns may wait for experiments."""
    decisions: list[Decision] = []
    # From each state to the number of decisions that led to it.
    seen: dict[int, int] = {}
    patience = most_flavors(engine)
    _reconcile(engine, [], at)
    if _release(engine, engine._core._evicted_with_quota(), at):
        _reconcile(engine, [], at)
    idle = 0
    while limit is None or len(decisions) < limit:
        if idle > patience:
            wake = engine._core._next_experiment(at)
            if wake is None or wake > END_NS - 2 * 365 * 86_400 * SECOND_NS:
                return None
            at, idle = wake, 0
        engine._core._retry_at_once(at)
        decision = engine.cycle(at)
        if decision.cycle == 0:
            idle = patience + 1
            continue
        decisions.append(decision)
        evicted = [(it.namespace, it.name) for it in (*decision.preemptions, *decision.evictions)]
        n_released = _release(engine, evicted, at)
        n_reconciled, n_evicted = _reconcile(engine, [], at)
        idle = 0 if decision.has_changed_something or n_released or n_reconciled else idle + 1
        if n_released or n_evicted:
            state = engine._core._standings_over_time()
            if state in seen:
                turn = decisions[seen[state] :]
                return PreemptionLoop(len(turn), tuple(it for decision in turn for it in decision.preemptions))
            seen[state] = len(decisions)
    return None


def most_flavors(engine: Engine) -> int:
    """Return an upper bound of the flavors in a resource group: the most flavors of any ClusterQueue."""
    flavors: dict[str, set[str]] = {}
    for row in engine.quota():
        if row.kind == "ClusterQueue":
            flavors.setdefault(row.name, set()).add(row.flavor)
    return max(map(len, flavors.values()), default=0)


def _events(entry: tuple[Event, ...] | Decision) -> tuple[Event, ...]:
    return entry.events if isinstance(entry, Decision) else entry


def _reconcile(engine: Engine, log: _Log, at: int) -> tuple[int, int]:
    """Reconcile and release until nothing more follows; return the numbers of events and of releases."""
    n_events = n_released = 0
    while events := engine.reconcile(at):
        log.append((at, events))
        n_events += len(events)
        n_released += _release(engine, _evicted(events), at)
    return n_events, n_released


def _evicted(events: Iterable[Event]) -> Iterable[tuple[str, str]]:
    """Return namespace and name of the workloads evicted according to events, each once."""
    return dict.fromkeys((event.namespace, event.name) for event in events if event.reason.startswith("Evicted"))


def _release(engine: Engine, workloads: Iterable[tuple[str, str]], at: int) -> int:
    """Stop the jobs of evicted workloads; return how many held quota."""
    return sum(engine.release(name, namespace=namespace, now=at) for namespace, name in workloads)


def _standings(engine: Engine) -> int:
    """Return the state of all workloads as one number. The engine computes it, as there may be thousands."""
    return engine._core._standings()
