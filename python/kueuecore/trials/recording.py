"""Records histories with the answers of the reference, one on each line, so that they can be played without Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from kueuecore._json import JsonObject
from kueuecore.engine import Engine
from kueuecore.reference import quantity
from kueuecore.reference.amount import UNLIMITED
from kueuecore.reference.world import World
from kueuecore.states import WorkloadState
from kueuecore.testing.history import History, Move, MoveKind
from kueuecore.testing.play import Play
from kueuecore.trials.comparison import Comparison
from kueuecore.trials.reference_engine import ReferenceEngine

__all__ = ["answers", "recorded", "without_refusals"]

EngineView = dict[str, dict[str, Any]]


def answers(scenario: History) -> list[JsonObject]:
    """Return the answers of the reference to a scenario: at first, and after each move.

    Each answer reports what the move returned, and which statuses, quota and queue orders have changed; null marks what
    is gone. No move may be refused, as the reference validates nothing.

    Example:
        >>> from kueuecore.testing import Move, MoveKind, History
        >>> answers(History((), (Move(kind=MoveKind.WAIT, seconds=9),)))
        [{}, {}]
    """
    return [answer for _, answer in _played(scenario)]


def recorded(scenario: History) -> str:
    """Return a scenario with its answers as a line of JSON, which `History.from_line` reads, too.

    It holds objects as they were applied: a status patch is recorded as the whole status.
    """
    (_, first), *others = _played(without_refusals(scenario))
    moves = [move for move, _ in others if move is not None]
    fields = json.loads(scenario.with_moves(moves).to_line())
    return _line({**fields, "answers": [first, *(answer for _, answer in others)]})


def without_refusals(scenario: History) -> History:
    """Return the scenario with refused moves replaced by waiting, as no scheduling rule decides refusals.

    Raises:
        AssertionError: The engine and the reference differ.
    """
    comparison = Comparison(scenario)
    moves = []
    for move in scenario.moves:
        is_refused = bool(comparison.do(move).refused)
        moves.append(Move(kind=MoveKind.WAIT, seconds=move.seconds) if is_refused else move)
    return scenario.with_moves(moves)


class _Reference(ReferenceEngine):
    """Remembers the last applied object."""

    applied: JsonObject | None = None

    def apply(self, objects: bytes, *, now: int) -> None:
        """Create or update an object."""
        self.applied = json.loads(objects)
        super().apply(objects, now=now)


def _played(scenario: History) -> Iterator[tuple[Move | None, JsonObject]]:
    """Yield each move with the object as applied, and its answer; the first answer has no move."""
    reference = _Reference.of(scenario)
    # It has all that a play needs.
    play = Play(cast(Engine, reference))
    before = _seen(reference)
    yield None, _plain(_changes({}, before))
    for move in scenario.moves:
        reported = play.do(move).to_json()
        del reported["move"]
        reported["pending"] = sorted(reported.get("pending", []), key=lambda json_value: str(json_value["key"]))
        for unordered in ("events", "written"):
            reported[unordered] = sorted(reported.get(unordered, []), key=_line)
        after = _seen(reference)
        answer = {name: value for name, value in reported.items() if value} | _changes(before, after)
        before = after
        yield (replace(move, object=reference.applied) if move.object else move), _plain(answer)


def _plain(answer: JsonObject) -> JsonObject:
    """Turn tuples into lists, and copy everything shared with the reference."""
    found: JsonObject = json.loads(_line(answer))
    return found


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _changes(before: EngineView, after: EngineView) -> JsonObject:
    """Return what is new or changed in each part; null is gone."""
    changed = {
        part: {
            key: values.get(key)
            for key in sorted({*before.get(part, {}), *values})
            if before.get(part, {}).get(key) != values.get(key)
        }
        for part, values in after.items()
    }
    return {part: values for part, values in changed.items() if values}


def _seen(reference: ReferenceEngine) -> EngineView:
    world = reference.world
    return {
        "statuses": {workload.key: _status(workload) for workload in reference.workloads()},
        "quota": dict(_quota(world)),
        "order": {name: world.pending(name) for name in sorted(world.queues)},
    }


def _status(workload: WorkloadState) -> JsonObject:
    """Return a status with its conditions by type, as their order has no meaning."""
    status = json.loads(json.dumps(dict(workload.status)))
    conditions = status.pop("conditions", None) or []
    status["conditions"] = {
        condition["type"]: {k: v for k, v in condition.items() if k != "type"} for condition in conditions
    }
    return {name: value for name, value in status.items() if value not in ({}, [], None)}


def _quota(world: World) -> Iterator[tuple[str, Any]]:
    """Yield usage, nominal quota, subtree quota, available and potentially available quota; null is unlimited."""
    nodes = {"ClusterQueue": world.cache.forest.cluster_queues, "Cohort": world.cache.forest.cohorts}
    for row in world.quota():
        kind, name, resource = row["kind"], row["name"], row["resource"]
        node, fr = nodes[kind][name], (row["flavor"], resource)
        # A tree with a cycle is not recomputed: its numbers mean nothing (rules/02 §4 rule 5).
        if node.has_cycle or (not row["usage"] and fr not in node.subtree):
            continue
        # If quota is overused, nothing is available.
        amounts = [row["nominal"], node.subtree.get(fr, 0), row["available"], node.potential.get(fr, 0)]
        texts = [None if amount in (None, UNLIMITED) else quantity.text(resource, max(0, amount)) for amount in amounts]
        yield f"{kind} {name}: {resource} of {row['flavor']}", [quantity.text(resource, row["usage"]), *texts]
