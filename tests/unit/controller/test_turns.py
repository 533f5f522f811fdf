"""When a controller's loop rests and wakes, what it reports of a cycle, and how it starts again."""

from __future__ import annotations

import json

import pytest

from kueuecore import Configuration
from kueuecore.controller import Considered, Controller, Verdict
from kueuecore.times import SECOND_NS
from tests.unit.controller.world import START, World, conditions, queue, workload


def test_a_head_that_does_not_fit_lets_the_loop_rest() -> None:
    world = World(quota=0, queueingStrategy="StrictFIFO")
    world.cluster.create(workload("w"))
    world.settle()
    assert world.controller.next_wake(world.now) is None
    world.cluster.patch("ClusterQueue", "cluster-queue", {"spec": queue(1)["spec"]})
    world.watch()
    assert world.controller.next_wake(world.now) == world.now


def _finish(world: World, name: str) -> None:
    """Finish a workload, and write that at once."""
    world.controller.finished(name, namespace="default")
    for write in world.controller.turn(world.now).writes:
        world.send(write)
    world.watch()


def test_parked_workloads_are_retried_a_second_after_the_first_change() -> None:
    world = World(quota=2)
    for name in ("a", "b", "c", "d"):
        world.cluster.create(workload(name))
    world.settle()
    began = world.now
    _finish(world, "a")
    world.cluster.now += SECOND_NS * 4 // 10
    _finish(world, "b")
    world.controller.turn(world.now)
    assert world.controller.next_wake(world.now) == began + SECOND_NS
    world.cluster.now = began + SECOND_NS - 1
    assert world.controller.turn(world.now).writes == ()
    world.cluster.now += 1
    assert [write.name for write in world.controller.turn(world.now).writes] == ["c"]
    assert [write.name for write in world.controller.turn(world.now).writes] == ["d"]


@pytest.mark.parametrize(
    "controller",
    [
        Controller(status_delay_seconds=None, batches_retries=False),
        # Kueue's own did not wait then.
        Controller(Configuration(release="0.16.1"), status_delay_seconds=None),
    ],
    ids=["asked for", "RetriesAreBatched"],
)
def test_retries_can_be_immediate(controller: Controller) -> None:
    world = World(quota=1, controller=controller)
    for name in ("a", "b"):
        world.cluster.create(workload(name))
    world.settle()
    _finish(world, "a")
    assert [write.name for write in world.controller.turn(world.now).writes] == ["b"]


def test_the_gate_makes_retries_wait_for_ten_seconds() -> None:
    gates = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, featureGates: {%s: true}}"
    configuration = Configuration.parse(gates % "SchedulerLongRequeueInterval", release="0.19")
    world = World(quota=1, controller=Controller(configuration, status_delay_seconds=None))
    for name in ("a", "b"):
        world.cluster.create(workload(name))
    world.settle()
    # The queue itself is new, too.
    world.cluster.now += 10 * SECOND_NS
    world.settle()
    began = world.now
    _finish(world, "a")
    assert world.controller.turn(world.now).writes == ()
    assert world.controller.next_wake(world.now) == began + 10 * SECOND_NS


def test_what_was_considered_is_reported() -> None:
    reported: list[Considered] = []
    world = World(quota=1, controller=Controller(considered=reported.append))
    for name in ("a", "b"):
        world.cluster.create(workload(name))
    world.settle()
    assert [(considered.name, considered.verdict, considered.reason) for considered in reported] == [
        ("a", Verdict.RESERVED, ""),
        ("b", Verdict.PENDING, "WaitingForQuota"),
    ]
    assert "insufficient unused quota for cpu in flavor default-flavor, 1 more needed" in reported[1].message


def test_a_controller_that_starts_again_gets_back_what_is_written() -> None:
    world = World(quota=2)
    for name in ("a", "b", "c"):
        world.cluster.create(workload(name))
    world.settle()
    before = world.usage(), world.holding()
    world.controller, world.seen = Controller(), 0
    assert world.turn().writes == ()
    assert (world.usage(), world.holding()) == before


def test_what_was_saved_goes_on_without_a_list() -> None:
    settings = "admissionFairSharing: {usageHalfLifeTime: 10h}"
    configuration = Configuration.parse(f"apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n{settings}")
    scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    world = World(quota=2, controller=Controller(configuration), admissionScope=scope)
    for name in ("a", "b", "c", "gone"):
        world.cluster.create(workload(name))
    world.settle()
    world.cluster.now += 3600 * SECOND_NS
    world.cluster.delete("Workload", "gone", namespace="default")
    world.settle()
    world.controller.finished("a", namespace="default")
    before = world.controller
    saved = json.loads(json.dumps(before.save()))
    after = world.controller = Controller.load(saved, now=world.now, configuration=configuration)
    stages = [{other.key: (other.stage, other.status) for other in one.engine.workloads()} for one in (before, after)]
    assert stages[0] == stages[1]
    assert after.engine.quota() == before.engine.quota()
    used = [entry.engine.local_queue("jobs", namespace="default").status["fairSharing"] for entry in (before, after)]
    consumed = [number["admissionFairSharingStatus"]["consumedResources"] for number in used]
    assert consumed[0] == consumed[1] != {}
    assert (after.watched("Workload"), after.watched("Cohort")) == (before.watched("Workload"), "")
    old = [event for _, event in world.cluster.history]
    assert [after.observe(event, now=world.now) for event in old] == [False] * len(old)
    world.settle()
    assert conditions(world.stored("a"))["Finished"] == "Succeeded"
    assert world.holding() == ["a", "b", "c"]


def test_another_format_is_not_read() -> None:
    with pytest.raises(ValueError, match=r"this was saved as .*/9', and only .*/1' can be read"):
        Controller.load({"format": "kueuecore.controller/9"}, now=START)


def test_a_cycle_that_waits_for_pods_lets_the_loop_rest() -> None:
    settings = "waitForPodsReady: {timeout: 5m, blockAdmission: true}"
    text = f"apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n{settings}"
    world = World(quota=2, controller=Controller(Configuration.parse(text)))
    for name in ("a", "b"):
        world.cluster.create(workload(name))
    world.settle()
    assert world.holding() == ["a"]
    world.controller.note_readiness("a", namespace="default", are_ready=True)
    world.settle()
    assert world.holding() == ["a", "b"]


def test_a_controller_that_does_not_schedule_reconciles_all_the_same() -> None:
    world = World(controller=Controller(schedules=False, status_delay_seconds=None))
    world.cluster.create(workload("w"))
    world.cluster.create(workload("gone", active=False))
    world.settle()
    assert world.turn().decision.cycle == 0
    assert world.holding() == []
    assert world.controller.next_wake(world.now) is None
    # Kueue's workload controller writes this, the scheduler has no part in it.
    assert "Evicted" in conditions(world.stored("gone"))


def test_what_was_observed_and_only_needs_a_reconcile_wakes() -> None:
    world = World(quota=0)
    world.cluster.create(workload("w"))
    world.settle()
    assert world.controller.next_wake(world.now) is None
    world.cluster.patch("Workload", "w", {"spec": {"active": False}}, namespace="default")
    world.watch()
    assert world.controller.next_wake(world.now) == world.now
    world.settle()
    assert "Evicted" in conditions(world.stored("w"))
