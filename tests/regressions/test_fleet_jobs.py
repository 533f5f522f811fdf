"""Jobs of a fleet that change while they have a Workload."""

from __future__ import annotations

from tests.unit.multikueue.worlds import fleet_of, job, workload_of


def test_a_waiting_job_may_change_its_queue_and_priority_class() -> None:
    fleet = fleet_of(4, {"west": 4})
    fleet.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: high}, value: 9}")
    queue = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: other, namespace: ns}"
    fleet.apply(f"{queue}, spec: {{clusterQueue: cluster-queue}}}}")
    made = job(cpu=9)
    fleet.submit(made)
    fleet.wait(10)
    waiting = workload_of(fleet)
    assert waiting is not None
    assert (waiting["spec"]["queueName"], waiting["spec"]["priority"]) == ("lq", 0)
    labels = {"kueue.x-k8s.io/queue-name": "other", "kueue.x-k8s.io/priority-class": "high"}
    fleet.apply({**made, "metadata": {**made["metadata"], "labels": labels}})
    fleet.wait(10)
    changed = workload_of(fleet)
    assert changed is not None
    assert (changed["spec"]["queueName"], changed["spec"]["priority"]) == ("other", 9)
    assert changed["metadata"]["uid"] == waiting["metadata"]["uid"]
