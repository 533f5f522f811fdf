"""The command in an empty folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore.cli import main
from tests.command import Ran


@pytest.fixture
def any_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Runs a command in an empty folder; `text` becomes the file `in.yaml` there."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, text: str = "") -> Ran:
        Path("in.yaml").write_text(text, encoding="utf-8")
        return Ran(main(arguments), *capsys.readouterr())

    return run


@pytest.fixture
def command(any_command: Callable[..., Ran]) -> Callable[..., Ran]:
    """Runs `kueuecore run` in an empty folder; `text` becomes the file `in.yaml` there."""

    def run(*arguments: str, text: str = "") -> Ran:
        return any_command("run", *(arguments or ("in.yaml",)), text=text)

    return run
