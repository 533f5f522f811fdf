"""The page on comparisons says what its command prints, and its program runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kueuecore.cli import main

PAGE = Path(__file__).parents[3] / "docs/compare.md"


def test_the_command_on_the_page_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (command,) = re.findall(r"```sh\nkueuecore (.*?)```", text, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert main(shlex.split(command.replace("\\\n", " "))) == 0
    assert capsys.readouterr().out == printed


def test_the_program_on_the_page_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    program = tmp_path / "program.py"
    program.write_text(code, encoding="utf-8")
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, timeout=120)
    assert re.fullmatch(r"\(.*, .*\)\n", ran.stdout)
