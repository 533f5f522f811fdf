"""The site that `make docs` builds: its first page, and its search."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "site"
# Beside the configuration of Sphinx, which imports it from there.
front_page = runpy.run_path(str(SITE / "front_page.py"))["front_page"]
NODE = shutil.which("node")
# What Sphinx's searchtools.js has, as far as ours knows of it, and an index as Sphinx writes it.
SPHINX = """
var Scorer = {};
const said = [];
const document = {createElement: () => ({})};
const Search = {
  output: {before: (note) => said.push(note.textContent)},
  _parseQuery: (query) => [query, new Set(query.split(" ")), new Set(), new Set(), new Set()],
  _index: {
    terms: {borrow: [0, 1, 2], cohort: [0, 1], preemption: 3, explain: [0, 3], borrower: 1},
    titleterms: {explain: 0, quota: [1, 2]},
  },
};
"""


def in_node(expression: str) -> Any:
    script = f"{SPHINX}{(SITE / 'search.js').read_text('utf-8')}\nconsole.log(JSON.stringify({expression}));"
    assert NODE
    ran = subprocess.run([NODE, "-e", script], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(ran.stdout)


needs_node = pytest.mark.skipif(NODE is None, reason="no node here")


@needs_node
@pytest.mark.parametrize(
    ("typed", "searched"),
    [
        ("borrow", "borrow"),
        ("borow", "borrow"),
        ("borrwo", "borrow"),
        ("quotta", "quota"),
        ("exlpain", "explain"),
        ("preemtpoin", "preemption"),
        # A part of a word is found by Sphinx itself; nothing is near to the others.
        ("coho", "coho"),
        ("kjh", "kjh"),
        ("zebra", "zebra"),
    ],
)
def test_a_typo_is_forgiven(typed: str, searched: str) -> None:
    found, said = in_node(f"[[...Search._parseQuery('{typed}')[1]], said]")
    assert found == [searched]
    assert said == ([] if typed == searched else [f"No page has “{typed}”; these have “{searched}”."])


@needs_node
def test_pages_come_before_rules_and_the_page_of_a_command_first() -> None:
    results = [
        ("docs/rules/02-quota", "02 — Quota", 15),
        ("docs/explain", "explain: why does it wait, or borrow?", 15),
        ("docs/anomalies", "What people believe about Kueue that is not true", 15),
        ("docs/agents", "mcp: answers for agents", 15),
        ("CHANGELOG", "Changelog", 5),
        ("docs/topology", "Topology", 5),
    ]
    scored = in_node(
        f"(Search._parseQuery('kueuecore explain'), {json.dumps(results)}"
        ".map(([page, title, score]) => [page, Scorer.score([page, title, '', null, score, '', 'text'])]))"
    )
    ranked = [page for page, _ in sorted(scored, key=lambda result: -result[1])]
    assert ranked == [
        "docs/explain",
        "docs/agents",
        "docs/anomalies",
        "docs/topology",
        "docs/rules/02-quota",
        "CHANGELOG",
    ]


def test_the_first_page_shows_who_uses_what_and_the_tour() -> None:
    shown = front_page((ROOT / "README.md").read_text("utf-8"), (ROOT / "docs/tour.md").read_text("utf-8"))
    assert shown.startswith("| you are | you use |\n|---|---|\n")
    assert "[on call](roles/on-call.md)" in shown
    assert (
        "| [Why does it wait?](tour.md#why-does-it-wait) | `kueuecore explain -q examples/what-if lab/train` |" in shown
    )
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", shown)
    assert len(links) > 20
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []


def test_a_readme_without_the_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="no table `you are`"):
        front_page("# kueuecore\n", "# Tour\n")
