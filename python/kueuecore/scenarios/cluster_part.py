"""What every cluster of a scenario has."""

from __future__ import annotations

from dataclasses import dataclass, field

from kueuecore.configuration import Configuration
from kueuecore.manifests import Manifest

__all__ = ["ClusterPart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPart:
    """One cluster.

    Args:
        objects: What is there from the beginning.
        configuration: Kueue's Configuration.
    """

    objects: tuple[Manifest, ...] = ()
    configuration: Configuration = field(default_factory=Configuration)
