"""What no change of Kueue touches is decided the same in every release, to the byte."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kueuecore.configuration import Configuration
from kueuecore.releases import Release, changes, newest_releases
from tests.builders import at, cluster_queue, local_queue, snapshot, story, workload, world
from tests.property.worlds import times

QUEUES = ("a", "b", "c")


@st.composite
def plain_worlds(draw: st.DrawFn) -> list[Any]:
    """Quota of cpu in one flavor, borrowed in a cohort, without preemption: no change is about that."""
    found: list[Any] = []
    for name in QUEUES:
        cohort = draw(st.sampled_from(["", "all"]))
        found += [cluster_queue(name, draw(st.integers(0, 9)), cohort=cohort), local_queue(name, name)]
    for number in range(draw(st.integers(1, 12))):
        cpu, count = draw(st.integers(0, 4)), draw(st.integers(1, 3))
        queue, priority = draw(st.sampled_from(QUEUES)), draw(st.integers(-1, 2))
        found.append(workload(f"w{number}", cpu, count=count, queue=queue, priority=priority, created=number))
    return found


@times(4)
@given(plain_worlds(), st.sampled_from(newest_releases()))
def test_a_world_that_no_change_touches(objects: list[Any], release: Release) -> None:
    newest = Configuration()
    older = newest.switched({change.name: change.is_in(release) for change in changes()})
    engines = [world(*objects, configuration=entry) for entry in (newest, older)]
    stories = [story(engine, at(60)) for engine in engines]
    assert stories[0] == stories[1]
    assert snapshot(engines[0]) == snapshot(engines[1])
