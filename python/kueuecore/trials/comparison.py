"""Compares the engine with the reference model, move by move: both must decide, write, count and queue the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from kueuecore._json import JsonValue
from kueuecore.engine import Engine
from kueuecore.reference import World
from kueuecore.states import WorkloadState
from kueuecore.testing.engine_view import EngineView, holds_quota
from kueuecore.testing.history import History, Move
from kueuecore.testing.invariants import amount
from kueuecore.testing.move_result import MoveResult, Observation
from kueuecore.testing.play import Play, Watcher, first_difference
from kueuecore.trials.reference_engine import ReferenceEngine

__all__ = ["Comparison", "compare"]


class Comparison:
    """An engine and the reference that play the same moves.

    Args:
        scenario: Their initial objects and Configuration; its moves are not played yet.
        watchers: Watchers of the engine.
        echo: Whether the engine sees its own decisions, as a controller does.

    Example:
        >>> from kueuecore.testing import Move, MoveKind, History
        >>> Comparison(History(())).do(Move(kind=MoveKind.CYCLE)).decision
        <Decision of cycle 0: 0 admitted, 0 preempted, 0 pending>
    """

    def __init__(self, scenario: History, *, watchers: Iterable[Watcher] = (), echo: bool = True) -> None:
        self.play = Play.of(scenario, watchers=watchers, echo=echo)
        self._reference = ReferenceEngine.of(scenario)
        # It has all that a play needs.
        self.reference: Play = Play(cast(Engine, self._reference))

    @property
    def world(self) -> World:
        """The world of the reference."""
        return self._reference.world

    def do(self, move: Move) -> MoveResult:
        """Play a move on both, and compare all that can be observed.

        Raises:
            AssertionError: They differ; the message says where first, with the engine's value before the reference's.
        """
        reported = self.play.do(move)
        if reported.refused:
            # The reference validates nothing.
            self.reference.pass_by(move)
        else:
            answer = self.reference.do(move)
            difference = first_difference(_sorted(reported.to_json()), _sorted(answer.to_json()))
            assert difference is None, f"after {move}, the engine and the reference differ: {difference}"
        difference = first_difference(_seen_of_engine(self.play.seen), self._seen_of_reference())
        assert difference is None, f"after {move}, the states of engine and reference differ: {difference}"
        return reported

    def _seen_of_reference(self) -> Observation:
        world = self._reference.world
        usage: dict[str, int] = {}
        forest = world.cache.forest
        for kind, nodes in (("ClusterQueue", forest.cluster_queues), ("Cohort", forest.cohorts)):
            for name, node in nodes.items():
                for (flavor, resource), used in world.cache.used.of(node).items():
                    if used:
                        usage[f"{kind} {name}: {resource} of {flavor}"] = used if resource == "cpu" else used * 1000
        return {
            "statuses": {workload.key: _status(workload) for workload in self._reference.workloads()},
            "usage": usage,
            "order": {name: world.pending(name) for name in world.queues},
        }


def compare(scenario: History, *, watchers: Iterable[Watcher] = (), echo: bool = True) -> None:
    """Play a scenario on the engine and on the reference, and compare after every move.

    Args:
        scenario: The scenario.
        watchers: Watchers of the engine.
        echo: Whether the engine sees its own decisions, as a controller does.

    Raises:
        AssertionError: They differ, which is a bug in one of them.

    Example:
        >>> from kueuecore.testing import History
        >>> compare(History(()))
    """
    comparison = Comparison(scenario, watchers=watchers, echo=echo)
    for move in scenario.moves:
        comparison.do(move)
    comparison.play.check_parents()


def _seen_of_engine(seen: EngineView) -> Observation:
    usage = {
        f"{row.kind} {row.name}: {row.resource} of {row.flavor}": amount(row.usage)
        for row in seen.quota
        if row.usage != "0"
    }
    return {
        "statuses": {key: _status(state) for key, state in seen.states.items()},
        "usage": usage,
        "order": {name: [(pair.key, pair.place) for pair in order] for name, order in seen.orders.items()},
    }


def _status(workload: WorkloadState) -> JsonValue:
    """Return a status with its conditions by type, as their order has no meaning."""
    status = {name: value for name, value in workload.status.items() if value}
    conditions = {condition["type"]: condition for condition in status.pop("conditions", ())}
    return {**status, "conditions": conditions, "holds": holds_quota(workload)}


def _sorted(reported: Observation) -> Observation:
    """Sort events and pending heads: Kueue has several threads, and takes heads in any order."""
    pending = sorted(reported.get("pending", []), key=lambda value: str(value["key"]))
    return {**reported, "events": sorted(reported.get("events", [])), "pending": pending}
