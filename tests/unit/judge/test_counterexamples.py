"""Counterexamples are played by a released Kueue, where it is built; it does what engine and reference do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kueuecore.conformance import answer
from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import MoveKind, Property
from kueuecore.proving.replay import replay
from kueuecore.releases import Release
from scripts.fuzz_kueue import PLAYED, ROOT
from tests.judge.comparing import differing, parts
from tests.judge.counterexamples import case_of, evictions_of, turns
from tests.judge.oracle import Oracle
from tests.judge.playing import answered, judgeable, most
from tests.unit.proving.counterexamples import fair_sharing_loop, of_moves, preemption_loop
from tests.unit.proving.test_story import TWO_QUEUES

LOOPS = (preemption_loop, fair_sharing_loop)


def denied_after_an_end() -> Counterexample:
    moves: list[tuple[MoveKind, str | int]] = [(MoveKind.BURST, "own"), (MoveKind.ARRIVE, "wide"), (MoveKind.END, 0)]
    return of_moves(TWO_QUEUES, [*moves, (MoveKind.ARRIVE, "own")], property_=Property.GUARANTEE)


def kueue(line: str) -> tuple[str, ...]:
    """The program that plays a release of Kueue; a test without it is skipped."""
    built = ROOT / f".cache/oracle/kueue-{line}"
    if not built.exists():
        pytest.skip(f"Kueue {line} itself is not built here: make oracle RELEASE={line}")
    return (str(built),)


@pytest.mark.parametrize("by", ["engine", "reference"])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_goes_on_and_on_in_its_case(loop: Callable[[], Counterexample], by: str) -> None:
    found = loop()
    case = case_of(found, "loop", Release.named("0.19.2"))
    run: dict[str, Any] = answer(case, by=by)
    assert run["final"]["stopped"] == "maxCycles"
    assert turns(evictions_of(run), replay(found)) > 3


def test_a_case_has_bursts_and_ends() -> None:
    case = case_of(denied_after_an_end(), "denied", Release.named("0.19.2"))
    assert [(event["at"], event["op"]) for event in case["input"]["events"]] == [
        (0, "create"),
        (0, "create"),
        (1000, "finish"),
        (1000, "delete"),
        (2000, "create"),
    ]
    run: dict[str, Any] = answer(case)
    admitted = [it["key"] for cycle in run["cycles"] for it in cycle.get("admitted", ())]
    assert admitted == ["team/own-0", "team/wide-1", "team/own-2"]
    assert turns(evictions_of(run), replay(denied_after_an_end())) == 0


def test_pods_are_ready_at_once_where_kueue_waits_for_them() -> None:
    waiting = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, waitForPodsReady: {timeout: 5m}}"
    found = of_moves(TWO_QUEUES, [(MoveKind.ARRIVE, "own")], configuration=waiting)
    run: dict[str, Any] = answer(case_of(found, "waits", Release.named("0.19.2")))
    conditions = {it["type"]: it["status"] for it in run["final"]["statuses"]["team/own-0"]["conditions"]}
    assert conditions["PodsReady"] == "True"


@pytest.mark.parametrize("line", PLAYED)
@pytest.mark.parametrize("made", [*LOOPS, denied_after_an_end])
def test_kueue_itself_does_the_same(made: Callable[[], Counterexample], line: str) -> None:
    command, found = kueue(line), made()
    case = case_of(found, made.__name__, Release.named(PLAYED[line]))
    with Oracle(command, patience=120.0) as oracle:
        (verdict,) = oracle.plays(case, 1)
    assert (verdict.crash, verdict.error) == ("", "")
    assert judgeable(verdict)
    want = parts(verdict.answer, most(case))
    for by in ("engine", "reference"):
        difference = differing(want, answered(case, by), verdict.left_out)
        assert difference is None, f"{by}: {difference}"
    assert (turns(evictions_of(verdict.answer), replay(found)) > 3) == (made in LOOPS)
