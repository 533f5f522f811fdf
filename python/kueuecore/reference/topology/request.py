"""The topology request of a pod set (rules/08 §2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kueuecore.reference.settings import Json, Settings

HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True)
class Constraint:
    """Groups of pods, each of which goes into one domain of a level."""

    level: str
    size: int


@dataclass(frozen=True)
class TopologyRequest:
    """The topology request of a pod set, and what follows from it (rules/08 §2)."""

    required: str | None = None
    preferred: str | None = None
    unconstrained: bool | None = None
    constraints: tuple[Constraint, ...] = ()
    group: str | None = None
    is_explicit: bool = False

    @property
    def asks_for_slices_alone(self) -> bool:
        """Whether it has constraints, but is neither required nor preferred."""
        return bool(self.constraints) and self.required is None and self.preferred is None

    @property
    def slice_size(self) -> int:
        """s: how many pods of the outermost constraint belong together (rules/08 §2.3)."""
        return self.constraints[0].size if self.constraints else 1

    def level(self, levels: Sequence[str], *, is_implied: bool = False) -> str | None:
        """Return the requested level; None if there is none (rules/08 §2.3)."""
        if self.required is not None or self.preferred is not None:
            return self.required if self.required is not None else self.preferred
        if self.constraints:
            return levels[0]
        return levels[-1] if self.unconstrained or is_implied else None

    def slice_level(self, levels: Sequence[str]) -> str:
        """Return the level of slices (rules/08 §2.3)."""
        return self.constraints[0].level if self.constraints else levels[-1]

    def is_unconstrained(self, *, is_implied: bool) -> bool:
        """Return whether pods may be placed anywhere (rules/08 §2.3)."""
        return bool(self.unconstrained) or is_implied or self.asks_for_slices_alone

    def counting(self, settings: Settings) -> TopologyRequest:
        """Return it without the layers of slices that do not count (rules/08 §2.3)."""
        do_all = settings.on("TASMultiLayerTopology") or settings.has("LayersNeedNoGate")
        return self if do_all else replace(self, constraints=self.constraints[:1])

    def fits_levels(self, levels: Sequence[str]) -> bool:
        """Return whether a topology has all requested levels (rules/08 §3)."""
        asked = [self.level(levels), self.slice_level(levels), *(each.level for each in self.constraints)]
        return all(level in levels for level in asked)


def request_of(pod_set: Json) -> TopologyRequest:
    """Read the request of a pod set; it may be empty."""
    given: Json = pod_set.get("topologyRequest") or {}
    listed = given.get("podsetSliceRequiredTopologyConstraints") or ()
    constraints = tuple(Constraint(each["topology"], each.get("size", 0)) for each in listed)
    if not constraints and given.get("podSetSliceRequiredTopology") is not None:
        constraints = (Constraint(given["podSetSliceRequiredTopology"], given.get("podSetSliceSize") or 0),)
    ways = ("required", "preferred", "unconstrained", "podSetSliceRequiredTopology", "podSetSliceSize")
    is_explicit = bool(listed) or any(given.get(way) is not None for way in ways)
    required, preferred, unconstrained = (given.get(way) for way in ways[:3])
    return TopologyRequest(required, preferred, unconstrained, constraints, given.get("podSetGroupName"), is_explicit)
