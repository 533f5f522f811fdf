"""Queues, flavors and checks that are in use stay until they are not, by Kueue's finalizer."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.controller import Controller, Turn
from kueuecore.times import SECOND_NS
from kueuecore.writes import Answer, Verb, Write
from tests.unit.controller.world import IN_USE, KEPT, World, thing, workload


def finalizers(turn: Turn) -> dict[str, Any]:
    """The finalizers that are to be written, by kind and name."""
    written: dict[str, Any] = {}
    for write in turn.objects:
        assert write.verb is Verb.PATCH
        manifest: Any = write.manifest
        assert {"uid", "resourceVersion"} <= set(manifest["metadata"]), "it is for one version"
        written[f"{write.kind} {write.name}"] = manifest["metadata"]["finalizers"]
    return written


def carry_out(world: World, turn: Turn) -> dict[str, Any]:
    """Write all of a turn; the finalizers among it."""
    for write in turn.writes:
        world.send(write)
    for write in turn.objects:
        world.cluster.carry_out(write)
    return finalizers(turn)


def test_what_comes_without_the_finalizer_gets_it_beside_those_of_others() -> None:
    world = World()
    world.settle()
    for kind in KEPT:
        world.cluster.create(thing(kind, "new", {}, metadata={"finalizers": ["example.com/mine"]}))
    turn = world.turn()
    assert carry_out(world, turn) == {f"{kind} new": ["example.com/mine", IN_USE] for kind in KEPT}
    assert finalizers(world.turn()) == {}


def test_a_cluster_queue_stays_until_no_workload_holds_quota_in_it() -> None:
    world = World()
    world.cluster.create(workload("w"))
    world.settle()
    assert world.controller.may_run("w", namespace="default")
    world.cluster.delete("ClusterQueue", "cluster-queue")
    assert carry_out(world, world.turn()) == {}
    assert world.controller.next_wake(world.now) is None
    assert world.controller.engine.cluster_queue("cluster-queue").reason == "Terminating"
    assert world.controller.finished("w", namespace="default")
    assert carry_out(world, world.turn()) == {}, "that it has ended is not written yet"
    assert carry_out(world, world.turn()) == {"ClusterQueue cluster-queue": []}
    assert world.cluster.find("ClusterQueue", "cluster-queue") is None


def test_a_workload_that_only_waits_does_not_keep_its_cluster_queue() -> None:
    world = World(quota=0)
    world.cluster.create(workload("w"))
    world.settle()
    world.cluster.delete("ClusterQueue", "cluster-queue")
    assert carry_out(world, world.turn()) == {"ClusterQueue cluster-queue": []}


def test_a_flavor_and_a_check_stay_until_no_cluster_queue_names_them() -> None:
    checks = {"admissionChecks": [{"name": "check", "onFlavors": []}]}
    world = World(admissionChecksStrategy=checks)
    world.cluster.create(thing("AdmissionCheck", "check", {"controllerName": "example.com/c"}))
    world.settle()
    for kind, name in (("ResourceFlavor", "default-flavor"), ("AdmissionCheck", "check")):
        world.cluster.delete(kind, name)
    assert carry_out(world, world.turn()) == {}
    world.cluster.patch("ClusterQueue", "cluster-queue", {"spec": {"admissionChecksStrategy": None}})
    assert carry_out(world, world.turn()) == {"AdmissionCheck check": []}
    world.cluster.delete("ClusterQueue", "cluster-queue")
    assert carry_out(world, world.turn()) == {"ClusterQueue cluster-queue": []}, "while it is there, it uses the flavor"
    assert carry_out(world, world.turn()) == {"ResourceFlavor default-flavor": []}
    assert world.cluster.find("ResourceFlavor", "default-flavor") is None


@pytest.mark.parametrize("status_delay_seconds", [None, 0])
def test_a_refused_finalizer_is_written_again_after_a_pause(status_delay_seconds: int | None) -> None:
    world = World(controller=Controller(status_delay_seconds=status_delay_seconds))
    world.cluster.create(thing("ClusterQueue", "other", {}, metadata={"finalizers": []}))
    (write,) = patches(world)
    world.controller.done(write, Answer(error="not now"), now=world.now)
    assert world.controller.next_wake(world.now) == world.now + SECOND_NS
    assert [str(again.object) for again in patches(world)] == ['ClusterQueue "other"']


def patches(world: World) -> list[Write]:
    return [write for write in world.turn().objects if write.verb is Verb.PATCH]
