"""The first example of the README: one command, and what it says about a cluster."""

import re
from pathlib import Path

import pytest

from kueuecore import read_manifests
from kueuecore.cli import ExitCode, main
from tests.unit.kubernetes.clusters import served

ROOT = Path(__file__).parents[2]


def test_one_command_answers_from_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    readme = (ROOT / "README.md").read_text("utf-8")
    example = re.search(r"^kueuecore (explain team-a/train)$.*?^```text\n(.*?)^```$", readme, re.M | re.S)
    assert example
    with served() as server:
        server.load([manifest.object for manifest in read_manifests(Path(__file__).with_name("readme_cluster.yaml"))])
        assert main([*example[1].split(), "--server", server.url]) == ExitCode.OK
    assert capsys.readouterr().out == example[2]
