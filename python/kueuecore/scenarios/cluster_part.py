"""A cluster of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kueuecore.configuration import Configuration
from kueuecore.manifests import Manifest
from kueuecore.provisioning import Stock
from kueuecore.scenarios.node_groups import NodeGroup

__all__ = ["ClusterPart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPart:
    """One cluster.

    Args:
        objects: Its initial objects.
        configuration: Kueue's Configuration.
        capacity: What ProvisioningRequests can get, by region; if empty, provisioning checks are ready at once.
        nodes: Its nodes, besides those among the objects, and when they fail.
    """

    objects: tuple[Manifest, ...] = ()
    configuration: Configuration = field(default_factory=Configuration)
    capacity: Mapping[str, Stock] = field(default_factory=dict)
    nodes: tuple[NodeGroup, ...] = ()
