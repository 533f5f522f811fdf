"""The pages on answers say what their programs print, and how long outputs end. tests/api runs their other commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kueuecore.cli import main

ROOT = Path(__file__).parents[3]
PAGES = [
    path for name in ("explain.md", "history.md", "unblock.md", "what-if.md") if (path := ROOT / "docs" / name).exists()
]
ENDS = [
    pytest.param(command, printed, id=f"{page.name} {n}")
    for page in PAGES
    for n, (command, printed) in enumerate(
        re.findall(
            r"```sh\nkueuecore ([^`]*?)```\n\nends with\n\n```text\n(.*?)```", page.read_text("utf-8"), re.DOTALL
        )
    )
]
PROGRAMS = [
    pytest.param(code, printed, id=f"{page.name} {n}")
    for page in PAGES
    for n, (code, printed) in enumerate(
        re.findall(r"```python\n([^`]*?)```\n\nprints\n\n```text\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    )
]


def test_the_pages_show_programs() -> None:
    assert len(PROGRAMS) >= len(PAGES)


@pytest.mark.parametrize(("command", "printed"), ENDS)
def test_a_command_on_a_page_ends_with_what_it_says(
    command: str, printed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out.endswith(f"\n\n{printed}")


@pytest.mark.parametrize(("code", "printed"), PROGRAMS)
def test_a_program_on_a_page_prints_what_it_says(code: str, printed: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(code, encoding="utf-8")
    ran = subprocess.run([sys.executable, program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert ran.stdout == printed
