"""The command in an empty folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore.cli import main
from tests.command import Ran


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs `kueuecore run` in an empty folder; `text` becomes the file `in.yaml` there."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, text: str = "") -> Ran:
        Path("in.yaml").write_text(text, encoding="utf-8")
        code = main(["run", *(arguments or ("in.yaml",))])
        return Ran(code, *capsys.readouterr())

    return run
