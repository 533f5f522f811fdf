"""Worlds in which something was wrong once. Each line of a file is one; `why` says what was wrong.

Those of `open.jsonl` are still to be settled: when one of them agrees, it moves to the others.
"""

from pathlib import Path

import pytest

from kueuecore.testing import History, Invariants, Play, read_histories, shown
from kueuecore.trials.comparison import compare

HERE = Path(__file__).parent
OPEN = pytest.mark.xfail(strict=True, raises=AssertionError)
SCENARIOS = [
    pytest.param(scenario, id=f"{file.stem}-{number}", marks=OPEN if file.stem == "open" else ())
    for file in sorted(HERE.glob("*.jsonl"))
    for number, scenario in enumerate(read_histories(file), start=1)
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_regression(scenario: History) -> None:
    assert scenario.why
    with shown(scenario):
        play = Play.of(scenario, watchers=[Invariants(scenario)])
        for _ in play.run(scenario.moves):
            pass
        play.check_parents()
        compare(scenario)
