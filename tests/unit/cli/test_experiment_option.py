"""`--experiment` of `simulate` and `compare`: as if the scenario said so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kueuecore.cli import ExitCode, main
from tests.command import QUEUES
from tests.unit.cli.test_simulate_command import SCENARIO

# Equals that take turns come to an end only if they keep their work.
SAVING = SCENARIO + "  saves: 5\n"
OWN = SAVING.replace("[queues.yaml]}", "[queues.yaml], experiments: {timeShareSeconds: 5, reclaimBackoffSeconds: 7}}")


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    policy = "namespaceSelector: {}\n  preemption: {withinClusterQueue: LowerOrNewerEqualPriority}"
    for name, text in (("queues", QUEUES.replace("namespaceSelector: {}", policy)), ("s", SAVING), ("own", OWN)):
        Path(f"{name}.yaml").write_text(text, encoding="utf-8")


def n_evictions(document: Any) -> int:
    return sum(job["evictions"] for job in document["jobs"])


def test_a_run_has_the_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "s.yaml", "-o", "json", "-q"]) == ExitCode.OK
    assert n_evictions(json.loads(capsys.readouterr().out)) == 0
    assert main(["simulate", "s.yaml", "--experiment", "timeShareSeconds=20", "-o", "json", "-q"]) == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert found["experiments"] == {"timeShareSeconds": 20}
    assert n_evictions(found) == 6


def test_the_option_goes_before_the_file_and_leaves_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "own.yaml", "--experiment", "timeShareSeconds=20", "-q"]) == ExitCode.OK
    notice = "experiments: reclaimBackoffSeconds=7, timeShareSeconds=20 (not in Kueue)\n"
    assert capsys.readouterr().out.startswith(notice)


def test_only_b_of_a_comparison_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", "s.yaml", "--experiment", "timeShareSeconds=20", "--seeds", "1", "--workers", "1", "-q"]
    assert main([*arguments, "-o", "json"]) == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert "experiments" not in found
    assert [side.get("experiments") for side in found["sides"]] == [None, {"timeShareSeconds": 20}]
    assert main([*arguments, "--fail-on-difference"]) == ExitCode.FOUND


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("timeShareSecond=5", 'unknown experiment "timeShareSecond"; did you mean timeShareSeconds?'),
        ("timeShareSeconds", "write NAME=SECONDS, such as reclaimBackoffSeconds=300"),
        ("timeShareSeconds=0", "--experiment timeShareSeconds: Invalid value"),
    ],
)
def test_a_wrong_experiment_is_refused(given: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["simulate", "s.yaml"], ["compare", "s.yaml"]):
        assert main([*command, "--experiment", given]) == ExitCode.BAD_INPUT
        shown = capsys.readouterr()
        assert said in shown.err
        assert shown.out == ""


def test_a_fleet_names_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(__file__).parents[3] / "examples/multikueue/scenario.yaml"
    assert main(["simulate", str(file), "--experiment", "timeShareSeconds=20"]) == ExitCode.BAD_INPUT
    assert "--experiment works for a scenario of one cluster only" in capsys.readouterr().err
