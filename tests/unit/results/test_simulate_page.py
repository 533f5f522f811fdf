"""The page on results says what its example prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs/simulate.md"


def test_the_examples_on_the_page_print_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    codes = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    printed = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert len(codes) == len(printed) == 3
    for code, expected in zip(codes, printed, strict=True):
        exec(compile(code, str(PAGE), "exec"), {})
        assert capsys.readouterr().out == expected
