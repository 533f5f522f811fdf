"""Counterexamples of `kueuecore prove`, judged: what the search saw, the reference, and a released Kueue."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from kueuecore._json import JsonObject, list_at, object_at, text_at, texts_at
from kueuecore.configuration import Configuration
from kueuecore.findings.building import facts_of
from kueuecore.findings.facts import Facts
from kueuecore.manifests import Manifest
from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import Property
from kueuecore.proving.replay import replay
from kueuecore.proving.replayed import Replay, ReplayedCycle, ReplayEnding
from kueuecore.reference import World
from kueuecore.releases import Release
from kueuecore.trials.reference_engine import ReferenceEngine
from tests.judge.comparing import differing, parts
from tests.judge.counterexamples import case_of, evictions_of, turns
from tests.judge.gates import settled
from tests.judge.oracle import Oracle, Verdict
from tests.judge.playing import answered, are_alike, beyond_chance, judgeable, most
from tests.judge.starving import goes_on
from tests.judge.unplayed import unplayed

__all__ = ["Judgement", "at_release", "judged", "reference_of", "seen_in", "seen_in_answer"]

# A loop that a case plays so often again goes on for ever, as far as anybody can see.
_TURNS = 3
# Where Kueue ranges over a Go map of two, the second entry comes first once in eight plays.
_PLAYS = 24
# After the last move, cycles that do something are over by then.
_SECONDS_TO_REST = 500
# Cycles name who is preempted; what follows when the job has stopped is no news.
_PREEMPTED = "Preempted"

_HEAD = ("apiVersion", "kind")

Seen = tuple[str, ...]
"""What happened in one cycle, a line for each workload, in their order."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What came of one counterexample.

    Args:
        counterexample: The counterexample, for the release of Kueue that played it.
        is_loop: Whether the engine of that release loops.
        n_plays: How often Kueue played it.
        n_loops: In how many of these plays it went through the loop again and again.
        n_evictions: How many workloads lost quota in the first of them.
        differences: Where somebody does something that Kueue never does; empty if all agree.
        is_chance: Whether chance decides in Kueue what happens.
        error: Why Kueue cannot play it, or what failed there.
    """

    counterexample: Counterexample
    is_loop: bool
    n_plays: int = 0
    n_loops: int = 0
    n_evictions: int = 0
    differences: tuple[str, ...] = ()
    is_chance: bool = False
    error: str = ""

    @property
    def is_confirmed(self) -> bool:
        """Whether all do the same, and Kueue always loops if the engine does."""
        return not self.error and not self.differences and self.n_loops == (self.n_plays if self.is_loop else 0)


def judged(counterexample: Counterexample, name: str, release: Release, oracle: Oracle) -> Judgement:
    """Play a counterexample with a release of Kueue, its engine, and the reference, and compare all that happens.

    Args:
        counterexample: The counterexample.
        name: The name of the case.
        release: The release of Kueue that plays it.
        oracle: The program that plays that release.

    Raises:
        OracleError: The program does not start, or what it writes is no answer.
    """
    found = at_release(counterexample, release)
    by_engine, by_reference = replay(found), replay(found, reference_of(found.facts))
    is_loop = by_engine.ending is ReplayEnding.REPEATS
    case = case_of(found, name, release)
    plays = oracle.plays(case, _PLAYS)
    failed = [verdict.crash or verdict.error for verdict in plays if not verdict.answer]
    if failed:
        return Judgement(found, is_loop, error=failed[0])
    sides = {"the engine": by_engine, "the reference": by_reference}
    differences = [*_in_case(case, plays), *(line for by in sides for line in _in_replay(by, sides[by], plays))]
    if found.breaks is Property.STARVATION:
        differences += _starving(found, case, oracle)
    if found.instead:
        other = replace(found, moves=found.instead, instead=())
        differences += judged(other, f"{name}, the other order", release, oracle).differences
    seen = [line for lines in seen_in_answer(plays[0].answer) for line in lines]
    return Judgement(
        found,
        is_loop,
        n_plays=len(plays),
        n_loops=sum(turns(evictions_of(verdict.answer), by_engine) >= _TURNS for verdict in plays),
        n_evictions=sum(not line.startswith("admitted") for line in seen),
        differences=tuple(differences),
        is_chance=not are_alike(plays) or not all(map(judgeable, plays)),
    )


def at_release(counterexample: Counterexample, release: Release) -> Counterexample:
    """Return a counterexample whose engine decides as another release does."""
    facts = counterexample.facts
    configuration = Configuration(release=release)
    if facts.configuration is not None:
        # What is left out has other defaults in other releases.
        own, usual = (it.to_dict() for it in (facts.configuration, Configuration(release=facts.configuration.release)))
        gates = settled(object_at(own, "featureGates"), release)
        kept = {name: value for name, value in own.items() if name in _HEAD or value != usual.get(name)}
        text = json.dumps({name: value for name, value in kept.items() if name != "featureGates"})
        is_on = {name: bool(value) for name, value in gates.items()}
        configuration = Configuration.parse(text, feature_gates=is_on, release=release)
    loaded = facts_of(facts.given, configuration=configuration, now=facts.now, trusted=facts.world.trusted)
    return replace(counterexample, facts=loaded)


def reference_of(facts: Facts) -> ReferenceEngine:
    """Return the reference model with the same objects and the same release."""
    configuration = {} if facts.configuration is None else facts.configuration.to_dict()
    if facts.configuration is not None:
        configuration["kueue"] = facts.configuration.release.name
    found = ReferenceEngine(World((), configuration=configuration, now=facts.now))
    # LocalQueues come last, when their ClusterQueues are there.
    found._put([it.object for it in sorted(facts.world.manifests, key=_is_local_queue)], facts.now)
    return found


def _is_local_queue(manifest: Manifest) -> bool:
    return text_at(manifest.object, "kind") == "LocalQueue"


def _in_case(case: dict[str, Any], plays: Sequence[Verdict]) -> Iterator[str]:
    """Tell where engine and reference part from all of Kueue's plays if they play the case."""
    for by in ("engine", "reference"):
        got = answered(case, by)
        if any(differing(parts(each.answer, most(case)), got, each.left_out) is None for each in plays):
            continue
        if unplayed(Release.named(case["kueue"]), [parts(plays[0].answer, most(case)), got]):
            continue
        difference = beyond_chance(case, plays, got)
        if difference is not None:
            yield f"the {by} in the case: {difference}"
        elif all(map(judgeable, plays)):
            yield f"the {by} in the case: Kueue decides by chance, and never so"


def _starving(found: Counterexample, case: dict[str, Any], oracle: Oracle) -> Iterator[str]:
    """Tell where somebody does something else if whoever ends is followed by another, or if nobody starves."""
    longer, waiting = goes_on(found, case)
    if not waiting:
        yield "the engine admits everybody in the end"
    plays = oracle.plays(longer, 1)
    failed = [verdict.crash or verdict.error for verdict in plays if not verdict.answer]
    if failed:
        yield failed[0]
        return
    yield from _in_case(longer, plays)
    start = case["input"]["events"][-1]["at"] + _SECONDS_TO_REST
    for key in sorted(waiting & _admitted_since(plays[0].answer, start)):
        yield f"Kueue admits {key} in the end"


def _admitted_since(answer: dict[str, Any], start: float) -> set[str]:
    cycles = [cycle for cycle in map(object_at, list_at(answer, "cycles")) if float(str(cycle["t"])) > start]
    return {text_at(it, "key") for cycle in cycles for it in list_at(cycle, "admitted")}


def _in_replay(by: str, played: Replay, plays: Sequence[Verdict]) -> Iterator[str]:
    """Tell where a replay parts from all of Kueue's plays: where it goes along with one of them the longest."""
    own = list(seen_in(played))
    partings = []
    for verdict in plays:
        kueue = list(seen_in_answer(verdict.answer))
        # Kueue was stopped later.
        kueue = kueue[: len(own)] if played.ending is ReplayEnding.REPEATS else kueue
        steps = enumerate(zip_longest(own, kueue, fillvalue=()), start=1)
        parting = next(((n, mine, other) for n, (mine, other) in steps if mine != other), None)
        if parting is None:
            return
        partings.append(parting)
    n, mine, other = max(partings, key=lambda it: it[0])
    yield f"{by} in the replay: step {n}: Kueue: {_told(other)}; {by}: {_told(mine)}"


def _told(seen: Seen) -> str:
    return ", ".join(seen) or "nothing"


def seen_in(played: Replay) -> Iterator[Seen]:
    """Yield what happened in each cycle of a replay that changed something."""
    for move in played.moves:
        # What follows from a move at once happens before the first cycle.
        yield from _grouped(f"evicted {it.key} for {it.reason}" for it in move.evicted)
        for cycle in move.cycles:
            yield from _grouped(_in_cycle(cycle))


def _in_cycle(cycle: ReplayedCycle) -> Iterator[str]:
    for admitted in cycle.admitted:
        counts = " ".join(f"{name}:{count}" for name, count in sorted(admitted.counts.items()))
        where = f"{admitted.cluster_queue} with {counts} on {' '.join(sorted(admitted.amounts))}"
        yield f"admitted {admitted.key} in {where}"
    yield from (f"preempted {it.key} for {it.preemptor}: {it.reason}" for it in cycle.preempted)
    yield from (f"evicted {it.key} for {it.reason}" for it in cycle.evicted)


def seen_in_answer(answer: dict[str, Any]) -> Iterator[Seen]:
    """Yield what happened in each cycle of an answer that changed something, and between them."""
    cycles, log = (list(map(object_at, list_at(answer, name))) for name in ("cycles", "log"))
    # The log has the jobs that stop, also those whose evictions a cycle has.
    known = {(cycle["t"], *_victim(it)) for cycle in cycles for it in map(object_at, list_at(cycle, "evicted"))}
    others = [it for it in log if it["op"] == "evicted" and it["reason"] != _PREEMPTED]
    rows = [(float(str(it["t"])), -1, it) for it in others if (it["t"], *_victim(it)) not in known]
    rows += [(float(str(it["t"])), int(str(it["n"])), it) for it in cycles]
    for _, n, each in sorted(rows, key=lambda it: it[:2]):
        yield from _grouped(
            [f"evicted {text_at(each, 'key')} for {text_at(each, 'reason')}"] if n < 0 else _in_answered_cycle(each)
        )


def _victim(evicted: JsonObject) -> tuple[str, str]:
    return text_at(evicted, "key"), text_at(evicted, "reason")


def _in_answered_cycle(cycle: JsonObject) -> Iterator[str]:
    for admitted in map(object_at, list_at(cycle, "admitted")):
        pod_sets = sorted(map(object_at, list_at(admitted, "podSets")), key=lambda it: text_at(it, "name"))
        counts = " ".join(f"{text_at(it, 'name')}:{it.get('count', 0)}" for it in pod_sets)
        flavors = sorted({flavor for it in pod_sets for flavor in texts_at(it, "flavors").values()})
        where = f"{text_at(admitted, 'clusterQueue')} with {counts} on {' '.join(flavors)}"
        yield f"admitted {text_at(admitted, 'key')} in {where}"
    for it in map(object_at, list_at(cycle, "preempting")):
        yield f"preempted {text_at(it, 'key')} for {text_at(it, 'preemptor')}: {text_at(it, 'reason')}"
    for it in map(object_at, list_at(cycle, "evicted")):
        yield f"evicted {text_at(it, 'key')} for {text_at(it, 'reason')}"


def _grouped(lines: Iterable[str]) -> Iterator[Seen]:
    found = tuple(sorted(lines))
    if found:
        yield found
