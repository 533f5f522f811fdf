"""Finished Workloads go once they were kept long enough, with Kueue's finalizer taken off before."""

from __future__ import annotations

from kueuecore import Configuration
from kueuecore.controller import Controller, Turn
from kueuecore.times import SECOND_NS
from kueuecore.writes import Answer, Verb
from tests.unit.controller.world import World, conditions, workload

FINALIZER = "kueue.x-k8s.io/resource-in-use"


def kept_for(duration: str) -> Controller:
    text = f"""
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
objectRetentionPolicies: {{workloads: {{afterFinished: {duration}}}}}
"""
    return Controller(Configuration.parse(text), status_delay_seconds=None)


class Kept(World):
    """A world with one workload that has ended and is kept for a while."""

    def __init__(self, duration: str, *, finalizers: list[str]) -> None:
        super().__init__(controller=kept_for(duration))
        made = workload("w")
        made["metadata"]["finalizers"] = finalizers
        self.cluster.create(made)
        self.settle()
        assert self.controller.finished("w", namespace="default")

    def carry_out(self, turn: Turn) -> list[str]:
        """Write all of a turn; the reasons of its events."""
        for write in turn.writes:
            self.send(write)
        for deletion in turn.objects:
            assert (deletion.verb, str(deletion.object)) == (Verb.DELETE, 'Workload "default/w"')
            self.cluster.delete("Workload", "w", namespace="default")
        return [event.reason for event in turn.events]

    @property
    def is_there(self) -> bool:
        return self.cluster.find("Workload", "w", namespace="default") is not None


def test_a_finished_workload_goes_after_its_retention() -> None:
    world = Kept("1h", finalizers=[FINALIZER, "mine"])
    world.settle()
    assert "Finished" in conditions(world.stored("w"))
    wake = world.controller.next_wake(world.now)
    assert wake is not None
    assert 3590 * SECOND_NS < wake - world.now <= 3600 * SECOND_NS
    world.cluster.now = wake - 2 * SECOND_NS
    quiet = world.turn()
    assert (quiet.writes, quiet.objects, quiet.events) == ((), (), ())
    world.cluster.now = wake
    turn = world.controller.turn(wake)
    (write,) = turn.writes
    assert (write.subresource, turn.objects) == ("", ())
    assert write.manifest["metadata"]["finalizers"] == ["mine"]  # type: ignore[index,call-overload]  # it is an object
    world.carry_out(turn)
    assert world.controller.next_wake(wake) == wake
    turn = world.turn()
    (deletion,) = turn.objects
    assert deletion.manifest["metadata"]["uid"] == world.stored("w")["metadata"]["uid"]  # type: ignore[index,call-overload]
    assert [(event.reason, event.message) for event in turn.events] == [
        ("Deleted", "Deleted finished workload due to elapsed retention")
    ]
    world.carry_out(turn)
    world.settle()
    assert world.stored("w")["metadata"]["deletionTimestamp"]
    assert world.controller.next_wake(world.now) is None
    world.cluster.patch("Workload", "w", {"metadata": {"finalizers": []}}, namespace="default")
    world.settle()
    assert world.controller.next_wake(world.now) is None
    assert world.controller.engine.workloads() == ()


def test_a_finished_workload_goes_at_once_if_nothing_is_kept() -> None:
    world = Kept("0s", finalizers=[])
    world.carry_out(world.turn())
    world.watch()
    assert world.controller.next_wake(world.now) == world.now
    assert world.carry_out(world.turn()) == ["Deleted"]
    assert not world.is_there


def test_a_deletion_that_was_refused_is_tried_again_and_told_once() -> None:
    world = Kept("0s", finalizers=[])
    world.carry_out(world.turn())
    world.watch()
    turn = world.turn()
    assert [event.reason for event in turn.events] == ["Deleted"]
    (deletion,) = turn.objects
    world.controller.done(deletion, Answer(error="not now"), now=world.now)
    assert world.controller.next_wake(world.now) == world.now + SECOND_NS
    world.cluster.now += SECOND_NS
    assert world.carry_out(world.controller.turn(world.now)) == []
    assert not world.is_there


def test_without_retention_a_finished_workload_stays() -> None:
    world = World()
    world.cluster.create(workload("w"))
    world.settle()
    assert world.controller.finished("w", namespace="default")
    world.settle()
    world.cluster.now += 10**6 * SECOND_NS
    assert world.turn().objects == ()
