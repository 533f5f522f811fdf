"""The pictures in docs/ are those that the program draws."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

ROOT = Path(__file__).parents[3]
PICTURES = ROOT / "docs/pictures"


def test_the_pictures_of_the_docs_are_those_of_the_examples(tmp_path: Path) -> None:
    from scripts import pictures

    pictures.main(tmp_path)
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert drawn == {path.name: path.read_bytes() for path in PICTURES.glob("*.svg")}, "python -m scripts.pictures"


def test_every_picture_is_on_a_page_with_its_command() -> None:
    from scripts import pictures

    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/README.md"), ROOT / "README.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages).replace("\\\n", " ")
    written = re.findall(r"kueuecore ((?:simulate|compare|sweep|plan) [^`\n]+)", text)
    shown = [set(shlex.split(found)) - {"--report", "out.html"} for found in written if found.count("'") % 2 == 0]
    for file, command, _ in pictures.PICTURES:
        assert set(shlex.split(command)) in shown, command
        assert f"pictures/{file})" in text, file
    assert {path.name for path in PICTURES.glob("*.svg")} == {file for file, _, _ in pictures.PICTURES}
    # Those of pages in a browser.
    assert [path.name for path in PICTURES.glob("*.png") if f"pictures/{path.name})" not in text] == []
