"""Plays worlds with a released Kueue and with the engine, and judges where they part."""

from __future__ import annotations

import copy
import json
import time
import traceback
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from kueuecore.conformance import answer
from kueuecore.releases import Release
from tests.judge.comparing import FAILED, Difference, Level, Parts, closest, differing, parts
from tests.judge.oracle import Oracle, Verdict
from tests.judge.shrinking import smallest_case
from tests.judge.unplayed import unplayed
from tests.judge.worlds import families, world

__all__ = ["ENGINE_NS", "KUEUE_NS", "Found", "Outcome", "Player"]

Case = dict[str, Any]
# So many cases are under way, that neither side waits for the other.
_AHEAD = 24
# Kueue ranges over Go maps of two or three entries where it leaves something to chance. Go begins at one of their eight
# places, so that the second entry comes first only once in eight plays: few plays show most of it, many show the rest.
_PLAYS_TO_SEE_CHANCE = (2, 3, 7, 20, 50, 120)
# Where plays differ, the one that is like ours may be rare: several such choices have to fall together, and only plays
# that decide as ours does have its messages.
_PLAYS_TO_FIND_OURS = (200, 400, 1200)
_PLAYS_OF_A_SMALLER_CASE = 4
_MAX_TRIES = 5000
_MAX_SHRUNK_OF_A_KIND = 2
ENGINE_NS = "ns of the engine"
KUEUE_NS = "ns of Kueue's scheduler"


@dataclass(frozen=True, slots=True)
class Found:
    """A difference that chance does not explain.

    Args:
        seed: The seed of its world.
        by: Who answers otherwise than Kueue: `engine` or `reference`.
        kind: What differences of its sort have in common.
        told: Where they part, in the smallest case.
        case: The smallest case, with what Kueue answers under `expect`.
        is_shrunk: Whether it is smaller than the world; only the first of each kind are shrunk.
    """

    seed: int
    by: str
    kind: str
    told: str
    case: Case
    is_shrunk: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one world.

    Args:
        seed: Its seed.
        families: What it is about.
        counts: What happened in it: cycles, admissions, preemptions, and how it was judged.
        crash: How Kueue failed.
        error: Why it could not be played.
        found: A difference.
    """

    seed: int
    families: tuple[str, ...]
    counts: Counter[str] = field(default_factory=Counter)
    crash: str = ""
    error: str = ""
    found: Found | None = None


class Player:
    """Plays worlds by their seeds.

    Args:
        release: The release that decides.
        command: How to start the program that plays it.
        reference_every: The reference plays one world of this many; 0: none.
        seconds_to_shrink: The longest time to shrink one difference.
    """

    def __init__(
        self, release: Release, command: Sequence[str], *, reference_every: int = 10, seconds_to_shrink: float = 60.0
    ) -> None:
        self._release = release
        self._oracle = Oracle(command)
        # Another process, for cases that are played again while others are under way.
        self._second = Oracle(command)
        self._reference_every = reference_every
        self._seconds_to_shrink = seconds_to_shrink
        self._shrunk: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._oracle.__exit__()
        self._second.__exit__()

    def play(self, seeds: Iterable[int], *, until: float = float("inf")) -> Iterator[Outcome]:
        """Yield what comes of the worlds of these seeds, in order; no world is begun after `until`.

        Raises:
            OracleError: The program does not start, or what it writes is no answer.
        """
        under_way: deque[tuple[int, Case]] = deque()
        for seed in seeds:
            if time.time() > until:
                break
            case = world(seed, self._release)
            self._oracle.send(case)
            under_way.append((seed, case))
            if len(under_way) > _AHEAD:
                yield self._judged(*under_way.popleft())
        for seed, case in under_way:
            yield self._judged(seed, case)

    def _judged(self, seed: int, case: Case) -> Outcome:
        begun = time.perf_counter_ns()
        mine = answered(case, "engine")
        took_ns = time.perf_counter_ns() - begun
        verdict = self._oracle.read()
        outcome = Outcome(seed, families(case), crash=verdict.crash, error=verdict.error)
        if not verdict.answer:
            return outcome
        outcome.counts.update(_happened(verdict.answer))
        outcome.counts.update({ENGINE_NS: took_ns, KUEUE_NS: sum(other.all_ns for other in verdict.times)})
        sides = {"engine": mine}
        if self._reference_every and seed % self._reference_every == 0:
            outcome.counts["with the reference"] += 1
            sides["reference"] = answered(case, "reference")
        if not judgeable(verdict):
            outcome.counts["left to chance"] += 1
            return outcome
        want = parts(verdict.answer, most(case))
        for by, got in sides.items():
            if (difference := differing(want, got, verdict.left_out)) is None:
                continue
            difference, is_chance = self._beyond_chance(case, verdict, got)
            outcome.counts["left to chance"] += is_chance
            if difference is not None and unplayed(self._release, [want, got]):
                outcome.counts["what we do not play"] += 1
            elif difference is not None:
                found = self._found(seed, by, case, verdict, difference)
                return Outcome(seed, outcome.families, outcome.counts, found=found)
        return outcome

    def _beyond_chance(self, case: Case, verdict: Verdict, got: Parts) -> tuple[Difference | None, bool]:
        """Return where an answer differs from all of Kueue's plays of a case, and whether those differ themselves."""
        plays, is_chance, difference = [verdict], False, None
        for more in (*_PLAYS_TO_SEE_CHANCE, *_PLAYS_TO_FIND_OURS):
            if len(plays) > sum(_PLAYS_TO_SEE_CHANCE) and not is_chance:
                break
            plays += self._second.plays(case, more)
            is_chance = not are_alike(plays)
            difference = beyond_chance(case, plays, got)
            if difference is None:
                break
        return difference, is_chance

    def _found(self, seed: int, by: str, case: Case, verdict: Verdict, difference: Difference) -> Found:
        self._shrunk[difference.kind] += 1
        small, expect = case, verdict.answer
        if self._shrunk[difference.kind] <= _MAX_SHRUNK_OF_A_KIND:
            until = time.time() + self._seconds_to_shrink
            small = smallest_case(case, lambda entry: self._shows(entry, by, difference, until), max_tries=_MAX_TRIES)
            if small is not case:
                expect = self._second.plays(small, 1)[0].answer
        told = differing(parts(expect, most(small)), answered(small, by), verdict.left_out) or difference
        kept = {"expect": expect, **({"leftOut": list(verdict.left_out)} if verdict.left_out else {})}
        return Found(seed, by, difference.kind, str(told), {**small, **kept}, small is not case)

    def _shows(self, case: Case, by: str, difference: Difference, until: float) -> bool:
        """Whether a smaller case shows a difference of the same sort, that chance does not explain either."""
        if time.time() > until:
            return False
        first = self._second.plays(case, 1)[0]
        if not first.answer or not judgeable(first):
            return False
        got = answered(case, by)
        found = differing(parts(first.answer, most(case)), got, first.left_out)
        if found is None or not _is_alike(found, difference):
            return False
        again = self._second.plays(case, _PLAYS_OF_A_SMALLER_CASE)
        # A case to keep says one thing.
        return are_alike([first, *again]) and beyond_chance(case, [first, *again], got) is not None


def answered(case: Case, by: str) -> Parts:
    """Return what is compared of our answer to a case; that it failed, if it did."""
    try:
        return parts(answer(copy.copy(case), by=by), most(case))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error} (in {where.name} of {where.filename})"
        return {Level.DECISIONS: told, Level.STATUSES: {}, Level.MESSAGES: {}}


def most(case: Case) -> int:
    """Return how many cycles a run may have."""
    return int(case["config"]["maxCycles"])


def judgeable(verdict: Verdict) -> bool:
    """Whether something is to be compared: not where chance decides, or a heap of Kueue was out of order."""
    return not verdict.is_chance and not verdict.answer.get("staleHeapCycles")


def are_alike(verdicts: Sequence[Verdict]) -> bool:
    """Whether several plays of one case say the same."""
    return (
        all(verdict.answer for verdict in verdicts)
        and len({json.dumps(verdict.answer, sort_keys=True) for verdict in verdicts}) == 1
    )


def beyond_chance(case: Case, verdicts: Sequence[Verdict], got: Parts) -> Difference | None:
    """Return where an answer differs from all that Kueue may answer, as several plays of a case show."""
    if not all(verdict.answer and judgeable(verdict) for verdict in verdicts):
        return None
    left_out = {level for verdict in verdicts for level in verdict.left_out}
    want = closest([parts(verdict.answer, most(case)) for verdict in verdicts], got)
    return None if want is None else differing(want, got, left_out)


def _is_alike(one: Difference, other: Difference) -> bool:
    if FAILED in (one.path, other.path) or one.level is not Level.DECISIONS:
        return one.kind == other.kind
    return one.level == other.level


def _happened(run: dict[str, Any]) -> dict[str, int]:
    cycles, final = run["cycles"], run["final"]
    return {
        "cycles": final["cycles"],
        "admissions": sum(len(cycle.get("admitted", ())) for cycle in cycles),
        "preemptions": sum(len(cycle.get("preempting", ())) for cycle in cycles),
        "with a preemption": any(cycle.get("preempting") for cycle in cycles),
        "stopped at the last cycle": "stopped" in final,
        "placed on nodes": sum(
            "topologyAssignment" in p for cycle in cycles for a in cycle.get("admitted", ()) for p in a["podSets"]
        ),
    }
