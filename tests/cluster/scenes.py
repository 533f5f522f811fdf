"""A scene in a cluster: a namespace with queues of its own, replicas of `kueuecore serve`, and a ledger of it all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kueuecore._json import list_at, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import Api
from kueuecore.times import SECOND_NS, nanoseconds
from scripts.clusters.ledger import Ledger
from scripts.clusters.place import KUEUE, Cluster, create, patient, wait_for
from scripts.clusters.quotas import exceeded
from scripts.clusters.replicas import CONFIGURATION, Replicas

__all__ = ["Scene"]

_MERGE = "application/merge-patch+json"
_ANNOTATION = "example.com/seconds"


class Scene:
    """One test's part of a cluster.

    Args:
        cluster: The cluster.
        name: The namespace, and the beginning of the names of queues.
        folder: For logs.
    """

    def __init__(self, cluster: Cluster, name: str, folder: Path) -> None:
        self.cluster, self.name, self.folder = cluster, name, folder
        self.api: Api = cluster.api()
        self.replicas: Replicas | None = None
        self.n_killed = 0

    def __enter__(self) -> Self:
        create(self.api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}})
        flavor = {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": self.name}}
        create(self.api, {**flavor, "spec": {"nodeLabels": {"pool": self.name}}})
        for name, value in (("high", 100), ("low", 1)):
            create(
                self.api,
                {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value},
            )
        self.ledger = Ledger(self.cluster)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.replicas is not None:
            self.replicas.kill()
        self.ledger.close()
        # What is left would keep the next test's replicas busy.
        with suppress(RefusedError):
            for resource in ("/apis/batch/v1/namespaces/{}/jobs", "/api/v1/namespaces/{}/pods"):
                query = {"propagationPolicy": "Background"}
                self.api.send("DELETE", resource.format(self.name), query=query)

    def serve(self, *, n: int = 2, configuration: str = CONFIGURATION) -> Replicas:
        """Start replicas of `kueuecore serve`, and wait until one leads and all are ready."""
        self.replicas = Replicas(self.cluster, self.folder, n=n, configuration=configuration)
        self.replicas.wait_for_leader()
        wait_for(lambda: not any(it.unready() for it in self.replicas.all), "all are ready")  # type: ignore[union-attr]
        return self.replicas

    # What is in it.

    def queue(
        self, name: str, cpus: int, *, cohort: str = "", borrowing: int | None = None, lending: int | None = None
    ) -> str:
        """Create a ClusterQueue and its LocalQueue; return the name of both."""
        full = f"{self.name}-{name}"
        limits = {"borrowingLimit": borrowing, "lendingLimit": lending}
        resource = {"name": "cpu", "nominalQuota": str(cpus)}
        resource |= {key: str(value) for key, value in limits.items() if value is not None}
        flavor = {"name": self.name, "resources": [resource]}
        spec: dict[str, Any] = {
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
        }
        if cohort:
            spec["cohortName"] = f"{self.name}-{cohort}"
        create(self.api, {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": full}, "spec": spec})
        metadata = {"name": full, "namespace": self.name}
        create(
            self.api, {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": full}}
        )
        return full

    def job(
        self, name: str, queue: str, *, pods: int = 1, cpu: str = "1", seconds: float = 1.0, priority: str = "low"
    ) -> None:
        """Create a Job as Kueue's webhook leaves it: suspended."""
        container = {"name": "main", "image": "registry.example/sum:1", "resources": {"requests": {"cpu": cpu}}}
        template = {
            "metadata": {"annotations": {_ANNOTATION: str(seconds)}},
            "spec": {"restartPolicy": "Never", "containers": [container]},
        }
        labels = {"kueue.x-k8s.io/queue-name": queue, "kueue.x-k8s.io/priority-class": priority}
        metadata = {"name": name, "namespace": self.name, "labels": labels}
        spec = {"suspend": True, "parallelism": pods, "completions": pods, "template": template}
        create(self.api, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})

    def group(self, name: str, queue: str, *, pods: int, seconds: float) -> None:
        """Create a group of pods as docs/run-in-a-cluster.md says: with gate and label, without any webhook."""
        container = {"name": "main", "image": "registry.example/sum:1", "resources": {"requests": {"cpu": "1"}}}
        for index in range(pods):
            metadata = {
                "name": f"{name}-{index}",
                "namespace": self.name,
                "labels": {
                    "kueue.x-k8s.io/queue-name": queue,
                    "kueue.x-k8s.io/managed": "true",
                    "kueue.x-k8s.io/pod-group-name": name,
                },
                "annotations": {"kueue.x-k8s.io/pod-group-total-count": str(pods), _ANNOTATION: str(seconds)},
            }
            spec = {
                "restartPolicy": "Never",
                "containers": [container],
                "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
            }
            create(self.api, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def give(self, queue: str, cpus: int) -> None:
        """Set the quota of a ClusterQueue."""
        path = self.api.path("ClusterQueue", name=queue)
        groups = list_at(self.api.get(path), "spec", "resourceGroups")
        groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = str(cpus)  # type: ignore[index, call-overload]
        body: dict[str, Any] = {"spec": {"resourceGroups": groups}}
        patient(lambda: self.api.send("PATCH", path, body, content_type=_MERGE))

    def delete(self, kind: str, name: str) -> None:
        """Delete an object, as kubectl does; one that is gone is no problem."""
        namespace = "" if kind in ("ClusterQueue", "ResourceFlavor") else self.name
        try:
            patient(
                lambda: self.api.send(
                    "DELETE", self.api.path(kind, namespace, name), query={"propagationPolicy": "Background"}
                )
            )
        except RefusedError as error:
            if error.code != 404:
                raise

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        """Return an object, if it exists."""
        namespace = "" if kind in ("ClusterQueue", "ResourceFlavor") else self.name
        try:
            return patient(lambda: self.api.get(self.api.path(kind, namespace, name)))
        except RefusedError as error:
            if error.code == 404:
                return None
            raise

    # What must be true.

    def wait_for_completion(self, names: Iterable[str], *, seconds: float) -> None:
        """Wait until Jobs are complete."""
        wanted = set(names)

        def is_done() -> bool:
            assert self.replicas is not None
            self.replicas.tend()
            return wanted <= self.ledger.completed(self.name)

        try:
            wait_for(is_done, "all jobs are complete", seconds=seconds, pause=0.5)
        except AssertionError:
            left = sorted(wanted - self.ledger.completed(self.name))
            told = [
                f"{row.version}: {row.kind} {row.name}{' goes' if row.is_gone else ''}: "
                f"suspend {object_at(row.object, 'spec').get('suspend')}, {row.object.get('status')}"
                for row in self.ledger.of("Workload", "Job", "Pod", namespace=self.name)
                if any(name in row.name for name in left)
            ]
            raise AssertionError(f"not complete: {left}\n" + "\n".join(told)) from None

    def check(self) -> None:
        """Check what must be true after any scene: every quota, every Job once, and logs without faults."""
        assert self.ledger.n_listed["Workload"] == 1, "a revision may have been missed"
        problems = [
            *exceeded(self.ledger.of("ClusterQueue", "Workload")),
            *self.ledger.run_twice(self.name),
            *self.ledger.with_several_workloads(self.name),
            *self.faults(),
        ]
        assert not problems, "\n".join(problems)

    def faults(self) -> list[str]:
        """Return what the replicas have logged of faults of their own, and of what the roles forbid."""
        assert self.replicas is not None
        return [f"{it.name}: {row}"[:400] for it in self.replicas.all for row in it.logged() if self._is_fault(row)]

    def _is_fault(self, row: dict[str, Any]) -> bool:
        if row["message"] == "may not be watched, is tried again" and row.get("kind") == "Secret":
            # It may only be read where the roles of MultiKueue are applied, too.
            return False
        text = str(row)
        if "is forbidden" in text:
            # A server that has just started forbids all until it has read the roles.
            at = nanoseconds(row["time"]) / SECOND_NS
            return not any(started - 10 < at < started + 10 for started in self.cluster.restarts)
        is_lost_lease = row["message"] == "cannot continue" and "Lease" in text
        return row["level"] in ("error", "critical") and not is_lost_lease

    def events_by_reason(self) -> Counter[str]:
        """Count the Event objects in the namespace by their reason."""
        return Counter(text_at(event, "reason") for event in self.ledger.latest("Event", namespace=self.name).values())

    def reason(self, kind: str, name: str, condition: str) -> str:
        """Return the reason of a condition of an object; empty if it has none."""
        found = self.find(kind, name) or {}
        rows = map(object_at, list_at(found, "status", "conditions"))
        return next((text_at(row, "reason") for row in rows if row.get("type") == condition), "")
