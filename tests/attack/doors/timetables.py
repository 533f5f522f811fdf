"""Timetables of scenarios, and what else makes much of little: times, counts and spans."""

from __future__ import annotations

import copy
import json
import shutil
from random import Random
from typing import Any

from tests.attack.case import Case
from tests.attack.documents import ROOT
from tests.attack.doors.command import folder_of_its_own, judge, say
from tests.attack.doors.scenarios import CHANGING, smaller
from tests.attack.values import damaged

__all__ = ["draw"]

_SPANS = ("1ns", "0s", "1ms", "1s", "5m", "1h", "292y", {"from": "0s", "to": "1ns"}, {"mean": "1ms"}, {"mean": "1h"})
_TIMES = (1, 3, 300, 9_999, 10_000, 10_001, 10**9, None)


def draw(rng: Random) -> Case:
    """A scenario with some entries that repeat often, each perhaps damaged."""
    scenario: dict[str, Any] = copy.deepcopy(CHANGING)
    timetable: list[dict[str, Any]] = scenario["timetable"]
    entries: list[Any] = []
    for _ in range(rng.choice([1, 2, 5, 40])):
        entry: dict[str, Any] = copy.deepcopy(rng.choice(timetable))
        if rng.random() < 0.7:
            entry |= {"every": rng.choice(_SPANS), "times": rng.choice(_TIMES)}
        entries.append(damaged(rng, entry, parts=tuple(timetable)).value if rng.random() < 0.5 else entry)
    scenario["timetable"] = entries
    scenario["until"] = rng.choice(["1ns", "1h", "6h", "1000h", None])
    text = json.dumps(smaller(scenario))

    def act() -> None:
        with folder_of_its_own() as place:
            for file in (ROOT / "multikueue-regions").glob("*.yaml"):
                shutil.copy(file, place)
            (place / "runs.csv").write_text("s\n5\n2m\n")
            (place / "s.json").write_text(text)
            judge(say("simulate", "-o", "json", "s.json"), "json", 30_000_000)

    # Ten thousand changes are allowed, and each may come twice: when they are checked, and when they happen.
    return Case(f"{len(entries)} entries, {text[:500]}", act, len(text), seconds=200)
