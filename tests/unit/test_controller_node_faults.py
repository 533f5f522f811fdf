"""Whatever goes wrong around a controller whose nodes fail, pods go where they have places, and none is forgotten."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kueuecore.checks import ObjectWrite
from kueuecore.controller import Controller, Turn
from kueuecore.times import END_NS, TimeLike
from kueuecore.trials.node_faults import FaultyNodeHistory

# Shorter ones than `make fuzz-controller` plays.
N_STEPS = 24


@pytest.mark.parametrize("first", [0, 20])
def test_20_histories(first: int) -> None:
    happened: Counter[str] = Counter()
    for seed in range(first, first + 20):
        try:
            happened += FaultyNodeHistory(seed, n_steps=N_STEPS).play()
        except Exception as error:
            error.add_note(f"in history {seed}")
            raise
    ways = ("refused", "conflict", "unheard", "lost", "before", "after")
    assert min(happened[f"releases {way}"] for way in ways) > 2
    assert min(happened[name] for name in ("nodes recorded as failed", "places replaced", "pods lost")) > 1
    assert min(happened[name] for name in ("fail", "taint", "node goes", "node comes", "foreign")) > 3


class ReleasesAhead(Controller):
    """Pods are released by what is decided, before it is stored."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._releases._is_waiting = lambda team: False  # type: ignore[method-assign]


class SendsOnce(Controller):
    """A release that was refused, or got no answer, is never sent again."""

    def turn(self, now: TimeLike) -> Turn:
        turn = super().turn(now)
        for sent in self._releases._sent._sent.values():
            sent.again = END_NS
        return turn

    def refuse_object(self, write: ObjectWrite, *args: Any, **named: Any) -> None:
        if write.object.kind != "Pod":
            super().refuse_object(write, *args, **named)


@pytest.mark.parametrize(("broken", "first"), [(ReleasesAhead, 40), (SendsOnce, 0)])
def test_a_bug_is_noticed(broken: type[Controller], first: int) -> None:
    for seed in range(first, first + 60):
        try:
            FaultyNodeHistory(seed, make=broken, n_steps=N_STEPS).play()
        except AssertionError:
            return
    pytest.fail("nobody has noticed")
