"""docs/share-a-dump.md says what its commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kueuecore.cli import main

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/share-a-dump.md").read_text(encoding="utf-8")


def test_the_commands_print_what_the_page_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ((commands, printed),) = re.findall(
        r"```sh\n(kueuecore shrink.*?)```\n\nprint\n\n```text\n(.*?)```", PAGE, re.DOTALL
    )
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    said = ""
    for line in commands.splitlines():
        assert main(shlex.split(line)[1:]) == 0
        ran = capsys.readouterr()
        said += ran.err + ran.out
    assert said == printed


def test_every_option_is_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("anonymise", "shrink"):
        main([command, "--help"])
        options = set(re.findall(r"(?<=  )--[a-z-]+|(?<=, )--[a-z-]+", capsys.readouterr().out))
        common = {"--help", "--recursive", "--output", "--quiet"}
        assert [option for option in sorted(options - common) if option not in PAGE] == []
