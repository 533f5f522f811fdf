"""What a controller's loop writes to Workloads, and what it does with the answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kueuecore import Configuration
from kueuecore._json import object_at
from kueuecore.controller import Controller
from kueuecore.states import Stage
from kueuecore.times import SECOND_NS
from kueuecore.writes import Answer, Write
from tests.unit.controller.world import KUEUE, World, conditions, queue, thing, workload


def test_an_admission_is_the_merge_patch_that_kueue_sends() -> None:
    world = World()
    stored = world.cluster.create(workload("w", "1500m"))
    turn = world.turn()
    (write,) = turn.writes
    at = "2026-01-01T00:00:01Z"
    true = {"status": "True", "lastTransitionTime": at, "observedGeneration": 1}
    names = ("name", "namespace", "uid", "resourceVersion")
    assert write.manifest == {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {key: stored["metadata"][key] for key in names},
        "status": {
            "conditions": [
                {"type": "QuotaReserved", "reason": "QuotaReserved"}
                | true
                | {"message": "Quota reserved in ClusterQueue cluster-queue"},
                {"type": "Admitted", "reason": "Admitted", "message": "The workload is admitted"} | true,
            ],
            "admission": {
                "clusterQueue": "cluster-queue",
                "podSetAssignments": [
                    {
                        "name": "main",
                        "count": 1,
                        "flavors": {"cpu": "default-flavor"},
                        "resourceUsage": {"cpu": "1500m"},
                    }
                ],
            },
        },
    }
    assert (write.subresource, write.gained, write.lost) == ("status", ("QuotaReserved", "Admitted"), ())
    assert [event.reason for event in write.events] == ["QuotaReserved", "Admitted"]
    assert write.event_manifests(at)[1]["message"] == (
        "Admitted by ClusterQueue cluster-queue, wait time since reservation was 0s"
    )
    assert (turn.events, world.controller.open_writes) == ((), (write,))


def test_a_job_may_run_once_its_admission_is_written() -> None:
    world = World()
    world.cluster.create(workload("w"))
    (write,) = world.turn().writes
    assert not world.controller.may_run("w", namespace="default")
    assert world.turn().writes == (), "it is open"
    world.send(write)
    assert world.controller.may_run("w", namespace="default")
    assert world.watch() == [False], "what a watch says of it is old news"
    assert world.turn().writes == ()


def test_a_refused_admission_gives_the_quota_back_and_comes_again() -> None:
    world = World(quota=1)
    world.cluster.create(workload("w"))
    (write,) = world.turn().writes
    assert world.usage() == "1"
    assert world.controller.done(write, Answer(error="refused"), now=world.now)
    assert world.usage() == "0"
    (again,) = world.turn().writes
    assert again.gained == ("QuotaReserved", "Admitted")
    world.send(again)
    assert not world.controller.done(write, Answer(error="refused"), now=world.now), "that one is over"
    assert (world.usage(), world.holding()) == ("1", ["w"])


def test_an_admission_can_be_refused_cycles_later() -> None:
    world = World(quota=2)
    world.cluster.create(workload("a"))
    (a,) = world.turn().writes
    world.cluster.create(workload("b"))
    (b,) = world.turn().writes
    world.send(b)
    world.cluster.create(workload("c"))
    assert [write.name for write in world.turn().writes] == ["c"]
    world.controller.done(a, Answer(error="refused"), now=world.now)
    assert world.controller.engine.workload("a", namespace="default").stage is Stage.PENDING
    assert world.usage() == "1", "b's alone"
    world.settle()
    assert world.holding() == ["a", "b"], "a is older than c"


def test_after_a_conflict_the_newest_object_stands() -> None:
    world = World(quota=1)
    world.cluster.create(workload("w"))
    (write,) = world.turn().writes
    newest = world.cluster.patch("Workload", "w", {"spec": {"active": False}}, namespace="default")
    assert world.watch() == [True]
    assert world.usage() == "1", "the write is open, so that is put off"
    world.controller.done(write, Answer(newest, error="refused"), now=world.now)
    assert world.usage() == "0"
    world.settle()
    assert world.holding() == []
    assert conditions(world.stored("w")) == {"Evicted": "Deactivated"}


def test_a_refused_write_that_the_newest_object_already_shows_was_accepted() -> None:
    world = World(quota=1)
    world.cluster.create(workload("w"))
    (write,) = world.turn().writes
    newest = world.cluster.patch("Workload", "w", write.manifest, namespace="default", subresource="status")
    world.controller.done(write, Answer(newest, error="refused"), now=world.now)
    assert (world.usage(), world.turn().writes) == ("1", ())
    assert world.controller.may_run("w", namespace="default")


def test_a_workload_that_has_gone_is_not_written_any_more() -> None:
    world = World(quota=1)
    world.cluster.create(workload("a"))
    world.cluster.create(workload("b"))
    (write,) = (write for write in world.turn().writes if write.name == "a")
    world.cluster.delete("Workload", "a", namespace="default")
    world.controller.done(write, Answer(error="gone", code=404), now=world.now)
    assert not world.controller.done(write, Answer(), now=world.now)
    world.settle()
    assert world.holding() == ["b"]
    assert world.controller.workload("a", namespace="default") is None


def test_others_may_write_to_a_status_too() -> None:
    world = World()
    world.cluster.create(workload("w") | {"status": {"x": [1], "conditions": [{"type": "Mine", "status": "True"}]}})
    world.settle()
    status = world.stored("w")["status"]
    assert (status["x"], [condition["type"] for condition in status["conditions"]]) == (
        [1],
        ["Mine", "QuotaReserved", "Admitted"],
    )


def test_a_victim_is_evicted_stopped_and_queued_again() -> None:
    world = World(quota=1, preemption={"withinClusterQueue": "LowerPriority"})
    world.cluster.create(workload("low"))
    world.settle()
    world.cluster.create(workload("high", priority=1))
    turn = world.turn()
    by_name = {write.name: write for write in turn.writes}
    assert by_name["low"].gained == ("Preempted", "Evicted")
    assert [event.reason for event in by_name["low"].events] == ["EvictedDueToPreempted", "Preempted"]
    assert [event.reason for event in by_name["high"].events] == ["PreemptedWorkload", "WaitingForPreemptedWorkloads"]
    for write in turn.writes:
        world.send(write)
    assert not world.controller.may_run("low", namespace="default")
    world.settle()
    assert world.holding() == ["low"], "it holds its quota until its job has stopped"
    assert world.controller.stopped("low", namespace="default")
    world.settle()
    assert world.holding() == ["high"]
    assert world.stored("low")["status"]["schedulingStats"]["evictions"][0]["count"] == 1


def test_a_stop_is_repeated_after_a_conflict() -> None:
    world = World(quota=1, preemption={"withinClusterQueue": "LowerPriority"})
    world.cluster.create(workload("low"))
    world.settle()
    world.cluster.create(workload("high", priority=1))
    world.settle()
    world.controller.stopped("low", namespace="default")
    (release,) = (write for write in world.turn().writes if write.name == "low")
    assert release.lost == ("QuotaReserved", "Admitted")
    newest = world.cluster.patch("Workload", "low", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
    high = world.controller.open_writes
    world.controller.done(release, Answer(newest, error="refused"), now=world.now)
    for write in high:
        if write.name == "high":
            world.send(write)
    world.settle()
    assert world.holding() == ["high"]


def test_the_end_of_a_job_is_repeated_until_it_is_written() -> None:
    world = World(quota=1)
    world.cluster.create(workload("w"))
    world.settle()
    world.controller.finished("w", namespace="default")
    (write,) = world.turn().writes
    newest = world.cluster.patch("Workload", "w", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
    world.controller.done(write, Answer(newest, error="refused"), now=world.now)
    world.settle()
    assert conditions(world.stored("w"))["Finished"] == "Succeeded"
    assert world.usage() == "0"
    assert not world.controller.finished("nobody", namespace="default")


def test_deactivation_is_written_to_the_spec_first() -> None:
    world = World(admissionChecksStrategy={"admissionChecks": [{"name": "check"}]})
    active: Any = {"type": "Active", "status": "True", "reason": "Active", "message": ""}
    world.cluster.create(thing("AdmissionCheck", "check", {"controllerName": "c"}, status={"conditions": [active]}))
    world.cluster.create(workload("w"))
    world.settle()
    assert conditions(world.stored("w")) == {"QuotaReserved": "QuotaReserved"}
    check: Any = {"name": "check", "state": "Rejected", "message": "no", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    world.cluster.patch(
        "Workload", "w", {"status": {"admissionChecks": [check]}}, namespace="default", subresource="status"
    )
    (first,) = world.turn().writes
    assert (first.subresource, first.manifest["spec"]) == ("", {"active": False})
    world.send(first)
    (second,) = world.turn().writes
    assert second.gained == ("Evicted",)
    assert "EvictedDueToDeactivatedDueToAdmissionCheck" in [event.reason for event in second.events]


def test_readiness_is_written_and_its_timeout_wakes() -> None:
    settings = {"waitForPodsReady": {"timeout": "5m"}}
    kind = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
    configuration = Configuration.parse(str({**kind, **settings}).replace("'", '"'))
    world = World(controller=Controller(configuration, status_delay_seconds=None))
    world.cluster.create(workload("w"))
    world.settle()
    admitted = world.now
    assert world.controller.next_wake(world.now) is not None
    assert world.controller.next_wake(world.now) // SECOND_NS <= admitted // SECOND_NS + 300  # type: ignore[operator]
    assert world.controller.note_readiness("w", namespace="default", are_ready=True)
    assert not world.controller.note_readiness("x", namespace="default", are_ready=True)
    (write,) = world.turn().writes
    assert write.gained == ("PodsReady",)
    world.send(write)
    assert world.controller.next_wake(world.now) == world.now
    assert world.turn().writes == ()
    assert world.controller.next_wake(world.now) is None


# Reservations that the engine ends by itself.


def _two_queues() -> World:
    """Two ClusterQueues of one cohort, which has room for one workload; a check is open in the first."""
    world = World(quota=1, cohortName="all", admissionChecksStrategy={"admissionChecks": [{"name": "budget"}]})
    world.cluster.create(thing("AdmissionCheck", "budget", {"controllerName": "example.com/budget"}))
    active = {"status": {"conditions": [{"type": "Active", "status": "True", "reason": "Ok", "message": ""}]}}
    world.cluster.patch("AdmissionCheck", "budget", active, subresource="status")
    other = queue(0, cohortName="all")
    other["metadata"]["name"] = "other"
    world.cluster.create(other)
    world.cluster.create(thing("LocalQueue", "others", {"clusterQueue": "other", "stopPolicy": "None"}))
    world.cluster.create(workload("a"))
    world.settle()
    assert "QuotaReserved" in conditions(world.stored("a"))
    return world


def test_quota_is_free_once_the_end_of_a_reservation_is_stored() -> None:
    world = _two_queues()
    world.cluster.patch("ClusterQueue", "cluster-queue", {"spec": {"stopPolicy": "Hold"}})
    world.cluster.create(workload("b", queueName="others"))
    first = {write.name: write for write in world.turn().writes}
    assert _reserved(first.values()) == []
    # Refused once: the reservation stands, and is ended again.
    answer = Answer(world.stored("a"), "somebody else was first", 409)
    assert world.controller.done(first["a"], answer, now=world.now)
    world.send(first["b"])
    second = {write.name: write for write in world.turn().writes}
    assert _reserved(second.values()) == []
    assert [event.reason for event in second["a"].events] == [event.reason for event in first["a"].events]
    world.send(second["a"])
    world.settle()
    assert "QuotaReserved" not in conditions(world.stored("a"))
    assert "QuotaReserved" in conditions(world.stored("b"))


def _reserved(writes: Iterable[Write]) -> list[str]:
    return [write.name for write in writes if object_at(write.manifest, "status").get("admission")]


def test_what_is_decided_again_after_the_report_of_a_job_has_its_events_once() -> None:
    world = World(quota=1, controller=Controller(models_readiness=True, status_delay_seconds=None))
    for name in ("a", "b"):
        world.cluster.create(workload(name))
    world.settle()
    _finish(world, "a")
    # While the report about b is written, b gets the quota.
    world.controller.note_readiness("b", namespace="default", are_ready=False)
    (report,) = world.controller.turn(world.now).writes
    assert list(report.gained) == []
    world.cluster.now += SECOND_NS
    assert world.controller.turn(world.now).decision.admissions
    world.send(report)
    events: list[str] = []
    for _ in range(5):
        for write in world.turn().writes:
            world.send(write)
            events += [event.reason for event in write.events if event.name == "b"]
    assert events == ["QuotaReserved", "Admitted"]


def _finish(world: World, name: str) -> None:
    world.controller.finished(name, namespace="default")
    for write in world.controller.turn(world.now).writes:
        world.send(write)
    world.watch()
