"""However many Workloads there are, or a manifest asks for, jobs take time and memory in proportion."""

from __future__ import annotations

import sys
from typing import Any

from kueuecore.jobs import workloads_for

QUEUE = {"kueue.x-k8s.io/queue-name": "lq"}
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}


def job(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "a", "labels": QUEUE}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": TEMPLATE}}


def workload(name: str, *, job: str = "", namespace: str = "a") -> dict[str, Any]:
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": ""}] if job else []
    metadata = {"name": name, "namespace": namespace, "ownerReferences": owners}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata}


def test_jobs_find_their_workloads_without_looking_at_all() -> None:
    def n_calls(n: int) -> int:
        objects = [*(job(f"j{i}") for i in range(n)), *(workload(f"w{i}", job="other") for i in range(n))]
        calls = 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        try:
            result = workloads_for(objects)
        finally:
            sys.setprofile(None)
        assert len(result.workloads) == n
        return calls

    assert n_calls(200) < 2.5 * n_calls(100)


def test_a_workload_is_that_of_a_job_by_owner_or_by_name() -> None:
    (made,) = workloads_for([job("j")]).workloads
    name = str(made.object["metadata"]["name"])  # type: ignore[index, call-overload]
    for other, is_its_own in [
        (workload("w", job="j"), True),
        (workload(name), True),
        (workload("w", job="k"), False),
        (workload("w", job="j", namespace="b"), False),
        (workload(name, namespace="b"), False),
    ]:
        found = workloads_for([job("j"), other])
        reasons = [ignored.reason for ignored in found.ignored]
        assert reasons == (
            [f'its Workload "a/{other["metadata"]["name"]}" is among the manifests (job j)'] * is_its_own
        )
        assert len(found.workloads) == (0 if is_its_own else 1)


def test_groups_that_are_too_many_are_refused_before_they_are_made() -> None:
    spec = {
        "replicas": 1,
        "leaderWorkerTemplate": {"size": 1, "workerTemplate": TEMPLATE},
        "rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 1}},
    }
    metadata = {"name": "l", "namespace": "a", "labels": QUEUE}
    status = {"replicas": 2**31 - 1, "updatedReplicas": 0}
    plain = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": metadata}
    groups: dict[str, Any] = {**plain, "spec": spec, "status": status}
    (problem,) = workloads_for([groups]).problems
    assert (problem.field, problem.value) == ("status.replicas", 2**31 - 1)
