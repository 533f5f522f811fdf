"""How the command reads its arguments: anywhere, with its own usage in errors, and suggestions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from tests.command import JOB, QUEUES


@pytest.fixture
def state(tmp_path: Path) -> str:
    path = tmp_path / "state.yaml"
    path.write_text(QUEUES + JOB % ("a", 1) + JOB % ("b", 4), encoding="utf-8")
    return str(path)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(arguments) == ExitCode.BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        (["rnu"], "argument COMMAND: invalid choice: 'rnu' (choose from 'run', "),
        (["whatif", "x"], "argument COMMAND: invalid choice: 'whatif' (choose from 'run', "),
        ([], "the following arguments are required: COMMAND"),
        (["--verison"], "unrecognized arguments: --verison; did you mean --version?"),
        (["-v", "run", "x"], "unrecognized arguments: -v"),
    ],
)
def test_a_mistake_before_the_command_shows_the_usage_of_all(
    arguments: list[str], last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = refused(capsys, *arguments)
    assert lines[0] == "usage: kueuecore [-h] [--version] COMMAND ..."
    assert lines[-1].startswith(f"kueuecore: error: {last}")


@pytest.mark.parametrize(("given", "meant"), [("rnu", "run"), ("whatif", "what-if"), ("exlpain", "explain")])
def test_a_misspelled_command_is_suggested(given: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, given)[-1].endswith(f"; did you mean {meant}?")


@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        (["run", "x", "--recurisve"], "unrecognized arguments: --recurisve; did you mean --recursive?"),
        (["run", "x", "--confg=y"], "unrecognized arguments: --confg=y; did you mean --config?"),
        (["eta", "x", "y", "--trust-me"], "unrecognized arguments: --trust-me"),
        (["explain"], "the following arguments are required: WORKLOAD"),
        (["simulate", "x", "y"], "unrecognized arguments: y"),
    ],
)
def test_a_mistake_after_the_command_shows_its_usage(
    arguments: list[str], last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = refused(capsys, *arguments)
    assert lines[0].startswith(f"usage: kueuecore {arguments[0]} [OPTION ...]")
    assert lines[-1].startswith(f"kueuecore {arguments[0]}: error: {last}")


def test_a_misspelled_value_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    last = refused(capsys, "run", "x", "-o", "jsn")[-1]
    choices = "'table', 'wide', 'json', 'yaml'"
    assert last.endswith(f"invalid choice: 'jsn' (choose from {choices}); did you mean json?")


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "STATE", "-o", "wide", "team/job-b-3c8fb"],
        ["explain", "-o", "wide", "STATE", "team/job-b-3c8fb"],
        ["explain", "STATE", "team/job-b-3c8fb", "-o", "wide"],
        ["explain", "-o", "wide", "--", "STATE", "team/job-b-3c8fb"],
    ],
)
def test_options_stand_anywhere(arguments: list[str], state: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [argument.replace("STATE", state).replace("team/job-b-3c8fb", "b") for argument in arguments]
    assert main([*arguments, "-q"] if "--" not in arguments else [arguments[0], "-q", *arguments[1:]]) == ExitCode.OK
    assert capsys.readouterr().out.startswith("team/job-b-")


@pytest.mark.parametrize("arguments", [["S", "-o", "json", "b"], ["-o", "json", "S", "b"], ["S", "b", "-o", "json"]])
def test_a_forecast_takes_options_between_state_and_workload(
    arguments: list[str], state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [state if argument == "S" else argument for argument in arguments]
    assert main(["eta", *arguments, "-q", "--run-seconds", "1m", "--workers", "1"]) == ExitCode.OK
    assert '"status": "Pending"' in capsys.readouterr().out


def test_help_and_version_win_over_mistakes_behind_them(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help", "rnu"], ["run", "--help", "--wrong"], ["--version", "run"]):
        assert main(arguments) == ExitCode.OK
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("value", ["--", ""])
def test_an_option_takes_dashes_and_nothing_as_its_value(
    value: str, state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = refused(capsys, "what-if", state, "--settle", f"--delete={value}")
    assert lines[0].startswith(f'"{value}" does not name an object; write KIND/NAME')
