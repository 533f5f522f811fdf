"""What a released Kueue decides otherwise is found and shrunk; chance and failures are told apart."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kueuecore.releases import Release
from tests.judge.comparing import differing, parts
from tests.judge.oracle import Oracle, OracleError, Verdict
from tests.judge.playing import Outcome, Player, answered, most
from tests.judge.worlds import world

RELEASE = Release.named("0.19.2")
STUB = (sys.executable, str(Path(__file__).with_name("stub_oracle.py")))


def played(
    seeds: range, *mistakes: str, reference_every: int = 0, seconds_to_shrink: float = 60.0
) -> Iterator[Outcome]:
    command = (*STUB, *mistakes)
    with Player(RELEASE, command, reference_every=reference_every, seconds_to_shrink=seconds_to_shrink) as player:
        yield from player.play(seeds)


def test_without_a_mistake_nothing_differs() -> None:
    outcomes = list(played(range(12), reference_every=12))
    assert [outcome.seed for outcome in outcomes] == list(range(12))
    assert [outcome.found for outcome in outcomes] == [None] * 12
    assert outcomes[0].counts["with the reference"] == 1
    assert sum(outcome.counts["admissions"] for outcome in outcomes) > 10


def test_a_wrong_decision_is_found_and_shrunk() -> None:
    outcome = next(count for count in played(range(3), "counts") if count.found is not None)
    found = outcome.found
    assert found is not None
    assert (found.by, found.kind) == ("engine", "decisions cycles.admitted.podSets.count")
    whole = world(found.seed, RELEASE)
    assert len(found.case["input"]["events"]) == 1 < len(whole["input"]["events"])
    question = {name: entry for name, entry in found.case.items() if name != "expect"}
    assert str(differing(parts(found.case["expect"], most(whole)), answered(question, "engine"))) == found.told


def test_other_words_are_a_difference_of_messages() -> None:
    found = next(outcome.found for outcome in played(range(4), "words", seconds_to_shrink=0) if outcome.found)
    assert found.kind == "messages message"


def test_an_oracle_that_contradicts_itself_leaves_it_to_chance() -> None:
    outcomes = list(played(range(6), "chance"))
    assert [outcome.found for outcome in outcomes] == [None] * 6
    assert sum(outcome.counts["left to chance"] for outcome in outcomes) > 0


def test_a_panic_is_told_and_the_next_worlds_are_played_by_another_process() -> None:
    outcomes = list(played(range(8), "ends"))
    told = "ended with 2: panic: assignment to entry in nil map"
    assert [outcome.crash for outcome in outcomes] == ["", "", told, "", "", told, "", ""]
    assert not any(outcome.found for outcome in outcomes)


def test_what_cannot_be_played_is_told() -> None:
    assert [refuse.error for refuse in played(range(2), "refuses")] == ["cannot play this"] * 2


def test_a_case_that_hangs_is_a_crash_of_its_own() -> None:
    cases = [world(seed, RELEASE) for seed in range(4)]
    with Oracle((*STUB, "hangs"), patience=3.0) as oracle:
        for case in cases:
            oracle.send(case)
        verdicts = [oracle.read() for _ in cases]
    assert verdicts[2] == Verdict(crash="no answer in 3 s")
    assert [bool(verdict.answer) for verdict in verdicts] == [True, True, False, True]


def test_a_program_that_is_missing_or_talks_nonsense_is_reported() -> None:
    with pytest.raises(OracleError, match="cannot start /nowhere/kueue: No such file"):
        Oracle(("/nowhere/kueue",)).send({"id": "x"})
    with Oracle(("echo", "hello")) as oracle:
        oracle.send({"id": "x"})
        with pytest.raises(OracleError, match="no JSON"):
            oracle.read()
