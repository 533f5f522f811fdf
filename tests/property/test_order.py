"""The order in which objects come, and how they are split into batches, changes nothing (rules/01, rules/05 §2.1)."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from tests.builders import T0, at, snapshot, story
from tests.property.worlds import CONFIGURATIONS, Json, worlds

quick = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def engine_of(batches: list[list[Json]], configuration: Configuration | None, trusted: bool) -> Engine:
    engine = Engine(configuration)
    for batch in batches:
        engine.apply(json.dumps(batch).encode(), now=T0, trusted=trusted)
    return engine


@st.composite
def shuffled(draw: st.DrawFn, objects: list[Json]) -> list[list[Json]]:
    """The objects in another order, some of them twice, in batches."""
    again = draw(st.lists(st.sampled_from(objects), max_size=3)) if objects else []
    order = draw(st.permutations([*objects, *again]))
    batches: list[list[Json]] = [[]]
    for thing in order:
        if draw(st.booleans()):
            batches.append([])
        batches[-1].append(thing)
    return batches


@quick
@given(st.data(), worlds(), st.sampled_from(CONFIGURATIONS), st.booleans())
def test_order_and_batches_change_nothing(
    data: Any, objects: list[Json], configuration: Configuration | None, trusted: bool
) -> None:
    one = engine_of([objects], configuration, trusted)
    other = engine_of(data.draw(shuffled(objects)), configuration, trusted)
    assert snapshot(one) == snapshot(other)
    assert story(one, at(1)) == story(other, at(1))
    assert snapshot(one) == snapshot(other)


@quick
@given(st.data(), worlds(), st.sampled_from(CONFIGURATIONS))
def test_what_follows_outside_of_cycles_knows_no_order(
    data: Any, objects: list[Json], configuration: Configuration | None
) -> None:
    one = engine_of([objects], configuration, False)
    other = engine_of(data.draw(shuffled(objects)), configuration, False)
    for second in range(1, 5):
        assert sorted(map(repr, one.reconcile(at(second)))) == sorted(map(repr, other.reconcile(at(second))))
        assert story(one, at(second), 1) == story(other, at(second), 1)
        assert one.next_wake() == other.next_wake()
    assert snapshot(one) == snapshot(other)


@quick
@given(st.data(), worlds(), st.data())
def test_deleting_in_any_order_leaves_the_same(data: Any, objects: list[Json], more: Any) -> None:
    gone = data.draw(st.lists(st.sampled_from(objects), unique_by=json.dumps, max_size=6)) if objects else []
    one, other = engine_of([objects], None, False), engine_of([objects], None, False)
    for engine, order in ((one, gone), (other, more.draw(st.permutations(gone)))):
        for thing in order:
            metadata = thing["metadata"]
            engine.delete(thing["kind"], metadata["name"], namespace=metadata.get("namespace", ""), now=T0)
    assert snapshot(one) == snapshot(other)
    assert story(one, at(1)) == story(other, at(1))
