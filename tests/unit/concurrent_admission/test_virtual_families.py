"""Jobs in virtual time run through the variants of their Workloads."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import VirtualCluster, simulate
from kueuecore.simulation import Happening, JobPlan, Operation
from kueuecore.times import SECOND_NS, nanoseconds
from tests.unit.concurrent_admission.families import configuration

NOW = "2026-01-01T00:00:00Z"
LABEL = "kueue.x-k8s.io/concurrent-admission-parent"


def queues(mode: str = "TryPreferredFlavors") -> str:
    flavors = ", ".join(f"{{name: {name}, resources: [{{name: cpu, nominalQuota: 1}}]}}" for name in ("good", "cheap"))
    return f"""
{{apiVersion: v1, kind: Namespace, metadata: {{name: ns}}}}
---
{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {{name: good}}}}
---
{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {{name: cheap}}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: queue}}
spec:
  namespaceSelector: {{}}
  concurrentAdmissionPolicy: {{migration: {{mode: {mode}}}}}
  resourceGroups: [{{coveredResources: [cpu], flavors: [{flavors}]}}]
---
{{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {{namespace: ns, name: jobs}},
 spec: {{clusterQueue: queue}}}}
"""


def workload(name: str) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"namespace": "ns", "name": name},
        "spec": {"queueName": "jobs", "podSets": [{"name": "main", "count": 1, "template": template}]},
    }


def job(name: str, *, at: float, seconds: float) -> Happening:
    return Happening(at=at, op=Operation.CREATE, object=workload(name), plan=JobPlan(run_seconds=seconds))


def steps(run: Any) -> list[tuple[float, str, str]]:
    return [((step.time - run.start) / SECOND_NS, step.kind.value, step.key.partition("/")[2]) for step in run.steps]


def test_a_job_moves_to_the_preferred_flavor_once_that_is_free() -> None:
    run = simulate(
        queues(),
        [job("first-1", at=0, seconds=60), job("second-2", at=5, seconds=100)],
        now=NOW,
        configuration=configuration(),
    )
    assert steps(run) == [
        (0, "Created", "first-1"),
        (0, "Admitted", "first-1"),
        (5, "Created", "second-2"),
        (6, "Admitted", "second-2"),
        (60, "Finished", "first-1"),
        (60, "Stopped", "second-2"),
        (61, "Admitted", "second-2"),
        (161, "Finished", "second-2"),
    ]
    assert run.engine.workload("second-2", namespace="ns").flavors == {"main": {"cpu": "good"}}
    assert run.engine.cluster_queue("queue").reserving_workloads == 0


def test_a_job_stays_where_it_was_admitted_first_if_its_queue_wants_that() -> None:
    run = simulate(
        queues("RetainFirstAdmission"),
        [job("first-1", at=0, seconds=60), job("second-2", at=5, seconds=100)],
        now=NOW,
        configuration=configuration(),
    )
    assert [step for step in steps(run) if step[2] == "second-2"][-1][:2] == (106, "Finished")
    assert run.engine.workload("second-2", namespace="ns").flavors == {"main": {"cpu": "cheap"}}


def test_variants_go_with_their_parent() -> None:
    cluster = VirtualCluster(queues(), now=NOW, configuration=configuration())
    cluster.submit(workload("first-1"))
    cluster.advance()
    assert cluster.workload("first-1", namespace="ns")["metadata"]["labels"] == {LABEL: "true"}  # type: ignore[index,call-overload]
    assert len(cluster.engine.workloads()) == 3
    assert cluster.is_running("first-1", namespace="ns")
    cluster.delete("Workload", "first-1", namespace="ns")
    cluster.advance()
    assert not cluster.engine.workloads()
    assert cluster.engine.cluster_queue("queue").reserving_workloads == 0


@pytest.mark.parametrize("is_on", [True, False])
def test_without_the_gate_a_workload_is_admitted_itself(is_on: bool) -> None:
    cluster = VirtualCluster(queues(), now=NOW, configuration=configuration(ConcurrentAdmission=is_on))
    cluster.submit(workload("first-1"), JobPlan(run_seconds=10))
    cluster.advance(nanoseconds(NOW) + 5 * SECOND_NS)
    assert len(cluster.engine.workloads()) == (3 if is_on else 1)
    assert cluster.is_running("first-1", namespace="ns")
