"""Feature gates of a case, as one release of Kueue knows them."""

from __future__ import annotations

from functools import cache

from kueuecore._json import JsonObject
from kueuecore.releases import FeatureGate, Release
from kueuecore.testing.chance import Chance

__all__ = ["drawn_gates", "knows", "settled"]

# Gates that change decisions or texts, and that the worlds' own draws leave alone.
_MORE = (
    "TASHandleOverlappingFlavors",
    "TASAssignmentsEncodingByHostnamePrefix",
    "TASRecomputeAssignmentWithinSchedulingCycle",
    "TASMultiLayerTopology",
    "SkipReassignmentForPodOwnedWorkloads",
    "ReclaimablePods",
    "PriorityBoost",
    "FlavorFungibility",
    "PrioritizePreemptorWorkloads",
    "UnadmittedWorkloadsObservability",
    "UnadmittedWorkloadsExplicitStatus",
    "RecomputeAssignmentUponPreemptionTargetsOverlap",
)


@cache
def _of(release: Release) -> dict[str, FeatureGate]:
    return {gate.name: gate for gate in release.feature_gates()}


def knows(name: str, release: Release) -> bool:
    """Whether a release has a gate."""
    return name in _of(release)


def drawn_gates(chance: Chance, release: Release) -> JsonObject:
    """Draw one gate off its default."""
    name = chance.one(*_MORE)
    return {name: not _of(release)[name].default} if knows(name, release) else {}


def settled(gates: JsonObject, release: Release) -> JsonObject:
    """Return those gates that a release has and that differ from its defaults, none on without those it needs."""
    known = _of(release)
    found = {name: gate.default for name, gate in known.items()}
    found |= {name: bool(on) for name, on in gates.items() if name in known and not known[name].locked}
    lacking: list[str] | None = None
    while lacking is None or lacking:
        lacking = [
            name for name, on in found.items() if on and not all(found.get(need, True) for need in known[name].needs)
        ]
        found |= dict.fromkeys(lacking, False)
    return {name: on for name, on in found.items() if on != known[name].default}
