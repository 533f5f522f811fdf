"""Runs with waiting for pods whose nodes fail and come back go by the engine as they go by the reference."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kueuecore.conformance import answer
from kueuecore.testing.play import first_difference
from tests.differential.test_runs import reported
from tests.lost_pods import run_with_failures
from tests.property.worlds import times

Json = dict[str, Any]


def compared(run: Json) -> Json:
    """What is compared: only the reference says of an eviction in a cycle that it is the first one."""
    found = reported(run)
    for cycle in found["cycles"]:
        cycle["evicted"] = [
            {k: v for k, v in it.items() if (k, v) != ("again", False)} for it in cycle.get("evicted", ())
        ]
    return found


@times(1)
@given(st.integers(min_value=0, max_value=2**40))
def test_runs_with_lost_pods(seed: int) -> None:
    case = run_with_failures(seed)
    difference = first_difference(compared(answer(case)), compared(answer(case, by="reference")))
    assert difference is None, f"the engine and the reference differ in run {seed}: {difference}"
