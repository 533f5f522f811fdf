"""Without webhooks, an API server takes what they would refuse: it is used, and that is said."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore.controller import Controller
from kueuecore.kubernetes import Api, Process
from kueuecore.kubernetes.webhooks.objections import WebhookObjections
from tests.unit.controller.world import World, queue, thing, workload
from tests.unit.kubernetes.clusters import KUEUE, job, served, started, wait_for
from tests.unit.kubernetes.test_process import running

LENT = "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit"


def lending(limit: str, nominal: str = "4") -> dict[str, Any]:
    cpu = {"name": "cpu", "nominalQuota": nominal, "lendingLimit": limit}
    flavors = [{"name": "default-flavor", "resources": [cpu]}]
    return queue(nominal, cohortName="all", resourceGroups=[{"coveredResources": ["cpu"], "flavors": flavors}])


class Objecting(World):
    """A world whose objects are looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.objections = WebhookObjections(self.controller, Configuration())

    def said(self) -> list[tuple[str, str]]:
        """The kinds of objects that webhooks have something against, and the places."""
        self.watch()
        found = self.objections.take()
        return [(objection.object["kind"], objection.message.split(": ")[0]) for objection in found]  # type: ignore[misc]


def test_an_object_is_objected_to_once_for_each_version() -> None:
    world = Objecting()
    assert world.said() == []
    for limit in ("5", "6"):
        world.cluster.patch("ClusterQueue", "cluster-queue", {"spec": lending(limit)["spec"]})
        assert world.said() == [("ClusterQueue", LENT)]
        world.cluster.patch("ClusterQueue", "cluster-queue", {"metadata": {"labels": {"a": limit}}})
        world.cluster.patch("ClusterQueue", "cluster-queue", {"status": {"pendingWorkloads": 1}}, subresource="status")
        assert world.said() == []
    world.cluster.patch("ClusterQueue", "cluster-queue", {"spec": lending("4")["spec"]})
    assert world.said() == []


def test_each_kind_that_has_a_webhook_is_looked_at() -> None:
    world = Objecting()
    resources = [{"name": "cpu", "nominalQuota": "1", "borrowingLimit": "1"}]
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "default-flavor", "resources": resources}]}]
    world.cluster.create(thing("Cohort", "top", {"resourceGroups": groups}))
    taints = [{"key": "a", "value": "b!", "effect": "NoSchedule"}]
    world.cluster.create(thing("ResourceFlavor", "bad", {"nodeTaints": taints}))
    twice = workload("w")
    twice["spec"]["podSets"][0]["minCount"] = 1
    twice["spec"]["podSets"] = [{**twice["spec"]["podSets"][0], "name": name, "count": 2} for name in "ab"]
    world.cluster.create(twice)
    assert [kind for kind, _ in world.said()] == ["Cohort", "ResourceFlavor", "Workload"]
    # That of a job was made by the same rules.
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u"}
    twice["metadata"] = {"name": "of-a-job", "namespace": "default", "ownerReferences": [owner]}
    world.cluster.create(twice)
    assert world.said() == []


def test_a_change_that_a_webhook_would_refuse_is_objected_to() -> None:
    world = Objecting()
    policy = {"concurrentAdmissionPolicy": {"migration": {"mode": "TryPreferredFlavors"}}}
    world.cluster.create({**queue(1, **policy), "metadata": {"name": "other"}})
    assert world.said() == []
    world.cluster.patch("ClusterQueue", "other", {"spec": {"concurrentAdmissionPolicy": None}})
    assert world.said() == [("ClusterQueue", "spec.concurrentAdmissionPolicy")]
    world.cluster.delete("ClusterQueue", "other")
    world.cluster.create({**queue(1), "metadata": {"name": "other"}})
    assert world.said() == [], "it is another one"


def test_a_controller_that_has_seen_the_objects_before_looks_at_them_too() -> None:
    world = World(controller=Controller(status_delay_seconds=None))
    world.cluster.patch("ClusterQueue", "cluster-queue", {"spec": lending("5")["spec"]})
    world.watch()
    assert len(WebhookObjections(world.controller, None).take()) == 1


def test_what_no_webhook_has_refused_is_used_with_a_warning_and_an_event(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="kueuecore")
    with served() as server:
        resources = [{"name": "cpu", "nominalQuota": "4", "lendingLimit": "5"}]
        flavors = [{"name": "default", "resources": resources}]
        groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
        server.call(lambda api: api.patch("ClusterQueue", "a", {"spec": {"resourceGroups": groups}}))
        server.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}])
        process = Process(Api.connect(server=server.url))
        with running(process) as failures:
            server.load([job("j")])
            wait_for(lambda: started(server) == {"j"}, "the job starts")

            def told() -> list[dict[str, Any]]:
                events = server.call(lambda api: api.list("Event")[0])
                return [event for event in events if event["reason"] == "ValidationFailed"]

            wait_for(lambda: bool(told()), "the event is written")
        assert not failures
        (event,) = told()
    about = event["involvedObject"]
    assert (about["apiVersion"], about["kind"], about["name"]) == (KUEUE, "ClusterQueue", "a")
    assert (event["type"], event["metadata"]["namespace"], event["count"]) == ("Warning", "default", 1)
    assert event["message"] == (
        f"Kueue's webhooks would refuse it, and it is used all the same: {LENT}: "
        'Invalid value: "5": must be less than or equal to the nominalQuota'
    )
    (record,) = (record for record in caplog.records if "webhooks would refuse" in record.message)
    assert vars(record)["object"] == 'ClusterQueue "a"'
    assert LENT in vars(record)["problem"]
