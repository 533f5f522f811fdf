"""Whole runs in which something was wrong once. Each line of a file is one; `why` says what was wrong."""

import json
from pathlib import Path

import pytest

from kueuecore.conformance import answer
from kueuecore.testing.play import first_difference
from tests.differential.test_lost_pods import compared

RUNS = [
    pytest.param(json.loads(line), id=f"{file.stem}-{number}")
    for file in sorted((Path(__file__).parent / "runs").glob("*.jsonl"))
    for number, line in enumerate(file.read_text().splitlines(), start=1)
]


@pytest.mark.parametrize("run", RUNS)
def test_a_run(run: dict[str, object]) -> None:
    assert run["why"]
    assert first_difference(compared(answer(run)), compared(answer(run, by="reference"))) is None
