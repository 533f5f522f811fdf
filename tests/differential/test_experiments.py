"""With each experiment the engine decides as the reference does, in worlds and runs in which it matters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kueuecore.conformance import answer
from kueuecore.experiments import Experiments
from kueuecore.testing import History, Play, shown
from kueuecore.testing.drawn_contests import Contest, random_contest
from kueuecore.testing.drawn_histories import random_history
from kueuecore.testing.play import first_difference
from kueuecore.trials.comparison import compare
from tests.differential.test_runs import reported
from tests.random_runs import random_run

SECONDS = (1, 3, 8, 60)
N_WORLDS = 60
# In what share of the worlds a decision, status or event is another than without it, at least: they follow from fixed
# seeds, so a smaller share is an experiment that no longer does anything.
LEAST = {
    "minRunSecondsBeforeCrossQueuePreemption": 0.2,
    "reclaimBackoffSeconds": 0.06,
    "timeShareSeconds": 0.2,
}
BY_NAME = [*LEAST, "all"]


def experiments(name: str, seed: int) -> Experiments:
    """One experiment, or all of them, with one of a few times."""
    seconds = SECONDS[seed % len(SECONDS)]
    return Experiments.of({each: seconds for each in LEAST if name in (each, "all")})


def world(seed: int) -> History:
    kinds = [*Contest]
    return random_history(seed) if seed % 2 else random_contest(seed, kinds[seed // 2 % len(kinds)])


def outcome(history: History) -> list[Any]:
    return [result.to_json() for result in Play.of(history).run(history.moves)]


@pytest.mark.parametrize("name", BY_NAME)
def test_worlds(name: str) -> None:
    n_others = 0
    for seed in range(1, N_WORLDS + 1):
        without = world(seed)
        history = replace(without, experiments=experiments(name, seed))
        with shown(history):
            compare(history)
        n_others += outcome(history) != outcome(without)
    assert n_others / N_WORLDS >= LEAST.get(name, 0.2)


@pytest.mark.parametrize("name", BY_NAME)
def test_runs(name: str) -> None:
    n_others = 0
    for seed in range(1, N_WORLDS + 1):
        without = random_run(seed)
        case = {**without, "config": {**without["config"], "experiments": experiments(name, seed).to_dict()}}
        found = reported(answer(case))
        difference = first_difference(found, reported(answer(case, by="reference")))
        assert difference is None, f"the engine and the reference differ in run {seed} with {name}: {difference}"
        n_others += found != reported(answer(without))
    assert n_others > 0
