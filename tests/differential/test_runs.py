"""Whole runs through virtual time go by the engine as they go by the reference: jobs that run, fail, stop and end."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kueuecore.conformance import answer
from kueuecore.testing.play import first_difference
from tests.property.worlds import times
from tests.random_runs import random_run


def number(cycle: dict[str, Any]) -> int:
    return int(cycle["n"])


def reported(run: dict[str, Any]) -> dict[str, Any]:
    """What is compared of an answer: events of a cycle have no order, and nothing is as good as an empty list."""

    def plain(cycle: dict[str, Any]) -> dict[str, Any]:
        messages = sorted(
            cycle["messages"], key=lambda message: (message["key"], message["reason"], message["message"])
        )
        return {**{name: value for name, value in cycle.items() if value != []}, "messages": messages}

    cycles = (plain(cycle) for cycle in [*run["cycles"], *run["quietMessages"]])
    return {
        # Whoever waited in vain for pods has said nothing.
        "cycles": sorted(
            (cycle for cycle in cycles if cycle.keys() > {"n", "t", "messages"} or cycle["messages"]), key=number
        ),
        "final": {name: value for name, value in run["final"].items() if value},
    }


@times(1)
@given(st.integers(min_value=0, max_value=2**40))
def test_runs(seed: int) -> None:
    case = random_run(seed)
    difference = first_difference(reported(answer(case)), reported(answer(case, by="reference")))
    assert difference is None, f"the engine and the reference differ in run {seed}: {difference}"
