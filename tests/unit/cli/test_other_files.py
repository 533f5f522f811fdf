"""A file that is for another command is refused, with the command that takes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from tests.command import QUEUES

FILES = {
    "scenario.yaml": "{apiVersion: kueuecore/v1, kind: Scenario, until: 1h}",
    "a_test.yaml": "{apiVersion: kueuecore/v1, kind: PolicyTest, cases: []}",
    "rules.yaml": "{apiVersion: kueuecore/v1, kind: TraceRules}",
    "kueue.yaml": "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}",
    "queues.yaml": QUEUES,
}


@pytest.mark.parametrize(
    ("arguments", "use"),
    [
        (("run", "scenario.yaml"), "; use `kueuecore simulate` for a Scenario\n"),
        (("run", "queues.yaml", "a_test.yaml"), "; use `kueuecore test` for a PolicyTest\n"),
        (("explain", "rules.yaml", "x"), "; name TraceRules in a scenario, at `traces[].rules`, and use"),
        (("run", "kueue.yaml"), "; pass a Configuration with --config"),
        (("check", "scenario.yaml"), "; use `kueuecore simulate` for a Scenario\n"),
        (("eta", "a_test.yaml"), "; use `kueuecore test` for a PolicyTest\n"),
        (("simulate", "a_test.yaml"), "; use `kueuecore test` for a PolicyTest\n"),
        (("simulate", "queues.yaml"), "; use `kueuecore run` for the objects of a cluster\n"),
        (("plan", "kueue.yaml", "--wait", "p95<=1h"), "; pass a Configuration with --config, or name it in"),
        (("test", "scenario.yaml"), "; use `kueuecore simulate` for a Scenario\n"),
    ],
)
def test_the_command_for_a_file_is_named(
    arguments: tuple[str, ...],
    use: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == ExitCode.BAD_INPUT
    out, err = capsys.readouterr()
    assert (out, use in err) == ("", True), err


def test_a_directory_may_hold_files_of_other_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert main(["run", str(tmp_path)]) == ExitCode.OK
    assert "these kinds are not read: Configuration (1), PolicyTest (1), Scenario (1)" in capsys.readouterr().err
