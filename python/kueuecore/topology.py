"""Where pods run in a topology, and what its domains have free, as plain frozen data (rules/08 §4)."""

from __future__ import annotations

from dataclasses import dataclass

from kueuecore._keyed import Keyed

__all__ = ["DomainCapacity", "PlacedPods", "Placement"]


@dataclass(frozen=True, slots=True)
class DomainCapacity:
    """The capacity of a domain (a block, a rack, a node) for one resource and flavor (rules/08 §4).

    Amounts are quantities. `allocatable` is the sum of `outside`, `used` and `free`; `free` is negative where more is
    taken than there is. Flavors that share nodes each count them in full, with everything that is taken.

    Args:
        flavor: The ResourceFlavor.
        topology: Its Topology.
        level: Node label of the level.
        path: The value of that label, preceded by those of the levels above.
        n_nodes: Nodes of the flavor in it that are ready and schedulable.
        resource: The resource; `pods` counts pods.
        allocatable: What these nodes offer.
        outside: What pods take that Kueue has not placed.
        used: What workloads with quota take, whether or not their pods have started; while a cycle waits
            (`Decision.waits_for_pods`), also what it has tried so far.
        free: What is left.
    """

    flavor: str
    topology: str
    level: str
    path: tuple[str, ...]
    n_nodes: int
    resource: str
    allocatable: str
    outside: str
    used: str
    free: str


@dataclass(frozen=True, slots=True)
class PlacedPods:
    """The pods of a pod set in one domain of the lowest level.

    Args:
        values: The values in the assignment: only the hostname if that is the lowest level, else one for each level.
        path: A value for each level of the topology; empty if the domain now has no usable node of the flavor.
        count: The number of pods.
    """

    values: tuple[str, ...]
    path: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Placement(Keyed):
    """Where the pods of one pod set run: its `topologyAssignment`, with the levels above a hostname filled in.

    Args:
        namespace: Namespace of the workload.
        name: Its name.
        pod_set: Name of the pod set.
        flavor: Its flavor; if it has several, the one whose nodes are known.
        levels: Node labels of the levels, the widest first; empty if the nodes of the flavor are unknown.
        domains: The domains, each with its number of pods.

    Example:
        >>> from kueuecore.engine import Engine
        >>> engine = Engine()
        >>> _ = engine.apply('''
        ... {apiVersion: kueue.x-k8s.io/v1beta2, kind: Topology, metadata: {name: racks},
        ...  spec: {levels: [{nodeLabel: rack}]}}
        ... ---
        ... {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: gpu},
        ...  spec: {topologyName: racks, nodeLabels: {pool: gpu}}}
        ... ---
        ... apiVersion: kueue.x-k8s.io/v1beta2
        ... kind: ClusterQueue
        ... metadata: {name: cq}
        ... spec:
        ...   namespaceSelector: {}
        ...   resourceGroups:
        ...   - {coveredResources: [cpu], flavors: [{name: gpu, resources: [{name: cpu, nominalQuota: 9}]}]}
        ... ---
        ... {apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: default, name: lq},
        ...  spec: {clusterQueue: cq}}
        ... ---
        ... {apiVersion: v1, kind: Namespace, metadata: {name: default}}
        ... ---
        ... apiVersion: v1
        ... kind: Node
        ... metadata: {name: n1, labels: {rack: r1, pool: gpu}}
        ... status: {allocatable: {cpu: 4, pods: 110}, conditions: [{type: Ready, status: "True"}]}
        ... ---
        ... apiVersion: kueue.x-k8s.io/v1beta2
        ... kind: Workload
        ... metadata: {namespace: default, name: sample}
        ... spec:
        ...   queueName: lq
        ...   podSets:
        ...   - count: 3
        ...     topologyRequest: {required: rack}
        ...     template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
        ... ''')
        >>> _ = engine.cycle("2026-01-01T00:00:00Z")
        >>> [(it.key, it.by_level("rack")) for it in engine.placements()]
        [('default/sample', {('r1',): 3})]
        >>> [(it.path, it.free, it.allocatable) for it in engine.domain_capacity() if it.resource == "cpu"]
        [(('r1',), '1', '4')]
    """

    namespace: str
    name: str
    pod_set: str
    flavor: str
    levels: tuple[str, ...]
    domains: tuple[PlacedPods, ...]

    def by_level(self, level: str) -> dict[tuple[str, ...], int]:
        """Return the number of pods in each domain of a level, by its path from the top.

        Pods in domains without a usable node are counted under the values of the assignment.

        Args:
            level: Node label of the level.

        Raises:
            ValueError: The topology of the flavor has no such level.

        Example:
            >>> hosts = PlacedPods(("n1",), ("r1", "n1"), 2), PlacedPods(("n2",), ("r1", "n2"), 1)
            >>> placement = Placement("ns", "w", "main", "gpu", ("rack", "kubernetes.io/hostname"), hosts)
            >>> placement.by_level("rack")
            {('r1',): 3}
        """
        if level not in self.levels:
            raise ValueError(f"level: flavor {self.flavor!r} has the levels {', '.join(self.levels)}, not {level!r}")
        depth = self.levels.index(level) + 1
        counts: dict[tuple[str, ...], int] = {}
        for pods in self.domains:
            domain = pods.path[:depth] or pods.values
            counts[domain] = counts.get(domain, 0) + pods.count
        return counts
