//! The table of all feature gates: stage, default, dependencies and what each one does (rules/11 §4).

use super::super::releases::{DEVEL, Version};
use Gate::*;

/// A feature gate of Kueue; its row in the table says what it does ([`Gate::what`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Gate {
    AdmissionFairSharing,
    AdmissionFairSharingAnchorAtQuotaReservation,
    AdmissionGatedBy,
    AssignQueueLabelsForPods,
    CleanupProvisioningRequestsOnEviction,
    ConcurrentAdmission,
    ConfigurablePreemptions,
    ConfigurableResourceTransformations,
    CustomMetricLabels,
    DRAExtendedResources,
    DeferRayServiceFinalizationForRedisCleanup,
    DeploymentJobUIDLabel,
    DisableWaitForPodsReady,
    DynamicQuotaOrchestration,
    DynamicResourceAllocation,
    ElasticJobsViaWorkloadSlices,
    ElasticJobsViaWorkloadSlicesFlavorChangeFromZero,
    ElasticJobsViaWorkloadSlicesForProvisioningRequests,
    ElasticJobsViaWorkloadSlicesWithPartialReplicaScaleUp,
    ElasticJobsViaWorkloadSlicesWithTAS,
    EnforceProvisioningPodTemplateContents,
    FailureRecoveryPolicy,
    FairSharingPreemptWithinNominal,
    FairSharingPrioritizeNonBorrowing,
    FairSharingReevaluatePreemptionCandidates,
    FairSharingRefill,
    FastQuotaReleaseInPodIntegration,
    FinalizeTerminatingPodGroups,
    FinishOrphanedWorkloads,
    FlavorFungibility,
    FlavorFungibilityImplicitPreferenceDefault,
    FlavorFungibilityPreserveScanProgress,
    HierarchicalCohorts,
    HighMaxParallelismWithinReconcile,
    KueueDRADeviceFeasibility,
    KueueDRAIntegration,
    KueueDRAIntegrationConsumableCapacity,
    KueueDRAIntegrationDeviceTaints,
    KueueDRAIntegrationExtendedResource,
    KueueDRAIntegrationPartitionableDevices,
    KueueDRAIntegrationPrioritizedList,
    KueueDRARejectWorkloadsWhenDRADisabled,
    LWSImmutableGroupSize,
    LendingLimit,
    LocalQueueDefaulting,
    LocalQueueMetrics,
    ManagedJobsNamespaceSelectorAlwaysRespected,
    MetricForWorkloadCreationLatency,
    MetricsForCohorts,
    MultiKueue,
    MultiKueueAdaptersForCustomJobs,
    MultiKueueAllowInsecureKubeconfigs,
    MultiKueueBatchJobClearingTTLSecondsAfterFinishedOnWorkerCluster,
    MultiKueueBatchJobWithManagedBy,
    MultiKueueClusterProfile,
    MultiKueueIncrementalDispatcherConfig,
    MultiKueueIncrementalDispatcherRespectConfigOrder,
    MultiKueueKubeConfigPathValidation,
    MultiKueueManagerQuotaAutomation,
    MultiKueueOrchestratedPreemption,
    MultiKueueRayInTreeAutoscaling,
    MultiKueueRedoAdmissionOnEvictionInWorker,
    MultiKueueRemoteSpecSync,
    MultiKueueReuseClientConnectionConfigForWorkers,
    MultiKueueWaitForWorkloadAdmitted,
    ObjectRetentionPolicies,
    PartialAdmission,
    PodGroupSchedulingShapeOrdering,
    PodIntegrationCountSucceededPodsAsReady,
    PodIntegrationValidateGroupOwner,
    PrioritizePreemptorWorkloads,
    PriorityBoost,
    PrioritySortingWithinCohort,
    PropagateBatchJobLabelsToWorkload,
    QuotaCheckStrategy,
    RayServiceValidateUpgradeStrategy,
    ReclaimablePods,
    RecomputeAssignmentUponPreemptionTargetsOverlap,
    RejectUpdatesToCQWithInvalidOnFlavors,
    RemoveFinalizersWithStrictPatch,
    ReservedResourceNameValidation,
    SanitizePodSets,
    SchedulerLibraryIntegration,
    SchedulerLongRequeueInterval,
    SchedulerTimestampPreemptionBuffer,
    SchedulingEquivalenceHashing,
    SchedulingEquivalenceHashingIgnorePodSetName,
    ShortWorkloadNames,
    SkipAncestorCheckForDeletedWorkloads,
    SkipFinalizersForPodsSuspendedByParent,
    SkipReassignmentForPodOwnedWorkloads,
    SparkApplicationIntegration,
    TASAssignmentsEncodingByHostnamePrefix,
    TASBalancedPlacement,
    TASCacheNodeMatchResults,
    TASCacheTopologyTree,
    TASCachingRemainingResources,
    TASFailedNodeReplacement,
    TASFailedNodeReplacementFailFast,
    TASGroupedPodSetSlicing,
    TASHandleOverlappingFlavors,
    TASLeaderPodSetFeasibility,
    TASMultiLayerTopology,
    TASNodeFeasibilityForAllLevels,
    TASPartialSlices,
    TASProfileLeastFreeCapacity,
    TASProfileMixed,
    TASRecomputeAssignmentWithinSchedulingCycle,
    TASRejectFalseUnconstrainedTopology,
    TASReplaceMultipleFailedNodes,
    TASReplaceNodeDueToNotReadyOverFixedTime,
    TASReplaceNodeOnNodeTaints,
    TASReplaceNodeOnPodTermination,
    TASRespectNodeAffinityPreferred,
    TASTopologySpreading,
    TASValidateWorkloadSliceSize,
    TLSOptions,
    TopologyAwareScheduling,
    UnadmittedWorkloadsExplicitStatus,
    UnadmittedWorkloadsObservability,
    ValidateRayAndSparkJobUpdates,
    VectorizedResourceRequests,
    VisibilityOnDemand,
    WaitForPodsReadyMaxNotReady,
    WaitForPodsReadyUnscheduledTimeout,
    WorkloadIdentifierAnnotations,
    WorkloadLevelWaitForPodsReady,
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

/// What a release makes of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It can be set.
    Known {
        stage: Stage,
        /// Is it on by default?
        default: bool,
        /// Is it an error to set it to anything but its default?
        locked: bool,
    },
    /// There is no such gate.
    Absent {
        /// Does the release behave as if it were on?
        on: bool,
        /// What to do about a setting of it; empty if the gate is still to come.
        remedy: &'static str,
    },
}

/// One row of the table.
pub(super) struct Row {
    pub gate: Gate,
    pub name: &'static str,
    /// What it was from which release on, in the order of versions; before the first one it was absent and off.
    pub history: &'static [(Version, State)],
    /// Enabled with one of these disabled is an error (rules/11 §4.3).
    pub needs: &'static [Gate],
    pub what: &'static str,
}

type Past = (Version, State);

const fn known(minor: u8, patch: i8, stage: Stage, default: bool, locked: bool) -> Past {
    (Version::new(minor, patch), State::Known { stage, default, locked })
}

const fn alpha(minor: u8, patch: i8) -> Past {
    known(minor, patch, Stage::Alpha, false, false)
}

const fn beta(minor: u8, patch: i8) -> Past {
    known(minor, patch, Stage::Beta, true, false)
}

const fn beta_off(minor: u8, patch: i8) -> Past {
    known(minor, patch, Stage::Beta, false, false)
}

const fn ga(minor: u8, patch: i8) -> Past {
    known(minor, patch, Stage::Ga, true, true)
}

const fn deprecated(minor: u8, patch: i8) -> Past {
    known(minor, patch, Stage::Deprecated, false, false)
}

const fn deprecated_locked(minor: u8, patch: i8) -> Past {
    known(minor, patch, Stage::Deprecated, false, true)
}

/// The line has no such gate yet: a patch of the line before got it.
const fn absent(minor: u8, patch: i8) -> Past {
    (Version::new(minor, patch), State::Absent { on: false, remedy: "" })
}

/// There is no gate: what it turns on elsewhere is always on.
const fn built_in(minor: u8, patch: i8) -> Past {
    (Version::new(minor, patch), State::Absent { on: true, remedy: "leave it out: what it turned on stays on" })
}

/// Kueue has removed it, and what it turned on.
const fn gone(minor: u8, patch: i8, remedy: &'static str) -> Past {
    (Version::new(minor, patch), State::Absent { on: false, remedy })
}

const fn row(
    gate: Gate,
    name: &'static str,
    history: &'static [Past],
    needs: &'static [Gate],
    what: &'static str,
) -> Row {
    Row { gate, name, history, needs, what }
}

/// All gates by name, in the order of the enum: gate, name, history, needs, what it does when on.
#[rustfmt::skip] // one row a line
pub(super) static TABLE: [Row; 131] = [
    row(AdmissionFairSharing, "AdmissionFairSharing", &[beta(15, 0)], &[], "admissionFairSharing is honoured"),
    row(AdmissionFairSharingAnchorAtQuotaReservation, "AdmissionFairSharingAnchorAtQuotaReservation", &[beta(20, 0)], &[AdmissionFairSharing], "usage-based sharing charges when quota is reserved; off: when the workload is admitted"),
    row(AdmissionGatedBy, "AdmissionGatedBy", &[alpha(17, 0), beta(19, 0)], &[], "admission-gated-by blocks queueing"),
    row(AssignQueueLabelsForPods, "AssignQueueLabelsForPods", &[beta(17, 0)], &[], "queue labels on pods"),
    row(CleanupProvisioningRequestsOnEviction, "CleanupProvisioningRequestsOnEviction", &[beta(17, 7), absent(18, 0), beta(18, 3)], &[], "ProvisioningRequests deleted at eviction"),
    row(ConcurrentAdmission, "ConcurrentAdmission", &[alpha(18, 0)], &[], "one Workload variant per flavor in parallel"),
    row(ConfigurablePreemptions, "ConfigurablePreemptions", &[alpha(20, 0)], &[], "PreemptionConfig adds candidates to those of a ClusterQueue"),
    row(ConfigurableResourceTransformations, "ConfigurableResourceTransformations", &[beta(10, 0), built_in(16, 0)], &[], "resource transformations are honoured"),
    row(CustomMetricLabels, "CustomMetricLabels", &[alpha(17, 0)], &[], "labels of objects become metric labels"),
    row(DRAExtendedResources, "DRAExtendedResources", &[alpha(17, 0), deprecated_locked(18, 0), gone(19, 0, "write KueueDRAIntegrationExtendedResource")], &[], "the earlier name of KueueDRAIntegrationExtendedResource"),
    row(DeferRayServiceFinalizationForRedisCleanup, "DeferRayServiceFinalizationForRedisCleanup", &[beta(17, 7), absent(18, 0), beta(18, 3), deprecated(20, 0)], &[], "RayService deletion waits"),
    row(DeploymentJobUIDLabel, "DeploymentJobUIDLabel", &[beta(20, 0)], &[], "a Deployment's Workloads are labelled with its UID; off: with that of their pod"),
    row(DisableWaitForPodsReady, "DisableWaitForPodsReady", &[alpha(19, 0)], &[], "turns waitForPodsReady off"),
    row(DynamicQuotaOrchestration, "DynamicQuotaOrchestration", &[alpha(20, 0)], &[], "status.effectiveQuotas of ClusterQueues and Cohorts takes the place of the quotas of their spec"),
    row(DynamicResourceAllocation, "DynamicResourceAllocation", &[alpha(14, 0), deprecated_locked(18, 0), gone(19, 0, "write KueueDRAIntegration")], &[], "the earlier name of KueueDRAIntegration"),
    row(ElasticJobsViaWorkloadSlices, "ElasticJobsViaWorkloadSlices", &[alpha(13, 0), beta(18, 0)], &[], "elastic-job annotation"),
    row(ElasticJobsViaWorkloadSlicesFlavorChangeFromZero, "ElasticJobsViaWorkloadSlicesFlavorChangeFromZero", &[alpha(20, 0)], &[], "a slice may take another flavor than the one of no pods that it replaces"),
    row(ElasticJobsViaWorkloadSlicesForProvisioningRequests, "ElasticJobsViaWorkloadSlicesForProvisioningRequests", &[alpha(20, 0)], &[ElasticJobsViaWorkloadSlices], "ProvisioningRequests for slices"),
    row(ElasticJobsViaWorkloadSlicesWithPartialReplicaScaleUp, "ElasticJobsViaWorkloadSlicesWithPartialReplicaScaleUp", &[alpha(20, 0)], &[], "a slice may be admitted with part of its growth"),
    row(ElasticJobsViaWorkloadSlicesWithTAS, "ElasticJobsViaWorkloadSlicesWithTAS", &[alpha(17, 0)], &[ElasticJobsViaWorkloadSlices, TopologyAwareScheduling], "elastic jobs together with TAS"),
    row(EnforceProvisioningPodTemplateContents, "EnforceProvisioningPodTemplateContents", &[beta(20, 0)], &[], "a PodTemplate of the expected name with other contents is replaced"),
    row(FailureRecoveryPolicy, "FailureRecoveryPolicy", &[alpha(15, 0)], &[], "stuck terminating pods are force-ended"),
    row(FairSharingPreemptWithinNominal, "FairSharingPreemptWithinNominal", &[beta(16, 3)], &[], "fair sharing: preemptor within nominal for contested resources skips the share test"),
    row(FairSharingPrioritizeNonBorrowing, "FairSharingPrioritizeNonBorrowing", &[beta(16, 2)], &[], "fair sharing order: subtree not borrowing on the requested flavors first, at each level"),
    row(FairSharingReevaluatePreemptionCandidates, "FairSharingReevaluatePreemptionCandidates", &[alpha(20, 0)], &[], "fair sharing: candidates passed over are tried again after a victim of the preemptor's own ClusterQueue"),
    row(FairSharingRefill, "FairSharingRefill", &[alpha(20, 0)], &[], "fair sharing: a ClusterQueue whose head was admitted puts its next workload into the same cycle"),
    row(FastQuotaReleaseInPodIntegration, "FastQuotaReleaseInPodIntegration", &[alpha(17, 0)], &[], "deleting pods are inactive at once"),
    row(FinalizeTerminatingPodGroups, "FinalizeTerminatingPodGroups", &[beta(20, 0)], &[], "no Workload is made for a pod group whose pods are all terminating"),
    row(FinishOrphanedWorkloads, "FinishOrphanedWorkloads", &[beta(16, 6), alpha(16, 8), absent(17, 0), beta(17, 1), alpha(17, 3), beta(18, 0)], &[], "Workloads of vanished owners are finished; owner UID compared"),
    row(FlavorFungibility, "FlavorFungibility", &[beta(5, 0)], &[], "flavorFungibility policies and remembered flavor index used; off: first flavor that fits, else best mode over all"),
    row(FlavorFungibilityImplicitPreferenceDefault, "FlavorFungibilityImplicitPreferenceDefault", &[deprecated(16, 4), gone(17, 0, "leave it out, and set spec.flavorFungibility.preference of the ClusterQueues")], &[], "whenCanBorrow TryNextFlavor alone prefers preemption to borrowing"),
    row(FlavorFungibilityPreserveScanProgress, "FlavorFungibilityPreserveScanProgress", &[beta(18, 5), absent(19, 0), beta(19, 1)], &[FlavorFungibility], "scan position survives unrelated admissions; off: reset whenever the cohort's allocatable generation changes"),
    row(HierarchicalCohorts, "HierarchicalCohorts", &[beta(11, 0), ga(17, 0), built_in(20, DEVEL)], &[], "cohorts have parents"),
    row(HighMaxParallelismWithinReconcile, "HighMaxParallelismWithinReconcile", &[beta(20, 0)], &[], "more requests at a time within one reconciliation"),
    row(KueueDRADeviceFeasibility, "KueueDRADeviceFeasibility", &[alpha(20, 0)], &[KueueDRAIntegration, TopologyAwareScheduling, TASNodeFeasibilityForAllLevels], "nodes without enough matching devices take no pods"),
    row(KueueDRAIntegration, "KueueDRAIntegration", &[beta(18, 0)], &[], "DRA claims charged"),
    row(KueueDRAIntegrationConsumableCapacity, "KueueDRAIntegrationConsumableCapacity", &[alpha(19, 0)], &[KueueDRAIntegration], "capacity sources"),
    row(KueueDRAIntegrationDeviceTaints, "KueueDRAIntegrationDeviceTaints", &[alpha(20, 0)], &[KueueDRADeviceFeasibility], "taints of devices must be tolerated"),
    row(KueueDRAIntegrationExtendedResource, "KueueDRAIntegrationExtendedResource", &[alpha(18, 0), beta(19, 0)], &[KueueDRAIntegration], "extended resources backed by a DeviceClass charged as DRA"),
    row(KueueDRAIntegrationPartitionableDevices, "KueueDRAIntegrationPartitionableDevices", &[alpha(18, 0), beta(19, 0)], &[KueueDRAIntegration], "counter sources"),
    row(KueueDRAIntegrationPrioritizedList, "KueueDRAIntegrationPrioritizedList", &[alpha(20, 0)], &[], "firstAvailable requests of equal alternatives are charged"),
    row(KueueDRARejectWorkloadsWhenDRADisabled, "KueueDRARejectWorkloadsWhenDRADisabled", &[beta(18, 0)], &[], "with KueueDRAIntegration off, DRA Workloads are inadmissible"),
    row(LWSImmutableGroupSize, "LWSImmutableGroupSize", &[beta(18, 5), absent(19, 0), beta(19, 1)], &[], "LWS size immutable"),
    row(LendingLimit, "LendingLimit", &[beta(9, 0), ga(17, 0), built_in(19, 0)], &[], "lending limits are honoured"),
    row(LocalQueueDefaulting, "LocalQueueDefaulting", &[beta(12, 0), ga(17, 0), built_in(19, 0)], &[], "jobs without a queue name get the LocalQueue named default"),
    row(LocalQueueMetrics, "LocalQueueMetrics", &[alpha(10, 0), beta(17, 0)], &[], "metrics per LocalQueue"),
    row(ManagedJobsNamespaceSelectorAlwaysRespected, "ManagedJobsNamespaceSelectorAlwaysRespected", &[beta(15, 0), ga(19, 0)], &[], "selector applies to every job"),
    row(MetricForWorkloadCreationLatency, "MetricForWorkloadCreationLatency", &[beta(18, 0)], &[], "metric of the time from job to Workload"),
    row(MetricsForCohorts, "MetricsForCohorts", &[beta(18, 0)], &[], "metrics per Cohort"),
    row(MultiKueue, "MultiKueue", &[beta(9, 0)], &[], "MultiKueue checks"),
    row(MultiKueueAdaptersForCustomJobs, "MultiKueueAdaptersForCustomJobs", &[beta(15, 0)], &[], "externalFrameworks adapter"),
    row(MultiKueueAllowInsecureKubeconfigs, "MultiKueueAllowInsecureKubeconfigs", &[alpha(15, 0), deprecated(17, 0), deprecated_locked(19, 0), gone(20, DEVEL, "leave it out: kubeconfigs need certificates")], &[], "kubeconfigs without certificates are accepted"),
    row(MultiKueueBatchJobClearingTTLSecondsAfterFinishedOnWorkerCluster, "MultiKueueBatchJobClearingTTLSecondsAfterFinishedOnWorkerCluster", &[alpha(20, 0)], &[], "Jobs on workers have no ttlSecondsAfterFinished"),
    row(MultiKueueBatchJobWithManagedBy, "MultiKueueBatchJobWithManagedBy", &[beta(15, 0), ga(17, 0), built_in(19, 0)], &[], "status of a remote batch Job is copied while it runs"),
    row(MultiKueueClusterProfile, "MultiKueueClusterProfile", &[alpha(15, 0)], &[], "ClusterProfile clusters"),
    row(MultiKueueIncrementalDispatcherConfig, "MultiKueueIncrementalDispatcherConfig", &[beta(19, 0)], &[], "stepSize honoured"),
    row(MultiKueueIncrementalDispatcherRespectConfigOrder, "MultiKueueIncrementalDispatcherRespectConfigOrder", &[beta(19, 0)], &[], "nominate in config order; off: alphabetical"),
    row(MultiKueueKubeConfigPathValidation, "MultiKueueKubeConfigPathValidation", &[alpha(19, 0), beta(20, DEVEL)], &[], "kubeconfig paths only under /etc/multikueue/kubeconfigs/"),
    row(MultiKueueManagerQuotaAutomation, "MultiKueueManagerQuotaAutomation", &[alpha(18, 0)], &[], "manager quota derived from workers"),
    row(MultiKueueOrchestratedPreemption, "MultiKueueOrchestratedPreemption", &[alpha(17, 0), beta(20, 0)], &[], "preemption gates on worker Workloads"),
    row(MultiKueueRayInTreeAutoscaling, "MultiKueueRayInTreeAutoscaling", &[alpha(20, 0)], &[MultiKueue, ElasticJobsViaWorkloadSlices], "Ray clusters with in-tree autoscaling may go to workers"),
    row(MultiKueueRedoAdmissionOnEvictionInWorker, "MultiKueueRedoAdmissionOnEvictionInWorker", &[beta(16, 0), ga(18, 0), built_in(20, DEVEL)], &[], "an eviction on the worker makes the manager dispatch again"),
    row(MultiKueueRemoteSpecSync, "MultiKueueRemoteSpecSync", &[beta(18, 5), absent(19, 0), beta(19, 1)], &[], "forwards RayService serveConfigV2 edits"),
    row(MultiKueueReuseClientConnectionConfigForWorkers, "MultiKueueReuseClientConnectionConfigForWorkers", &[beta(20, 0)], &[MultiKueue], "clientConnection bounds the requests to workers, too"),
    row(MultiKueueWaitForWorkloadAdmitted, "MultiKueueWaitForWorkloadAdmitted", &[beta(16, 0), ga(18, 0), built_in(20, DEVEL)], &[], "copies on other workers stay until one is admitted"),
    row(ObjectRetentionPolicies, "ObjectRetentionPolicies", &[beta(13, 0), ga(17, 0), built_in(20, DEVEL)], &[], "objectRetentionPolicies is honoured"),
    row(PartialAdmission, "PartialAdmission", &[beta(5, 0)], &[], "minCount honoured; off: minCount removed everywhere"),
    row(PodGroupSchedulingShapeOrdering, "PodGroupSchedulingShapeOrdering", &[beta(20, 0)], &[], "pod sets of a pod group are in the order of their scheduling shapes; off: of their names"),
    row(PodIntegrationCountSucceededPodsAsReady, "PodIntegrationCountSucceededPodsAsReady", &[beta(20, 0)], &[], "pods of a group that succeeded count as ready"),
    row(PodIntegrationValidateGroupOwner, "PodIntegrationValidateGroupOwner", &[beta(18, 6), absent(19, 0), beta(19, 2)], &[], "pod group refuses a foreign Workload of its name"),
    row(PrioritizePreemptorWorkloads, "PrioritizePreemptorWorkloads", &[alpha(18, 6), absent(19, 0), alpha(19, 2)], &[], "Workloads waiting for their preemptions go first in a cycle and keep capacity reserved"),
    row(PriorityBoost, "PriorityBoost", &[alpha(17, 0)], &[], "annotation priority-boost added to priority"),
    row(PrioritySortingWithinCohort, "PrioritySortingWithinCohort", &[beta(6, 0)], &[], "cycle order uses priority before time; off: time only, and reclaimed Workloads are re-queued just after their preemption time"),
    row(PropagateBatchJobLabelsToWorkload, "PropagateBatchJobLabelsToWorkload", &[beta(15, 0), ga(17, 0), built_in(20, DEVEL)], &[], "labels of a batch Job are copied to its Workload"),
    row(QuotaCheckStrategy, "QuotaCheckStrategy", &[alpha(18, 0), beta(19, 0)], &[], "resources.quotaCheckStrategy honoured"),
    row(RayServiceValidateUpgradeStrategy, "RayServiceValidateUpgradeStrategy", &[beta(20, 0)], &[], "zero-downtime upgrades of a RayService need elastic slices"),
    row(ReclaimablePods, "ReclaimablePods", &[beta(15, 0)], &[], "finished pods free quota"),
    row(RecomputeAssignmentUponPreemptionTargetsOverlap, "RecomputeAssignmentUponPreemptionTargetsOverlap", &[alpha(18, 5), absent(19, 0), alpha(19, 1), beta(20, DEVEL)], &[], "overlapping victims in a cycle: recompute targets instead of skipping"),
    row(RejectUpdatesToCQWithInvalidOnFlavors, "RejectUpdatesToCQWithInvalidOnFlavors", &[alpha(16, 6), absent(17, 0), alpha(17, 1), beta(20, 0)], &[], "ClusterQueue update with unknown onFlavors rejected"),
    row(RemoveFinalizersWithStrictPatch, "RemoveFinalizersWithStrictPatch", &[beta(16, 1)], &[], "finalizers are removed by a strict patch"),
    row(ReservedResourceNameValidation, "ReservedResourceNameValidation", &[beta(20, 0)], &[], "pods is refused as a name in resource transformations and deviceClassMappings"),
    row(SanitizePodSets, "SanitizePodSets", &[beta(13, 0), ga(17, 0), built_in(19, 0)], &[], "duplicate environment variables are dropped from Workloads"),
    row(SchedulerLibraryIntegration, "SchedulerLibraryIntegration", &[alpha(19, 0)], &[TopologyAwareScheduling], "external scheduler library simulates node fit for TAS"),
    row(SchedulerLongRequeueInterval, "SchedulerLongRequeueInterval", &[alpha(16, 3), gone(20, DEVEL, "leave it out: retries come after a second")], &[], "inadmissible Workloads are retried after 10 s, not 1 s"),
    row(SchedulerTimestampPreemptionBuffer, "SchedulerTimestampPreemptionBuffer", &[alpha(16, 3), gone(20, DEVEL, "leave it out: a newer workload of equal priority may be preempted however little newer")], &[], "newer Workloads of equal priority are preempted only if they are 5 minutes newer"),
    row(SchedulingEquivalenceHashing, "SchedulingEquivalenceHashing", &[beta(16, 3), beta_off(16, 4), beta(18, 0)], &[], "BestEffortFIFO: Workloads of the same shape as a just-failed one are parked unseen"),
    row(SchedulingEquivalenceHashingIgnorePodSetName, "SchedulingEquivalenceHashingIgnorePodSetName", &[beta(20, 0)], &[SchedulingEquivalenceHashing], "workloads that differ only in names of pod sets are of one shape"),
    row(ShortWorkloadNames, "ShortWorkloadNames", &[alpha(17, 0)], &[], "names ≤63"),
    row(SkipAncestorCheckForDeletedWorkloads, "SkipAncestorCheckForDeletedWorkloads", &[beta(18, 5), absent(19, 0), beta(19, 1)], &[], "deleting objects skip owner walk"),
    row(SkipFinalizersForPodsSuspendedByParent, "SkipFinalizersForPodsSuspendedByParent", &[beta(16, 0), ga(18, 0), built_in(20, DEVEL)], &[], "pods of suspended parents get no finalizer"),
    row(SkipReassignmentForPodOwnedWorkloads, "SkipReassignmentForPodOwnedWorkloads", &[alpha(17, 8), absent(18, 0), alpha(18, 4), beta(19, 0)], &[], "single-Pod Workloads: no reassignment, no Requeued=true"),
    row(SparkApplicationIntegration, "SparkApplicationIntegration", &[alpha(17, 0)], &[], "SparkApplication"),
    row(TASAssignmentsEncodingByHostnamePrefix, "TASAssignmentsEncodingByHostnamePrefix", &[beta(19, 0)], &[], "status encoding only"),
    row(TASBalancedPlacement, "TASBalancedPlacement", &[alpha(15, 0)], &[TopologyAwareScheduling], "balanced placement for preferred requests"),
    row(TASCacheNodeMatchResults, "TASCacheNodeMatchResults", &[beta(17, 8), absent(18, 0), beta(18, 4)], &[], "caches node matches"),
    row(TASCacheTopologyTree, "TASCacheTopologyTree", &[alpha(18, 6), absent(19, 0), alpha(19, 2), beta(20, DEVEL)], &[], "caches the topology tree"),
    row(TASCachingRemainingResources, "TASCachingRemainingResources", &[beta(17, 8), absent(18, 0), beta(18, 4)], &[], "caches what is left on nodes"),
    row(TASFailedNodeReplacement, "TASFailedNodeReplacement", &[beta(14, 0)], &[TopologyAwareScheduling], "replace a failed node in place"),
    row(TASFailedNodeReplacementFailFast, "TASFailedNodeReplacementFailFast", &[beta(14, 0)], &[TopologyAwareScheduling, TASFailedNodeReplacement], "evict if the first replacement try fails"),
    row(TASGroupedPodSetSlicing, "TASGroupedPodSetSlicing", &[beta(20, 0)], &[TopologyAwareScheduling], "pod sets of a group may have slices"),
    row(TASHandleOverlappingFlavors, "TASHandleOverlappingFlavors", &[alpha(16, 9), absent(17, 0), alpha(17, 4), beta(18, 0)], &[TopologyAwareScheduling], "usage of other flavors on the same node is counted"),
    row(TASLeaderPodSetFeasibility, "TASLeaderPodSetFeasibility", &[beta(20, 0)], &[TopologyAwareScheduling], "a leader goes only to nodes that its own selectors, affinity and tolerations allow"),
    row(TASMultiLayerTopology, "TASMultiLayerTopology", &[alpha(17, 0), beta(19, 0)], &[TopologyAwareScheduling], "constraints annotation with up to 3 slice layers"),
    row(TASNodeFeasibilityForAllLevels, "TASNodeFeasibilityForAllLevels", &[beta(20, 0)], &[TopologyAwareScheduling], "nodes decide what fits in topologies without the level of hostnames, too"),
    row(TASPartialSlices, "TASPartialSlices", &[beta(20, 0)], &[TopologyAwareScheduling], "pods beyond a multiple of the slice size make one shorter slice"),
    row(TASProfileLeastFreeCapacity, "TASProfileLeastFreeCapacity", &[deprecated(11, 0), gone(17, 0, "leave it out; TASProfileMixed is the nearest that there is")], &[], "all pod sets are placed by LeastFreeCapacity"),
    row(TASProfileMixed, "TASProfileMixed", &[beta(15, 0)], &[TopologyAwareScheduling], "unconstrained pod sets use LeastFreeCapacity, others BestFit; off: BestFit for all"),
    row(TASRecomputeAssignmentWithinSchedulingCycle, "TASRecomputeAssignmentWithinSchedulingCycle", &[beta(17, 6), absent(18, 0), beta(18, 2)], &[TopologyAwareScheduling], "a TAS Workload that no longer fits is reassigned in the same cycle"),
    row(TASRejectFalseUnconstrainedTopology, "TASRejectFalseUnconstrainedTopology", &[alpha(20, 0)], &[TopologyAwareScheduling], "podset-unconstrained-topology \"false\" is refused"),
    row(TASReplaceMultipleFailedNodes, "TASReplaceMultipleFailedNodes", &[alpha(20, 0)], &[TopologyAwareScheduling, TASFailedNodeReplacement], "up to eight failed nodes of a workload are replaced one after another"),
    row(TASReplaceNodeDueToNotReadyOverFixedTime, "TASReplaceNodeDueToNotReadyOverFixedTime", &[built_in(0, 0), beta(17, 8), built_in(18, 0), beta(18, 4), deprecated(19, 0)], &[TopologyAwareScheduling, TASFailedNodeReplacement], "NotReady for a fixed delay = failed"),
    row(TASReplaceNodeOnNodeTaints, "TASReplaceNodeOnNodeTaints", &[alpha(16, 2), beta(17, 0)], &[TopologyAwareScheduling], "evict when node taints keep pods from running"),
    row(TASReplaceNodeOnPodTermination, "TASReplaceNodeOnPodTermination", &[beta(14, 0)], &[TopologyAwareScheduling, TASFailedNodeReplacement], "NotReady node + terminated pods = failed"),
    row(TASRespectNodeAffinityPreferred, "TASRespectNodeAffinityPreferred", &[alpha(18, 0)], &[TopologyAwareScheduling], "preferred node affinity ranks above placement policy"),
    row(TASTopologySpreading, "TASTopologySpreading", &[alpha(20, 0)], &[TopologyAwareScheduling], "podset-topology-spreading limits the pods of a domain"),
    row(TASValidateWorkloadSliceSize, "TASValidateWorkloadSliceSize", &[beta(18, 5), absent(19, 0), beta(19, 1)], &[], "Workload webhook rejects slice size < 1"),
    row(TLSOptions, "TLSOptions", &[beta(16, 0), ga(20, DEVEL)], &[], "the `tls` section of the configuration is honoured"),
    row(TopologyAwareScheduling, "TopologyAwareScheduling", &[beta(14, 0)], &[], "topology requests and flavors with topologyName"),
    row(UnadmittedWorkloadsExplicitStatus, "UnadmittedWorkloadsExplicitStatus", &[alpha(18, 5), beta_off(19, 0), alpha(20, 0)], &[UnadmittedWorkloadsObservability], "both conditions set False at first reconcile"),
    row(UnadmittedWorkloadsObservability, "UnadmittedWorkloadsObservability", &[alpha(18, 5), beta_off(19, 0), beta(20, DEVEL)], &[], "finer reasons on QuotaReserved=False / Admitted=False"),
    row(ValidateRayAndSparkJobUpdates, "ValidateRayAndSparkJobUpdates", &[beta(18, 6), absent(19, 0), beta(19, 2)], &[], "updates of formerly managed jobs validated"),
    row(VectorizedResourceRequests, "VectorizedResourceRequests", &[beta(17, 8), absent(18, 0), beta(18, 4)], &[], "a faster form of request arithmetic"),
    row(VisibilityOnDemand, "VisibilityOnDemand", &[beta(9, 0)], &[], "pending workloads are served by the visibility API"),
    row(WaitForPodsReadyMaxNotReady, "WaitForPodsReadyMaxNotReady", &[alpha(20, 0)], &[], "pod groups are ready with some pods that are not"),
    row(WaitForPodsReadyUnscheduledTimeout, "WaitForPodsReadyUnscheduledTimeout", &[alpha(20, 0)], &[], "waitForPodsReady.unscheduledTimeout for pods that are not scheduled"),
    row(WorkloadIdentifierAnnotations, "WorkloadIdentifierAnnotations", &[alpha(17, 4), beta(18, 0)], &[], "group / prebuilt names via annotations"),
    row(WorkloadLevelWaitForPodsReady, "WorkloadLevelWaitForPodsReady", &[alpha(20, 0)], &[], "annotation wait-for-pods-ready overrides the timeouts of waitForPodsReady"),
    row(WorkloadPriorityClassDefaulting, "WorkloadPriorityClassDefaulting", &[alpha(18, 0), beta(20, DEVEL)], &[], "class named `default` applied (rules/10 §2.2)"),
    row(WorkloadRequestUseMergePatch, "WorkloadRequestUseMergePatch", &[alpha(14, 0)], &[], "Workload status is written by merge patch"),
    row(WorkloadValidateResourcesAreNonNegative, "WorkloadValidateResourcesAreNonNegative", &[beta(18, 5), absent(19, 0), beta(19, 1)], &[], "negative requests rejected"),
    row(WorkloadValidationForPodSetMetadata, "WorkloadValidationForPodSetMetadata", &[beta(18, 5), absent(19, 0), beta(19, 1)], &[], "bad pod-set labels/annotations rejected"),
];
