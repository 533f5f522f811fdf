"""What an engine gives back of its objects is what it decides by: another engine with them gives back the same."""

from __future__ import annotations

from hypothesis import given

from kueuecore import Engine, settle
from kueuecore.held_objects import HELD_KINDS
from kueuecore.testing import START, History, worlds
from kueuecore.testing.drawn_worlds import Limits
from tests.property.worlds import engine_of, times


@times(2)
@given(worlds(Limits()))
def test_objects_go_into_another_engine_and_come_back(world: History) -> None:
    engine = engine_of(world)
    settle(engine, now=START, max_cycles=100)
    other = Engine(world.parsed_configuration())
    for kind in HELD_KINDS:
        other.apply(list(engine.objects(kind)), now=START, trusted=True)
    for kind in HELD_KINDS:
        assert other.objects(kind) == engine.objects(kind), kind
    assert [row.usage for row in other.quota()] == [row.usage for row in engine.quota()]
