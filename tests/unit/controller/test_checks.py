"""The loop of a controller with check controllers: what it writes for them, and how that goes."""

from __future__ import annotations

import pytest

from kueuecore import ManifestError
from kueuecore.controller import WATCHED, Controller, Turn
from kueuecore.errors import UnknownObjectError
from kueuecore.provisioning import ProvisioningController
from kueuecore.times import SECOND_NS
from kueuecore.writes import Answer
from tests.unit.controller.world import World, conditions, thing, workload

CONFIG = thing(
    "ProvisioningRequestConfig",
    "dws",
    {
        "provisioningClassName": "queued",
        "retryStrategy": {"backoffLimitCount": 1, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800},
    },
)
CHECK = thing(
    "AdmissionCheck",
    "capacity",
    {
        "controllerName": "kueue.x-k8s.io/provisioning-request",
        "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "dws"},
    },
)
RULES = {"admissionChecks": [{"name": "capacity", "onFlavors": []}]}


class Provisioned(World):
    """A world in which capacity is asked for."""

    def __init__(self, controller: Controller | None = None) -> None:
        super().__init__(
            controller=controller or Controller(checks=[ProvisioningController()], status_delay_seconds=None),
            admissionChecksStrategy=RULES,
        )
        self.refuses: list[str] = []
        for made in (CONFIG, CHECK):
            self.cluster.create(made)

    def turn(self) -> Turn:
        turn = super().turn()
        for write in turn.objects:
            if write.kind in self.refuses:
                self.controller.done(write, Answer(error="not today"), now=self.now)
                break
            self.controller.done(write, self.cluster.carry_out(write), now=self.now)
        return turn

    def settle(self) -> None:
        super().settle()
        # What was created comes back by the watch.
        while self.seen < self.cluster.version:
            super().settle()

    def requests(self) -> list[str]:
        return [request["metadata"]["name"] for request in self.cluster.list("ProvisioningRequest")[0]]

    def answer(self, name: str, condition: str, message: str) -> None:
        """The autoscaler says something."""
        reported = {"type": condition, "status": "True", "message": message}
        patch = {"status": {"conditions": [reported]}}
        self.cluster.patch("ProvisioningRequest", name, patch, namespace="default", subresource="status")

    def check(self) -> tuple[str, str]:
        (entry,) = self.stored("w")["status"]["admissionChecks"]
        return entry["state"], entry["message"]


def settled() -> Provisioned:
    world = Provisioned()
    world.cluster.create(workload("w"))
    world.settle()
    return world


def test_a_check_without_its_config_keeps_its_queue_closed() -> None:
    world = Provisioned(Controller(checks=[ProvisioningController()]))
    world.cluster.delete("ProvisioningRequestConfig", "dws")
    world.cluster.create(workload("w"))
    world.settle()
    (active,) = world.cluster.get("AdmissionCheck", "capacity")["status"]["conditions"]
    assert (active["status"], active["reason"]) == ("False", "BadParametersRef")
    assert not conditions(world.stored("w"))


def test_capacity_is_asked_for_once_quota_is_written() -> None:
    world = settled()
    assert set(conditions(world.stored("w"))) == {"QuotaReserved"}
    assert (world.check(), world.requests()) == (("Pending", ""), ["w-capacity-1"])
    assert world.turn().objects == ()


def test_a_workload_is_admitted_once_its_capacity_is_there() -> None:
    world = settled()
    world.answer("w-capacity-1", "Provisioned", "here it is")
    world.settle()
    assert world.check() == ("Ready", "here it is")
    assert world.controller.may_run("w", namespace="default")
    (entry,) = world.stored("w")["status"]["admissionChecks"]
    assert (
        entry["podSetUpdates"][0]["annotations"]["autoscaling.x-k8s.io/consume-provisioning-request"] == "w-capacity-1"
    )


def test_a_failure_is_retried_after_its_delay_and_then_deactivates() -> None:
    world = settled()
    world.answer("w-capacity-1", "Failed", "out of stock")
    world.settle()
    assert world.check() == ("Retry", "Retrying after failure: out of stock")
    wake = world.controller.next_wake(world.now)
    assert wake is not None
    assert world.now < wake <= world.now + 60 * SECOND_NS
    world.cluster.now = wake
    world.settle()
    assert "Evicted" in conditions(world.stored("w"))
    assert world.requests() == []
    assert world.controller.stopped("w", namespace="default")
    world.settle()
    assert (world.check()[0], world.requests()) == ("Pending", ["w-capacity-2"])
    world.answer("w-capacity-2", "Failed", "out of stock")
    world.settle()
    assert world.stored("w")["spec"]["active"] is False
    assert world.requests() == []


def test_a_finished_workload_leaves_no_request() -> None:
    world = settled()
    world.controller.finished("w", namespace="default")
    world.settle()
    assert world.requests() == []


def test_a_refused_request_is_told_and_made_again() -> None:
    world = Provisioned()
    world.refuses = ["ProvisioningRequest"]
    world.cluster.create(workload("w"))
    for _ in range(6):
        for write in world.turn().writes:
            world.send(write)
    assert world.check() == ("Pending", 'Error creating ProvisioningRequest "w-capacity-1": not today')
    world.refuses = []
    wake = world.controller.next_wake(world.now)
    assert wake is not None
    world.cluster.now = max(wake, world.now)
    world.settle()
    assert (world.check(), world.requests()) == (("Pending", ""), ["w-capacity-1"])


def test_a_refused_answer_is_given_again() -> None:
    world = settled()
    world.answer("w-capacity-1", "Provisioned", "here it is")
    (write,) = world.turn().writes
    assert world.controller.done(write, Answer(world.stored("w"), error="refused"), now=world.now)
    world.settle()
    assert world.check() == ("Ready", "here it is")


def test_a_restart_goes_on_where_it_was() -> None:
    world = settled()
    saved = world.controller.save()
    world.answer("w-capacity-1", "Provisioned", "here it is")
    world.controller = Controller.load(saved, now=world.now, checks=[ProvisioningController()])
    world.settle()
    assert (world.check()[0], world.requests()) == ("Ready", ["w-capacity-1"])


def test_what_is_to_be_watched_follows_from_the_checks() -> None:
    kinds = Controller(checks=[ProvisioningController()]).kinds
    assert kinds["ProvisioningRequest"] == ("autoscaling.x-k8s.io/v1", "provisioningrequests")
    assert kinds.items() >= WATCHED.items()
    assert Controller().kinds == WATCHED


def test_a_wrong_config_is_refused_and_changes_nothing() -> None:
    controller = Controller(checks=[ProvisioningController()])
    wrong = {**CONFIG, "spec": {**CONFIG["spec"], "provisioningClassName": 3}}
    with pytest.raises(ManifestError) as caught:
        controller.observe({"type": "ADDED", "object": wrong}, now=0)
    assert caught.value.field == "spec.provisioningClassName"
    assert controller.observe({"type": "ADDED", "object": CONFIG}, now=0)
    with pytest.raises(UnknownObjectError):
        controller.engine.workload("w", namespace="default")
