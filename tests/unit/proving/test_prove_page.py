"""What docs/prove.md shows is what the command does."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from kueuecore.manifests import Manifest, parse_manifests
from kueuecore.proving import OwnProperty, Property, When, prove

PAGE = (Path(__file__).parents[3] / "docs" / "prove.md").read_text("utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.M | re.S)


[QUEUES] = blocks("yaml")
[FAILED] = blocks("text")
RULES, SCRIPT = blocks("python")
[LOOP, OWN] = (block.partition("\n") for block in blocks("console"))


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("queues.yaml").write_text(QUEUES, encoding="utf-8")
    Path("rules.py").write_text(RULES, encoding="utf-8")


def shown(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The output of a command that finds something, with the time that the page has."""
    arguments = shlex.split(command.removeprefix("$ kueuecore "))
    assert main(arguments) == ExitCode.FOUND
    return re.sub(r" in \d+ s\.", " in 1 s.", capsys.readouterr().out)


def changed(before: str, after: str = "") -> tuple[Manifest, ...]:
    assert before in QUEUES
    return parse_manifests(QUEUES.replace(before, after))


def test_the_loop_is_found_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(LOOP[0], capsys) == LOOP[2]


def test_its_policy_test_fails(capsys: pytest.CaptureFixture[str]) -> None:
    shown(f"{LOOP[0]} -q --save found", capsys)
    assert shown("$ kueuecore test found", capsys) == FAILED
    assert main(["simulate", "-q", "found/loops-1.scenario.yaml"]) == ExitCode.OK


def test_an_expression_of_cel_is_a_property(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cel")
    assert shown(OWN[0], capsys) == OWN[2]


def test_a_function_is_a_property() -> None:
    own = OwnProperty.parse(When.ALWAYS, "rules.py:somebody_runs")
    proof = prove(parse_manifests(QUEUES), properties=[], own=[own], spent=lambda n_moves: n_moves / 2_000)
    assert proof.counterexamples == ()
    assert proof.trees[0].n_own_states > 500


def test_the_script_prints_the_same_story(capsys: pytest.CaptureFixture[str]) -> None:
    exec(SCRIPT, {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 5
    assert [line for line in lines if line not in LOOP[2].replace("  - ", "  ")] == []


@pytest.mark.parametrize(
    ("left_out", "n_workloads", "is_partial"),
    [(", borrowWithinCohort: {policy: LowerPriority}", 4, False), ("withinClusterQueue: LowerPriority, ", 2, True)],
)
def test_without_a_policy_the_next_loop_is_the_one_named(left_out: str, n_workloads: int, *, is_partial: bool) -> None:
    proof = prove(changed(left_out), properties=[Property.LOOPS], spent=lambda n_moves: n_moves / 60_000)
    [counterexample] = proof.counterexamples
    assert counterexample.n_workloads == n_workloads
    assert counterexample.needs_partial_admission is is_partial
