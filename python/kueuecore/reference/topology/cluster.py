"""The cluster as the scheduler knows it: nodes, pods and topologies, and the usage of workloads (rules/08 §4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.topology.capacity import FlavorNodes
from kueuecore.reference.topology.nodes import is_schedulable
from kueuecore.reference.totals import Info


@dataclass
class Cluster:
    """Objects by name or key, kept up to date by others."""

    nodes: dict[str, Json] = field(default_factory=dict)
    pods: dict[str, Json] = field(default_factory=dict)
    known: dict[str, Json] = field(default_factory=dict)

    def levels(self, topology: str) -> list[str] | None:
        """Return the levels of a Topology; None if it does not exist or has no spec (rules/08 §1.1)."""
        found = self.known.get(topology)
        return None if found is None else [level["nodeLabel"] for level in found["spec"].get("levels") or ()] or None

    def topologies(
        self, flavors: Mapping[str, Json], holders: Iterable[Info], settings: Settings
    ) -> dict[str, FlavorNodes]:
        """Return the nodes of all flavors with a known topology, with the usage of workloads (rules/08 §4.5)."""
        made: dict[str, FlavorNodes] = {}
        for name, flavor in flavors.items():
            levels = self.levels(flavor["spec"].get("topologyName") or "") if "spec" in flavor else None
            if levels is not None:
                made[name] = FlavorNodes(
                    flavor, levels, self._candidates(levels, settings), self.pods.values(), settings
                )
        is_pooled = settings.on("TASHandleOverlappingFlavors")
        for info in holders:
            for own, uses in ((made[name], uses) for name, uses in info.topology.items() if name in made):
                # A node does not gain room by belonging to several flavors.
                pool = [each for each in made.values() if each.is_by_host]
                for nodes in pool if is_pooled and own.is_by_host else [own]:
                    for use in uses:
                        nodes.charge(use)
        return made

    def _candidates(self, levels: list[str], settings: Settings) -> list[Json]:
        """Return the nodes that may be leaves; with the kube-scheduler's own filters, all may (rules/08 §4.7)."""
        filters_later = settings.on("SchedulerLibraryIntegration") and levels[-1] == "kubernetes.io/hostname"
        return [node for node in self.nodes.values() if filters_later or is_schedulable(node)]
