"""kubectl runs the command as a plugin, and completes it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from kueuecore.cli.commands import command_lines
from kueuecore.cli.completions import completion_lines

ROOT = Path(__file__).parents[3]
EXAMPLE = str(ROOT / "examples" / "two-teams")
KUBECTL = "kubectl kueuecore"


def test_kubectl_finds_the_plugin_and_its_completion_by_their_names() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert sorted(scripts) == ["kubectl-kueuecore", "kubectl_complete-kueuecore", "kueuecore"]
    for entry in scripts.values():
        module, name = entry.split(":")
        assert callable(getattr(import_module(module), name))


def run(entry: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run an entry point in a process of its own, as its script does."""
    program = f"import sys; from kueuecore.__main__ import {entry}; sys.exit({entry}())"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_plugin_answers_as_the_command_does(capsys: pytest.CaptureFixture[str]) -> None:
    ran = run("kubectl", "explain", EXAMPLE, "team-b/job-lint-ae481")
    assert ran.returncode == ExitCode.OK
    assert main(["explain", EXAMPLE, "team-b/job-lint-ae481"]) == ExitCode.OK
    assert ran.stdout == capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "usage"),
    [
        (["--help"], "usage: kubectl kueuecore [-h] [--version] COMMAND ...\n"),
        (["explain", "--help"], "usage: kubectl kueuecore explain [OPTION ...]"),
    ],
)
def test_usage_lines_say_how_it_is_called(arguments: list[str], usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments, program=KUBECTL) == ExitCode.OK
    assert capsys.readouterr().out.startswith(usage)


def test_errors_of_usage_say_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explian"], program=KUBECTL) == ExitCode.BAD_INPUT
    assert "kubectl kueuecore: error: argument COMMAND: invalid choice: 'explian'" in capsys.readouterr().err
    assert main(["explain", "--jsno"], program=KUBECTL) == ExitCode.BAD_INPUT
    assert "\nkubectl kueuecore explain: error: " in capsys.readouterr().err


def test_a_script_completes_the_program_that_wrote_it(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    assert main(["completion", "bash"], program=KUBECTL) == ExitCode.OK
    assert re.search(r"^complete .* kubectl-kueuecore$", capsys.readouterr().out, re.M)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["expl"], [f"explain\t{command_lines()['explain']}", ":4"]),
        (["nope", ""], [":4"]),
        (["completion", "f"], ["fish", ":4"]),
        (["explain", "-o", ""], ["table", "wide", "json", ":4"]),
        (["explain", "--output=w"], ["--output=wide", ":4"]),
        (["explain", "--now", ""], [":4"]),
        (["explain", "--config", ""], [":0"]),
        (["explain", ""], [":0"]),
        (["explain", "state.yaml", "-o", "json", ""], [":0"]),
        (["unblock", "state.yaml", "team/train", "--only", "Q"], ["Quota", ":4"]),
        (["gates", ""], [":4"]),
        (["simulate", ""], [":0"]),
    ],
    ids=" ".join,
)
def test_kubectl_gets_choices_and_whether_files_may_follow(words: list[str], expected: list[str]) -> None:
    assert completion_lines(words) == expected


def test_the_first_word_is_any_command() -> None:
    lines = completion_lines([""])
    assert [line.partition("\t")[0] for line in lines] == [*command_lines(), ":4"]
    assert completion_lines([]) == lines


def test_options_are_completed_with_what_they_do() -> None:
    found = dict(line.split("\t") for line in completion_lines(["explain", "--"])[:-1])
    assert found["--context"] == "a context of the kubeconfig; by default its current one"
    assert all(name.startswith("--") and text and "\n" not in text for name, text in found.items())


@pytest.mark.parametrize("command", command_lines())
def test_every_command_is_completed(command: str) -> None:
    assert any(line.startswith("--help\t") for line in completion_lines([command, "--h"]))
    assert completion_lines([command, ""])[-1] in (":0", ":4")


def test_the_script_prints_the_lines() -> None:
    ran = run("kubectl_complete", "explain", "-o", "j")
    assert (ran.returncode, ran.stdout, ran.stderr) == (ExitCode.OK, "json\n:4\n", "")
