"""What the pages for agents say is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueuecore.agents.answering import Limits
from kueuecore.agents.listings import DEFAULT_ROWS, MAX_ROWS
from kueuecore.agents.server import INSTRUCTIONS
from kueuecore.agents.tools import TOOLS
from kueuecore.cli.commands import alone_parser
from kueuecore.cli.commands.mcp import _PORT
from scripts import agents_transcript
from tests.unit.agents.connections import ROOT

PAGE = (ROOT / "docs" / "agents.md").read_text("utf-8")
SKILL = ROOT / "docs" / "skills" / "kueuecore" / "SKILL.md"
LINK = re.compile(r"\]\(([^)#\s]+)")


def test_the_transcript_is_what_an_agent_gets() -> None:
    assert agents_transcript.page() == PAGE


def test_the_table_has_every_tool_with_its_parameters_and_command() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", PAGE, re.M)
    found = {
        name: (tuple(re.findall(r"`(\w+)`", takes)), command.strip("[]() ").split("`")[1])
        for name, takes, command in rows
    }
    assert found == {tool.name: (tuple(tool.takes), tool.command or "run") for tool in TOOLS}


def test_the_limits_are_those_of_the_command() -> None:
    options = alone_parser("mcp").parse_args([])
    limits = Limits()
    assert (options.timeout, options.max_bytes) == (limits.seconds, limits.most_bytes) == (30, 50_000)
    assert "| time of a call | 30s; " in PAGE
    assert "| 50,000 bytes; " in PAGE
    assert f"| calls at once | {limits.most_at_once}; " in PAGE
    assert f"| rows of a page | {DEFAULT_ROWS}, and {MAX_ROWS} at most |" in PAGE
    assert f"port {_PORT} (" in PAGE


def test_agents_are_told_of_every_tool() -> None:
    text = SKILL.read_text("utf-8")
    for tool in TOOLS:
        assert f"`{tool.name}`" in INSTRUCTIONS
        assert f"`{tool.name}`" in text


def front_matter() -> dict[str, Any]:
    found = yaml.safe_load(SKILL.read_text("utf-8").split("---\n")[1])
    assert isinstance(found, dict)
    return found


def test_the_skill_is_one() -> None:
    found = front_matter()
    assert found["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", found["name"])
    assert 0 < len(found["description"]) <= 1024
    assert len(found["compatibility"]) <= 500
    assert set(found) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}


def test_the_map_of_the_pages_has_its_form() -> None:
    lines = (ROOT / "llms.txt").read_text("utf-8").splitlines()
    assert [line for line in lines if line.startswith("# ")] == ["# kueuecore"]
    assert lines[0] == "# kueuecore"
    assert lines[2].startswith("> ")
    entries = [line for line in lines if line.startswith("- ")]
    assert all(re.fullmatch(r"- \[[^]]+\]\([^)]+\): .+", line) for line in entries)
    sections = [line for line in lines if line.startswith("#")][1:]
    assert all(line.startswith("## ") for line in sections)
    assert sections[-1] == "## Optional"


@pytest.mark.parametrize("path", ["llms.txt", "docs/agents.md", "docs/skills/kueuecore/SKILL.md"])
def test_links_lead_somewhere(path: str) -> None:
    file = ROOT / path
    local = [link for link in LINK.findall(file.read_text("utf-8")) if "://" not in link]
    assert [link for link in local if not (file.parent / link).exists()] == []
    assert local or path.endswith("SKILL.md")


def test_a_page_that_is_served_is_in_the_wheel() -> None:
    settings = (ROOT / "pyproject.toml").read_text("utf-8")
    assert '"python/kueuecore/agents/rules/*.md"' in settings
    folder = Path(ROOT / "python" / "kueuecore" / "agents" / "rules")
    assert folder.resolve() == ROOT / "docs" / "rules"
