"""Plays a scenario on an engine or another decider, with all that can be observed after each move."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, Self

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.decisions import Event
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, UnknownObjectError
from kueuecore.states import QuotaRow
from kueuecore.testing.engine_view import EngineView, holds_quota, is_evicted
from kueuecore.testing.history import START, History, Move, MoveKind
from kueuecore.testing.move_result import MoveResult, Observation
from kueuecore.testing.watch_echo import Echo
from kueuecore.times import SECOND_NS, format_time

__all__ = ["MoveResult", "Play", "first_difference", "observe"]


def observe(engine: Engine) -> Observation:
    """Return all that an engine reports about itself: workloads and statuses, queue order, quota and usage, queues.

    Example:
        >>> observe(Engine())
        {'workloads': {}, 'queues': {}, 'quota': {}, 'wake': None}
    """
    return observed(EngineView(engine))


def observed(seen: EngineView) -> Observation:
    """Return the same from an existing snapshot."""
    return {
        "workloads": {
            workload.key: {
                "stage": str(workload.stage),
                "place": workload.place,
                "clusterQueue": workload.cluster_queue,
                "status": workload.status,
            }
            for workload in seen.workloads
        },
        "queues": {
            name: {
                "status": seen.cluster_queues[name].status,
                "order": [(waiting.key, waiting.place) for waiting in order],
            }
            for name, order in seen.orders.items()
        },
        "quota": {_cell(row): _amounts(row) for row in seen.quota},
        "wake": seen.engine.next_wake(),
    }


def _cell(row: QuotaRow) -> str:
    return f"{row.kind} {row.name}: {row.resource} of {row.flavor}"


def _amounts(row: QuotaRow) -> Observation:
    names = ("parent", "nominal", "borrowing_limit", "lending_limit", "subtree_quota", "usage", "available")
    return {name: getattr(row, name) for name in (*names, "potential_available", "borrowed")}


class Watcher(Protocol):
    """The callbacks around every move of a play. They only read."""

    def before(self, seen: EngineView, move: Move) -> None:
        """Called before a move."""

    def after(self, seen: EngineView, result: MoveResult) -> None:
        """Called after a move, before evicted jobs have stopped."""

    def settled(self, seen: EngineView) -> None:
        """Called once everything that follows from the move has happened."""


class Play:
    """An engine that plays moves, with the clock of the scenario and its watchers.

    Args:
        engine: The engine.
        watchers: Called around every move.
        seconds: How much time has passed since the beginning of the scenario.
        echo: Re-applies decisions, as a watch delivers them to a controller; this changes only saturated sums.

    Example:
        >>> from kueuecore.testing import Move, MoveKind, History
        >>> play = Play.of(History(()))
        >>> play.do(Move(kind=MoveKind.CYCLE)).decision
        <Decision of cycle 0: 0 admitted, 0 preempted, 0 pending>
        >>> play.seconds
        1
    """

    def __init__(
        self, engine: Engine, watchers: Iterable[Watcher] = (), *, seconds: int = 0, echo: Echo | None = None
    ) -> None:
        self._engine = engine
        self.watchers = tuple(watchers)
        self.seconds = seconds
        self._echo = echo
        self._seen: EngineView | None = None
        self._is_shared = False
        self._parents: list[tuple[Engine, Observation]] = []

    @property
    def engine(self) -> Engine:
        """The current engine; after a move `fork` it is the fork."""
        # The caller may change it between two moves.
        self._is_shared = True
        return self._engine

    @property
    def seen(self) -> EngineView:
        """The snapshot of the engine between two moves."""
        if self._seen is None or self._is_shared:
            self._seen = EngineView(self._engine)
        return self._seen

    @classmethod
    def of(
        cls,
        scenario: History,
        *,
        watchers: Iterable[Watcher] = (),
        batches: Iterable[bytes] | None = None,
        echo: bool = False,
    ) -> Self:
        """Create a play on an engine with the objects of a scenario.

        Args:
            scenario: The scenario; its moves are not played yet.
            watchers: Called around every move.
            batches: Its objects as JSON in batches, if not all at once and as they are.
            echo: Whether decisions are re-applied, as a watch delivers them to a controller.

        Raises:
            ManifestError: All problems of the objects.
        """
        engine = Engine(scenario.parsed_configuration(), batches_retries=scenario.batches_retries)
        for batch in [json.dumps(list(scenario.objects)).encode()] if batches is None else batches:
            engine.apply(batch, now=START)
        return cls(engine, watchers, echo=Echo(scenario) if echo else None)

    @property
    def now(self) -> int:
        """The time of the last move, in nanoseconds since 1970."""
        return START + self.seconds * SECOND_NS

    def run(self, moves: Iterable[Move]) -> Iterator[MoveResult]:
        """Play moves and return the result of each."""
        for move in moves:
            yield self.do(move)

    def do(self, move: Move) -> MoveResult:
        """Play one move and return its result.

        Raises:
            AssertionError: A fork has changed the engine that it was forked from.
        """
        self.seconds += 1 + move.seconds
        seen = self.seen
        if self._echo is not None:
            self._echo.look(seen)
        for watcher in self.watchers:
            watcher.before(seen, move)
        result = self._do(move)
        seen = EngineView(self._engine)
        for watcher in self.watchers:
            watcher.after(seen, result)
        if self._echo is not None and self._echo.bring(seen, result):
            seen = EngineView(self._engine)
        if move.kind is MoveKind.CYCLE:
            self._stop_evicted_jobs(seen)
        events = (*result.events, *self._reconcile(stop=move.kind is not MoveKind.LINGER))
        self._seen = seen = EngineView(self._engine)
        for watcher in self.watchers:
            watcher.settled(seen)
        return MoveResult(move, result.time, result.decision, events, result.refused, result.missing)

    def pass_by(self, move: Move) -> None:
        """Let the time of a move pass without the move; whatever is due happens."""
        self.seconds += 1 + move.seconds
        self._reconcile(stop=move.kind is not MoveKind.LINGER)
        self._seen = None

    def check_parents(self) -> None:
        """Check that the engines from which forks were taken have not changed.

        Raises:
            AssertionError: One of them has changed.
        """
        for parent, before in self._parents:
            difference = first_difference(before, observe(parent))
            assert difference is None, f"a fork has changed the engine that it was taken of: {difference}"

    def _do(self, move: Move) -> MoveResult:
        try:
            return _MOVES[move.kind](self, move)
        except ManifestError as error:
            return MoveResult(move, self.now, refused=tuple(str(problem) for problem in error.problems))
        except UnknownObjectError:
            return MoveResult(move, self.now, missing=True)

    def _apply(self, move: Move) -> MoveResult:
        given = move.object or {}
        if "status" in given and given.get("kind") == "Workload":
            before, patch = self._status(given), object_at(given, "status")
            if "admissionChecks" in patch:
                patch = {**patch, "admissionChecks": self._answered(before, list_at(patch, "admissionChecks"))}
            if "conditions" in patch:
                patch = {**patch, "conditions": self._told(before, list_at(patch, "conditions"))}
            given = {**given, "status": {**before, **patch}}
        self._engine.apply(json.dumps(given).encode(), now=self.now)
        return MoveResult(move, self.now)

    def _status(self, given: JsonObject) -> JsonObject:
        """Return the current status of a workload, which a new one patches."""
        namespace, name = text_at(given, "metadata", "namespace"), text_at(given, "metadata", "name")
        try:
            return dict(self._engine.workload(name, namespace=namespace).status)
        except UnknownObjectError:
            return {}

    def _answered(self, before: JsonObject, answers: list[JsonValue]) -> list[JsonValue]:
        """Return the states of a workload's checks; answers for checks that it does not require are ignored."""
        new = {text_at(answer, "name"): object_at(answer) for answer in answers}
        at: JsonObject = {"lastTransitionTime": format_time(self.now)}
        states = map(object_at, list_at(before, "admissionChecks"))
        return [{**new[name], **at} if (name := text_at(state, "name")) in new else state for state in states]

    def _told(self, before: JsonObject, result: list[JsonValue]) -> list[JsonValue]:
        """Return the workload's conditions with the given ones set; a missing transition time means now."""
        new = {
            text_at(value, "type"): {"lastTransitionTime": format_time(self.now), **object_at(value)}
            for value in result
        }
        return [
            condition for condition in list_at(before, "conditions") if text_at(condition, "type") not in new
        ] + list(new.values())

    def _delete(self, move: Move) -> MoveResult:
        namespace, name = _split(move.key)
        found = self._engine.delete(move.object_kind, name, namespace=namespace, now=self.now)
        return MoveResult(move, self.now, missing=not found)

    def _finish(self, move: Move) -> MoveResult:
        namespace, name = _split(move.key)
        self._engine.finish(name, namespace=namespace, now=self.now)
        return MoveResult(move, self.now)

    def _evict(self, move: Move) -> MoveResult:
        namespace, name = _split(move.key)
        state = self._engine.workload(name, namespace=namespace)
        # Kueue evicts only workloads that hold quota, and only once: the job of an evicted workload stops.
        if is_evicted(state):
            self._engine.release(name, namespace=namespace, now=self.now)
        elif holds_quota(state):
            self._engine.evict(name, namespace=namespace, now=self.now, reason=move.reason or "Preempted")
        return MoveResult(move, self.now)

    def _cycle(self, move: Move) -> MoveResult:
        return MoveResult(move, self.now, decision=self._engine.cycle(self.now))

    def _fork(self, move: Move) -> MoveResult:
        if isinstance(self._engine, Engine):
            self._parents.append((self._engine, observed(self.seen)))
        self._engine = self._engine.fork()
        return MoveResult(move, self.now)

    def _wait(self, move: Move) -> MoveResult:
        return MoveResult(move, self.now)

    def _stop_evicted_jobs(self, seen: EngineView) -> None:
        for workload in seen.workloads:
            if holds_quota(workload) and is_evicted(workload):
                self._engine.release(workload.name, namespace=workload.namespace, now=self.now)

    def _reconcile(self, *, stop: bool) -> tuple[Event, ...]:
        written: list[Event] = []
        while events := self._engine.reconcile(self.now):
            written += events
            if stop:
                self._stop_evicted_jobs(EngineView(self._engine))
            assert len(written) < 10_000, "what is written outside of cycles comes to no end"
        return tuple(written)


_MOVES: Mapping[MoveKind, Callable[[Play, Move], MoveResult]] = {
    MoveKind.APPLY: Play._apply,
    MoveKind.DELETE: Play._delete,
    MoveKind.FINISH: Play._finish,
    MoveKind.EVICT: Play._evict,
    MoveKind.CYCLE: Play._cycle,
    MoveKind.LINGER: Play._cycle,
    MoveKind.FORK: Play._fork,
    MoveKind.WAIT: Play._wait,
}


def first_difference(one: object, other: object, path: str = "") -> str | None:
    """Return where two observations first differ, and how; `None` if they do not.

    Example:
        >>> print(first_difference({"a": [1, 2]}, {"a": [1, 3]}))
        a[1]: 2 is not 3
    """
    if one == other:
        return None
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
    return f"{path}: {one!r} is not {other!r}"


def _split(key: str) -> tuple[str, str]:
    namespace, _, name = key.rpartition("/")
    return namespace, name
