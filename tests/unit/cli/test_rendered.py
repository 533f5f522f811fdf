"""Charts and kustomizations: what docs/charts-and-kustomizations.md shows, and what the tools really print."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "rendered"
PAGE = (ROOT / "docs" / "charts-and-kustomizations.md").read_text(encoding="utf-8")
HELM = "helm template team-queues examples/rendered/chart"
KUSTOMIZE = "kubectl kustomize examples/rendered/kustomization/vision"
QUEUES, JOBS = (EXAMPLE.joinpath(name).read_text(encoding="utf-8") for name in ("queues.yaml", "jobs.yaml"))
PRINTED = {
    HELM: QUEUES,
    f"{HELM} --set cohort=": QUEUES.replace("cohortName: company", "cohortName: "),
    "helm template team-queues no-such-chart": "",
    KUSTOMIZE: JOBS,
}
"""What each command before a pipe prints."""


@pytest.mark.parametrize(("shown", "expected"), re.findall(r"^\$ (.* \| kueuecore .*)\n((?:(?!```).*\n)*)", PAGE, re.M))
def test_the_page_shows_what_a_pipe_prints(
    shown: str, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, _, command = shown.partition(" | kueuecore ")
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PRINTED[before].encode())))
    code = main(command.split())
    printed = capsys.readouterr()
    assert printed.out + printed.err == expected
    assert code == (ExitCode.BAD_INPUT if "<stdin>" in expected else ExitCode.OK)


@pytest.mark.parametrize("command", PRINTED)
def test_a_tool_prints_what_is_kept(command: str) -> None:
    tool, *arguments = command.split()
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    ran = subprocess.run([tool, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.stdout == PRINTED[command]
    assert (ran.returncode == 0) is bool(PRINTED[command])


@pytest.mark.parametrize("arguments", [["run", "-"], ["check", "-"], ["run", "in.yaml", "-"], ["explain", "-", "a"]])
@pytest.mark.parametrize("given", ["", "\n \n"])
def test_empty_standard_input_is_an_error(
    arguments: list[str],
    given: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.yaml").write_text(QUEUES, encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
    assert main(arguments) == ExitCode.BAD_INPUT
    assert "<stdin>: it is empty; see if the command before it failed: set -o pipefail\n" in capsys.readouterr().err
