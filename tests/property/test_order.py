"""The order in which objects come, and how they are split into batches, changes nothing (rules/01, rules/05 §2.1)."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kueuecore.testing import History, Play, first_difference, histories, observe, shown, worlds
from tests.builders import T0, at, snapshot, story
from tests.property.worlds import engine_of, shuffled, without_order


@given(st.data(), histories(forks=False))
def test_order_and_batches_change_nothing(data: Any, history: History) -> None:
    history = without_order(history)
    batches = [json.dumps(batch).encode() for batch in data.draw(shuffled(history.objects))]
    with shown(history):
        one, other = Play.of(history), Play.of(history, batches=batches)
        assert first_difference(observe(one.engine), observe(other.engine)) is None
        for move in history.moves:
            reported, again = one.do(move).to_json(), other.do(move).to_json()
            assert first_difference(reported, again) is None
            assert first_difference(observe(one.engine), observe(other.engine)) is None


@given(st.data(), worlds())
def test_order_changes_nothing_of_what_is_trusted(data: Any, world: History) -> None:
    world = without_order(world)
    with shown(world):
        one = engine_of(world, trusted=True)
        other = engine_of(world, data.draw(shuffled(world.objects)), trusted=True)
        assert snapshot(one) == snapshot(other)
        assert story(one, at(1)) == story(other, at(1))
        assert snapshot(one) == snapshot(other)


@given(st.data(), worlds(), st.data())
def test_deleting_in_any_order_leaves_the_same(data: Any, world: History, more: Any) -> None:
    world = without_order(world)
    objects = world.objects
    gone = data.draw(st.lists(st.sampled_from(objects), unique_by=json.dumps, max_size=6)) if objects else []
    with shown(world):
        one, other = engine_of(world), engine_of(world)
        for engine, order in ((one, gone), (other, more.draw(st.permutations(gone)))):
            for thing in order:
                metadata = thing["metadata"]
                engine.delete(thing["kind"], metadata["name"], namespace=metadata.get("namespace", ""), now=T0)
        assert snapshot(one) == snapshot(other)
        assert story(one, at(1)) == story(other, at(1))
