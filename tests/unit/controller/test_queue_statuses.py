"""What a controller writes into the statuses of ClusterQueues, LocalQueues and Cohorts, and when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore.api_server import RefusedError
from kueuecore.controller import WATCHED, Controller, Turn
from kueuecore.states import Stage
from kueuecore.times import SECOND_NS
from kueuecore.writes import Answer, Verb
from tests.unit.controller.world import World, queue, thing, workload

FAIR = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}
"""
USAGE = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
admissionFairSharing: {usageHalfLifeTime: 10m, usageSamplingInterval: 5m}
"""


class Statuses(World):
    """A world in which the statuses of queues are written, too."""

    def __init__(self, quota: int = 2, controller: Controller | None = None, **spec: Any) -> None:
        super().__init__(quota, controller or Controller(status_delay_seconds=0), **spec)

    def carry_out(self, turn: Turn) -> list[str]:
        """Write all of a turn; the objects by their keys."""
        for write in turn.writes:
            self.send(write)
        for status in turn.objects:
            assert status.verb is Verb.UPDATE
            self.cluster.update(status.manifest, subresource="status")
        return [str(write.object) for write in turn.objects]

    def come_to_rest(self) -> list[str]:
        """The objects that were written until nothing more is."""
        written: list[str] = []
        for _ in range(20):
            turn = self.turn()
            written += self.carry_out(turn)
            self.watch()
            if not turn.writes and not turn.objects and self.controller.next_wake(self.now) != self.now:
                return written
        raise AssertionError("it never settles")

    def status(self, kind: str, name: str) -> dict[str, Any]:
        namespace = "default" if kind == "LocalQueue" else ""
        status: dict[str, Any] = self.cluster.get(kind, name, namespace=namespace).get("status", {})
        return status

    def active(self, kind: str, name: str) -> tuple[str, str, str]:
        (condition,) = self.status(kind, name)["conditions"]
        return condition["status"], condition["reason"], condition["message"]


def usage(total: str, **borrowed: str) -> list[dict[str, Any]]:
    return [{"name": "default-flavor", "resources": [{"name": "cpu", "total": total, **borrowed}]}]


def test_the_status_of_a_cluster_queue_is_what_kueue_writes() -> None:
    world = Statuses(quota=1)
    world.cluster.create(workload("runs"))
    world.cluster.create(workload("waits"))
    world.come_to_rest()
    (condition,) = world.status("ClusterQueue", "cluster-queue").pop("conditions")
    assert condition.pop("lastTransitionTime") == "2026-01-01T00:00:01Z"
    assert condition == {
        "type": "Active",
        "status": "True",
        "reason": "Ready",
        "message": "Can admit new workloads",
        "observedGeneration": 1,
    }
    assert {k: row for k, row in world.status("ClusterQueue", "cluster-queue").items() if k != "conditions"} == {
        "flavorsReservation": usage("1", borrowed="0"),
        "flavorsUsage": usage("1", borrowed="0"),
        "pendingWorkloads": 1,
        "reservingWorkloads": 1,
        "admittedWorkloads": 1,
    }


def test_the_status_of_a_local_queue_is_what_kueue_writes() -> None:
    world = Statuses(quota=1)
    world.cluster.create(workload("runs"))
    world.cluster.create(workload("waits"))
    world.come_to_rest()
    assert world.active("LocalQueue", "jobs") == ("True", "Ready", "Can submit new workloads to localQueue")
    assert {k: job for k, job in world.status("LocalQueue", "jobs").items() if k != "conditions"} == {
        "flavorsReservation": usage("1"),
        "flavorsUsage": usage("1"),
        "pendingWorkloads": 1,
        "reservingWorkloads": 1,
        "admittedWorkloads": 1,
    }


def test_a_local_queue_says_why_it_is_not_active() -> None:
    world = Statuses(quota=1)
    cannot = "Can't submit new workloads to clusterQueue"
    world.cluster.create(thing("LocalQueue", "lost", {"clusterQueue": "none", "stopPolicy": "None"}))
    world.cluster.create(workload("waits", queueName="lost"))
    world.come_to_rest()
    # Kueue's queue manager counts who waits for a ClusterQueue that does not exist.
    assert world.status("LocalQueue", "lost")["pendingWorkloads"] == 1
    assert world.active("LocalQueue", "lost") == ("False", "ClusterQueueDoesNotExist", cannot)
    world.cluster.patch("ClusterQueue", "cluster-queue", {"spec": {"stopPolicy": "Hold"}})
    world.come_to_rest()
    assert world.active("LocalQueue", "jobs") == ("False", "ClusterQueueIsInactive", cannot)
    world.cluster.patch("LocalQueue", "jobs", {"spec": {"stopPolicy": "Hold"}}, namespace="default")
    world.come_to_rest()
    assert world.active("LocalQueue", "jobs") == ("False", "Stopped", "LocalQueue is stopped")
    assert world.status("LocalQueue", "jobs")["conditions"][0]["observedGeneration"] == 2


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    world = Statuses()
    world.come_to_rest()
    (first,) = world.status("ClusterQueue", "cluster-queue")["conditions"]
    world.cluster.patch("ClusterQueue", "cluster-queue", {"spec": queue(3)["spec"]})
    world.come_to_rest()
    (second,) = world.status("ClusterQueue", "cluster-queue")["conditions"]
    assert second == {**first, "observedGeneration": 2}
    world.cluster.patch("ClusterQueue", "cluster-queue", {"spec": {"stopPolicy": "Hold"}})
    world.come_to_rest()
    (third,) = world.status("ClusterQueue", "cluster-queue")["conditions"]
    assert third["status"] == "False"
    assert third["lastTransitionTime"] > first["lastTransitionTime"]


def test_what_others_write_into_a_status_stays() -> None:
    world = Statuses()
    world.come_to_rest()
    mine = {"type": "Mine", "status": "True", "reason": "x", "message": ""}
    patch = {"status": {"conditions": [mine], "theirs": 1, "pendingWorkloads": 9}}
    world.cluster.patch("ClusterQueue", "cluster-queue", patch, subresource="status")
    world.come_to_rest()
    status = world.status("ClusterQueue", "cluster-queue")
    assert [condition["type"] for condition in status["conditions"]] == ["Mine", "Active"]
    assert (status["theirs"], status["pendingWorkloads"]) == (1, 0)


def test_only_what_has_changed_is_written() -> None:
    world = Statuses(quota=1)
    for name in ("other", "third"):
        spec = {**queue(1)["spec"]}
        world.cluster.create({**thing("ClusterQueue", name, spec)})
        world.cluster.create(thing("LocalQueue", name, {"clusterQueue": name, "stopPolicy": "None"}))
    assert sorted(world.come_to_rest()) == [
        'ClusterQueue "cluster-queue"',
        'ClusterQueue "other"',
        'ClusterQueue "third"',
        'LocalQueue "default/jobs"',
        'LocalQueue "default/other"',
        'LocalQueue "default/third"',
    ]
    world.cluster.create(workload("w", queueName="other"))
    assert set(world.come_to_rest()) == {'ClusterQueue "other"', 'LocalQueue "default/other"'}
    assert world.come_to_rest() == []


def test_a_controller_that_begins_anew_writes_only_what_differs() -> None:
    world = Statuses(quota=1)
    world.cluster.create(workload("w"))
    world.come_to_rest()
    world.controller, world.seen = Controller(status_delay_seconds=0), 0
    assert world.come_to_rest() == []
    world.controller, world.seen = Controller(status_delay_seconds=0), 0
    world.cluster.patch(
        "LocalQueue", "jobs", {"status": {"pendingWorkloads": 7}}, namespace="default", subresource="status"
    )
    assert world.come_to_rest() == ['LocalQueue "default/jobs"']


def test_a_change_waits_for_others() -> None:
    world = Statuses(controller=Controller())
    world.watch()
    assert world.controller.turn(world.now).objects == ()
    assert world.controller.next_wake(world.now) == world.now + SECOND_NS
    assert len(world.turn().objects) == 2


def test_nothing_is_written_for_those_who_do_not_want_it() -> None:
    world = Statuses(controller=Controller(status_delay_seconds=None))
    world.cluster.create(workload("w"))
    assert world.come_to_rest() == []
    with pytest.raises(TypeError, match="status_delay_seconds must be an int"):
        Controller(status_delay_seconds="1")  # type: ignore[arg-type]


def test_an_open_write_is_not_sent_twice_and_a_lost_one_again_later() -> None:
    world = Statuses()
    turn = world.turn()
    assert len(turn.objects) == 2
    assert world.turn().objects == ()
    wake = world.controller.next_wake(world.now)
    assert wake is not None
    assert 5 * SECOND_NS < wake - world.now <= 10 * SECOND_NS
    world.cluster.now = wake
    again = world.controller.turn(wake)
    assert [object_.manifest for object_ in again.objects] == [
        {**object_.manifest, "status": after.manifest["status"]}
        for object_, after in zip(turn.objects, again.objects, strict=True)
    ]


def test_a_refused_write_is_tried_again_after_a_pause_that_grows() -> None:
    world = Statuses()
    world.turn()
    pauses = []
    for _ in range(4):
        world.cluster.now += 300 * SECOND_NS
        (first, *rest) = world.controller.turn(world.now).objects
        for write in (first, *rest):
            world.controller.done(write, Answer(error="not now"), now=world.now)
        wake = world.controller.next_wake(world.now)
        assert wake is not None
        pauses.append((wake - world.now) // SECOND_NS)
    assert pauses == [2, 4, 8, 16]


def test_a_newer_version_is_written_at_once_after_a_conflict() -> None:
    world = Statuses()
    (write, _) = world.turn().objects
    world.cluster.patch("ClusterQueue", "cluster-queue", {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(RefusedError):
        world.cluster.update(write.manifest, subresource="status")
    world.controller.done(write, Answer(error="conflict", code=409), now=world.now)
    assert 'ClusterQueue "cluster-queue"' in world.come_to_rest()
    assert world.active("ClusterQueue", "cluster-queue")[0] == "True"


def test_what_has_gone_is_not_written() -> None:
    world = Statuses()
    world.watch()
    world.cluster.patch("ClusterQueue", "cluster-queue", {"metadata": {"finalizers": []}})
    world.cluster.delete("ClusterQueue", "cluster-queue")
    for write in world.controller.turn(world.now).objects:
        world.controller.done(write, Answer(error="not found"), now=world.now)
    world.cluster.now += 2 * SECOND_NS
    world.come_to_rest()
    assert world.active("LocalQueue", "jobs")[1] == "ClusterQueueDoesNotExist"


def shared(name: str, quota: int, **spec: Any) -> Iterable[dict[str, Any]]:
    yield thing("ClusterQueue", name, {**queue(quota)["spec"], "cohortName": "all", **spec})
    yield thing("LocalQueue", name, {"clusterQueue": name, "stopPolicy": "None"})


def test_shares_of_a_tree_follow_usage_and_quotas() -> None:
    controller = Controller(Configuration.parse(FAIR), status_delay_seconds=0)
    world = Statuses(controller=controller)
    world.cluster.create(thing("Cohort", "all", {}))
    for made in (*shared("left", 2), *shared("right", 8)):
        world.cluster.create(made)
    world.come_to_rest()
    assert world.status("Cohort", "all") == {"fairSharing": {"weightedShare": 0}}
    world.cluster.create(workload("w", 4, queueName="left"))
    written = world.come_to_rest()
    # It borrows 2 of 10. Its neighbour's share is what it was, and so is that of the cohort without a parent.
    assert set(written) == {'ClusterQueue "left"', 'LocalQueue "default/left"'}
    assert world.status("ClusterQueue", "left")["fairSharing"] == {"weightedShare": 200}
    world.cluster.patch("ClusterQueue", "right", {"spec": {**next(iter(shared("right", 18)))["spec"]}})
    world.come_to_rest()
    assert world.status("ClusterQueue", "left")["fairSharing"] == {"weightedShare": 100}


def test_shares_go_when_there_is_no_fair_sharing() -> None:
    world = Statuses()
    world.cluster.create(thing("Cohort", "all", {}))
    for kind, name in (("Cohort", "all"), ("ClusterQueue", "cluster-queue")):
        world.cluster.patch(kind, name, {"status": {"fairSharing": {"weightedShare": 5}}}, subresource="status")
    world.come_to_rest()
    assert "fairSharing" not in world.status("Cohort", "all")
    assert "fairSharing" not in world.status("ClusterQueue", "cluster-queue")


def test_what_a_local_queue_has_used_survives_a_restart() -> None:
    def started() -> Controller:
        return Controller(Configuration.parse(USAGE), status_delay_seconds=0)

    scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    world = Statuses(controller=started(), admissionScope=scope)
    world.cluster.create(workload("w"))
    world.come_to_rest()
    world.cluster.now += 600 * SECOND_NS
    world.come_to_rest()
    before = world.status("LocalQueue", "jobs")["fairSharing"]
    used = before["admissionFairSharingStatus"]
    assert used["consumedResources"]["cpu"] not in ("0", "1")
    assert used["lastUpdate"].endswith("Z")
    world.controller, world.seen = started(), world.cluster.version
    for kind in WATCHED:
        assert not world.controller.resync(kind, world.cluster.list(kind)[0], now=world.now)
    world.come_to_rest()
    after = world.status("LocalQueue", "jobs")["fairSharing"]["admissionFairSharingStatus"]
    assert after["consumedResources"] == used["consumedResources"]
    assert world.controller.engine.workload("w", namespace="default").stage is Stage.ADMITTED


def test_engines_tell_the_condition_of_a_local_queue() -> None:
    world = Statuses()
    world.watch()
    state = world.controller.engine.local_queue("jobs", namespace="default")
    assert state.status["conditions"] == [
        {
            "type": "Active",
            "status": "True",
            "reason": "Ready",
            "message": "Can submit new workloads to localQueue",
        }
    ]
