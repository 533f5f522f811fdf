"""The capacity of the nodes of one flavor, and what of it is used (rules/08 §4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.topology import kube_scheduler
from kueuecore.reference.topology import nodes as node_rules
from kueuecore.reference.topology.assignment import Requests, TopologyAssignment, Values, domain_id
from kueuecore.reference.topology.request import HOSTNAME

MAX_PODS = 2**31 - 1


@dataclass(frozen=True)
class TopologyUse:
    """The usage of the pods of a pod set, where they are placed (rules/08 §4.5)."""

    assignment: TopologyAssignment
    single: Requests


@dataclass
class Leaf:
    """A domain of the lowest level: a node, or all nodes with the same labels (rules/08 §4.2).

    Args:
        path: Its label values from the highest level on, and the name of its node if that is one more level.
        node: If it is one node, that node, for its labels and taints.
        free: The capacity of its nodes, minus the usage of pods that Kueue did not place.
        used: The usage of workloads.
        pods: The pods that are on the node.
    """

    path: Values
    node: Json | None
    free: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    pods: list[Json] = field(default_factory=list)

    def remaining(self, *, is_empty: bool = False) -> dict[str, int]:
        """Return what is left; negative if overused. With `is_empty`, workloads use nothing (rules/08 §4.3)."""
        return dict(self.free) if is_empty else minus(self.free, self.used)


class FlavorNodes:
    """The nodes of a flavor with a topology, as one snapshot sees them.

    Args:
        topology: Name of its Topology.
        levels: Keys of labels, the highest first.
        tolerations: The tolerations of the flavor.
        settings: The settings.
        leaves: The leaves by hostname, by all values, or by node.
        named: The domains that assignments name, by the key of usage: the hostname, or all values. They are the leaves,
            unless these are nodes below the levels of the Topology.
        scored: Pod sets whose preferences were already used: UID of the workload, and pod set (rules/08 §4.8).
    """

    def __init__(
        self, flavor: Json, levels: Iterable[str], nodes: Iterable[Json], pods: Iterable[Json], settings: Settings
    ) -> None:
        self.topology: str = flavor["spec"]["topologyName"]
        self.levels = tuple(levels)
        self.settings = settings
        self.tolerations: list[Json] = flavor["spec"].get("tolerations") or []
        self.leaves: dict[str, Leaf] = {}
        self.named: dict[str, Leaf] = {} if self.adds_nodes else self.leaves
        self.scored: set[tuple[str, str]] = set()
        self._take_in(flavor, nodes, list(pods))

    def _take_in(self, flavor: Json, nodes: Iterable[Json], pods: list[Json]) -> None:
        for node in sorted(nodes, key=lambda node: str(node["metadata"]["name"])):
            if not node_rules.is_of_flavor(node, flavor, self.levels):
                continue
            labels, name = node["metadata"]["labels"], node["metadata"]["name"]
            path = tuple(labels[level] for level in self.levels)
            own = Leaf((*path, name), node)
            _add(own.free, node_rules.allocatable(node), 1)
            for pod in (pod for pod in pods if pod["spec"].get("nodeName") == name):
                if node_rules.is_foreign(pod, self.settings):
                    _add(own.free, node_rules.single_pod(pod["spec"], self.settings), -1)
                    _add(own.free, {"pods": 1}, -1)
                if not node_rules.is_over(pod):
                    own.pods.append(pod)
            if self.adds_nodes:
                self.leaves[name] = own
            domain = self.named.setdefault(self._key(path), Leaf(path, node if self.is_by_host else None))
            _add(domain.free, own.free, 1)
            domain.pods += own.pods

    @property
    def is_by_host(self) -> bool:
        """H: whether the lowest level is the hostname (rules/08 §1.3)."""
        return self.levels[-1] == HOSTNAME

    @property
    def adds_nodes(self) -> bool:
        """V: whether nodes are one more level, which nothing names (rules/08 §4.2)."""
        return self.settings.on("TASNodeFeasibilityForAllLevels") and not self.is_by_host

    @property
    def has_nodes(self) -> bool:
        """Whether each leaf is a node, with labels and taints of its own (rules/08 §4.7)."""
        return self.is_by_host or self.adds_nodes

    @property
    def n_levels(self) -> int:
        """The number of levels, with that of nodes."""
        return len(self.levels) + self.adds_nodes

    def _key(self, path: Values) -> str:
        return path[-1] if self.is_by_host else domain_id(path)

    def path(self, values: Values) -> Values:
        """Return the full path of a domain that an assignment names (rules/08 §4.2)."""
        return self.named[domain_id(values)].path

    def stale(self, assignment: TopologyAssignment) -> str | None:
        """Return the first value of a domain that no longer has a node (rules/08 §13.5)."""
        return next((values[0] for values, _ in assignment.domains if domain_id(values) not in self.named), None)

    def charge(self, use: TopologyUse, sign: int = 1) -> None:
        """Charge or (with sign -1) free domains; those without nodes do not count (rules/08 §4.5)."""
        for name, used in usage_of(use).items():
            self.charge_domain(name, used, sign)

    def charge_domain(self, name: str, used: Requests, sign: int = 1) -> None:
        """Charge or (with sign -1) free one domain."""
        if name in self.named:
            _add(self.named[name].used, used, sign)

    def remaining(self, name: str) -> dict[str, int]:
        """Return what is left of a domain that assignments name; negative if overused (rules/08 §4.3)."""
        return self.named[name].remaining()

    def fits(self, use: TopologyUse) -> bool:
        """Return whether each domain could take its pods, each on its own, ignoring their number (rules/08 §11.6)."""
        return all(count <= self._room(domain_id(values), use.single) for values, count in use.assignment.domains)

    def _room(self, name: str, single: Requests) -> int:
        """Return how many pods a domain could take; -1 if it does not exist."""
        if name not in self.named:
            return -1
        domain = self.named[name]
        most = fit(single, domain.remaining(), self.settings)[0]
        nodes = [leaf for leaf in self.leaves.values() if leaf.path[:-1] == domain.path] if self.adds_nodes else []
        on_nodes = sum(fit(single, leaf.remaining(), self.settings)[0] for leaf in nodes)
        return min(most, on_nodes) if self.adds_nodes else most

    def admits(self, leaf: Leaf, pod: Json, template: Json, settings: Settings) -> str:
        """Return why pods cannot go to a leaf, as it is counted; empty if they can (rules/08 §4.7)."""
        if leaf.node is None:
            return ""
        if settings.on("SchedulerLibraryIntegration"):
            return "" if kube_scheduler.admits(leaf.node, template, leaf.pods) else "schedulerLibraryNoFit"
        return node_rules.exclusion(leaf.node, pod, self.tolerations)


def _add(to: dict[str, int], more: Requests, sign: int) -> None:
    for name, number in more.items():
        to[name] = to.get(name, 0) + sign * number


def minus(capacity: Requests, used: Requests) -> dict[str, int]:
    """Subtract usage from capacity."""
    left = dict(capacity)
    _add(left, used, -1)
    return left


def usage_of(use: TopologyUse) -> dict[str, dict[str, int]]:
    """Return the usage of pods by domain, including their number (rules/08 §4.5)."""
    used: dict[str, dict[str, int]] = {}
    for values, count in use.assignment.domains:
        domain = used.setdefault(domain_id(values), {})
        _add(domain, {name: asked * count for name, asked in use.single.items()}, 1)
        _add(domain, {"pods": count}, 1)
    return used


def add_usage(to: dict[str, dict[str, int]], more: Mapping[str, Requests]) -> None:
    """Add up usage by domain."""
    for name, used in more.items():
        _add(to.setdefault(name, {}), used, 1)


def whole(number: int, size: int) -> int:
    """Divide as Go does, towards 0."""
    return number // size if number >= 0 else -(-number // size)


def fit(requests: Requests, capacity: Requests, settings: Settings) -> tuple[int, str]:
    """Return how many pods fit, and the limiting resource (rules/08 §4.6)."""
    fewest, limiting = 0, ""
    least = 0 if settings.has("FullNodesHaveNoRoom") else -MAX_PODS
    for name in sorted(requests):
        asked, there = requests[name], capacity.get(name, 0)
        if asked and name not in capacity and not settings.has("MissingResourcesAreFull"):
            return 0, name
        count = MAX_PODS if asked == 0 else min(max(whole(there, asked), least), MAX_PODS)
        if not limiting or count < fewest:
            fewest, limiting = count, name
    return fewest, limiting
