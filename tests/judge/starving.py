"""Cases of workloads that starve, which go on: whoever ends is followed by another like it."""

from __future__ import annotations

import json
from typing import Any

from kueuecore._json import JsonObject, list_at, text_at
from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import MoveKind
from kueuecore.proving.replay import arrival_of, replay
from kueuecore.states import Stage, WorkloadState
from kueuecore.steady_state import settle
from kueuecore.times import SECOND_NS, nanoseconds
from tests.judge.stored import stored

__all__ = ["goes_on"]

# So often, each of those that run is followed by another.
_TURNS = 3
_SECONDS_BETWEEN = 1000
_CYCLES_A_ROUND = 20


def goes_on(counterexample: Counterexample, case: dict[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the case of a counterexample with rounds after its moves, and the keys of those that wait through all.

    In each round the workload that has run longest ends, and another of its shape arrives before the next cycle.
    """
    engine = counterexample.facts.engine.fork()
    played = replay(counterexample, engine)
    shape_of = {
        move.subject: counterexample.shapes[move.move.number]
        for move in played.moves
        if move.move.kind in (MoveKind.ARRIVE, MoveKind.BURST)
    }
    at = max((event["at"] for event in case["input"]["events"]), default=0)
    events: list[JsonObject] = []
    states = engine.workloads()
    waiting = {it.key for it in states if it.stage is Stage.PENDING}
    for _ in range(_TURNS * sum(map(_runs, states))):
        longest = min(filter(_runs, engine.workloads()), key=lambda it: (_since(it), list(shape_of).index(it.key)))
        at += _SECONDS_BETWEEN
        now = counterexample.facts.now + at * SECOND_NS
        engine.finish(longest.name, namespace=longest.namespace, now=now)
        engine.delete("Workload", longest.name, namespace=longest.namespace, now=now)
        shape = shape_of[longest.key]
        workload = arrival_of(shape, len(shape_of), now)
        shape_of[f"{longest.namespace}/{text_at(workload, 'metadata', 'name')}"] = shape
        engine.apply(json.dumps(workload).encode(), now=now)
        events += [{"at": at, "op": op, "key": longest.key} for op in ("finish", "delete")]
        events.append({"at": at, "op": "create", "object": stored(workload)})
        settle(engine, now=now + SECOND_NS)
        waiting &= {it.key for it in engine.workloads() if it.stage is Stage.PENDING}
    config = {**case["config"], "maxCycles": case["config"]["maxCycles"] + _CYCLES_A_ROUND * len(events)}
    if "waitForPodsReady" in config:
        events = [{"readySeconds": [0], **event} for event in events]
    all_events = [*case["input"]["events"], *events]
    return {**case, "config": config, "input": {**case["input"], "events": all_events}}, frozenset(waiting)


def _runs(state: WorkloadState) -> bool:
    return state.stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED)


def _since(state: WorkloadState) -> int:
    times = {text_at(it, "type"): text_at(it, "lastTransitionTime") for it in list_at(dict(state.status), "conditions")}
    return nanoseconds(times["QuotaReserved"])
