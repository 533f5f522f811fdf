"""Steps of one second are in the order in which they can have happened."""

from __future__ import annotations

from itertools import permutations

from kueuecore.histories.facts import Found
from kueuecore.histories.merging import in_order
from kueuecore.histories.timeline import What


def test_a_life_of_one_second_begins_with_the_creation() -> None:
    life = [What.CREATED, What.PREEMPTED, What.RELEASED, What.REQUEUED]
    steps = [Found(at=10**9, what=what, sources=(f"condition {what}",)) for what in life]
    for shuffled in permutations(steps):
        assert [step.what for step in in_order(shuffled)[0]] == life
