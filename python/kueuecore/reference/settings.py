"""What is configured: feature gates and the parts of Kueue's Configuration that decide something (rules/11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kueuecore.reference import times

__all__ = ["Json", "Settings"]

# Manifests are what Kubernetes makes of JSON: their shape is checked by whoever takes them in, not here.
Json: TypeAlias = dict[str, Any]

# The gates that this package asks for and that are off by default; all others that it asks for are on (rules/11 §4).
_OFF = (
    "ConcurrentAdmission",
    "DisableWaitForPodsReady",
    "MultiKueueOrchestratedPreemption",
    "PrioritizePreemptorWorkloads",
    "PriorityBoost",
    "UnadmittedWorkloadsExplicitStatus",
)


@dataclass(frozen=True)
class Settings:
    """The Configuration, as the rules ask for it (rules/01 §9).

    Args:
        gates: Feature gates away from their defaults.
        fair_sharing: The strategies of preemption with fair sharing, or None without it.
        admission_fair_sharing: The block `admissionFairSharing`, if there is one.
        wait_for_pods_ready: The block `waitForPodsReady`, if pods become ready here.
        resources: The block `resources`.
    """

    gates: Mapping[str, bool] = field(default_factory=dict)
    fair_sharing: tuple[str, ...] | None = None
    admission_fair_sharing: Json | None = None
    wait_for_pods_ready: Json | None = None
    resources: Json = field(default_factory=dict)

    @staticmethod
    def read(configuration: Mapping[str, Any] | None = None) -> Settings:
        """Read Kueue's Configuration, or a part of it, as a dict."""
        config = dict(configuration or {})
        strategies = None
        if config.get("fairSharing") is not None:
            given = config["fairSharing"].get("preemptionStrategies") or ()
            strategies = tuple(given) or ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
        resources = dict(config.get("resources") or {})
        resources.update({n: config[n] for n in ("quotaCheckStrategy",) if n in config})
        if "resourceTransformations" in config:
            resources["transformations"] = config["resourceTransformations"]
        gates = dict(config.get("featureGates") or {})
        sharing = config.get("admissionFairSharing") if gates.get("AdmissionFairSharing", True) else None
        ready = None if gates.get("DisableWaitForPodsReady") else config.get("waitForPodsReady")
        return Settings(gates, strategies, sharing, ready, resources)

    def on(self, gate: str) -> bool:
        """Is a feature gate on? (rules/11 §4)."""
        return self.gates.get(gate, gate not in _OFF)

    @property
    def ignores_undeclared(self) -> bool:
        """Is a resource that no quota covers free? (rules/09 §6)."""
        return self.on("QuotaCheckStrategy") and self.resources.get("quotaCheckStrategy") == "IgnoreUndeclared"

    @property
    def half_life_s(self) -> float:
        """Time in which what was used counts half (rules/09 §1.1)."""
        return times.seconds_of(times.duration((self.admission_fair_sharing or {}).get("usageHalfLifeTime")))

    @property
    def sampling_interval(self) -> int:
        """Time between two samples of what is used (rules/09 §1.1)."""
        return times.duration((self.admission_fair_sharing or {}).get("usageSamplingInterval")) or 300 * times.SECOND

    @property
    def resource_weights(self) -> dict[str, float]:
        """How much a unit of a resource counts (rules/09 §1.1)."""
        return dict((self.admission_fair_sharing or {}).get("resourceWeights") or {})
