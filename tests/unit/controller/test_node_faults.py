"""Whatever goes wrong around a controller whose nodes fail, pods go where they have places, and none is forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kueuecore._json import object_at
from kueuecore.controller import Controller, Turn
from kueuecore.controller.pod_releases import PodReleases
from kueuecore.errors import ObjectRef
from kueuecore.times import TimeLike
from kueuecore.trials.node_faults import FaultyNodeHistory
from kueuecore.writes import Verb, Write

# Long enough that pods are released while something goes wrong.
N_STEPS = 60


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
    """A decision releases pods before it is stored."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        releases = next(side for side in self._sides if isinstance(side, PodReleases))
        releases._is_waiting = lambda team: False  # type: ignore[method-assign]


def sends_once() -> type[Controller]:
    """No release is sent a second time, not even by another process, whatever has come of the first."""
    released: set[tuple[ObjectRef, object]] = set()

    class SendsOnce(Controller):
        def turn(self, now: TimeLike) -> Turn:
            turn = super().turn(now)
            objects = [object_ for object_ in turn.objects if (object_.object, uid_of(object_)) not in released]
            released.update((object_.object, uid_of(object_)) for object_ in objects if object_.verb is Verb.PATCH)
            return replace(turn, objects=tuple(objects))

    return SendsOnce


def uid_of(write: Write) -> object:
    return object_at(write.manifest, "metadata").get("uid")


@pytest.mark.parametrize("broken", [lambda: ReleasesAhead, sends_once])
def test_a_bug_is_noticed(broken: Callable[[], type[Controller]]) -> None:
    for seed in range(60):
        try:
            FaultyNodeHistory(seed, make=broken(), n_steps=N_STEPS).play()
        except AssertionError:
            return
    pytest.fail("nobody has noticed")
