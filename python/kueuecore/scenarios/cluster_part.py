"""A cluster of a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kueuecore.configuration import Configuration
from kueuecore.manifests import Manifest
from kueuecore.scenarios.node_groups import NodeGroup

if TYPE_CHECKING:
    from kueuecore.checks import CheckController
    from kueuecore.provisioning import Stock

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

    def checks(self, *, seed: int) -> Sequence[CheckController]:
        """Return the controllers of its admission checks; without capacity there are none.

        Args:
            seed: The seed of what happens to ProvisioningRequests.
        """
        if not self.capacity:
            return ()
        from kueuecore.provisioning import ProvisioningController, QueuedCapacity, VirtualProvisioning

        capacity, controller = QueuedCapacity(self.capacity, seed=seed), ProvisioningController.of(self.configuration)
        return [VirtualProvisioning(capacity, controller=controller)]
