//! Objects as bytes ([`crate::snapshot`]).

use std::sync::Arc;

use crate::base::shared::Shared;
use crate::objects::condition_type::ConditionType;
use crate::objects::config::{
    AdmissionFairSharing, Config, DeviceClassMapping, DeviceSource, DeviceSourceKind, Experiments, FairSharing,
    PreemptionStrategy, RequeuingTimestamp, Resources as ResourceSettings, Transformation, WaitForPodsReady,
};
use crate::objects::message::{Blocker, ConsideredFlavor, Misfit, Path, Queue, Reason, Why};
use crate::objects::*;
use crate::snapshot::{Damage, Pool, Pooled, Reader, Stored, Writer, pooled, stored};

const SECOND_NS: i64 = 1_000_000_000;

/// In seconds if possible, as Kubernetes' times are.
impl Stored for Time {
    fn write_to(&self, out: &mut Writer<'_>) {
        let is_whole = self.0 % SECOND_NS == 0;
        let units = if is_whole { self.0 / SECOND_NS } else { self.0 };
        out.signed(i128::from(units) << 1 | i128::from(is_whole));
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let coded = from.signed()?;
        let units = i64::try_from(coded >> 1).ok();
        let time = if coded & 1 == 1 { units.and_then(|units| units.checked_mul(SECOND_NS)) } else { units };
        time.map(Time).ok_or_else(|| from.damage("a time of more than 64 bits"))
    }
}

impl Stored for ConditionType {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.text(self.as_str());
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        Arc::<str>::read_from(from).map(|text| ConditionType::from(&*text))
    }
}

impl Stored for Conditions {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.list(self.iter());
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        Vec::read_from(from).map(Conditions::from)
    }
}

pooled! {
    Shared<MetaDetails>: Details,
    Shared<PriorityClassRef>: PriorityClasses,
    Shared<Vec<String>>: NameLists,
    Shared<Vec<PodSet>>: PodSets,
    Shared<Vec<PodSetRequest>>: Requests,
    Shared<Admission>: Admissions,
    Shared<RareStatus>: RareStatuses,
    Shared<WorkloadStatus>: Statuses,
    Arc<StringMap>: Labels,
    Arc<ResourceFlavor>: Flavors,
    Arc<ClusterQueue>: ClusterQueues,
    Arc<Cohort>: Cohorts,
    Arc<LocalQueue>: LocalQueues,
}

impl Pooled for PodSetAssignments {
    const POOL: Pool = Pool::Assignments;

    fn read_part(from: &mut Reader<'_>) -> Result<Self, Damage> {
        Vec::read_from(from).map(PodSetAssignments::from)
    }
}

impl Stored for PodSetAssignments {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.put(Pool::Assignments, self.as_ptr() as usize, |out| out.list(self.iter()));
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        from.pooled(Pool::Assignments)
    }
}

// Workloads.
stored!(struct Workload {
    meta, pod_sets, queue_name, priority_class, priority, active, maximum_execution_time_seconds, preemption_gates, status,
});
stored!(struct WorkloadMeta { key, created, generation, details });
stored!(struct MetaDetails { labels, annotations, owners, deleting });
stored!(struct OwnerReference { api_version, kind, name, uid, controller });
stored!(struct PriorityClassRef { group, kind, name });
stored!(struct PodSet { name, count, min_count, template, topology_request });
stored!(struct PodTemplate { metadata, spec });
stored!(struct TemplateMetadata { labels, annotations });
stored!(struct TopologyRequest {
    required, preferred, unconstrained, pod_index_label, sub_group_index_label, sub_group_count, pod_set_group_name,
    slice_required_topology, slice_size, constraints,
});
stored!(struct SliceConstraint { topology, size });
stored!(struct TopologyAssignment { levels, domains });
stored!(struct TopologyDomain { values, count });

impl Stored for Arc<Topology> {
    fn write_to(&self, out: &mut Writer<'_>) {
        (**self).write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        Topology::read_from(from).map(Arc::new)
    }
}

impl Stored for Shared<TopologyAssignment> {
    fn write_to(&self, out: &mut Writer<'_>) {
        (**self).write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        TopologyAssignment::read_from(from).map(Shared::from)
    }
}
stored!(struct PodSpec {
    init_containers, containers, node_selector, required_node_affinity, preferred_node_affinity, tolerations, runtime_class_name,
    priority_class_name, priority, overhead, resources, resource_claims, opaque,
});
stored!(struct PodResourceClaim { claim_name, template_name });
stored!(struct Container { name, resources, sidecar, ports });
stored!(struct Resources { requests, limits });
stored!(struct NodeSelectorTerm { match_expressions, match_fields });
stored!(struct PreferredTerm { weight, term });
stored!(struct Requirement { key, operator, values });
stored!(struct Toleration { key, operator, value, effect, toleration_seconds });

// Their statuses.
stored!(struct WorkloadStatus { conditions, admission, resource_requests, rare });
stored!(struct Condition { kind, status, reason, message, last_transition, observed_generation });
stored!(enum ConditionStatus { 0 = True, 1 = False, 2 = Unknown });
stored!(struct Admission { cluster_queue, pod_set_assignments });
stored!(struct PodSetAssignment {
    name, flavors, resource_usage, count, topology_assignment, delayed_topology_request,
});
stored!(struct PodSetRequest { name, resources });
stored!(struct RareStatus {
    requeue_state, reclaimable_pods, admission_checks, evictions, accumulated_past_execution_time_seconds, cluster_name,
    nominated_cluster_names, unhealthy_nodes, preemption_gates,
});
stored!(struct RequeueState { count, requeue_at });
stored!(struct ReclaimablePod { name, count });
stored!(struct AdmissionCheckState {
    name, state, message, last_transition, requeue_after_seconds, retry_count, pod_set_updates,
    updates,
});
stored!(struct PodSetUpdate { name, labels, annotations, node_selector, tolerations });
stored!(enum CheckState { 0 = Pending, 1 = Ready, 2 = Retry, 3 = Rejected });
stored!(struct EvictionCount { reason, underlying_cause, count });
stored!(struct PreemptionGateState { name, position, last_transition });

// Parts of messages.
stored!(enum Queue { 0 = Local(name), 1 = Cluster(name) });
stored!(enum Blocker { 0 = Missing, 1 = Inactive, 2 = Gone, 3 = Stopped });
stored!(struct Misfit { pod_set, why });
stored!(enum Why { 0 = Error(error), 1 = Reasons(reasons) });
stored!(enum Reason {
    0 = ResourceUnavailable(resource),
    1 = FlavorNotFound(flavor),
    2 = NotNominated(flavor, resource),
    3 = NotAllowed(flavor),
    4 = TopologyUnsupported(flavor),
    5 = TopologyOnly(flavor),
    6 = UntoleratedTaint(flavor, taint),
    7 = AffinityMismatch(flavor),
    8 = ExceedsMaximum { fr, assumed, requested, maximum },
    9 = Insufficient { fr, missing },
    10 = ReplacedSliceFlavor(flavor, other),
    11 = ResourceNotProvided(flavor, resource),
    12 = TopologyUnknown(flavor),
    13 = LevelUnknown(flavor),
    14 = NoPlace(why),
    15 = BorrowingWaits(fr),
});
stored!(struct ConsideredFlavor { flavor, mode, possibility, level, reasons });
stored!(struct Path { queue, cohorts });

// The other objects.
stored!(struct Meta { name, namespace, uid, created, generation, labels, annotations, owners, deleting });
stored!(struct ResourceFlavor { meta, node_labels, node_taints, tolerations, topology_name });
stored!(struct Taint { key, value, effect });
stored!(struct Topology { meta, levels });
stored!(struct ResourceGroup { covered_resources, flavors });
stored!(struct FlavorQuotas { name, resources });
stored!(struct ResourceQuota { name, nominal_quota, borrowing_limit, lending_limit });
stored!(struct Cohort { meta, parent_name, resource_groups, fair_weight });
stored!(struct ClusterQueue {
    meta, cohort_name, resource_groups, queueing_strategy, namespace_selector, flavor_fungibility, preemption,
    admission_checks, stop_policy, fair_weight, usage_based_admission, concurrent_admission_policy,
    last_acceptable_flavor,
});
stored!(enum QueueingStrategy { 0 = BestEffortFIFO, 1 = StrictFIFO });
stored!(enum StopPolicy { 0 = None, 1 = Hold, 2 = HoldAndDrain });
stored!(enum FungibilityPolicy { 0 = MayStopSearch, 1 = TryNextFlavor });
stored!(enum FungibilityPreference { 0 = BorrowingOverPreemption, 1 = PreemptionOverBorrowing });
stored!(struct FlavorFungibility { when_can_borrow, when_can_preempt, preference });
stored!(struct Preemption { reclaim_within_cohort, within_cluster_queue, borrow_within_cohort });
stored!(enum PreemptionPolicy {
    0 = Unset, 1 = Never, 2 = LowerPriority, 3 = LowerOrNewerEqualPriority, 4 = Any,
});
stored!(struct BorrowWithinCohort { policy, max_priority_threshold });
stored!(struct AdmissionCheckRule { name, on_flavors });
stored!(struct LocalQueue { meta, cluster_queue, stop_policy, fair_weight, consumed_resources });
stored!(struct AdmissionCheck { meta, controller_name, active });
stored!(struct PriorityClass { meta, value, global_default });
stored!(struct LimitRange { meta, limits });
stored!(struct LimitRangeItem { kind, max, min, default, default_request, max_limit_request_ratio });
stored!(struct RuntimeClass { meta, overhead });
stored!(struct ResourceClaimTemplate { meta, requests });
stored!(struct DeviceRequest { first_available, exactly });
stored!(struct ExactDeviceRequest { device_class_name, has_expressions, allocation_mode, count, admin_access });
stored!(struct DeviceClass { meta, extended_resource_name });
stored!(struct LabelSelector { match_labels, match_expressions });

// The configuration.
stored!(struct Config {
    release, gates, changes, fair_sharing, admission_fair_sharing, wait_for_pods_ready, requeuing_timestamp, resources,
    batches_retries, experiments,
});
stored!(struct Experiments { min_run_ns, reclaim_backoff_ns, time_share_ns });
stored!(struct FairSharing { preemption_strategies });
stored!(enum PreemptionStrategy { 0 = LessThanOrEqualToFinalShare, 1 = LessThanInitialShare });
stored!(struct AdmissionFairSharing { usage_half_life_ns, usage_sampling_interval_ns, resource_weights });
stored!(struct WaitForPodsReady {
    timeout_ns, recovery_timeout_ns, unscheduled_timeout_ns, block_admission, requeuing_timestamp, backoff_limit_count,
    backoff_base_seconds, backoff_max_seconds,
});
stored!(enum RequeuingTimestamp { 0 = Eviction, 1 = Creation });
stored!(struct ResourceSettings {
    exclude_resource_prefixes, transformations, ignore_undeclared, device_classes, device_class_mappings,
});
stored!(struct Transformation { replace, multiply_by, outputs });
stored!(struct DeviceClassMapping { name, device_class_names, sources });
stored!(struct DeviceSource { kind, name, driver, device_selector });
stored!(enum DeviceSourceKind { 0 = Counter, 1 = Capacity });

// Nodes and pods.
stored!(struct Node { meta, unschedulable, taints, ready, allocatable, condition_statuses });
stored!(struct NodeReady { status, since });
stored!(struct Pod { meta, node_name, phase, scheduling_gates, spec });
