"""Counterexamples of `kueuecore prove` as cases for a released Kueue, and what it does with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.configuration import Configuration
from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import MoveKind
from kueuecore.proving.replay import arrival_of, replay
from kueuecore.proving.replayed import Replay
from kueuecore.releases import Release
from kueuecore.steady_state import most_flavors
from kueuecore.testing.history import START
from kueuecore.times import SECOND_NS, format_time
from tests.judge.gates import settled
from tests.judge.stored import stored, with_defaults

__all__ = ["Evicting", "case_of", "evictions_of", "turns"]

# Settings of the Configuration that a played run knows.
_SETTINGS = ("fairSharing", "admissionFairSharing", "waitForPodsReady", "resources")
_LEAST_CYCLES = 60
_TURNS = 4
# No test waits for so many cycles.
_SECONDS_BETWEEN = 1000


@dataclass(frozen=True, slots=True)
class Evicting:
    """A preemption.

    Args:
        key: Who is preempted.
        preemptor: For whom.
        reason: Kueue's reason.
    """

    key: str
    preemptor: str
    reason: str


def case_of(counterexample: Counterexample, name: str, release: Release) -> dict[str, Any]:
    """Return a counterexample as a case: objects, and its moves as events, with time for cycles in between.

    Args:
        counterexample: The counterexample.
        name: The name of the case.
        release: The release of Kueue that plays it.
    """
    facts, played = counterexample.facts, replay(counterexample)
    n_cycles = sum(len(move.cycles) for move in played.moves) + _TURNS * len(played.turn)
    config: JsonObject = _settings(facts.configuration)
    # Where nothing waits for pods, nobody says that they are ready.
    job: JsonObject = {"readySeconds": [0]} if "waitForPodsReady" in config else {}
    # Objects without times are from the time that the harness gives them.
    start = facts.now or START
    config |= {"now": format_time(start), "cycleStepMs": 1000, "maxCycles": max(_LEAST_CYCLES, n_cycles)}
    config["quietCycles"] = 1 + max(1, most_flavors(facts.engine))
    return {
        "id": name,
        "kind": "trace",
        "kueue": release.tag,
        "featureGates": settled(_gates(facts.configuration), release),
        "config": config,
        "objects": [stored(manifest.object) for manifest in facts.world.manifests],
        "input": {"events": [{**job, **event} for event in _events(counterexample, played, start)]},
    }


def _settings(configuration: Configuration | None) -> JsonObject:
    if configuration is None:
        return {}
    usual, own = Configuration(release=configuration.release).to_dict(), configuration.to_dict()
    found = {name: own[name] for name in _SETTINGS if name in own and own[name] != usual.get(name)}
    if "waitForPodsReady" in found:
        found["waitForPodsReady"] = with_defaults(object_at(found, "waitForPodsReady"))
    return found


def _gates(configuration: Configuration | None) -> JsonObject:
    return {} if configuration is None else object_at(configuration.to_dict(), "featureGates")


def _events(counterexample: Counterexample, played: Replay, start: int) -> Iterable[JsonObject]:
    at = n_arrivals = 0
    for move in played.moves:
        match move.move.kind:
            case MoveKind.ARRIVE | MoveKind.BURST:
                created = start + move.at * SECOND_NS
                workload = arrival_of(counterexample.shapes[move.move.number], n_arrivals, created)
                yield {"at": at, "op": "create", "object": stored(workload)}
                n_arrivals += 1
            case MoveKind.END:
                yield {"at": at, "op": "finish", "key": move.subject}
                yield {"at": at, "op": "delete", "key": move.subject}
            case MoveKind.LOSE:
                yield {"at": at, "op": "delete", "kind": "Node", "key": move.subject}
        # What arrives in a burst is there before the next cycle.
        at += 0 if move.move.kind is MoveKind.BURST else _SECONDS_BETWEEN


def evictions_of(answer: dict[str, Any]) -> list[Evicting]:
    """Return the preemptions of an answer, in order; those of one cycle by key."""
    found: list[Evicting] = []
    for cycle in answer["cycles"]:
        rows = sorted(map(object_at, list_at(cycle, "preempting")), key=lambda it: text_at(it, "key"))
        found += [Evicting(text_at(it, "key"), text_at(it, "preemptor"), text_at(it, "reason")) for it in rows]
    return found


def turns(evictions: Sequence[Evicting], played: Replay) -> int:
    """Return how many turns of a loop are at the end of preemptions, whole ones."""
    turn = [
        Evicting(it.key, it.preemptor, it.reason)
        for cycle in played.turn
        for it in sorted(cycle.preempted, key=lambda it: it.key)
    ]
    if not turn:
        return 0
    # A run may be cut off anywhere in a turn.
    return max(_repeated(evictions[: len(evictions) - cut], turn) for cut in range(len(turn)))


def _repeated(evictions: Sequence[Evicting], turn: Sequence[Evicting]) -> int:
    n = 0
    while list(evictions[len(evictions) - (n + 1) * len(turn) : len(evictions) - n * len(turn)]) == list(turn):
        n += 1
    return n
