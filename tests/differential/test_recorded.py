"""The recorded answers, which the tests of the Rust crates compare with, are those that the reference gives now."""

import gzip
import json
from pathlib import Path

import pytest

from kueuecore.testing import History, first_difference
from kueuecore.trials.recording import answers

FILE = Path(__file__).parent.parent / "worlds" / "recorded.jsonl.gz"
LINES = gzip.decompress(FILE.read_bytes()).decode().splitlines()
N_ASKED = 10


@pytest.mark.parametrize("number", range(0, len(LINES), len(LINES) // N_ASKED))
def test_the_reference_still_gives_the_recorded_answers(number: int) -> None:
    line = LINES[number]
    difference = first_difference(json.loads(line)["answers"], answers(History.from_line(line)))
    assert difference is None, f"line {number + 1}: {difference}; make record-worlds writes the file again"
