"""Answers about a dump with names that no API server takes: terminals act on nothing in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from tests.quota_manifests import flavor, local_queue, queue, workload

CLEAR = "x\x1b[2J"
NAMES = {"default": f"flavor-{CLEAR}", "runs": f"runs-{CLEAR}", "waits": f"waits-{CLEAR}"}


@pytest.fixture
def dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """One workload is admitted, one waits for its quota."""
    text = flavor() + queue("a") + local_queue("a") + workload("runs", "a", 4) + workload("waits", "a", 2)
    path = tmp_path / "state.yaml"
    path.write_text(text)
    assert main(["run", str(path), "-q", "-o", "yaml"]) == ExitCode.OK
    settled = capsys.readouterr().out
    for name, other in NAMES.items():
        settled = settled.replace(f"name: {name}\n", f"name: {json.dumps(other)}\n")
        settled = settled.replace(f": {name}\n", f": {json.dumps(other)}\n")
    path.write_text(settled)
    return str(path)


@pytest.mark.parametrize("command", ["explain", "unblock", "eta"])
@pytest.mark.parametrize("name", ["runs", "waits"])
def test_names_in_answers_are_escaped(command: str, name: str, dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--run-seconds", "1h", "--seeds", "1", "--workers", "1"] if command == "eta" else []
    assert main([command, "--trusted", *options, dump, NAMES[name]]) == ExitCode.OK
    said = capsys.readouterr()
    assert "x\\x1b[2J" in said.out
    assert all(line.isprintable() for line in [*said.out.split("\n"), *said.err.split("\n")])
