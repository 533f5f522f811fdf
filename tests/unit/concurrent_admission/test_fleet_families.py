"""A worker of a fleet that runs a job through variants of its Workload."""

from __future__ import annotations

from kueuecore.fleet import Fleet, LinkSettings, NodeSettings
from tests.unit.concurrent_admission.families import configuration
from tests.unit.concurrent_admission.test_virtual_families import queues
from tests.unit.multikueue.worlds import CLUSTER, MULTIKUEUE, QUEUES, START, job


def test_a_worker_runs_a_job_through_variants_and_keeps_none_of_them() -> None:
    settings = NodeSettings(configuration=configuration())
    fleet = Fleet(
        ["west"], now=START, links={"west": LinkSettings(least_ms=100, most_ms=100)}, nodes={"west": settings}
    )
    fleet.apply(MULTIKUEUE.format(clusters="west"))
    fleet.apply(CLUSTER.format(name="west"))
    fleet.apply(queues().replace("name: jobs", "name: lq"), cluster="west")
    fleet.apply(QUEUES.format(cpu=4, checks="[{name: multikueue}]"))
    fleet.wait(2)
    fleet.submit(job(cpu=1), run_seconds=30)
    fleet.wait(20)
    assert fleet.running(namespace="ns", name="job") == ["west"]
    # The copy of the manager's Workload, and a variant for each flavor.
    owned = [
        object_["metadata"].get("ownerReferences", [{}])[0].get("kind")
        for object_ in fleet.objects("Workload", cluster="west")
    ]
    assert sorted(owned, key=str) == ["Job", "Workload", "Workload"]
    fleet.wait(400)
    (workload,) = fleet.objects("Workload")
    assert {condition["type"]: condition["reason"] for condition in workload["status"]["conditions"]}[
        "Finished"
    ] == "Succeeded"
    assert fleet.objects("Workload", cluster="west") == []
