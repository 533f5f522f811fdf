"""Seeded worlds of any size, as JSON lines for `Engine.apply`: the same arguments give the same bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

from kueuecore.times import format_time, nanoseconds

__all__ = ["T0", "World"]

T0 = nanoseconds("2026-01-01T00:00:00Z")
"""When the newest workload was created; cycles begin here."""

_KUEUE = '{"apiVersion":"kueue.x-k8s.io/v1beta2"'


@dataclass(frozen=True, slots=True)
class World:
    """A cluster: ClusterQueues of one flavor in flat cohorts, each with one LocalQueue and pending workloads.

    Args:
        n_queues: ClusterQueues.
        n_cohorts: Cohorts over which they are spread evenly; 0: none.
        n_pending: Pending workloads of each ClusterQueue.
        n_shapes: Different kinds of workloads: shape k asks for k+1 CPUs and as many Gi of memory.
        nominal_cpu: CPUs of each ClusterQueue, and as many Gi of memory.
        n_priorities: Priorities, from 0.
        preempts: May ClusterQueues preempt lower priorities, and take back what others borrow?
        seed: Other seeds give the workloads other shapes, priorities and creation times.
    """

    n_queues: int
    n_cohorts: int = 0
    n_pending: int = 0
    n_shapes: int = 8
    nominal_cpu: int = 100
    n_priorities: int = 3
    preempts: bool = False
    seed: int = 0

    def cluster(self) -> bytes:
        """Namespace, flavor, ClusterQueues and LocalQueues."""
        lines = [
            '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns"}}',
            _KUEUE + ',"kind":"ResourceFlavor","metadata":{"name":"default"}}',
        ]
        quotas = [
            {"name": "cpu", "nominalQuota": str(self.nominal_cpu)},
            {"name": "memory", "nominalQuota": f"{self.nominal_cpu}Gi"},
        ]
        group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "default", "resources": quotas}]}
        for queue in range(self.n_queues):
            spec: dict[str, object] = {"namespaceSelector": {}, "resourceGroups": [group]}
            if self.n_cohorts:
                spec["cohortName"] = f"cohort-{queue % self.n_cohorts}"
            if self.preempts:
                spec["preemption"] = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
            name = f"queue-{queue:05}"
            lines.append(_KUEUE + f',"kind":"ClusterQueue","metadata":{{"name":"{name}"}},"spec":{json.dumps(spec)}}}')
            spec = {"clusterQueue": name}
            metadata = {"namespace": "ns", "name": name}
            lines.append(_KUEUE + f',"kind":"LocalQueue","metadata":{json.dumps(metadata)},"spec":{json.dumps(spec)}}}')
        return "\n".join(lines).encode()

    def workloads(self) -> bytes:
        """All pending workloads."""
        return "\n".join(self._workloads()).encode()

    def _workloads(self) -> Iterator[str]:
        chance = random.Random(self.seed)
        pod_sets = [_pod_sets(shape + 1) for shape in range(self.n_shapes)]
        for number in range(self.n_queues * self.n_pending):
            queue = number % self.n_queues
            age = chance.randrange(86_400)
            yield (
                f'{_KUEUE},"kind":"Workload","metadata":{{"namespace":"ns","name":"w-{number}","uid":"uid-{number}",'
                f'"creationTimestamp":"{format_time(T0 - age * 1_000_000_000)}"}},'
                f'"spec":{{"queueName":"queue-{queue:05}","priority":{chance.randrange(self.n_priorities)},'
                f'"podSets":{pod_sets[chance.randrange(self.n_shapes)]}}}}}'
            )


def _pod_sets(cpu: int) -> str:
    requests = {"cpu": str(cpu), "memory": f"{cpu}Gi"}
    container = {"name": "main", "image": "main", "resources": {"requests": requests}}
    spec = {"restartPolicy": "Never", "containers": [container]}
    return json.dumps([{"name": "main", "count": 1, "template": {"spec": spec}}])
