"""Orchestrated preemption, and quota of the manager from that of its workers (rules/06 §8, §9)."""

from __future__ import annotations

from typing import Any

from kueuecore.multikueue import MultiKueueSettings
from kueuecore.times import SECOND_NS
from tests.unit.multikueue.stage import MINUTE, Stage

GATE = "kueue.x-k8s.io/multikueue"


def gate(stage: Stage, cluster: str) -> str:
    copy = stage.get("Workload", "job", cluster=cluster)
    assert copy is not None
    gates = copy.get("status", {}).get("preemptionGates", [])
    return next((str(other["position"]) for other in gates if other["name"] == GATE), "")


def test_one_worker_after_the_other_may_preempt() -> None:
    stage = Stage("west", "east", settings=MultiKueueSettings(has_orchestrated_preemption=True))
    stage.job()
    stage.settle()
    copy = stage.get("Workload", "job", cluster="west")
    assert copy is not None
    assert copy["spec"]["preemptionGates"] == [{"name": GATE}]
    assert (gate(stage, "west"), gate(stage, "east")) == ("", "")
    # Both would have to preempt; the west has said so first.
    stage.condition("west", "job", "BlockedOnPreemptionGates")
    stage.settle(delay=3 * SECOND_NS)
    stage.condition("east", "job", "BlockedOnPreemptionGates")
    stage.settle()
    assert (gate(stage, "west"), gate(stage, "east")) == ("Open", "")
    stage.wait(4 * MINUTE)
    assert gate(stage, "east") == ""
    stage.wait(MINUTE)
    assert (gate(stage, "west"), gate(stage, "east")) == ("Open", "Open")


def test_nobody_preempts_who_does_not_ask() -> None:
    stage = Stage("west", settings=MultiKueueSettings(has_orchestrated_preemption=True))
    stage.job()
    stage.wait(10 * MINUTE)
    stage.condition("west", "job", "BlockedOnPreemptionGates", status="False")
    stage.settle()
    assert gate(stage, "west") == ""


# Quota automation.


def managed(**config: Any) -> Stage:
    """A manager whose ClusterQueue covers cpu, and two workers with 2 and 3 cpus behind the same LocalQueue."""
    stage = Stage("west", "east", settings=MultiKueueSettings(has_quota_automation=True))
    for cluster, cpu in (("west", "2"), ("east", "3"), ("", "0")):
        flavor = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": cpu}]}
        strategy = {"admissionChecksStrategy": {"admissionChecks": [{"name": "ac"}]}} if not cluster else {}
        spec = {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}], **strategy}
        stage.create("ClusterQueue", f"cq{cluster}", spec, cluster=cluster)
        stage.create("LocalQueue", "lq", {"clusterQueue": f"cq{cluster}"}, cluster=cluster, namespace="ns")
    stage.api[""].patch("MultiKueueConfig", "config", {"spec": {"quotaManagement": "Automated", **config}})
    stage.settle()
    return stage


def quota(stage: Stage) -> str:
    queue = stage.api[""].get("ClusterQueue", "cq")
    return str(queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"])


def said(stage: Stage) -> tuple[str, str, str]:
    (it,) = stage.api[""].get("ClusterQueue", "cq")["status"]["conditions"]
    return it["status"], it["reason"], it["message"]


def test_the_manager_has_the_quota_of_its_workers_together() -> None:
    stage = managed()
    assert quota(stage) == "5"
    reported = "ClusterQueue quota is automatically managed based on MultiKueue workers."
    assert said(stage) == ("True", "QuotaAutomated", reported)


def test_quota_follows_the_workers_that_are_connected() -> None:
    stage = managed()
    stage.cut("west")
    stage.settle(delay=5 * SECOND_NS)
    assert quota(stage) == "3"
    stage.mend("west")
    stage.wait(MINUTE)
    assert quota(stage) == "5"


def test_quota_follows_a_worker_that_gets_more() -> None:
    stage = managed()
    flavor = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": "1500m"}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [flavor]}]
    stage.api["west"].patch("ClusterQueue", "cqwest", {"spec": {"resourceGroups": groups}})
    stage.settle()
    assert quota(stage) == "4500m"


def test_quota_is_left_alone_where_nobody_asks_for_it() -> None:
    stage = managed(quotaManagement="Manual")
    assert quota(stage) == "0"
    reported = "MultiKueue manager quota automation has not been requested."
    assert said(stage) == ("False", "NotRequested", reported)


def test_resources_that_the_manager_does_not_cover_are_named() -> None:
    stage = managed()
    resources = [{"name": "memory", "nominalQuota": "1Gi"}, {"name": "gpu", "nominalQuota": "1"}]
    groups = [{"coveredResources": ["memory", "gpu"], "flavors": [{"name": "f", "resources": resources}]}]
    stage.api["west"].patch("ClusterQueue", "cqwest", {"spec": {"resourceGroups": groups}})
    stage.settle()
    reported = "manager-side coveredResources is missing resources configured on workers: [gpu memory]"
    assert said(stage) == ("False", "UnsupportedConfiguration", reported)


def test_several_flavors_are_not_automated() -> None:
    stage = managed()
    flavors = [{"name": name, "resources": [{"name": "cpu", "nominalQuota": "1"}]} for name in ("f", "g")]
    groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
    stage.api[""].patch("ClusterQueue", "cq", {"spec": {"resourceGroups": groups}})
    stage.settle()
    reported = "Quota automation requires that the manager-side ClusterQueue has exactly one ResourceFlavor"
    assert said(stage) == ("False", "UnsupportedConfiguration", reported)
