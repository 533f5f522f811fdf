"""Feature gates that Kueue has removed (docs/upgrade.md, "Gates that are gone")."""

from __future__ import annotations

from typing import Final

__all__ = ["GONE_GATES", "gone_gate_remedy"]

_IS_ON = "leave it out: what it turned on stays on"

GONE_GATES: Final[dict[str, tuple[str, str]]] = {
    "ConfigurableResourceTransformations": ("0.16", _IS_ON),
    "DRAExtendedResources": ("0.19", "write KueueDRAIntegrationExtendedResource"),
    "DynamicResourceAllocation": ("0.19", "write KueueDRAIntegration"),
    "FlavorFungibilityImplicitPreferenceDefault": (
        "0.16",
        "leave it out, and set spec.flavorFungibility.preference of the ClusterQueues",
    ),
    "HierarchicalCohorts": ("0.20", _IS_ON),
    "LendingLimit": ("0.19", _IS_ON),
    "LocalQueueDefaulting": ("0.19", _IS_ON),
    "MultiKueueAllowInsecureKubeconfigs": ("0.20", "leave it out: kubeconfigs need certificates"),
    "MultiKueueBatchJobWithManagedBy": ("0.19", _IS_ON),
    "MultiKueueRedoAdmissionOnEvictionInWorker": ("0.20", _IS_ON),
    "MultiKueueWaitForWorkloadAdmitted": ("0.20", _IS_ON),
    "ObjectRetentionPolicies": ("0.20", _IS_ON),
    "PropagateBatchJobLabelsToWorkload": ("0.20", _IS_ON),
    "SanitizePodSets": ("0.19", _IS_ON),
    "SchedulerLongRequeueInterval": ("0.20", "leave it out: retries come after a second"),
    "SchedulerTimestampPreemptionBuffer": (
        "0.20",
        "leave it out: a newer workload of equal priority may be preempted however little newer",
    ),
    "SkipFinalizersForPodsSuspendedByParent": ("0.20", _IS_ON),
    "TASProfileLeastFreeCapacity": ("0.17", "leave it out; TASProfileMixed is the nearest that there is"),
}
"""By name: the version that removed it, and what to do."""


def gone_gate_remedy(name: str) -> str:
    """Return what to do about a gate that Kueue has removed; empty if it never had one of that name.

    Example:
        >>> gone_gate_remedy("LendingLimit")
        'Kueue 0.19 removed it; leave it out: what it turned on stays on'
    """
    if name not in GONE_GATES:
        return ""
    version, what = GONE_GATES[name]
    return f"Kueue {version} removed it; {what}"
