"""A controller that makes the variants of parents: a job moves to the preferred flavor once that is free."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore.api_server import ApiServer
from kueuecore.controller import Controller, Metrics, Turn
from kueuecore.times import SECOND_NS
from kueuecore.writes import Answer
from tests.unit.concurrent_admission.families import KUEUE, MINUTE, NOW, configuration

PARENT_LABEL = "kueue.x-k8s.io/concurrent-admission-parent"


def thing(kind: str, name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    namespace = {"namespace": "ns"} if kind in ("LocalQueue", "Workload") else {}
    return {
        "apiVersion": "v1" if kind == "Namespace" else KUEUE,
        "kind": kind,
        "metadata": {"name": name, **namespace, **metadata},
        "spec": spec,
    }


def queue(name: str, *flavors: str, cohort: str = "", policy: dict[str, Any] | None = None) -> dict[str, Any]:
    quotas = [{"name": flavor, "resources": [{"name": "cpu", "nominalQuota": 1}]} for flavor in flavors]
    spec: dict[str, Any] = {
        "namespaceSelector": {},
        "queueingStrategy": "BestEffortFIFO",
        "stopPolicy": "None",
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": quotas}],
        "preemption": {"withinClusterQueue": "LowerPriority"},
    }
    if cohort:
        spec["cohortName"] = cohort
    if policy is not None:
        spec["concurrentAdmissionPolicy"] = {"migration": policy}
    return thing("ClusterQueue", name, spec)


def workload(name: str, *, local_queue: str = "jobs", priority: int = 0, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    pods = [{"name": "main", "count": 1, "template": template}]
    return thing(
        "Workload", name, {"queueName": local_queue, "active": True, "priority": priority, "podSets": pods} | spec
    )


REFUSED = Answer(error="not now", code=500)


class World:
    """A cluster with flavors `good` and `cheap`, and the job of Workload `train-0a1b2`, which knows its parent only."""

    def __init__(self, *, config: Configuration | None = None) -> None:
        self.config = config or configuration()
        self.metrics = Metrics()
        self.api = ApiServer(now=NOW)
        self.restart()
        # Which writes are refused, though nobody else has written.
        self.refuses = Random(0)
        self.share_refused = 0.0
        # What goes well before something goes wrong; None: all.
        self.n_left: int | None = None
        self.events: list[tuple[str, str]] = []
        self.is_running = False
        for made in (
            thing("Namespace", "ns", {}, labels={"kubernetes.io/metadata.name": "ns"}),
            thing("ResourceFlavor", "good", {}),
            thing("ResourceFlavor", "cheap", {}),
            queue("queue", "good", "cheap", policy={"mode": "TryPreferredFlavors"}),
            thing("LocalQueue", "jobs", {"clusterQueue": "queue", "stopPolicy": "None"}),
        ):
            self.api.create(made)

    def restart(self) -> None:
        self.controller = Controller(self.config, metrics=self.metrics, status_delay_seconds=None)
        self.seen = 0

    def watch(self) -> None:
        for event in self.api.since(self.seen):
            self.controller.observe(event, now=self.api.now)
        self.seen = self.api.version

    def turn(self) -> Turn:
        """One turn and what the API server and the job make of it."""
        self.watch()
        turn = self.controller.turn(self.api.now)
        self.events += ((event.reason, event.name) for event in turn.events)
        for write in turn.writes:
            self.spend()
            if self.refuses.random() < self.share_refused:
                self.controller.done(write, Answer(self.find(write.name), error="refused"), now=self.api.now)
                continue
            self.events += ((event.reason, event.name) for event in write.events)
            self.controller.done(write, self.api.carry_out(write), now=self.api.now)
        for change in turn.objects:
            self.spend()
            is_refused = self.refuses.random() < self.share_refused
            answer = REFUSED if is_refused else self.api.carry_out(change)
            self.controller.done(change, answer, now=self.api.now)
        self.watch()
        self.play_job()
        return turn

    def spend(self) -> None:
        """A write is about to be sent."""
        if self.n_left == 0:
            raise InterruptedError
        self.n_left = None if self.n_left is None else self.n_left - 1

    def play_job(self) -> None:
        may_run = self.controller.may_run("train-0a1b2", namespace="ns")
        status = (self.find("train-0a1b2") or {}).get("status", {})
        is_evicted = any(
            other["type"] == "Evicted" and other["status"] == "True" for other in status.get("conditions", ())
        )
        if is_evicted and "admission" in status and not may_run:
            self.controller.stopped("train-0a1b2", namespace="ns")
        self.is_running = may_run

    def settle(self, *, seconds: int = 60) -> None:
        """Turn after turn, as the controller asks for them."""
        end = self.api.now + seconds * SECOND_NS
        for _ in range(200):
            self.turn()
            wake = self.controller.next_wake(self.api.now)
            if wake is None or wake > end:
                return
            self.api.now = max(wake, self.api.now)
        raise AssertionError("it does not come to rest")

    def find(self, name: str) -> dict[str, Any] | None:
        return self.api.find("Workload", name, namespace="ns")

    @property
    def variants(self) -> dict[str, dict[str, Any]]:
        found, _ = self.api.list("Workload")
        allowed = "kueue.x-k8s.io/workload-allowed-resource-flavors"
        made = (
            error for error in found if error["metadata"].get("ownerReferences", [{}])[0].get("name") == "train-0a1b2"
        )
        return {error["metadata"]["annotations"][allowed]: error for error in made}

    def runs_on(self) -> str | None:
        """The flavor of the job, as its own Workload says."""
        status = (self.find("train-0a1b2") or {}).get("status", {})
        if not self.is_running:
            return None
        return str(status["admission"]["podSetAssignments"][0]["flavors"]["cpu"])


def condition(manifest: dict[str, Any] | None, kind: str) -> tuple[str, str]:
    found = (other for other in (manifest or {}).get("status", {}).get("conditions", ()) if other["type"] == kind)
    return next(((other["status"], other["reason"]) for other in found), ("", ""))


def filler(name: str, flavor: str, **spec: Any) -> dict[str, Any]:
    """A Workload that holds all of a flavor, in the same ClusterQueue, as if it was admitted before the policy was."""
    made = workload(name, **spec)
    made["metadata"] |= {
        "annotations": {"kueue.x-k8s.io/workload-allowed-resource-flavors": flavor},
        "ownerReferences": [{"apiVersion": KUEUE, "kind": "Workload", "name": "other", "uid": f"other-{name}"}],
    }
    return made


def test_a_workload_becomes_a_parent_with_a_variant_for_each_flavor() -> None:
    world = World()
    world.api.create(workload("train-0a1b2"))
    (write,) = world.turn().writes
    assert (write.subresource, write.manifest["metadata"]["labels"]) == ("", {PARENT_LABEL: "true"})  # type: ignore[index,call-overload]
    world.settle()
    assert sorted(world.variants) == ["cheap", "good"]
    assert ("CreatedVariant", "train-0a1b2") in world.events
    assert world.runs_on() == "good"
    assert condition(world.find("train-0a1b2"), "Admitted") == ("True", "Admitted")
    # The less preferred one may not try any more.
    assert world.variants["cheap"]["spec"]["active"] is False
    usage = world.controller.engine.cluster_queue("queue").reserving_workloads
    assert usage == 1


def migrated() -> World:
    """The preferred flavor is taken; the job runs on the other one until it is free."""
    world = World()
    world.api.create(filler("filler", "good"))
    world.settle()
    world.api.create(workload("train-0a1b2"))
    world.settle()
    assert world.runs_on() == "cheap"
    world.controller.finished("filler", namespace="ns")
    return world


def test_a_job_moves_to_the_preferred_flavor_once_that_is_free() -> None:
    world = migrated()
    seen = []
    for _ in range(30):
        world.turn()
        seen.append(world.runs_on())
        world.api.now += SECOND_NS
    flavors = [number for index, number in enumerate(seen) if index == 0 or number != seen[index - 1]]
    assert flavors == ["cheap", None, "good"]
    assert world.variants["cheap"]["spec"]["active"] is False
    assert condition(world.variants["cheap"], "Evicted") == ("True", "FlavorMigration")
    assert condition(world.variants["cheap"], "QuotaReserved")[0] == "False"
    assert condition(world.find("train-0a1b2"), "Evicted") == ("False", "QuotaReserved")
    world.settle()
    assert world.controller.next_wake(world.api.now) is None


def places() -> Iterator[int]:
    """How many writes the way of the job to its last flavor takes."""
    world = migrated()
    world.n_left = 1_000
    world.settle()
    yield from range(1_000 - world.n_left)


@pytest.mark.parametrize("n_writes", list(places()))
@pytest.mark.parametrize("is_written", [True, False])
def test_a_restart_between_two_writes_changes_nothing(n_writes: int, is_written: bool) -> None:
    world = migrated()
    world.n_left = n_writes
    with pytest.raises(InterruptedError):
        world.settle()
    world.n_left = None
    world.restart()
    # Somebody has to say again what jobs have done, and is not written.
    world.watch()
    if condition(world.find("filler"), "Finished")[0] != "True":
        world.controller.finished("filler", namespace="ns")
    world.settle()
    expected = migrated()
    expected.settle()
    assert world.runs_on() == "good"
    for flavor, variant in expected.variants.items():
        found = world.variants[flavor]
        assert found["spec"] == variant["spec"]
        for kind in ("Admitted", "QuotaReserved"):
            assert condition(found, kind) == condition(variant, kind)


@pytest.mark.parametrize("seed", range(20))
def test_writes_that_are_refused_lead_to_the_same_end(seed: int) -> None:
    world = World()
    world.api.create(filler("filler", "good"))
    world.settle()
    world.refuses, world.share_refused = Random(seed), 0.4
    world.api.create(workload("train-0a1b2"))
    for _ in range(200):
        world.turn()
        world.api.now += SECOND_NS
        if world.find("filler") is not None and world.runs_on() == "cheap":
            world.controller.finished("filler", namespace="ns")
    assert world.runs_on() == "good"
    assert {flavor: variant["spec"]["active"] for flavor, variant in world.variants.items()} == {
        "good": True,
        "cheap": False,
    }
    assert condition(world.variants["cheap"], "QuotaReserved")[0] == "False"
    assert world.controller.engine.cluster_queue("queue").reserving_workloads == 1


def test_metrics_count_an_admission_once_and_not_for_the_parent_again() -> None:
    world = World()
    world.api.create(workload("train-0a1b2"))
    world.settle()
    assert world.runs_on() == "good"
    lines = world.metrics.text(world.controller.engine).splitlines()
    counts = {line.partition("{")[0]: line.rpartition(" ")[2] for line in lines if line.startswith("kueue_")}
    assert counts["kueue_admitted_workloads_total"] == "1"
    assert counts["kueue_quota_reserved_workloads_total"] == "1"


def test_variants_end_with_the_job() -> None:
    world = World()
    world.api.create(workload("train-0a1b2"))
    world.settle()
    world.controller.finished("train-0a1b2", namespace="ns")
    world.settle()
    ends = {flavor: condition(variant, "Finished") for flavor, variant in world.variants.items()}
    assert ends == {"good": ("True", "Succeeded"), "cheap": ("True", "Succeeded")}
    assert world.controller.engine.cluster_queue("queue").reserving_workloads == 0


def test_variants_stop_with_their_parent_and_come_back_with_it() -> None:
    world = World()
    world.api.create(workload("train-0a1b2"))
    world.settle()
    world.api.patch("Workload", "train-0a1b2", {"spec": {"active": False}}, namespace="ns")
    world.settle()
    assert [variant["spec"]["active"] for variant in world.variants.values()] == [False, False]
    assert (world.runs_on(), world.controller.engine.cluster_queue("queue").reserving_workloads) == (None, 0)
    world.api.patch("Workload", "train-0a1b2", {"spec": {"active": True}}, namespace="ns")
    world.settle()
    assert world.runs_on() == "good"


def test_gates_open_one_after_the_other_five_minutes_apart() -> None:
    world = World()
    for flavor in ("good", "cheap"):
        world.api.create(filler(f"low-{flavor}", flavor, priority=-1))
    world.settle()
    world.api.create(workload("train-0a1b2", priority=10))
    for _ in range(20):
        if condition(world.variants.get("good"), "BlockedOnPreemptionGates")[0] == "True":
            break
        world.turn()
    # The preferred one could preempt when it was tried; once its gate is open, it cannot any more.
    world.api.patch("Workload", "low-good", {"spec": {"priority": 20}}, namespace="ns")
    world.settle(seconds=1)
    # A second later parked workloads are retried.
    world.turn()
    world.settle(seconds=1)
    gates = {flavor: variant["status"].get("preemptionGates") for flavor, variant in world.variants.items()}
    assert gates["good"][0]["position"] == "Open"
    assert gates["cheap"][0]["position"] == "Closed"
    assert condition(world.variants["cheap"], "BlockedOnPreemptionGates")[0] == "True"
    assert ("PreemptionUngatedVariant", world.variants["good"]["metadata"]["name"]) in world.events
    wake = world.controller.next_wake(world.api.now)
    assert wake == NOW + SECOND_NS + 5 * MINUTE  # the preferred one was parked for that second
    world.api.now = wake
    world.settle(seconds=1)
    assert world.variants["cheap"]["status"]["preemptionGates"][0]["position"] == "Open"
    assert condition(world.find("low-cheap"), "Evicted") == ("True", "Preempted")


def test_a_flavor_that_comes_and_one_that_goes_are_followed() -> None:
    world = World()
    world.api.create(workload("train-0a1b2"))
    world.settle()
    assert world.runs_on() == "good"
    world.api.create(thing("ResourceFlavor", "new", {}))
    changed = queue("queue", "new", "cheap", policy={"mode": "TryPreferredFlavors"})
    world.api.patch("ClusterQueue", "queue", {"spec": changed["spec"]})
    world.settle()
    assert sorted(world.variants) == ["cheap", "new"]
    assert ("DeletedVariant", "train-0a1b2") in world.events
    assert world.runs_on() == "new"


def test_a_variant_that_is_refused_is_tried_again_later() -> None:
    world = World()
    world.api.create(workload("train-0a1b2"))
    world.turn()
    world.turn()
    turn = world.controller.turn(world.api.now)
    assert [object_.object.name.split("-")[2] for object_ in turn.objects] == ["good", "cheap"]
    world.controller.done(turn.objects[0], Answer(error="no quota for objects"), now=world.api.now)
    assert not world.controller.turn(world.api.now).objects
    world.api.now += SECOND_NS
    assert len(world.controller.turn(world.api.now).objects) == 2


def test_without_the_gate_there_are_no_parents() -> None:
    world = World(config=configuration(ConcurrentAdmission=False))
    world.api.create(workload("train-0a1b2"))
    world.settle()
    assert world.variants == {}
    assert PARENT_LABEL not in (world.find("train-0a1b2") or {})["metadata"].get("labels", {})
    assert world.runs_on() == "good"


def test_a_workload_that_waits_since_before_the_gate_was_on_becomes_a_parent() -> None:
    world = World(config=configuration(ConcurrentAdmission=False))
    world.api.patch("LocalQueue", "jobs", {"spec": {"stopPolicy": "Hold"}}, namespace="ns")
    world.api.create(workload("train-0a1b2"))
    world.settle()
    world.config = configuration()
    world.restart()
    world.api.patch("LocalQueue", "jobs", {"spec": {"stopPolicy": "None"}}, namespace="ns")
    world.settle()
    assert world.runs_on() == "good"
    assert sorted(world.variants) == ["cheap", "good"]
