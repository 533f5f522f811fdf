"""Runs in which the engine once differed from a released Kueue, whose answer is in each. `why` says what was wrong.

Each line of a file is one, as `make fuzz-kueue` writes it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.judge.comparing import differing, parts
from tests.judge.playing import answered, most

CASES = [
    pytest.param(json.loads(line), id=f"{file.stem}-{number}")
    for file in sorted((Path(__file__).parent / "kueue").glob("*.jsonl"))
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
]


@pytest.mark.parametrize("by", ["engine", "reference"])
@pytest.mark.parametrize("case", CASES)
def test_a_run_goes_as_in_that_release(case: dict[str, Any], by: str) -> None:
    assert case["why"]
    question = {name: row for name, row in case.items() if name not in ("why", "expect", "leftOut")}
    difference = differing(parts(case["expect"], most(case)), answered(question, by), case.get("leftOut", ()))
    assert difference is None, str(difference)
