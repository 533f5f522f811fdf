"""What a controller's loop takes in, in whatever order it comes, and where a watch goes on."""

from __future__ import annotations

import json

import pytest

from kueuecore.controller import WATCHED, Controller, WatchError
from kueuecore.errors import ManifestError
from tests.unit.controller.world import START, World, thing, workload


@pytest.mark.parametrize("seed", range(20))
def test_events_may_come_in_any_order_and_twice(seed: int) -> None:
    from random import Random

    world = World(quota=2)
    for name in ("a", "b", "c"):
        world.cluster.create(workload(name))
    world.cluster.patch("Workload", "a", {"spec": {"priority": -1}}, namespace="default")
    world.cluster.delete("Workload", "b", namespace="default")
    world.cluster.create(workload("b", 2, priority=1))
    world.cluster.delete("Workload", "c", namespace="default")
    events = [event for _, event in world.cluster.history] * 2
    Random(seed).shuffle(events)
    for event in events:
        world.controller.observe(event, now=world.now)
    found = {other.name: other.priority for other in world.controller.engine.workloads()}
    assert found == {"a": -1, "b": 1}
    world.seen = world.cluster.version
    world.settle()
    assert world.holding() == ["b"]


def test_a_list_says_what_has_gone() -> None:
    world = World(quota=2)
    for name in ("a", "b"):
        world.cluster.create(workload(name))
    world.settle()
    listed, version = world.cluster.list("Workload")
    late = world.cluster.create(workload("late"))
    world.watch()
    kept = [
        {k: v for k, v in object_.items() if k not in ("kind", "apiVersion")}
        for object_ in listed
        if "b" not in str(object_["metadata"]["name"])
    ]
    assert world.controller.resync("Workload", kept, now=world.now, resource_version=version) == ()
    assert [other.name for other in world.controller.engine.workloads()] == ["a", "late"], "that is newer than the list"
    gone = next(object_ for object_ in listed if object_["metadata"]["name"] == "b")
    assert not world.controller.observe({"type": "MODIFIED", "object": gone}, now=world.now)
    assert world.controller.workload("late", namespace="default") == late


def test_a_controller_begins_with_lists() -> None:
    world = World(quota=1)
    world.cluster.create(workload("w"))
    for kind in WATCHED:
        objects, version = world.cluster.list(kind)
        for _ in range(2):
            assert world.controller.resync(kind, objects, now=world.now, resource_version=version) == ()
    (write,) = world.controller.turn(world.now).writes
    assert write.gained == ("QuotaReserved", "Admitted")


def test_a_list_reports_what_was_not_taken() -> None:
    world = World()
    listed = [workload("bad") | {"spec": 1}, workload("good")]
    problems = world.controller.resync("Workload", listed, now=START)
    assert [problem.field for problem in problems] == ["spec"]
    assert [other.name for other in world.controller.engine.workloads()] == ["good"]


def test_an_error_of_a_watch_says_to_list_again() -> None:
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}
    with pytest.raises(WatchError, match="410: too old resource version") as raised:
        Controller().observe(gone, now=START)
    assert raised.value.code == 410


def test_kinds_that_nobody_looks_at_change_nothing() -> None:
    controller = Controller()
    assert not controller.observe({"type": "ADDED", "object": {"kind": "Event", "metadata": {"name": "e"}}}, now=START)
    assert not controller.observe({"type": "BOOKMARK", "object": thing("Workload", "w")}, now=START)
    assert controller.next_wake(START) is None


def test_a_watch_goes_on_where_it_was_and_not_where_an_answer_was() -> None:
    world = World()
    world.cluster.create(workload("w"))
    world.watch()
    seen = world.controller.watched("Workload")
    assert seen == world.stored("w")["metadata"]["resourceVersion"]
    (write,) = world.controller.turn(world.now).writes
    world.cluster.create(workload("v"))
    world.send(write)
    assert world.controller.watched("Workload") == seen, "the other one has not been observed yet"
    bookmark = {"kind": "Workload", "metadata": {"resourceVersion": "99"}}
    world.controller.observe({"type": "BOOKMARK", "object": bookmark}, now=world.now)
    assert world.controller.watched("Workload") == "99"


def test_the_engine_reads_the_json_of_an_event_as_it_came() -> None:
    world = World()
    world.watch()
    made = workload("new")
    made["metadata"]["resourceVersion"] = "99"
    data = json.dumps(made | {"spec": made["spec"] | {"priority": 7}}).encode()
    assert world.controller.observe({"type": "ADDED", "object": made}, now=world.now, data=data)
    assert world.controller.engine.workload("new", namespace="default").priority == 7
    newer = made | {"metadata": {**made["metadata"], "resourceVersion": "100"}}
    with pytest.raises(ManifestError, match="not JSON"):
        world.controller.observe({"type": "MODIFIED", "object": newer}, now=world.now, data=b"{")
    assert world.controller.workload("new", namespace="default") is made
