"""The rules that answers cite can be read, section by section."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueuecore.agents import rule_pages
from kueuecore.agents.rule_pages import page_at, rule_uri
from tests.unit.agents.connections import ROOT

CHAPTERS = sorted((ROOT / "docs" / "rules").glob("[0-9]*.md"))


def test_every_chapter_is_a_resource() -> None:
    found = rule_pages.rule_pages()
    assert [page.chapter for page in found] == [path.name[:2] for path in CHAPTERS]
    assert all(page_at(page.uri) == path.read_text("utf-8") for page, path in zip(found, CHAPTERS, strict=True))


@pytest.mark.parametrize(
    ("rule", "heading"),
    [
        ("02 §2.2", "### 2.2 Available"),
        ("03 §3", "## 3. "),
        ("04 §2", "## 2. "),
        ("02 §2.99", "## 2. Nodes"),
        ("05 §6.4 4", "### 6.4 "),
    ],
)
def test_a_rule_that_an_answer_cites_is_at_its_address(rule: str, heading: str) -> None:
    text = page_at(rule_uri(rule))
    assert text is not None
    assert text.startswith(heading)
    level = heading.partition(" ")[0]
    assert not any(line.startswith(f"{level} ") for line in text.splitlines()[1:])


@pytest.mark.parametrize(
    "uri", ["kueuecore://rules/99", "kueuecore://rules/02/99", "kueuecore://rules/../x", "file:///etc"]
)
def test_there_is_nothing_else(uri: str) -> None:
    assert page_at(uri) is None


def test_a_package_without_the_pages_offers_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_pages, "_FOLDER", tmp_path / "rules")
    rule_pages.rule_pages.cache_clear()
    try:
        assert rule_pages.rule_pages() == ()
        assert page_at("kueuecore://rules/02") is None
    finally:
        rule_pages.rule_pages.cache_clear()
