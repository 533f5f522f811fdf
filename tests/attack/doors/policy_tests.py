"""`kueuecore test`: files of policy tests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from xml.etree import ElementTree

from kueuecore.cli import ExitCode
from tests.attack.case import Case, Wrong
from tests.attack.documents import ROOT, examples
from tests.attack.doors.command import folder_of_its_own, judge, say, scrambled
from tests.attack.values import damaged

__all__ = ["draw"]

_FOLDERS = ("policy-tests", "two-teams", "topology", "taking-back")


def draw(rng: Random) -> Case:
    """A file of the examples with a few things wrong, as text and as JSON."""
    found = [doc for docs in examples().values() for doc in docs if doc.get("kind") == "PolicyTest"]
    damage = damaged(rng, rng.choice(found), parts=tuple(found))
    data = json.dumps(damage.value).encode()
    if rng.random() < 0.2:
        data = scrambled(rng, data)
    options = [name for name in ("-q", "-k=team") if rng.random() < 0.1]

    def act() -> None:
        with folder_of_its_own() as place:
            for folder in _FOLDERS:
                shutil.copytree(ROOT / folder, place / folder)
            Path("policy-tests", "a_test.json").write_bytes(data)
            codes = {}
            for form in ("table", "json"):
                said = say("test", *options, "-o", form, "--junit", "out.xml", "policy-tests/a_test.json")
                judge(said, form, len(data))
                codes[form] = said.code
            if len(set(codes.values())) > 1:
                raise Wrong(f"the exit code depends on the form: {codes}")
            if said.code != ExitCode.BAD_INPUT:
                ElementTree.parse("out.xml")

    return Case(f"test {' '.join(options)}: {damage.what}", act, 3 * len(data), seconds=20)
