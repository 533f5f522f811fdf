"""The settings: feature gates, and those parts of Kueue's Configuration that affect decisions (rules/11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from kueuecore.reference import times
from kueuecore.releases import DEFAULT_RELEASE, Release

# Manifests have the shape that Kubernetes gives them; the caller checks it, not this package.
Json: TypeAlias = dict[str, Any]


class Settings:
    """The Configuration, as the rules read it (rules/01 §9). What is missing is None or empty."""

    def __init__(self, configuration: Json | None = None) -> None:
        config = configuration or {}
        # The release of Kueue whose rules these are: its gates, with those that are set, and its changes (rules/11 §4).
        release = Release.named(config.get("kueue", DEFAULT_RELEASE))
        self.gates: Mapping[str, bool] = {**release.default_gates(), **(config.get("featureGates") or {})}
        switches: Mapping[str, bool] = config.get("changes") or {}
        self.changes = {*release.changes(), *switches} - {name for name, is_on in switches.items() if not is_on}
        # The strategies of preemption with fair sharing.
        self.fair_sharing: tuple[str, ...] | None = None
        if config.get("fairSharing") is not None:
            given = config["fairSharing"].get("preemptionStrategies") or ()
            self.fair_sharing = tuple(given) or ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
        self.waits_for_pods = "waitForPodsReady" in config and not self.on("DisableWaitForPodsReady")
        ready: Json = config["waitForPodsReady"] if self.waits_for_pods else {}
        self.requeuing_strategy: Json = ready.get("requeuingStrategy") or {}
        # How long pods may take to be ready, and to be ready again; None: forever (rules/07 §6).
        timeout = times.duration(ready.get("timeout")) or 30 * 60 * times.SECOND
        self.ready_timeout: int | None = timeout if self.waits_for_pods else None
        recovery = times.duration(ready["recoveryTimeout"]) or None if "recoveryTimeout" in ready else timeout
        self.recovery_timeout: int | None = recovery if self.waits_for_pods else None
        # How long pods may be without a node; None: that is not followed.
        unscheduled = times.duration(ready.get("unscheduledTimeout")) or None
        self.unscheduled_timeout: int | None = unscheduled if self.on("WaitForPodsReadyUnscheduledTimeout") else None
        self.blocks_admission = bool(ready.get("blockAdmission"))
        resources = config.get("resources") or {}
        self.excluded_prefixes = tuple(resources.get("excludeResourcePrefixes") or ())
        transformations = config.get("resourceTransformations", resources.get("transformations"))
        self.transformations: dict[str, Json] = {rule["input"]: rule for rule in transformations or ()}
        strategy = config.get("quotaCheckStrategy", resources.get("quotaCheckStrategy"))
        # Whether a resource that no quota covers is free (rules/09 §6)
        self.ignores_undeclared = self.on("QuotaCheckStrategy") and strategy == "IgnoreUndeclared"
        sharing = config.get("admissionFairSharing") if self.on("AdmissionFairSharing") else None
        self.has_admission_fair_sharing = sharing is not None
        # How fast past usage decays, how often it is sampled, and the weight of a unit (rules/09 §1.1).
        self.half_life_s = times.duration((sharing or {}).get("usageHalfLifeTime")) / times.SECOND
        interval = times.duration((sharing or {}).get("usageSamplingInterval"))
        self.sampling_interval = interval or 300 * times.SECOND
        self.resource_weights: dict[str, float] = (sharing or {}).get("resourceWeights") or {}

        # Rules that Kueue does not have; None: off (rules/13).
        asked: Mapping[str, int] = config.get("experiments") or {}
        times_of = {name: seconds * times.SECOND for name, seconds in asked.items()}
        self.min_run = times_of.get("minRunSecondsBeforeCrossQueuePreemption")
        self.reclaim_backoff = times_of.get("reclaimBackoffSeconds")
        self.time_share = times_of.get("timeShareSeconds")

    def on(self, gate: str) -> bool:
        """Return whether a feature gate is on (rules/11 §4)."""
        return self.gates[gate]

    def has(self, change: str) -> bool:
        """Return whether a change of Kueue without a gate is in effect (rules/11 §4)."""
        return change in self.changes
