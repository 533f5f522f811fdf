"""Play a scenario: on an engine or whatever else decides, with all that can be seen after each move."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.decisions import Decision, Event
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, UnknownObjectError
from kueuecore.states import QuotaRow, Stage, WorkloadState
from kueuecore.testing.scenario import START, Move, MoveKind, Scenario

__all__ = ["Play", "Told", "first_difference", "observe"]

_SECOND_NS = 1_000_000_000

Observation = dict[str, Any]
"""What can be seen of an engine, as plain data that compares and prints well."""


def observe(engine: Engine) -> Observation:
    """All that an engine tells of itself: workloads with their statuses, queue order, quota and usage, queues.

    Example:
        >>> observe(Engine())
        {'workloads': {}, 'queues': {}, 'quota': {}, 'wake': None}
    """
    return {
        "workloads": {
            workload.key: {
                "stage": str(workload.stage),
                "place": workload.place,
                "clusterQueue": workload.cluster_queue,
                "status": workload.status,
            }
            for workload in engine.workloads()
        },
        "queues": {
            name: {
                "status": engine.cluster_queue(name).status,
                "order": [(waiting.key, waiting.place) for waiting in engine.pending(name)],
            }
            for name in engine.cluster_queues()
        },
        "quota": {_cell(row): _amounts(row) for row in engine.quota()},
        "wake": engine.next_wake(),
    }


def _cell(row: QuotaRow) -> str:
    return f"{row.kind} {row.name}: {row.resource} of {row.flavor}"


def _amounts(row: QuotaRow) -> Observation:
    names = ("parent", "nominal", "borrowing_limit", "lending_limit", "subtree_quota", "usage", "available")
    return {name: getattr(row, name) for name in (*names, "potential_available", "borrowed")}


@dataclass(frozen=True, slots=True)
class Told:
    """What came of one move.

    Args:
        move: The move.
        time: When it happened, in nanoseconds since 1970.
        decision: What the cycle decided, if it was one.
        events: The events of what is written outside of cycles.
        refused: Why the object was not taken; empty if it was.
        missing: Is what the move is about not there?
    """

    move: Move
    time: int
    decision: Decision | None = None
    events: tuple[Event, ...] = ()
    refused: tuple[str, ...] = ()
    missing: bool = False

    def to_json(self) -> Observation:
        """What came of it as plain data, to compare and to print."""
        told: Observation = {"move": str(self.move), "refused": list(self.refused), "missing": self.missing}
        if self.decision is not None:
            told |= {
                "admissions": [
                    {
                        "key": it.key,
                        "clusterQueue": it.cluster_queue,
                        "isAdmitted": it.is_admitted,
                        "podSets": [
                            (each.name, each.count, dict(each.flavors), dict(each.resource_usage))
                            for each in it.pod_sets
                        ],
                    }
                    for it in self.decision.admissions
                ],
                "preemptions": [
                    {"key": it.key, "preemptor": it.preemptor, "reason": it.reason, "message": it.message}
                    for it in self.decision.preemptions
                ],
                "pending": [
                    {"key": it.key, "reason": it.reason, "message": it.message, "isParked": it.is_parked}
                    for it in self.decision.pending
                ],
                "parked": sorted(self.decision.parked),
                "events": [(it.type, it.reason, it.key, it.message) for it in self.decision.events],
            }
        # Of what is written outside of cycles the order is that of the objects; nothing depends on it.
        told["written"] = sorted((it.key, it.reason, it.type, it.message) for it in self.events)
        return told


class Watcher(Protocol):
    """What is called around every move of a play."""

    def before(self, engine: Engine, move: Move) -> None:
        """The move is about to happen."""

    def after(self, engine: Engine, told: Told) -> None:
        """The move has happened, but evicted jobs have not stopped yet."""

    def settled(self, engine: Engine) -> None:
        """All that follows from the move has happened."""


@dataclass(slots=True)
class Play:
    """An engine, the clock of a scenario, and who watches.

    Args:
        engine: The engine; it holds the outcome. After a move `fork` it is the fork.
        watchers: Who is called around every move.

    Example:
        >>> from kueuecore.testing import Move, MoveKind, Scenario
        >>> play = Play.of(Scenario(()))
        >>> play.do(Move(kind=MoveKind.CYCLE)).decision
        <Decision of cycle 0: 0 admitted, 0 preempted, 0 pending>
        >>> play.seconds
        1
    """

    engine: Engine
    watchers: tuple[Watcher, ...] = ()
    seconds: int = 0
    _parents: list[tuple[Engine, Observation]] = field(default_factory=list)

    @classmethod
    def of(
        cls, scenario: Scenario, *, watchers: Iterable[Watcher] = (), batches: Iterable[bytes] | None = None
    ) -> Self:
        """An engine with the objects of a scenario.

        Args:
            scenario: The scenario; its moves are not played yet.
            watchers: Who is called around every move.
            batches: Its objects as JSON in batches, if not all at once and as they stand.

        Raises:
            ManifestError: Everything that is wrong with the objects.
        """
        engine = Engine(scenario.parsed_configuration())
        for batch in [json.dumps(list(scenario.objects)).encode()] if batches is None else batches:
            engine.apply(batch, now=START)
        return cls(engine, tuple(watchers))

    @property
    def now(self) -> int:
        """The time of the last move, in nanoseconds since 1970."""
        return START + self.seconds * _SECOND_NS

    def run(self, moves: Iterable[Move]) -> Iterator[Told]:
        """Play moves, and tell what came of each."""
        for move in moves:
            yield self.do(move)

    def do(self, move: Move) -> Told:
        """Play one move, and tell what came of it.

        Raises:
            AssertionError: A fork has changed what it was forked from.
        """
        self.seconds += 1 + move.seconds
        for watcher in self.watchers:
            watcher.before(self.engine, move)
        told = self._do(move)
        for watcher in self.watchers:
            watcher.after(self.engine, told)
        if move.kind is MoveKind.CYCLE:
            self._stop_evicted_jobs()
        events = (*told.events, *self._reconcile(stop=move.kind is not MoveKind.LINGER))
        for watcher in self.watchers:
            watcher.settled(self.engine)
        return Told(move, told.time, told.decision, events, told.refused, told.missing)

    def pass_by(self, move: Move) -> None:
        """Let the time of a move pass, without the move; what time brings is done."""
        self.seconds += 1 + move.seconds
        self._reconcile(stop=move.kind is not MoveKind.LINGER)

    def check_parents(self) -> None:
        """The engines of which forks were taken are as they were.

        Raises:
            AssertionError: One of them is not.
        """
        for parent, before in self._parents:
            difference = first_difference(before, observe(parent))
            assert difference is None, f"a fork has changed the engine that it was taken of: {difference}"

    def _do(self, move: Move) -> Told:
        try:
            return _MOVES[move.kind](self, move)
        except ManifestError as error:
            return Told(move, self.now, refused=tuple(str(problem) for problem in error.problems))
        except UnknownObjectError:
            return Told(move, self.now, missing=True)

    def _apply(self, move: Move) -> Told:
        given = move.object or {}
        if "status" in given:
            given = {**given, "status": {**self._status(given), **object_at(given, "status")}}
        self.engine.apply(json.dumps(given).encode(), now=self.now)
        return Told(move, self.now)

    def _status(self, given: JsonObject) -> JsonObject:
        """The status of a workload as it is, which a new one patches."""
        namespace, name = text_at(given, "metadata", "namespace"), text_at(given, "metadata", "name")
        try:
            return dict(self.engine.workload(name, namespace=namespace).status)
        except UnknownObjectError:
            return {}

    def _delete(self, move: Move) -> Told:
        namespace, name = _split(move.key)
        found = self.engine.delete(move.object_kind, name, namespace=namespace, now=self.now)
        return Told(move, self.now, missing=not found)

    def _finish(self, move: Move) -> Told:
        namespace, name = _split(move.key)
        self.engine.finish(name, namespace=namespace, now=self.now)
        return Told(move, self.now)

    def _evict(self, move: Move) -> Told:
        namespace, name = _split(move.key)
        state = self.engine.workload(name, namespace=namespace)
        # Kueue evicts only what holds quota.
        if state.stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED):
            self.engine.evict(name, namespace=namespace, now=self.now, reason=move.reason or "Preempted")
        return Told(move, self.now)

    def _cycle(self, move: Move) -> Told:
        return Told(move, self.now, decision=self.engine.cycle(self.now))

    def _fork(self, move: Move) -> Told:
        if isinstance(self.engine, Engine):
            self._parents.append((self.engine, observe(self.engine)))
        self.engine = self.engine.fork()
        return Told(move, self.now)

    def _wait(self, move: Move) -> Told:
        return Told(move, self.now)

    def _stop_evicted_jobs(self) -> None:
        for workload in self.engine.workloads():
            if holds_quota(workload) and is_evicted(workload):
                self.engine.release(workload.name, namespace=workload.namespace, now=self.now)

    def _reconcile(self, *, stop: bool) -> tuple[Event, ...]:
        written: list[Event] = []
        while events := self.engine.reconcile(self.now):
            written += events
            if stop:
                self._stop_evicted_jobs()
            assert len(written) < 10_000, "what is written outside of cycles comes to no end"
        return tuple(written)


_MOVES: Mapping[MoveKind, Callable[[Play, Move], Told]] = {
    MoveKind.APPLY: Play._apply,
    MoveKind.DELETE: Play._delete,
    MoveKind.FINISH: Play._finish,
    MoveKind.EVICT: Play._evict,
    MoveKind.CYCLE: Play._cycle,
    MoveKind.LINGER: Play._cycle,
    MoveKind.FORK: Play._fork,
    MoveKind.WAIT: Play._wait,
}


def holds_quota(workload: WorkloadState) -> bool:
    """Does a workload hold quota?"""
    return workload.stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED)


def is_evicted(workload: WorkloadState) -> bool:
    """Is the condition Evicted of a workload True?"""
    conditions = workload.status.get("conditions", ())
    return any(it["type"] == "Evicted" and it["status"] == "True" for it in conditions)


def first_difference(one: object, other: object, path: str = "") -> str | None:
    """Where two observations differ first, and how; `None` if they do not.

    Example:
        >>> print(first_difference({"a": [1, 2]}, {"a": [1, 3]}))
        a[1]: 2 is not 3
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in [*one, *(key for key in other if key not in one)]:
            place = f"{path}.{key}" if path else str(key)
            if key not in one or key not in other:
                side = one if key in one else other
                return f"{place}: only in the {'first' if key in one else 'second'}: {side[key]!r}"
            if (found := first_difference(one[key], other[key], place)) is not None:
                return found
        return None
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        for index, (left, right) in enumerate(zip(one, other, strict=False)):
            if (found := first_difference(left, right, f"{path}[{index}]")) is not None:
                return found
        if len(one) != len(other):
            return f"{path}: {list(one)!r} is not {list(other)!r}"
        return None
    return None if one == other else f"{path}: {one!r} is not {other!r}"


def _split(key: str) -> tuple[str, str]:
    namespace, _, name = key.rpartition("/")
    return namespace, name
