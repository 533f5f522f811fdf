"""Pages of runs: names in them are text, whatever they look like."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

from kueuecore.cli import ExitCode
from tests.attack.case import Case, Wrong
from tests.attack.documents import examples
from tests.attack.doors.command import folder_of_its_own, judge, say
from tests.attack.values import TEXTS

__all__ = ["draw"]

_MARKUP = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"><b>", "'><i>", "</title><script>", "</style>",
    "]]>", "<!--", "&lt;", "javascript:alert(1)", "{{7*7}}", "</svg><script>", "\u202egnp.exe", "\x1b[2J", "a" * 5_000,
)  # fmt: skip
_NO_SCRIPTS = ("script", "iframe", "object", "embed", "img", "base", "link", "form", "b", "i")


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        outside = [
            attr for name, attr in attrs if name in ("href", "src", "xlink:href") and attr and attr[:1] not in "#d"
        ]
        if tag in _NO_SCRIPTS or outside or any(name.startswith("on") for name, _ in attrs):
            self.wrong.append(f"<{tag} {attrs}>"[:300])


def draw(rng: Random) -> Case:
    """A run of an example in which some texts look like markup."""
    queues = [doc for name, docs in examples().items() if name == "scenario/queues.yaml" for doc in docs]
    job = examples()["scenario/job.yaml"][0]
    bad = rng.choice([*_MARKUP, *TEXTS])
    place = rng.choice(["scenario", "work", "label", "description", "flavor"])
    scenario: dict[str, Any] = {
        "apiVersion": "kueuecore/v1",
        "kind": "Scenario",
        "metadata": {"name": bad if place == "scenario" else "a", "description": bad if place == "description" else ""},
        "until": "1h",
        "cluster": {"objects": _renamed(queues, bad) if place == "flavor" else queues},
        "work": [{"name": bad if place == "work" else "w", "job": job, "count": 3, "every": "1m", "runs": "5m"}],
    }
    if place == "label":
        scenario["work"][0]["job"] = {**job, "metadata": {**job["metadata"], "annotations": {bad: bad}}}
    text = json.dumps(scenario)

    def act() -> None:
        with folder_of_its_own():
            Path("s.json").write_text(text)
            said = say("simulate", "--report", "out.html", "s.json")
            judge(said, "table", 1_000_000)
            if said.code == ExitCode.BAD_INPUT:
                if Path("out.html").exists():
                    raise Wrong("a page about a refused scenario")
                return
            tags = _Tags()
            tags.feed(Path("out.html").read_text(encoding="utf-8"))
            if tags.wrong:
                raise Wrong(f"tags that act: {tags.wrong[:3]}")

    return Case(f"{place} {bad[:60]!r}", act, len(text), seconds=60)


def _renamed(objects: list[Any], name: str) -> list[Any]:
    """The objects, with another name for the first flavor wherever it is used."""
    flavor = next(object_["metadata"]["name"] for object_ in objects if object_["kind"] == "ResourceFlavor")
    return [json.loads(json.dumps(object_).replace(json.dumps(flavor), json.dumps(name))) for object_ in objects]
