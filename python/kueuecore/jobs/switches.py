"""The feature gates and changes of Kueue that jobs read."""

from __future__ import annotations

from functools import cache

from kueuecore.releases import DEFAULT_RELEASE, Release

__all__ = ["CHANGES", "GATES", "absent_by_default", "gates_by_default"]

# The feature gates that jobs read (rules/11 §4.1).
GATES = frozenset(
    {
        "AdmissionGatedBy",
        "AssignQueueLabelsForPods",
        "DeploymentJobUIDLabel",
        "ElasticJobsViaWorkloadSlices",
        "FinalizeTerminatingPodGroups",
        "FinishOrphanedWorkloads",
        "LWSImmutableGroupSize",
        "MultiKueue",
        "MultiKueueRayInTreeAutoscaling",
        "PartialAdmission",
        "PodGroupSchedulingShapeOrdering",
        "PodIntegrationCountSucceededPodsAsReady",
        "PodIntegrationValidateGroupOwner",
        "RayServiceValidateUpgradeStrategy",
        "ReclaimablePods",
        "ShortWorkloadNames",
        "SkipAncestorCheckForDeletedWorkloads",
        "SparkApplicationIntegration",
        "TASGroupedPodSetSlicing",
        "TASMultiLayerTopology",
        "TASPartialSlices",
        "TASRejectFalseUnconstrainedTopology",
        "TopologyAwareScheduling",
        "UnadmittedWorkloadsObservability",
        "ValidateRayAndSparkJobUpdates",
        "WaitForPodsReadyMaxNotReady",
        "WorkloadIdentifierAnnotations",
        "WorkloadLevelWaitForPodsReady",
        "WorkloadPriorityClassDefaulting",
    }
)

# The changes of Kueue without a gate that jobs read (rules/11 §4).
CHANGES = frozenset(
    {
        "ActiveSliceReleasesPods",
        "AncestorUidsChecked",
        "CompletedIndexesReclaimed",
        "DefaultPriorityClassNeedsManagedNamespace",
        "DefaultQueueNeedsManagedNamespace",
        "ElasticAnnotationNeedsSupport",
        "EndedServingPodsAreLetGo",
        "EvictedSlicesWaitForTheirPods",
        "FailedIndexesReclaimed",
        "FailedSubmissionsMayBeRetried",
        "FastAdmissionNeedsTrue",
        "GroupsWithoutPodsEndEvictions",
        "JobReclaimsFromItsPodSet",
        "JobTextsAreCorrected",
        "LwsPodsGetQueueName",
        "LwsQueueMayChange",
        "LwsSurgeMayBePercentage",
        "NoUngateOntoFailedNode",
        "OldRevisionsWaitForAdmission",
        "PodLevelPartsAreCompared",
        "PodSetsUpToEighteen",
        "PodIndexOffsetIsChecked",
        "PodSetsUpToTen",
        "PrebuiltNameByAnnotation",
        "PrebuiltTopologyIsCompared",
        "PriorityClassMissingEvent",
        "QueueChangesReachGatedPods",
        "RayAutoscalerCounted",
        "RayAutoscalingNeedsItsGate",
        "RayAutoscalingNeedsOneCluster",
        "RayRedisCleanupCounted",
        "RaySubmitterIsConstrained",
        "RaySubmitterSidecarCounted",
        "RayValidationFailedOnHold",
        "ReplacedSlicesAreNamed",
        "ReservedPriorityKeepsItsKind",
        "SlicesFollowPriority",
        "StatefulSetTopologyIsChecked",
        "SparkIsReadyWithMinExecutors",
        "SparkNodeSelectorCounts",
        "SparkRequestsAreSparks",
        "StatefulSetCountFollowsScaleUp",
        "WorkerPodsAreMarked",
    }
)


@cache
def gates_by_default() -> dict[str, bool]:
    """Return the gates that jobs read, as the default release has them."""
    gates = Release.named(DEFAULT_RELEASE).default_gates()
    return {name: gates[name] for name in GATES}


@cache
def absent_by_default() -> frozenset[str]:
    """Return the changes that jobs read and that the default release does not have."""
    return CHANGES - Release.named(DEFAULT_RELEASE).changes()
