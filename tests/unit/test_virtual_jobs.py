"""Jobs that change in a virtual cluster: their Workloads follow."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import ManifestError, VirtualCluster
from kueuecore.errors import UnknownObjectError
from kueuecore.simulation import JobPlan
from tests.unit.jobs.test_workload_sync import batch

QUEUES = """
{apiVersion: v1, kind: Namespace, metadata: {name: 'n'}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cq}
spec:
  namespaceSelector: {}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: 'n', name: lq}, spec: {clusterQueue: cq}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, spec: {clusterQueue: cq},
  metadata: {namespace: 'n', name: other}}
"""
Json = dict[str, Any]


def new_cluster() -> VirtualCluster:
    return VirtualCluster(QUEUES, now="2026-01-01T00:00:00Z")


def counts(cluster: VirtualCluster) -> dict[str, tuple[int, str]]:
    """Pods and stage of each Workload."""
    found: Any = {
        workload.name: cluster.workload(workload.name, namespace="n") for workload in cluster.engine.workloads()
    }
    stages = {workload.name: workload.stage.value for workload in cluster.engine.workloads()}
    return {name: (error["spec"]["podSets"][0]["count"], stages[name]) for name, error in found.items()}


def test_a_job_that_waits_is_changed_in_place() -> None:
    found = new_cluster()
    found.submit(batch(9))
    found.advance("2026-01-01T00:00:05Z")
    (name,) = counts(found)
    assert counts(found)[name] == (9, "Pending")
    found.update(batch(3), JobPlan(run_seconds=60))
    found.advance("2026-01-01T00:00:10Z")
    assert counts(found) == {name: (3, "Admitted")}
    assert found.is_running(name, namespace="n")


def test_a_running_job_that_no_longer_fits_is_queued_anew() -> None:
    found = new_cluster()
    found.submit(batch(2))
    found.advance("2026-01-01T00:00:05Z")
    found.update(batch(4), JobPlan(run_seconds=60))
    found.advance("2026-01-01T00:00:10Z")
    (workload,) = counts(found).values()
    assert workload == (4, "Admitted")
    found.advance()
    (workload,) = counts(found).values()
    assert workload == (4, "Finished")


def test_an_elastic_job_grows_by_a_slice() -> None:
    found = new_cluster()
    found.submit(batch(2, elastic_job="true"))
    found.advance("2026-01-01T00:00:05Z")
    (first,) = counts(found)
    found.update(batch(4, elastic_job="true", generation=2), JobPlan(run_seconds=60))
    found.advance("2026-01-01T00:00:10Z")
    assert sorted(counts(found).values()) == [(2, "Finished"), (4, "Admitted")]
    assert counts(found)[first] == (2, "Finished")


def test_what_the_webhooks_refuse_changes_nothing() -> None:
    found = new_cluster()
    found.submit(batch(2))
    found.advance("2026-01-01T00:00:05Z")
    before = counts(found)
    moved = batch(2)
    moved["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "other"}
    with pytest.raises(ManifestError, match="field is immutable"):
        found.update(moved)
    stranger = batch(2)
    stranger["metadata"]["name"] = "stranger"
    with pytest.raises(UnknownObjectError, match="submit it first"):
        found.update(stranger)
    assert counts(found) == before


def test_a_job_is_deleted_with_its_workload() -> None:
    found = new_cluster()
    found.submit(batch(2))
    found.advance("2026-01-01T00:00:05Z")
    assert found.delete("Job", "j", namespace="n")
    assert counts(found) == {}
    assert not found.delete("Job", "j", namespace="n")
