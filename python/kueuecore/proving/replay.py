"""Plays the moves of a counterexample on any scheduler, step by step, as plain data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.configuration import Configuration
from kueuecore.decisions import Decision, Event, PodSetAdmission
from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import Move, MoveKind
from kueuecore.proving.replayed import (
    Admitted,
    Course,
    Evicted,
    Preempted,
    Replay,
    ReplayedCycle,
    ReplayedMove,
    ReplayEnding,
    Waiting,
)
from kueuecore.proving.shapes import Shape
from kueuecore.proving.waits import Waits
from kueuecore.states import Stage, WorkloadState
from kueuecore.steady_state import most_flavors
from kueuecore.times import END_NS, SECOND_NS, format_time, nanoseconds

__all__ = ["Scheduler", "arrival_of", "replay"]

# The course of times and when it ends are those of rust/core/src/explore/course.rs.
_MIN_VISITS = 3
_MAX_CYCLES = 300
_MAX_CYCLES_WITH_WAITS = 1000
_LAST_NS = END_NS - 2 * 365 * 86_400 * SECOND_NS


class Scheduler(Protocol):
    """What decides: an `Engine`, or another scheduler with this part of its interface."""

    def apply(self, objects: bytes, /, *, now: int) -> object:
        """Create or change one object, as JSON."""

    def cycle(self, now: int, /) -> Decision:
        """Run one cycle."""

    def reconcile(self, now: int, /) -> Sequence[Event]:
        """Write what controllers write between cycles."""

    def release(self, name: str, *, namespace: str, now: int) -> bool:
        """Release a workload whose job has stopped; return whether it held quota."""

    def note_readiness(self, name: str, *, namespace: str, now: int, are_ready: bool) -> bool:
        """Record whether the pods of a workload are ready."""

    def finish(self, name: str, *, namespace: str, now: int) -> bool:
        """Finish the job of a workload."""

    def delete(self, kind: str, name: str, *, namespace: str = "", now: int) -> bool:
        """Delete an object; return whether it existed."""

    def workloads(self) -> Sequence[WorkloadState]:
        """Return all workloads."""


def replay(
    counterexample: Counterexample, scheduler: Scheduler | None = None, *, moves: Sequence[Move] | None = None
) -> Replay:
    """Play the moves of a counterexample. A move that does not come to rest is the last one.

    Args:
        counterexample: The counterexample.
        scheduler: What decides, with its objects and no workloads; it changes. By default an engine.
        moves: Other moves than its own.

    Returns:
        What happened, step by step.
    """
    facts = counterexample.facts
    playing = _Playing(counterexample, facts.engine.fork() if scheduler is None else scheduler)
    played: list[ReplayedMove] = []
    left_out: list[Move] = []
    for move in counterexample.moves if moves is None else moves:
        found = playing.play(move)
        if found is None:
            left_out.append(move)
            continue
        played.append(found)
        if found.ending is not ReplayEnding.REST:
            break
    return Replay(tuple(played), tuple(left_out))


def arrival_of(shape: Shape, number: int, now: int) -> JsonObject:
    """Return the workload of a shape that arrives.

    Args:
        shape: The shape.
        number: How many have arrived before.
        now: When, in nanoseconds since 1970.
    """
    metadata = object_at(shape.workload, "metadata")
    # Names and UIDs are in the order of arrival, so that ties fall the way they do for workloads of one second.
    own: JsonObject = {
        "name": f"{text_at(metadata, 'name')}-{number}",
        "uid": f"00000000-0000-0000-0000-{number:012}",
        "creationTimestamp": format_time(now),
        "generation": 1,
    }
    return {**shape.workload, "metadata": {**metadata, **own}}


class _Playing:
    def __init__(self, counterexample: Counterexample, scheduler: Scheduler) -> None:
        self._shapes, self._nodes = counterexample.shapes, counterexample.nodes
        self._scheduler = scheduler
        self._start = self._now = counterexample.facts.now
        self._patience = most_flavors(counterexample.facts.engine)
        configuration = counterexample.facts.configuration or Configuration()
        self._waits = Waits(configuration.experiments)
        self._asks_for_readiness = "waitForPodsReady" in configuration.to_dict()
        # The key of each arrival, the name of its shape, and when it arrived.
        self._arrivals: list[tuple[str, str, int]] = []
        self._lost: set[str] = set()

    def play(self, move: Move) -> ReplayedMove | None:
        subject = self._moved(move)
        if subject is None:
            return None
        at = self._seconds
        if move.kind is MoveKind.BURST:
            return ReplayedMove(move, at, subject, (), (), ReplayEnding.REST, (), {})
        evicted, cycles, visits, ending = self._settle()
        states = self._scheduler.workloads()
        waiting = {state.key: _message(state) for state in states if state.stage is Stage.PENDING}
        return ReplayedMove(move, at, subject, evicted, cycles, ending, visits, waiting)

    @property
    def _seconds(self) -> int:
        return (self._now - self._start) // SECOND_NS

    def _moved(self, move: Move) -> str | None:
        """Let a move happen; return what it is about, None if it is impossible."""
        if move.kind in (MoveKind.ARRIVE, MoveKind.BURST):
            self._now += SECOND_NS
            shape = self._shapes[move.number]
            workload = arrival_of(shape, len(self._arrivals), self._now)
            key = f"{text_at(workload, 'metadata', 'namespace')}/{text_at(workload, 'metadata', 'name')}"
            self._arrivals.append((key, shape.name, self._now))
            self._scheduler.apply(json.dumps(workload).encode(), now=self._now)
            return key
        if move.kind is MoveKind.END:
            key = self._arrivals[move.number][0] if move.number < len(self._arrivals) else ""
            holding = {state.key for state in self._scheduler.workloads() if _holds_quota(state)}
            if key not in holding:
                return None
            self._now += SECOND_NS
            namespace, _, name = key.partition("/")
            self._scheduler.finish(name, namespace=namespace, now=self._now)
            self._scheduler.delete("Workload", name, namespace=namespace, now=self._now)
            return key
        node = self._nodes[move.number] if move.number < len(self._nodes) else ""
        if not node or node in self._lost:
            return None
        self._lost.add(node)
        self._now += SECOND_NS
        self._scheduler.delete("Node", node, now=self._now)
        return node

    def _settle(self) -> tuple[tuple[Evicted, ...], Course, tuple[int, ...], ReplayEnding]:
        """Run cycles, a second apart, until nothing changes, and on from there whenever the wait of an experiment ends.

        The jobs of evicted workloads stop at once.
        """
        most = _MAX_CYCLES_WITH_WAITS if self._waits.are_on else _MAX_CYCLES
        cycles: list[ReplayedCycle] = []
        visits: dict[str, list[int]] = {}
        idle = 0
        _, first = self._reconcile()
        look = self._look()
        while idle <= self._patience or self._skip_wait():
            idle = 0 if idle > self._patience else idle
            if len(cycles) >= most or self._now > _LAST_NS:
                return first, tuple(cycles), (), ReplayEnding.UNSETTLED
            self._now += SECOND_NS
            decision = self._scheduler.cycle(self._now)
            if decision.cycle == 0:
                # Nobody could be tried, which time alone may change.
                idle = self._patience + 1
                continue
            self._waits.note(decision.preemptions, self._now)
            stopping = [(it.namespace, it.name) for it in (*decision.evictions, *decision.preemptions)]
            n_released = sum(self._release(namespace, name) for namespace, name in stopping)
            n_events, evicted = self._reconcile()
            own = tuple(Evicted(it.key, it.reason, it.message) for it in decision.evictions)
            cycles.append(_cycle(self._seconds, decision, (*own, *evicted)))
            before, look = look, self._look()
            idle = 0 if look != before or n_released or n_events else idle + 1
            if n_released or evicted:
                at = visits.setdefault(self._standing(), [])
                at.append(len(cycles))
                if len(at) >= _MIN_VISITS:
                    return first, tuple(cycles), tuple(at), ReplayEnding.REPEATS
        return first, tuple(cycles), (), ReplayEnding.REST

    def _skip_wait(self) -> bool:
        """Let time pass until the next wait of an experiment ends, when a cycle comes next; False if nobody waits."""
        states = self._scheduler.workloads() if self._waits.are_on else ()
        at = self._waits.next(states, self._now)
        if at is None:
            return False
        for state in states if self._asks_for_readiness else ():
            if _holds_quota(state):
                self._scheduler.note_readiness(state.name, namespace=state.namespace, now=self._now, are_ready=True)
        self._now = max(self._now, at - SECOND_NS)
        return True

    def _reconcile(self) -> tuple[int, tuple[Evicted, ...]]:
        """Let controllers act until nothing follows; the number of events, and who lost quota."""
        n_events, evicted = 0, list[Evicted]()
        while events := self._scheduler.reconcile(self._now):
            n_events += len(events)
            for event in events:
                if event.reason.startswith("Evicted") and self._release(event.namespace, event.name):
                    evicted.append(Evicted(event.key, event.reason.removeprefix("EvictedDueTo"), event.message))
        return n_events, tuple(evicted)

    def _release(self, namespace: str, name: str) -> bool:
        return self._scheduler.release(name, namespace=namespace, now=self._now)

    def _look(self) -> list[tuple[str, str, str | None, bool, JsonValue]]:
        """What a cycle changes, but for messages."""
        states = self._scheduler.workloads()
        self._waits.look(states)
        return [(it.key, it.stage, it.place, _is_evicted(it), it.status.get("admission")) for it in states]

    def _standing(self) -> str:
        """Where the workloads stand and how long they wait, without absolute times; those of one shape are alike."""
        states = {state.key: state for state in self._scheduler.workloads()}
        there = [
            (states[key], shape, self._waits.in_queue_since(states[key], created))
            for key, shape, created in self._arrivals
            if key in states
        ]
        reserved = {_reserved(state) for state, _, _ in there if _holds_quota(state)}
        times = sorted(reserved.union(since for _, _, since in there))
        each = sorted(
            json.dumps(
                [
                    shape,
                    str(state.stage),
                    state.place,
                    _is_evicted(state),
                    bool(state.status.get("requeueState")),
                    times.index(_reserved(state)) if _holds_quota(state) else -1,
                    state.status.get("admission"),
                    times.index(since),
                    self._waits.turn_left(state, self._now),
                ],
                sort_keys=True,
            )
            for state, shape, since in there
        )
        return "\n".join([*each, *self._waits.backoffs_left(self._now)])


def _cycle(at: int, decision: Decision, evicted: tuple[Evicted, ...]) -> ReplayedCycle:
    return ReplayedCycle(
        at,
        tuple(
            Admitted(
                it.key,
                it.cluster_queue,
                {pod_set.name: pod_set.count for pod_set in it.pod_sets},
                _amounts(it.pod_sets),
                it.is_admitted,
            )
            for it in decision.admissions
        ),
        tuple(Preempted(it.key, it.cluster_queue, it.preemptor, it.reason) for it in decision.preemptions),
        evicted,
        tuple(Waiting(it.key, it.cluster_queue, it.message) for it in decision.pending),
    )


def _amounts(pod_sets: Sequence[PodSetAdmission]) -> dict[str, dict[str, tuple[str, ...]]]:
    """The quantities of each pod set, by flavor and resource."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for pod_set in pod_sets:
        for resource, flavor in pod_set.flavors.items():
            of_flavor = found.setdefault(flavor, {})
            of_flavor[resource] = (*of_flavor.get(resource, ()), pod_set.resource_usage.get(resource, "0"))
    return found


def _holds_quota(state: WorkloadState) -> bool:
    return state.stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED)


def _is_evicted(state: WorkloadState) -> bool:
    return any(text_at(it, "type") == "Evicted" and text_at(it, "status") == "True" for it in _conditions(state))


def _reserved(state: WorkloadState) -> int:
    """When it got its quota."""
    times = [text_at(it, "lastTransitionTime") for it in _conditions(state) if text_at(it, "type") == "QuotaReserved"]
    return nanoseconds(times[0]) if times and times[0] else 0


def _message(state: WorkloadState) -> str:
    """What Kueue says about a workload that waits."""
    told = {text_at(it, "type"): text_at(it, "message") for it in _conditions(state)}
    return told.get("QuotaReserved", "") or told.get("Evicted", "")


def _conditions(state: WorkloadState) -> list[JsonValue]:
    return list_at(dict(state.status), "conditions")
