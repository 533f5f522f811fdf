"""What the API server fills in before anybody sees an object (rules/01 §1, §6)."""

from __future__ import annotations

from kueuecore.reference.settings import Json

__all__ = ["filled_in"]


def filled_in(manifest: Json) -> Json:
    """A manifest with defaults. The manifest itself is changed."""
    spec = manifest.setdefault("spec", {})
    match manifest["kind"]:
        case "ClusterQueue":
            spec["queueingStrategy"] = spec.get("queueingStrategy") or "BestEffortFIFO"
            fungibility = spec["flavorFungibility"] = spec.get("flavorFungibility") or {}
            for name, default in (("whenCanBorrow", "MayStopSearch"), ("whenCanPreempt", "TryNextFlavor")):
                fungibility[name] = fungibility.get(name) or default
            preemption = spec["preemption"] = spec.get("preemption") or {}
            for name in ("reclaimWithinCohort", "withinClusterQueue"):
                preemption[name] = preemption.get(name) or "Never"
            borrow = preemption["borrowWithinCohort"] = preemption.get("borrowWithinCohort") or {}
            borrow["policy"] = borrow.get("policy") or "Never"
        case "Workload":
            for pod_set in spec.get("podSets") or ():
                pod_set["name"] = pod_set.get("name") or "main"
                pod_set.setdefault("count", 1)
    return manifest
