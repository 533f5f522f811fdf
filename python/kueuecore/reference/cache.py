"""What the scheduler knows: the forest, and which workloads hold quota. A cycle uses a snapshot (rules/02 §5)."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from kueuecore.reference import conditions
from kueuecore.reference.forest import Forest, Node
from kueuecore.reference.objects import ClusterQueue, FlavorResource, key
from kueuecore.reference.quota import Usage
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.topology.capacity import FlavorNodes, TopologyUse
from kueuecore.reference.topology.cluster import Cluster
from kueuecore.reference.totals import Info

MULTIKUEUE = "kueue.x-k8s.io/multikueue"
PROVISIONING = "kueue.x-k8s.io/provisioning-request"


@dataclass
class Snapshot:
    """The cache at one moment, with active ClusterQueues only. Trials end with the inverse operation (rules/02 §1).

    Args:
        inactive: The ClusterQueues that exist but are not active.
        workloads: The workloads that hold quota, by ClusterQueue and key.
        local_queue_usage: The usage of each LocalQueue, if that orders anything (rules/09 §1.5).
        topologies: The nodes of each flavor whose topology is known (rules/08 §4).
        controllers: The controller of each AdmissionCheck.
        backoffs: What ClusterQueues must not borrow yet (rules/13 §3).
    """

    settings: Settings
    now: int
    flavors: Mapping[str, Json]
    nodes: Mapping[str, Node]
    inactive: frozenset[str]
    usage: Usage
    workloads: dict[str, dict[str, Info]]
    local_queue_usage: Mapping[str, float]
    topologies: Mapping[str, FlavorNodes]
    controllers: Mapping[str, str]
    backoffs: frozenset[tuple[str, FlavorResource]] = frozenset()

    def spec(self, name: str) -> ClusterQueue:
        """Return the spec of a ClusterQueue in the snapshot."""
        spec = self.nodes[name].spec
        assert spec is not None, "active ClusterQueues were taken over"
        return spec

    def remove(self, info: Info) -> None:
        """Remove a workload from the snapshot."""
        del self.workloads[info.cluster_queue][info.key]
        self.usage.remove(self.nodes[info.cluster_queue], info.usage)
        self.charge_topology(info.cluster_queue, info.topology, -1)

    def add(self, info: Info) -> None:
        """Add a workload to the snapshot."""
        self.workloads[info.cluster_queue][info.key] = info
        self.usage.add(self.nodes[info.cluster_queue], info.usage)
        self.charge_topology(info.cluster_queue, info.topology)

    def flavor_nodes(self, queue: str) -> dict[str, FlavorNodes]:
        """Return the nodes of those flavors of a ClusterQueue that have a topology (rules/08 §3)."""
        return {name: self.topologies[name] for name in sorted(self.spec(queue).flavors) if name in self.topologies}

    def is_topology_only(self, queue: str) -> bool:
        """Return whether all flavors of a ClusterQueue have a topology; True without flavors (rules/08 §1.5)."""
        flavors = (self.flavors.get(name) for name in self.spec(queue).flavors)
        has_all = all(flavor is not None and bool(flavor["spec"].get("topologyName")) for flavor in flavors)
        return has_all and self.settings.on("TopologyAwareScheduling")

    def places_later(self, queue: str, flavor: str, *, is_reserved: bool) -> bool:
        """Return whether pods are placed by other clusters, or only after nodes were provisioned (rules/08 §11.2)."""
        checks = self.spec(queue).checks
        on_flavor = {self.controllers.get(check, "") for check, flavors in checks.items() if flavor in flavors}
        is_elsewhere = any(self.controllers.get(check) == MULTIKUEUE for check in checks)
        return is_elsewhere or (not is_reserved and PROVISIONING in on_flavor)

    def charge_topology(self, queue: str, uses: Mapping[str, Iterable[TopologyUse]], sign: int = 1) -> None:
        """Charge or (with sign -1) free nodes of flavors, in older releases only of their own (rules/08 §4.5)."""
        on, has = self.settings.on, self.settings.has
        is_pooled = on("TASHandleOverlappingFlavors") and has("CycleUsageReachesAllFlavors")
        for flavor, own in self.flavor_nodes(queue).items():
            pool = [each for each in self.topologies.values() if each.is_by_host and is_pooled and own.is_by_host]
            for use in uses.get(flavor, ()):
                for nodes in pool or [own]:
                    nodes.charge(use, sign)

    @contextmanager
    def without_topology(self, infos: Iterable[Info]) -> Iterator[None]:
        """Free the nodes of workloads within the context."""
        gone = list(infos)
        for info in gone:
            self.charge_topology(info.cluster_queue, info.topology, -1)
        yield
        for info in gone:
            self.charge_topology(info.cluster_queue, info.topology)

    @contextmanager
    def without_usage(self, infos: Iterable[Info]) -> Iterator[None]:
        """Take away what workloads use, within the context, whether they are here or not."""
        gone = list(infos)
        for info in gone:
            self.usage.remove(self.nodes[info.cluster_queue], info.usage)
        with self.without_topology(gone):
            yield
        for info in gone:
            self.usage.add(self.nodes[info.cluster_queue], info.usage)

    @contextmanager
    def without(self, infos: Iterable[Info]) -> Iterator[None]:
        """Remove workloads within the context, then add each back, which may alter saturated sums (rules/02 §1)."""
        gone = list(infos)
        for info in gone:
            self.remove(info)
        yield
        for info in gone:
            self.add(info)

    def used_by_local_queue(self, info: Info) -> float:
        """Return what the LocalQueue of a workload has used, if that matters (rules/04 §3 3)."""
        counts = self.settings.has_admission_fair_sharing and self.spec(info.cluster_queue).is_usage_based
        return self.local_queue_usage.get(info.local_queue, 0.0) if counts else 0.0


class Cache:
    """The current facts, kept up to date by event handlers.

    Usage is added up as workloads come and go. As amounts saturate, it depends on their order (rules/02 §1).
    """

    def __init__(
        self, settings: Settings, *, flavors: dict[str, Json], checks: dict[str, Json], cluster: Cluster | None = None
    ) -> None:
        self.settings, self.flavors, self.checks = settings, flavors, checks
        self.cluster = Cluster() if cluster is None else cluster
        self.used = Usage()
        self.forest = Forest(self.used.rebuild)
        self.workloads: dict[str, dict[str, Info]] = {}
        self.terminating: set[str] = set()

    def are_pods_ready(self) -> bool:
        """Return whether the pods of all workloads that hold quota are ready (rules/07 §6)."""
        return all(conditions.is_true(info.workload, "PodsReady") for info in self._holders())

    def inactive_because(self, name: str) -> list[tuple[str, str]]:
        """Return reason and text for each thing that keeps a ClusterQueue from admitting (rules/02 §5)."""
        node = self.forest.cluster_queues.get(name)
        if node is None or node.spec is None:
            return [("NotFound", "ClusterQueue not found")]
        if name in self.terminating:
            return [("Terminating", "Can't admit new workloads; clusterQueue is terminating")]
        queue, found = node.spec, []
        if queue.stop_policy != "None":
            found.append(("Stopped", "is stopped"))
        named = dict.fromkeys(flavor for group in queue.known_groups for flavor in group.flavors)
        if missing := [flavor for flavor in named if flavor not in self.flavors]:
            found.append(("FlavorNotFound", f"references missing ResourceFlavor(s): {','.join(missing)}"))
        known = {check: self.checks[check] for check in sorted(queue.checks) if check in self.checks}
        if missing := sorted(queue.checks.keys() - known.keys()):
            found.append(("AdmissionCheckNotFound", f"references missing AdmissionCheck(s): {','.join(missing)}"))
        if idle := [check for check, manifest in known.items() if not conditions.is_true(manifest, "Active")]:
            found.append(("AdmissionCheckInactive", f"references inactive AdmissionCheck(s): {','.join(idle)}"))
        controllers = {check: manifest["spec"].get("controllerName", "") for check, manifest in known.items()}
        multikueue = [check for check, who in controllers.items() if who == MULTIKUEUE]
        provisioning = [check for check, who in controllers.items() if who == PROVISIONING]
        if len(multikueue) > 1:
            text = "Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: "
            found.append(("MultipleMultiKueueAdmissionChecks", text + ",".join(multikueue)))
        if partial := [check for check in multikueue if queue.checks[check] != named.keys()]:
            text = f"Cannot specify MultiKueue AdmissionCheck per flavor, found: {','.join(partial)}"
            found.append(("MultiKueueAdmissionCheckAppliedPerFlavor", text))
        if multikueue and provisioning:
            text = "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found: "
            found.append(("MultiKueueWithProvisioningRequest", text + ", ".join([*multikueue, *provisioning])))
        for flavor, topology in () if multikueue else self._without_topology(named):
            found.append(("TopologyNotFound", f'there is no Topology "{topology}" for TAS flavor "{flavor}"'))
        if node.has_cycle and node.parent is not None and self.settings.has("CohortCycleIsShown"):
            found.append(("CohortCycleDetected", f'Cohort "{node.parent.name}" has a cycle in hierarchy'))
        return found

    def _without_topology(self, flavors: Iterable[str]) -> list[tuple[str, str]]:
        """Return the flavors whose Topology is missing, with its name (rules/08 §1.4)."""
        if not self.settings.on("TopologyAwareScheduling"):
            return []
        known = (self.flavors[name] for name in sorted(flavors) if name in self.flavors)
        named = [(flavor["metadata"]["name"], flavor["spec"].get("topologyName") or "") for flavor in known]
        return [(flavor, name) for flavor, name in named if name and self.cluster.levels(name) is None]

    def is_active(self, name: str) -> bool:
        """Return whether a ClusterQueue may admit."""
        return not self.inactive_because(name)

    def readiness(self, name: str) -> tuple[str, str]:
        """Return reason and message of a ClusterQueue's condition Active (rules/02 §5)."""
        found = self.inactive_because(name)
        if not found:
            return "Ready", "Can admit new workloads"
        if found[0][0] in ("NotFound", "Terminating"):
            return found[0]
        return found[0][0], f"Can't admit new workloads: {', '.join(text for _, text in found)}."

    def set_cluster_queue(self, manifest: Json, workloads: Iterable[Json]) -> None:
        """Create or update a ClusterQueue; a new one picks up the workloads that hold its quota (rules/02 §4 5)."""
        spec = ClusterQueue(manifest)
        is_new = spec.name not in self.workloads
        self.workloads.setdefault(spec.name, {})
        if manifest["metadata"].get("deletionTimestamp"):
            self.terminating.add(spec.name)
        if self.forest.set_cluster_queue(spec) and is_new:
            for workload in workloads:
                if conditions.admission(workload).get("clusterQueue") == spec.name:
                    self.set_workload(workload)

    def delete_cluster_queue(self, name: str) -> None:
        """Forget a ClusterQueue."""
        self.forest.delete_cluster_queue(name)
        self.workloads.pop(name, None)
        self.terminating.discard(name)

    def find(self, workload_key: str) -> Info | None:
        """Return a workload that holds quota."""
        return next((infos[workload_key] for infos in self.workloads.values() if workload_key in infos), None)

    def set_workload(self, workload: Json) -> None:
        """Note what a workload holds now; nothing if its ClusterQueue is unknown (rules/02 §4.1)."""
        holds = conditions.has_reservation(workload) and not conditions.is_finished(workload)
        if not (holds and conditions.is_active(workload)):
            self.delete_workload(key(workload))
            return
        target = conditions.admission(workload).get("clusterQueue")
        if target in self.workloads:
            self.delete_workload(key(workload))
            info = Info(workload, self.settings)
            self.workloads[target][info.key] = info
            self.used.add(self.forest.cluster_queues[target], info.usage)

    def delete_workload(self, workload_key: str) -> None:
        """Free what a workload held (rules/02 §4.1)."""
        info = self.find(workload_key)
        if info is not None:
            node = self.forest.cluster_queues[info.cluster_queue]
            del self.workloads[node.name][workload_key]
            self.used.remove(node, info.usage)
            node.generation += 1

    def snapshot(self, now: int, local_queue_usage: Mapping[str, float] | None = None) -> Snapshot:
        """Return what a cycle sees: no inactive ClusterQueues, though their usage counts (rules/02 §5)."""
        for name, node in self.forest.cluster_queues.items():
            node.is_active = self.is_active(name) and not node.has_cycle
        nodes = {name: node for name, node in self.forest.cluster_queues.items() if node.is_active}
        inactive = frozenset(self.forest.cluster_queues.keys() - nodes)
        workloads = {name: dict(self.workloads[name]) for name in nodes}
        used, flavors = self.used.copy(), dict(self.flavors)
        controllers = {name: check["spec"].get("controllerName", "") for name, check in self.checks.items()}
        on = self.settings.on("TopologyAwareScheduling")
        topologies = self.cluster.topologies(flavors, self._holders(), self.settings) if on else {}
        usage = local_queue_usage or {}
        return Snapshot(self.settings, now, flavors, nodes, inactive, used, workloads, usage, topologies, controllers)

    def _holders(self) -> list[Info]:
        """Return all workloads that hold quota, including those in inactive ClusterQueues."""
        return [info for infos in self.workloads.values() for info in infos.values()]

    def leave_snapshot(self) -> None:
        """Detach the snapshot of a cycle that waits: later changes do not affect its nodes (rules/07 §6)."""
        self.used, self.forest = copy.deepcopy((self.used, self.forest))
