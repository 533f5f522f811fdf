//! The table of all feature gates: stage, default, dependencies and what each one does (rules/11 §4).

use Gate::*;

/// A feature gate of Kueue; its row in the table says what it does ([`Gate::what`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // the table below describes each one
pub enum Gate {
    AdmissionFairSharing,
    AdmissionGatedBy,
    AssignQueueLabelsForPods,
    CleanupProvisioningRequestsOnEviction,
    ConcurrentAdmission,
    CustomMetricLabels,
    DeferRayServiceFinalizationForRedisCleanup,
    DisableWaitForPodsReady,
    ElasticJobsViaWorkloadSlices,
    ElasticJobsViaWorkloadSlicesWithTAS,
    FailureRecoveryPolicy,
    FairSharingPreemptWithinNominal,
    FairSharingPrioritizeNonBorrowing,
    FastQuotaReleaseInPodIntegration,
    FinishOrphanedWorkloads,
    FlavorFungibility,
    FlavorFungibilityPreserveScanProgress,
    KueueDRAIntegration,
    KueueDRAIntegrationConsumableCapacity,
    KueueDRAIntegrationExtendedResource,
    KueueDRAIntegrationPartitionableDevices,
    KueueDRARejectWorkloadsWhenDRADisabled,
    LWSImmutableGroupSize,
    LocalQueueMetrics,
    ManagedJobsNamespaceSelectorAlwaysRespected,
    MetricForWorkloadCreationLatency,
    MetricsForCohorts,
    MultiKueue,
    MultiKueueAdaptersForCustomJobs,
    MultiKueueClusterProfile,
    MultiKueueIncrementalDispatcherConfig,
    MultiKueueIncrementalDispatcherRespectConfigOrder,
    MultiKueueKubeConfigPathValidation,
    MultiKueueManagerQuotaAutomation,
    MultiKueueOrchestratedPreemption,
    MultiKueueRemoteSpecSync,
    PartialAdmission,
    PodIntegrationValidateGroupOwner,
    PrioritizePreemptorWorkloads,
    PriorityBoost,
    PrioritySortingWithinCohort,
    QuotaCheckStrategy,
    ReclaimablePods,
    RecomputeAssignmentUponPreemptionTargetsOverlap,
    RejectUpdatesToCQWithInvalidOnFlavors,
    RemoveFinalizersWithStrictPatch,
    SchedulerLibraryIntegration,
    SchedulingEquivalenceHashing,
    ShortWorkloadNames,
    SkipAncestorCheckForDeletedWorkloads,
    SkipReassignmentForPodOwnedWorkloads,
    SparkApplicationIntegration,
    TASAssignmentsEncodingByHostnamePrefix,
    TASBalancedPlacement,
    TASCacheNodeMatchResults,
    TASCacheTopologyTree,
    TASCachingRemainingResources,
    TASFailedNodeReplacement,
    TASFailedNodeReplacementFailFast,
    TASHandleOverlappingFlavors,
    TASMultiLayerTopology,
    TASProfileMixed,
    TASRecomputeAssignmentWithinSchedulingCycle,
    TASReplaceNodeDueToNotReadyOverFixedTime,
    TASReplaceNodeOnNodeTaints,
    TASReplaceNodeOnPodTermination,
    TASRespectNodeAffinityPreferred,
    TASValidateWorkloadSliceSize,
    TLSOptions,
    TopologyAwareScheduling,
    UnadmittedWorkloadsExplicitStatus,
    UnadmittedWorkloadsObservability,
    ValidateRayAndSparkJobUpdates,
    VectorizedResourceRequests,
    VisibilityOnDemand,
    WorkloadIdentifierAnnotations,
    WorkloadPriorityClassDefaulting,
    WorkloadRequestUseMergePatch,
    WorkloadValidateResourcesAreNonNegative,
    WorkloadValidationForPodSetMetadata,
}

/// The maturity of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Set by `AllAlpha`.
    Alpha,
    /// Set by `AllBeta`.
    Beta,
    /// Generally available.
    Ga,
    /// Will be removed.
    Deprecated,
}

impl Stage {
    /// `Alpha`, `Beta`, `GA` or `Deprecated`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Alpha => "Alpha",
            Stage::Beta => "Beta",
            Stage::Ga => "GA",
            Stage::Deprecated => "Deprecated",
        }
    }
}

/// One row of the table.
pub(super) struct Row {
    pub gate: Gate,
    pub name: &'static str,
    /// The version of Kueue that brought the current default.
    pub since: &'static str,
    pub stage: Stage,
    pub default: bool,
    /// Is it an error to set it to anything but its default?
    pub locked: bool,
    /// Enabled with one of these disabled is an error (rules/11 §4.3).
    pub needs: &'static [Gate],
    pub what: &'static str,
}

type Gates = &'static [Gate];
type Text = &'static str;

const fn alpha(gate: Gate, name: Text, since: Text, needs: Gates, what: Text) -> Row {
    Row { gate, name, since, stage: Stage::Alpha, default: false, locked: false, needs, what }
}

const fn beta(gate: Gate, name: Text, since: Text, needs: Gates, what: Text) -> Row {
    Row { gate, name, since, stage: Stage::Beta, default: true, locked: false, needs, what }
}

const fn beta_off(gate: Gate, name: Text, since: Text, needs: Gates, what: Text) -> Row {
    Row { gate, name, since, stage: Stage::Beta, default: false, locked: false, needs, what }
}

const fn locked_on(gate: Gate, name: Text, since: Text, needs: Gates, what: Text) -> Row {
    Row { gate, name, since, stage: Stage::Ga, default: true, locked: true, needs, what }
}

const fn deprecated(gate: Gate, name: Text, since: Text, needs: Gates, what: Text) -> Row {
    Row { gate, name, since, stage: Stage::Deprecated, default: false, locked: false, needs, what }
}

/// All gates by name, in the order of the enum: gate, name, since, needs, what it does when on.
#[rustfmt::skip] // one row a line
pub(super) static TABLE: [Row; 80] = [
    beta(AdmissionFairSharing, "AdmissionFairSharing", "0.15", &[], "admissionFairSharing is honoured"),
    beta(AdmissionGatedBy, "AdmissionGatedBy", "0.19", &[], "admission-gated-by blocks queueing"),
    beta(AssignQueueLabelsForPods, "AssignQueueLabelsForPods", "0.17", &[], "queue labels on pods"),
    beta(CleanupProvisioningRequestsOnEviction, "CleanupProvisioningRequestsOnEviction", "0.19", &[], "ProvisioningRequests deleted at eviction"),
    alpha(ConcurrentAdmission, "ConcurrentAdmission", "0.18", &[], "one Workload variant per flavor in parallel"),
    alpha(CustomMetricLabels, "CustomMetricLabels", "0.17", &[], "labels of objects become metric labels"),
    beta(DeferRayServiceFinalizationForRedisCleanup, "DeferRayServiceFinalizationForRedisCleanup", "0.19", &[], "RayService deletion waits"),
    alpha(DisableWaitForPodsReady, "DisableWaitForPodsReady", "0.19", &[], "turns waitForPodsReady off"),
    beta(ElasticJobsViaWorkloadSlices, "ElasticJobsViaWorkloadSlices", "0.18", &[], "elastic-job annotation"),
    alpha(ElasticJobsViaWorkloadSlicesWithTAS, "ElasticJobsViaWorkloadSlicesWithTAS", "0.17", &[ElasticJobsViaWorkloadSlices, TopologyAwareScheduling], "elastic jobs together with TAS"),
    alpha(FailureRecoveryPolicy, "FailureRecoveryPolicy", "0.15", &[], "stuck terminating pods are force-ended"),
    beta(FairSharingPreemptWithinNominal, "FairSharingPreemptWithinNominal", "0.17", &[], "fair sharing: preemptor within nominal for contested resources skips the share test"),
    beta(FairSharingPrioritizeNonBorrowing, "FairSharingPrioritizeNonBorrowing", "0.17", &[], "fair sharing order: subtree not borrowing on the requested flavors first, at each level"),
    alpha(FastQuotaReleaseInPodIntegration, "FastQuotaReleaseInPodIntegration", "0.17", &[], "deleting pods are inactive at once"),
    beta(FinishOrphanedWorkloads, "FinishOrphanedWorkloads", "0.18", &[], "Workloads of vanished owners are finished; owner UID compared"),
    beta(FlavorFungibility, "FlavorFungibility", "0.5", &[], "flavorFungibility policies and remembered flavor index used; off: first flavor that fits, else best mode over all"),
    beta(FlavorFungibilityPreserveScanProgress, "FlavorFungibilityPreserveScanProgress", "0.20", &[FlavorFungibility], "scan position survives unrelated admissions; off: reset whenever the cohort's allocatable generation changes"),
    beta(KueueDRAIntegration, "KueueDRAIntegration", "0.18", &[], "DRA claims charged"),
    alpha(KueueDRAIntegrationConsumableCapacity, "KueueDRAIntegrationConsumableCapacity", "0.19", &[KueueDRAIntegration], "capacity sources"),
    beta(KueueDRAIntegrationExtendedResource, "KueueDRAIntegrationExtendedResource", "0.19", &[KueueDRAIntegration], "extended resources backed by a DeviceClass charged as DRA"),
    beta(KueueDRAIntegrationPartitionableDevices, "KueueDRAIntegrationPartitionableDevices", "0.19", &[KueueDRAIntegration], "counter sources"),
    beta(KueueDRARejectWorkloadsWhenDRADisabled, "KueueDRARejectWorkloadsWhenDRADisabled", "0.18", &[], "with KueueDRAIntegration off, DRA Workloads are inadmissible"),
    beta(LWSImmutableGroupSize, "LWSImmutableGroupSize", "0.20", &[], "LWS size immutable"),
    beta(LocalQueueMetrics, "LocalQueueMetrics", "0.17", &[], "metrics per LocalQueue"),
    locked_on(ManagedJobsNamespaceSelectorAlwaysRespected, "ManagedJobsNamespaceSelectorAlwaysRespected", "0.19", &[], "selector applies to every job"),
    beta(MetricForWorkloadCreationLatency, "MetricForWorkloadCreationLatency", "0.18", &[], "metric of the time from job to Workload"),
    beta(MetricsForCohorts, "MetricsForCohorts", "0.18", &[], "metrics per Cohort"),
    beta(MultiKueue, "MultiKueue", "0.9", &[], "MultiKueue checks"),
    beta(MultiKueueAdaptersForCustomJobs, "MultiKueueAdaptersForCustomJobs", "0.15", &[], "externalFrameworks adapter"),
    alpha(MultiKueueClusterProfile, "MultiKueueClusterProfile", "0.15", &[], "ClusterProfile clusters"),
    beta(MultiKueueIncrementalDispatcherConfig, "MultiKueueIncrementalDispatcherConfig", "0.19", &[], "stepSize honoured"),
    beta(MultiKueueIncrementalDispatcherRespectConfigOrder, "MultiKueueIncrementalDispatcherRespectConfigOrder", "0.19", &[], "nominate in config order; off: alphabetical"),
    beta(MultiKueueKubeConfigPathValidation, "MultiKueueKubeConfigPathValidation", "0.20", &[], "kubeconfig paths only under /etc/multikueue/kubeconfigs/"),
    alpha(MultiKueueManagerQuotaAutomation, "MultiKueueManagerQuotaAutomation", "0.18", &[], "manager quota derived from workers"),
    alpha(MultiKueueOrchestratedPreemption, "MultiKueueOrchestratedPreemption", "0.17", &[], "preemption gates on worker Workloads"),
    beta(MultiKueueRemoteSpecSync, "MultiKueueRemoteSpecSync", "0.20", &[], "forwards RayService serveConfigV2 edits"),
    beta(PartialAdmission, "PartialAdmission", "0.5", &[], "minCount honoured; off: minCount removed everywhere"),
    beta(PodIntegrationValidateGroupOwner, "PodIntegrationValidateGroupOwner", "0.18", &[], "pod group refuses a foreign Workload of its name"),
    alpha(PrioritizePreemptorWorkloads, "PrioritizePreemptorWorkloads", "0.20", &[], "Workloads waiting for their preemptions go first in a cycle and keep capacity reserved"),
    alpha(PriorityBoost, "PriorityBoost", "0.17", &[], "annotation priority-boost added to priority"),
    beta(PrioritySortingWithinCohort, "PrioritySortingWithinCohort", "0.6", &[], "cycle order uses priority before time; off: time only, and reclaimed Workloads are re-queued just after their preemption time"),
    beta(QuotaCheckStrategy, "QuotaCheckStrategy", "0.19", &[], "resources.quotaCheckStrategy honoured"),
    beta(ReclaimablePods, "ReclaimablePods", "0.15", &[], "finished pods free quota"),
    beta(RecomputeAssignmentUponPreemptionTargetsOverlap, "RecomputeAssignmentUponPreemptionTargetsOverlap", "0.20", &[], "overlapping victims in a cycle: recompute targets instead of skipping"),
    alpha(RejectUpdatesToCQWithInvalidOnFlavors, "RejectUpdatesToCQWithInvalidOnFlavors", "0.18", &[], "ClusterQueue update with unknown onFlavors rejected"),
    beta(RemoveFinalizersWithStrictPatch, "RemoveFinalizersWithStrictPatch", "0.17", &[], "finalizers are removed by a strict patch"),
    alpha(SchedulerLibraryIntegration, "SchedulerLibraryIntegration", "0.19", &[], "external scheduler library simulates node fit for TAS"),
    beta(SchedulingEquivalenceHashing, "SchedulingEquivalenceHashing", "0.18", &[], "BestEffortFIFO: Workloads of the same shape as a just-failed one are parked unseen"),
    alpha(ShortWorkloadNames, "ShortWorkloadNames", "0.17", &[], "names ≤63"),
    beta(SkipAncestorCheckForDeletedWorkloads, "SkipAncestorCheckForDeletedWorkloads", "0.20", &[], "deleting objects skip owner walk"),
    beta(SkipReassignmentForPodOwnedWorkloads, "SkipReassignmentForPodOwnedWorkloads", "0.19", &[], "single-Pod Workloads: no reassignment, no Requeued=true"),
    alpha(SparkApplicationIntegration, "SparkApplicationIntegration", "0.17", &[], "SparkApplication"),
    beta(TASAssignmentsEncodingByHostnamePrefix, "TASAssignmentsEncodingByHostnamePrefix", "0.19", &[], "status encoding only"),
    alpha(TASBalancedPlacement, "TASBalancedPlacement", "0.15", &[TopologyAwareScheduling], "balanced placement for preferred requests"),
    beta(TASCacheNodeMatchResults, "TASCacheNodeMatchResults", "0.19", &[], "caches node matches"),
    beta(TASCacheTopologyTree, "TASCacheTopologyTree", "0.20", &[], "caches the topology tree"),
    beta(TASCachingRemainingResources, "TASCachingRemainingResources", "0.19", &[], "caches what is left on nodes"),
    beta(TASFailedNodeReplacement, "TASFailedNodeReplacement", "0.14", &[TopologyAwareScheduling], "replace a failed node in place"),
    beta(TASFailedNodeReplacementFailFast, "TASFailedNodeReplacementFailFast", "0.14", &[TopologyAwareScheduling, TASFailedNodeReplacement], "evict if the first replacement try fails"),
    beta(TASHandleOverlappingFlavors, "TASHandleOverlappingFlavors", "0.18", &[TopologyAwareScheduling], "usage of other flavors on the same node is counted"),
    beta(TASMultiLayerTopology, "TASMultiLayerTopology", "0.19", &[TopologyAwareScheduling], "constraints annotation with up to 3 slice layers"),
    beta(TASProfileMixed, "TASProfileMixed", "0.15", &[TopologyAwareScheduling], "unconstrained pod sets use LeastFreeCapacity, others BestFit; off: BestFit for all"),
    beta(TASRecomputeAssignmentWithinSchedulingCycle, "TASRecomputeAssignmentWithinSchedulingCycle", "0.19", &[TopologyAwareScheduling], "a TAS Workload that no longer fits is reassigned in the same cycle"),
    deprecated(TASReplaceNodeDueToNotReadyOverFixedTime, "TASReplaceNodeDueToNotReadyOverFixedTime", "0.19", &[TopologyAwareScheduling, TASFailedNodeReplacement], "NotReady for a fixed delay = failed"),
    beta(TASReplaceNodeOnNodeTaints, "TASReplaceNodeOnNodeTaints", "0.17", &[TopologyAwareScheduling], "evict when node taints keep pods from running"),
    beta(TASReplaceNodeOnPodTermination, "TASReplaceNodeOnPodTermination", "0.14", &[TopologyAwareScheduling, TASFailedNodeReplacement], "NotReady node + terminated pods = failed"),
    alpha(TASRespectNodeAffinityPreferred, "TASRespectNodeAffinityPreferred", "0.18", &[TopologyAwareScheduling], "preferred node affinity ranks above placement policy"),
    beta(TASValidateWorkloadSliceSize, "TASValidateWorkloadSliceSize", "0.20", &[], "Workload webhook rejects slice size < 1"),
    locked_on(TLSOptions, "TLSOptions", "0.20", &[], "the `tls` section of the configuration is honoured"),
    beta(TopologyAwareScheduling, "TopologyAwareScheduling", "0.14", &[], "topology requests and flavors with topologyName"),
    beta_off(UnadmittedWorkloadsExplicitStatus, "UnadmittedWorkloadsExplicitStatus", "0.19", &[UnadmittedWorkloadsObservability], "both conditions set False at first reconcile"),
    beta(UnadmittedWorkloadsObservability, "UnadmittedWorkloadsObservability", "0.19", &[], "finer reasons on QuotaReserved=False / Admitted=False"),
    beta(ValidateRayAndSparkJobUpdates, "ValidateRayAndSparkJobUpdates", "0.18", &[], "updates of formerly managed jobs validated"),
    beta(VectorizedResourceRequests, "VectorizedResourceRequests", "0.19", &[], "a faster form of request arithmetic"),
    beta(VisibilityOnDemand, "VisibilityOnDemand", "0.9", &[], "pending workloads are served by the visibility API"),
    beta(WorkloadIdentifierAnnotations, "WorkloadIdentifierAnnotations", "0.18", &[], "group / prebuilt names via annotations"),
    beta(WorkloadPriorityClassDefaulting, "WorkloadPriorityClassDefaulting", "0.20", &[], "class named `default` applied (rules/10 §2.2)"),
    alpha(WorkloadRequestUseMergePatch, "WorkloadRequestUseMergePatch", "0.14", &[], "Workload status is written by merge patch"),
    beta(WorkloadValidateResourcesAreNonNegative, "WorkloadValidateResourcesAreNonNegative", "0.20", &[], "negative requests rejected"),
    beta(WorkloadValidationForPodSetMetadata, "WorkloadValidationForPodSetMetadata", "0.20", &[], "bad pod-set labels/annotations rejected"),
];
