"""The pictures in docs/ are those that the program draws."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

PICTURES = Path(__file__).parents[3] / "docs/pictures"


def test_the_pictures_of_the_docs_are_those_of_the_examples(tmp_path: Path) -> None:
    from scripts import pictures

    pictures.main(tmp_path)
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert drawn == {path.name: path.read_bytes() for path in PICTURES.iterdir()}, "python -m scripts.pictures"
