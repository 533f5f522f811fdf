"""What the scheduler knows: the forest, and who holds quota. A cycle looks at a snapshot of it (rules/02 §5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kueuecore.reference import activeness, conditions
from kueuecore.reference.forest import Forest, Node
from kueuecore.reference.objects import ClusterQueue, key
from kueuecore.reference.quota import Usage
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.totals import Info

__all__ = ["Cache", "Snapshot"]


@dataclass
class Snapshot:
    """The cache at one moment. Copy it to try something.

    Args:
        nodes: The active ClusterQueues.
        inactive: Names of the others.
        workloads: Who holds quota, by active ClusterQueue and key.
        local_queue_usage: What each LocalQueue has used, if that orders anything (rules/09 §1.5).
    """

    settings: Settings
    now: int
    flavors: Mapping[str, Json]
    nodes: Mapping[str, Node]
    inactive: frozenset[str]
    usage: Usage
    workloads: dict[str, dict[str, Info]]
    local_queue_usage: Mapping[str, float]

    def copy(self) -> Snapshot:
        """The same, to be changed on its own."""
        workloads = {name: dict(infos) for name, infos in self.workloads.items()}
        return replace(self, usage=self.usage.copy(), workloads=workloads)

    def spec(self, name: str) -> ClusterQueue:
        """What a ClusterQueue in the snapshot says."""
        spec = self.nodes[name].spec
        assert spec is not None, "active ClusterQueues were taken over"
        return spec

    def remove(self, info: Info) -> None:
        """As if a workload had gone."""
        del self.workloads[info.cluster_queue][info.key]
        self.usage.remove(self.nodes[info.cluster_queue], info.usage)

    def add(self, info: Info) -> None:
        """As if a workload had come."""
        self.workloads[info.cluster_queue][info.key] = info
        self.usage.add(self.nodes[info.cluster_queue], info.usage)

    def without(self, infos: Iterable[Info]) -> Snapshot:
        """A copy as if workloads had gone."""
        tried = self.copy()
        for info in infos:
            tried.remove(info)
        return tried

    def used_by_local_queue(self, info: Info) -> float:
        """What the LocalQueue of a workload has used, where that counts (rules/04 §3 3)."""
        if self.spec(info.cluster_queue).admission_mode != "UsageBasedAdmissionFairSharing":
            return 0.0
        return self.local_queue_usage.get(info.local_queue, 0.0) if self.settings.admission_fair_sharing else 0.0


class Cache:
    """The facts, kept up to date by those who watch objects.

    Usage is added up as workloads come and go: amounts saturate, so it depends on their order (rules/02 §1).
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.used = Usage()
        self.forest = Forest(self.used.rebuild)
        self.flavors: dict[str, Json] = {}
        self.checks: dict[str, activeness.CheckFacts] = {}
        self.workloads: dict[str, dict[str, Info]] = {}
        self.terminating: set[str] = set()
        self.orphans: set[str] = set()

    def status(self, name: str) -> str:
        """What is said of a ClusterQueue: active, pending, terminating, or nothing yet (rules/02 §5, §4 5)."""
        node = self.forest.cluster_queues[name]
        if name in self.terminating:
            return "terminating"
        return "" if node.spec is None else "pending" if self._inactive_because(node.spec) else "active"

    def _inactive_because(self, spec: ClusterQueue) -> list[tuple[str, str]]:
        return activeness.inactive_because(spec, flavors=self.flavors, checks=self.checks, settings=self.settings)

    def readiness(self, name: str) -> tuple[bool, str, str]:
        """Whether a ClusterQueue is Active, with reason and message (rules/02 §5)."""
        node = self.forest.cluster_queues.get(name)
        return activeness.readiness(
            None if node is None else node.spec,
            is_terminating=name in self.terminating,
            flavors=self.flavors,
            checks=self.checks,
            settings=self.settings,
        )

    def is_active(self, name: str) -> bool:
        """May a ClusterQueue admit?"""
        return name in self.forest.cluster_queues and self.status(name) == "active"

    def set_cluster_queue(self, manifest: Json, workloads: Iterable[Json]) -> None:
        """Take over a ClusterQueue; a new one picks up those who hold its quota (rules/02 §4 5)."""
        spec = ClusterQueue.read(manifest)
        is_new = spec.name not in self.workloads
        self.workloads.setdefault(spec.name, {})
        self.forest.set_cluster_queue(spec)
        if is_new:
            for workload in workloads:
                if ((workload.get("status") or {}).get("admission") or {}).get("clusterQueue") == spec.name:
                    self.set_workload(workload)

    def delete_cluster_queue(self, name: str) -> None:
        """Forget a ClusterQueue."""
        self.forest.delete_cluster_queue(name)
        self.orphans |= set(self.workloads.pop(name, ()))
        self.terminating.discard(name)

    def find(self, workload_key: str) -> Info | None:
        """A workload that holds quota."""
        return next((infos[workload_key] for infos in self.workloads.values() if workload_key in infos), None)

    def set_workload(self, workload: Json) -> bool:
        """Note what a workload holds now. Says whether its ClusterQueue is known (rules/02 §4.1)."""
        self.delete_workload(key(workload))
        admission = (workload.get("status") or {}).get("admission")
        holds = conditions.has_reservation(workload) and not conditions.is_finished(workload)
        if not admission or not holds or not conditions.is_active(workload):
            return False
        if admission["clusterQueue"] not in self.workloads:
            return False
        info = Info.read(workload, self.settings)
        self.workloads[info.cluster_queue][info.key] = info
        self.used.add(self.forest.cluster_queues[info.cluster_queue], info.usage)
        return True

    def delete_workload(self, workload_key: str) -> str:
        """Give back what a workload held (rules/02 §4.1). Returns an error, if its ClusterQueue is gone."""
        info = self.find(workload_key)
        if info is not None:
            node = self.forest.cluster_queues[info.cluster_queue]
            del self.workloads[node.name][workload_key]
            self.used.remove(node, info.usage)
            node.generation += 1
        return "cluster queue not found" if workload_key in self.orphans else ""

    def snapshot(self, now: int, local_queue_usage: Mapping[str, float] | None = None) -> Snapshot:
        """The cache as a cycle sees it: without inactive ClusterQueues, though what they use counts (rules/02 §5)."""
        for name, node in self.forest.cluster_queues.items():
            node.is_active = self.status(name) == "active" and not node.has_cycle
        nodes = {name: node for name, node in self.forest.cluster_queues.items() if node.is_active}
        return Snapshot(
            self.settings,
            now,
            self.flavors,
            nodes,
            frozenset(self.forest.cluster_queues) - frozenset(nodes),
            self.used.copy(),
            {name: dict(self.workloads[name]) for name in nodes},
            local_queue_usage or {},
        )
