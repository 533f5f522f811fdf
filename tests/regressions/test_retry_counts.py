"""A check that began anew lost its count of retries on the way to the API server, where Kueue's apply leaves it."""

from __future__ import annotations

import pytest

from kueuecore import Configuration
from kueuecore.controller import Controller
from tests.unit.controller.world import World, thing, workload

MERGES = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
featureGates: {WorkloadRequestUseMergePatch: true}
"""


@pytest.mark.parametrize(("configuration", "count"), [(None, 2), (Configuration.parse(MERGES), None)])
def test_a_check_keeps_its_retries_after_another_answer(configuration: Configuration | None, count: int | None) -> None:
    checks = {"admissionChecks": [{"name": "capacity"}]}
    world = World(
        controller=Controller(configuration, status_delay_seconds=None),
        admissionChecksStrategy=checks,
    )
    check = thing("AdmissionCheck", "capacity", {"controllerName": "example.com/mine"})
    active = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    world.cluster.create({**check, "status": {"conditions": [active]}})
    world.cluster.create(workload("w"))
    world.settle()
    entry = {
        "name": "capacity",
        "state": "Rejected",
        "message": "no",
        "retryCount": 2,
        "lastTransitionTime": "2026-01-01T00:00:02Z",
    }
    patch = {"status": {"admissionChecks": [entry]}}
    world.cluster.patch("Workload", "w", patch, namespace="default", subresource="status")
    world.settle()
    (after,) = world.stored("w")["status"]["admissionChecks"]
    assert (after["state"], after.get("retryCount")) == ("Pending", count)
    world.settle()
