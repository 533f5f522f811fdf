"""Recorded cases become worlds that both sides are given: no flavor but the one of the case is tried."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.conformance import answer

NOW = "2026-01-01T00:00:00Z"


def kueue(kind: str, name: str, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec, **more}


def workload(name: str, priority: int, flavor: str = "", *more: tuple[str, str]) -> dict[str, Any]:
    """A workload of one CPU, which holds that of a flavor."""
    pod = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    spec = {"priority": priority, "podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}]}
    assigned = {"name": "main", "count": 1, "flavors": {"cpu": flavor}, "resourceUsage": {"cpu": "1"}}
    true = {"status": "True", "message": "", "lastTransitionTime": NOW}
    conditions = [{"type": each, "reason": reason, **true} for each, reason in (("QuotaReserved", "r"), *more)]
    admission = {"clusterQueue": "cq", "podSetAssignments": [assigned]}
    status = {"admission": admission, "conditions": conditions} if flavor else {}
    return kueue("Workload", name, spec, status=status)


@pytest.mark.parametrize("by", ["engine", "reference"])
@pytest.mark.parametrize(("flavor", "victim"), [("spot", "on-spot"), ("reserved", "evicted")])
def test_victims_use_the_flavor_of_the_case_and_may_have_been_evicted_before(by: str, flavor: str, victim: str) -> None:
    quotas = [{"name": name, "resources": [{"name": "cpu", "nominalQuota": "1"}]} for name in ("reserved", "spot")]
    groups = [{"coveredResources": ["cpu"], "flavors": quotas}]
    queue = kueue(
        "ClusterQueue", "cq", {"resourceGroups": groups, "preemption": {"withinClusterQueue": "LowerPriority"}}
    )
    flavors = [kueue("ResourceFlavor", name, {}) for name in ("reserved", "spot")]
    held = [workload("evicted", 0, "reserved", ("Evicted", "Preempted")), workload("on-spot", 1, "spot")]
    assigned = {"name": "main", "count": 1, "flavors": {"cpu": {"flavor": flavor, "mode": "Preempt"}}}
    given = {"workload": workload("in", 2), "clusterQueue": "cq", "assignment": {"podSets": [assigned]}}
    case = {"kind": "preempt", "config": {"now": NOW}, "objects": [*flavors, queue, *held], "input": given}
    found = answer(case, by=by)
    assert [(each["key"], each["reason"]) for each in found["targets"]] == [(f"/{victim}", "InClusterQueue")]
    conditions = found["workloads"][0]["status"]["conditions"]
    assert ("Preempted" in {each["type"] for each in conditions}) == (victim == "on-spot")
