"""The objects that topology-aware scheduling reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kueuecore._json import list_at, object_at, text_at
from kueuecore.manifests import Manifest
from kueuecore.world import World

__all__ = ["KUEUE_GROUP", "TOPOLOGY_NAME", "TopologyObjects", "levels_of_topology", "trouble_of"]

KUEUE_GROUP = "kueue.x-k8s.io/"
TOPOLOGY_NAME = ("spec", "topologyName")


@dataclass(frozen=True, slots=True)
class TopologyObjects:
    """The objects that topology-aware scheduling reads, by name; the last one wins where a name is given twice.

    Args:
        topologies: Topologies.
        flavors: ResourceFlavors with a `topologyName`.
        nodes: Nodes.
    """

    topologies: Mapping[str, Manifest]
    flavors: Mapping[str, Manifest]
    nodes: Mapping[str, Manifest]

    @classmethod
    def of(cls, world: World) -> TopologyObjects:
        """Collect them from a world."""
        of_kind: dict[str, dict[str, Manifest]] = {"Topology": {}, "ResourceFlavor": {}, "Node": {}}
        for manifest in (manifest for kind in of_kind for manifest in world.of_kind(kind)):
            plain = manifest.object
            kind, api_version = text_at(plain, "kind"), text_at(plain, "apiVersion")
            if kind in of_kind and (api_version == "v1" if kind == "Node" else api_version.startswith(KUEUE_GROUP)):
                of_kind[kind][text_at(plain, "metadata", "name")] = manifest
        flavors = {name: row for name, row in of_kind["ResourceFlavor"].items() if text_at(row.object, *TOPOLOGY_NAME)}
        return cls(of_kind["Topology"], flavors, of_kind["Node"])

    def levels_of(self, flavor: str) -> tuple[str, ...]:
        """The levels of a flavor's topology, the widest first; none if there is no such flavor or Topology."""
        if flavor not in self.flavors:
            return ()
        topology = self.topologies.get(text_at(self.flavors[flavor].object, *TOPOLOGY_NAME))
        return () if topology is None else levels_of_topology(topology)

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """Levels by the name of each Topology, and by the name of each flavor with one."""
        return {name: levels_of_topology(topology) for name, topology in self.topologies.items()} | {
            name: self.levels_of(name) for name in self.flavors
        }


def trouble_of(node: Manifest) -> str:
    """Why a node takes no pods, in a word or two; empty if it does."""
    if object_at(node.object, "spec").get("unschedulable") is True:
        return "unschedulable"
    conditions = list_at(node.object, "status", "conditions")
    ready = next((condition for condition in conditions if text_at(condition, "type") == "Ready"), None)
    return "" if text_at(ready, "status") == "True" else "not ready"


def levels_of_topology(topology: Manifest) -> tuple[str, ...]:
    """The node labels of a Topology's levels, the widest first."""
    return tuple(text_at(level, "nodeLabel") for level in list_at(topology.object, "spec", "levels"))
