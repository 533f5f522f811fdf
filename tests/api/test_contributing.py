"""CONTRIBUTING.md names files and names that exist, so that recipes do not rot."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LINK = re.compile(r"\[(`?)([^\]`]+)`?\]\((?!https?:)([^)#]*)(#[^)]*)?\)")
# Paths and modules in code that is no link: `tests/unit/test_kinds.py`, `rust/py`.
PATH = re.compile(r"(?<![\w./-])(?:tests|docs|rust|python|scripts|benches|fuzz|examples|deploy)/[\w./-]*\w")


def anchors(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page, re.M)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def problem(is_code: bool, text: str, target: str, anchor: str) -> str:
    """What is wrong with a link; empty: nothing. Code that is linked is a name in the file."""
    path = ROOT / target if target else ROOT / "CONTRIBUTING.md"
    if not path.exists():
        return f"{target} does not exist"
    if anchor and anchor[1:] not in anchors(path.read_text(encoding="utf-8")):
        return f"{target} has no heading {anchor}"
    is_name = is_code and path.is_file() and text != target
    if is_name and not re.search(rf"(?<!\w){re.escape(text)}(?!\w)", path.read_text(encoding="utf-8")):
        return f"{target} has no {text}"
    return ""


def test_every_link_leads_to_a_file_that_has_the_name() -> None:
    links = LINK.findall(PAGE)
    assert len(links) > 50
    assert [link for link in (problem(bool(code), *rest) for code, *rest in links) if link] == []


def test_every_path_in_a_command_exists() -> None:
    paths = set(PATH.findall(LINK.sub("", PAGE)))
    assert "tests/unit/test_kinds.py" in paths
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_every_command_of_make_is_a_target() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    wanted = set(re.findall(r"`make ([\w-]+)", PAGE))
    assert wanted
    assert wanted - targets == set()


@pytest.mark.parametrize(
    ("link", "what"),
    [
        ((True, "Integration", "python/kueuecore/jobs/integration.py", ""), ""),
        ((True, "Integratio", "python/kueuecore/jobs/integration.py", ""), "has no Integratio"),
        ((False, "there", "python/kueuecore/jobs/nowhere.py", ""), "does not exist"),
        ((False, "there", "docs/jobs.md", "#the-kinds"), ""),
        ((False, "there", "docs/jobs.md", "#no-kinds"), "has no heading #no-kinds"),
    ],
)
def test_a_link_that_leads_nowhere_is_named(link: tuple[bool, str, str, str], what: str) -> None:
    assert problem(*link).endswith(what)
    assert bool(problem(*link)) == bool(what)
