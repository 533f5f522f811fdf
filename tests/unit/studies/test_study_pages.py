"""The pages on studies say what their programs print. tests/api runs their commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ("compare.md", "eta.md", "plan.md", "sweep.md")


@pytest.mark.parametrize("page", PAGES)
def test_the_program_on_the_page_prints_what_it_says(page: str, tmp_path: Path) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    code, printed = re.findall(r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", text, re.DOTALL)[0]
    program = tmp_path / "program.py"
    program.write_text(code, encoding="utf-8")
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, timeout=120)
    assert ran.stdout == printed
