"""The settings that distinguish one cluster of a fleet from the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kueuecore.checks import CheckController
from kueuecore.configuration import Configuration
from kueuecore.provisioning import CapacityProvider
from kueuecore.simulation.sampling import check_sampling

__all__ = ["NodeSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """The settings of one cluster.

    Args:
        configuration: Kueue's Configuration on it.
        checks: Creates the check controllers of a new Kueue process.
        capacity: Provisions capacity for ProvisioningRequests. If set, Kueue handles provisioning checks.
        starts_pods: Whether pods become ready. If not, the cluster has quota for jobs that it cannot run.
        has_metrics: Whether it counts for Kueue's metrics, which `Node.metrics_text` returns.

    Example:
        >>> from kueuecore.provisioning import QueuedCapacity, Stock
        >>> tokyo = Stock(amounts={"nvidia.com/gpu": 8}, delay_seconds=90)
        >>> NodeSettings(capacity=QueuedCapacity({"tokyo": tokyo})).starts_pods
        True

    Raises:
        ConfigurationError: LocalQueues would be sampled more often than once a second.
        TypeError: An argument is of the wrong type.
    """

    configuration: Configuration | None = None
    checks: Callable[[], Sequence[CheckController]] = tuple
    capacity: CapacityProvider | None = None
    starts_pods: bool = True
    has_metrics: bool = False

    def __post_init__(self) -> None:
        """Validate the arguments."""
        given: object = self.configuration
        if given is not None and not isinstance(given, Configuration):
            raise TypeError(f"configuration must be a Configuration, not {type(given).__name__}")
        if self.configuration is not None:
            check_sampling(self.configuration)
        if self.capacity is not None and not isinstance(self.capacity, CapacityProvider):
            raise TypeError(f"capacity must be a CapacityProvider, not {type(self.capacity).__name__}")
        flags: dict[str, object] = {"starts_pods": self.starts_pods, "has_metrics": self.has_metrics}
        for name, given_flag in flags.items():
            if not isinstance(given_flag, bool):
                raise TypeError(f"{name} must be True or False, not {type(given_flag).__name__}")
