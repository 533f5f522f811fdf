"""Titles of pages: those about a command begin with it, and the index repeats them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kueuecore.cli.commands import command_lines

DOCS = Path(__file__).parents[2] / "docs"
INDEX = (DOCS / "index.md").read_text(encoding="utf-8")
# Commands that several pages share, or that another page has a section about.
WITHOUT_A_PAGE = {"run", "diff", "dump", "convert", "completion", "gates"}
TITLES = {page.name: page.read_text(encoding="utf-8").partition("\n")[0][2:] for page in DOCS.glob("*.md")}
COMMANDS = {name: title for name, title in TITLES.items() if title.startswith("`")}


def test_every_command_begins_a_title() -> None:
    named = {word for title in COMMANDS.values() for word in re.findall(r"`([a-z-]+)[ `]", title)}
    assert {*command_lines()} - WITHOUT_A_PAGE == named & {*command_lines()}


@pytest.mark.parametrize(("page", "title"), COMMANDS.items())
def test_the_index_has_the_title(page: str, title: str) -> None:
    assert f"- [{title}]({page}): " in INDEX


# Pages to look something up in, which nobody reads to the end.
REFERENCES = {
    "api", "cli", "differences-from-kueue", "feature-gates", "fidelity", "forecast", "index", "performance", "security",
    "sources", "symptoms", "virtual-time",
}  # fmt: skip
HOW_TO = sorted(
    {page.stem for page in DOCS.glob("*.md")} - REFERENCES | {f"roles/{p.stem}" for p in DOCS.glob("roles/*")}
)


@pytest.mark.parametrize("name", HOW_TO)
def test_a_page_that_shows_how_ends_with_where_to_go(name: str) -> None:
    page = DOCS / f"{name}.md"
    last = page.read_text(encoding="utf-8").rpartition("\n\n")[2]
    assert last.startswith("Next: ")
    links = re.findall(r"\[[^\]]+\]\(([^)#]+)(?:#[^)]*)?\)", last.replace("\n", " "))
    assert 1 <= len(links) <= 3
    assert [link for link in links if not (page.parent / link).exists()] == []
