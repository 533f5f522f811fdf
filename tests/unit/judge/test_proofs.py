"""Counterexamples are judged: whoever does something else than Kueue is found, and so is a loop that Kueue ends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kueuecore.conformance import answer
from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import Move, MoveKind, Property
from kueuecore.proving.replay import replay
from kueuecore.releases import Release
from scripts import judge_proofs
from scripts.fuzz_kueue import PLAYED
from tests.judge.configurations import configurations
from tests.judge.counterexamples import case_of
from tests.judge.oracle import Oracle
from tests.judge.proofs import Judgement, at_release, judged, reference_of, seen_in, seen_in_answer
from tests.judge.starving import goes_on
from tests.unit.judge.test_counterexamples import denied_after_an_end, kueue
from tests.unit.proving.counterexamples import fair_sharing_loop, of_moves, preemption_loop
from tests.unit.proving.test_prove import FAIR
from tests.unit.proving.test_story import TWO_QUEUES
from tests.unit.proving.test_ties import BY_CHANCE, arriving, scope_of, tree

STUB = (sys.executable, str(Path(__file__).with_name("stub_oracle.py")))
RELEASE = Release.named("0.19.2")


def left_to_chance() -> Counterexample:
    scope = scope_of(tree(), FAIR)
    shapes, _, moves = arriving(scope, *BY_CHANCE)
    return Counterexample(Property.LOOPS, scope.facts, shapes, (), moves)


def starving() -> Counterexample:
    """Whenever the narrow one ends, another takes what the wide one waits for."""
    moves: list[tuple[MoveKind, str | int]] = [(MoveKind.ARRIVE, "own"), (MoveKind.ARRIVE, "whole")]
    whole = """---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: whole, namespace: team}
spec:
  queueName: a
  podSets: [{name: main, count: 4, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}]
"""
    return of_moves(TWO_QUEUES + whole, moves, property_=Property.STARVATION)


def judgement(counterexample: Counterexample, *mistakes: str) -> Judgement:
    with Oracle([*STUB, *mistakes]) as oracle:
        return judged(counterexample, "it", RELEASE, oracle)


@pytest.mark.parametrize("by", ["engine", "reference"])
@pytest.mark.parametrize("made", [preemption_loop, fair_sharing_loop, denied_after_an_end, left_to_chance])
def test_a_replay_and_its_case_are_the_same_run(made: Callable[[], Counterexample], by: str) -> None:
    found = at_release(made(), RELEASE)
    played = replay(found, None if by == "engine" else reference_of(found.facts))
    run: dict[str, Any] = answer(case_of(found, "it", RELEASE), by=by)
    own = list(seen_in(played))
    assert own
    assert list(seen_in_answer(run))[: len(own)] == own


def test_who_does_the_same_is_confirmed() -> None:
    found = judgement(preemption_loop())
    assert found.is_confirmed
    assert (found.is_loop, found.n_loops, found.is_chance, found.error) == (True, found.n_plays, False, "")
    assert found.n_evictions > 10


@pytest.mark.parametrize("mistake", ["counts", "refuses"])
def test_who_does_something_else_is_not_confirmed(mistake: str) -> None:
    found = judgement(preemption_loop(), mistake)
    assert not found.is_confirmed
    assert found.error or any("the engine in the replay: step 1" in line for line in found.differences)


def test_a_starving_workload_waits_however_often_those_that_run_are_followed_by_others() -> None:
    found = at_release(starving(), RELEASE)
    case, waiting = goes_on(found, case_of(found, "it", RELEASE))
    assert waiting == {"team/whole-1"}
    run: dict[str, Any] = answer(case)
    assert [line for lines in seen_in_answer(run) for line in lines if "own" in line][1:]
    assert not [line for lines in seen_in_answer(run) for line in lines if "whole" in line]
    assert judgement(starving()).is_confirmed


def test_who_only_waits_for_a_turn_does_not_starve() -> None:
    queued = starving()
    own = Move(MoveKind.ARRIVE, queued.moves[0].number)
    found = judgement(replace(queued, moves=(own,) * 6))
    assert found.differences == ("the engine admits everybody in the end",)


@pytest.mark.parametrize("line", ["0.19", "0.17"])
def test_kueue_itself_ends_a_loop_by_chance(line: str) -> None:
    with Oracle(kueue(line), patience=120.0) as oracle:
        found = judged(left_to_chance(), "it", Release.named(PLAYED[line]), oracle)
    assert found.is_loop
    assert found.is_chance
    assert found.n_loops < found.n_plays
    assert not found.is_confirmed


def test_a_page_has_a_configuration_in_each_block_and_a_folder_has_one(tmp_path: Path) -> None:
    queue = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: %s}, spec: {}}\n"
    (tmp_path / "page.md").write_text(
        f"```yaml\n{queue % 'a'}```\n```yaml\nkind: Pod\n```\n```yaml\n{queue % 'b'}```\n"
    )
    (tmp_path / "one").mkdir()
    for name in "ab":
        (tmp_path / "one" / f"{name}.yaml").write_text(queue % name)
    assert [len(it.manifests) for it in configurations(tmp_path / "page.md")] == [1, 1]
    assert [len(it.manifests) for it in configurations(tmp_path / "one")] == [2]


@pytest.mark.parametrize(("mistakes", "code"), [((), 0), (("counts",), 1)])
def test_the_script_fails_where_somebody_does_something_else(
    mistakes: tuple[str, ...],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "queues.yaml").write_text(TWO_QUEUES)
    command = " ".join([*STUB, *mistakes])
    wanted = [str(tmp_path), "--moves", "500", "--property", "guarantee", "--oracle", command]
    monkeypatch.setattr(sys, "argv", ["judge_proofs.py", *wanted])
    assert judge_proofs.main() == code
    printed = capsys.readouterr().out
    assert "guarantee (warning; 2 moves, 0 evictions): " + ("DIFFERENT" if code else "the same") in printed
