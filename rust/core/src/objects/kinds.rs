//! The objects other than workloads, and their parts.

#![allow(missing_docs)] // a field is documented where its name is not the Kubernetes name and meaning

use std::collections::BTreeMap;

use crate::base::quantity::Quantity;

/// A point in time: nanoseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl Time {
    /// The time of an object without one: older than all others, like Go's zero time.
    pub const ABSENT: Time = Time(i64::MIN);

    /// The saturating distance from `earlier`, in nanoseconds.
    #[must_use]
    pub fn since(self, earlier: Time) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Default for Time {
    fn default() -> Self {
        Time::ABSENT
    }
}

/// Resource name to quantity, as in `resources.requests`.
pub type ResourceList = BTreeMap<String, Quantity>;
/// Labels, annotations, node selectors.
pub type StringMap = BTreeMap<String, String>;

/// What every object carries in `metadata`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`; empty for cluster-scoped kinds and for objects that have none.
    pub namespace: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.creationTimestamp`.
    pub created: Time,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.labels`.
    pub labels: StringMap,
    /// `metadata.annotations`.
    pub annotations: StringMap,
    /// `metadata.ownerReferences`, the fields that are read.
    pub owners: Vec<OwnerReference>,
    /// Is `metadata.deletionTimestamp` set?
    pub deleting: bool,
}

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerReference {
    /// Group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
    /// Is this the managing controller?
    pub controller: bool,
}

/// `ResourceFlavor` (rules/01 §4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceFlavor {
    pub meta: Meta,
    pub node_labels: StringMap,
    pub node_taints: Vec<Taint>,
    pub tolerations: Vec<Toleration>,
    /// Empty: not a topology-aware flavor.
    pub topology_name: String,
}

/// A taint of a flavor's nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Taint {
    pub key: String,
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// A toleration, of a pod or of a flavor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Toleration {
    /// Empty matches every key.
    pub key: String,
    /// Empty (= `Equal`), `Equal`, `Exists`, `Lt`, `Gt`.
    pub operator: String,
    pub value: String,
    /// Empty matches every effect.
    pub effect: String,
    pub toleration_seconds: Option<i64>,
}

/// `Topology` (rules/08 §1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    pub meta: Meta,
    /// `spec.levels[].nodeLabel`, the widest level first.
    pub levels: Vec<String>,
}

/// `spec.resourceGroups[]` of a ClusterQueue or Cohort.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceGroup {
    pub covered_resources: Vec<String>,
    /// In order of preference.
    pub flavors: Vec<FlavorQuotas>,
}

/// One flavor of a resource group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlavorQuotas {
    pub name: String,
    pub resources: Vec<ResourceQuota>,
}

/// The quota of one resource in one flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceQuota {
    pub name: String,
    pub nominal_quota: Quantity,
    /// Absent: unlimited.
    pub borrowing_limit: Option<Quantity>,
    /// Absent: everything is lent.
    pub lending_limit: Option<Quantity>,
}

/// `Cohort` (rules/01 §2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cohort {
    pub meta: Meta,
    /// Empty: a root.
    pub parent_name: String,
    pub resource_groups: Vec<ResourceGroup>,
    /// `spec.fairSharing.weight`; absent acts as 1.
    pub fair_weight: Option<Quantity>,
}

/// `ClusterQueue` (rules/01 §1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterQueue {
    pub meta: Meta,
    /// Empty: no cohort.
    pub cohort_name: String,
    pub resource_groups: Vec<ResourceGroup>,
    pub queueing_strategy: QueueingStrategy,
    /// `None` matches no namespace, an empty selector every one.
    pub namespace_selector: Option<LabelSelector>,
    pub flavor_fungibility: FlavorFungibility,
    /// Absent acts as Never everywhere (rules/01 §1, rules/03 §4.1).
    pub preemption: Option<Preemption>,
    pub admission_checks: Vec<AdmissionCheckRule>,
    pub stop_policy: StopPolicy,
    /// `spec.fairSharing.weight`; absent acts as 1.
    pub fair_weight: Option<Quantity>,
    /// `spec.admissionScope.admissionMode` is `UsageBasedAdmissionFairSharing`.
    pub usage_based_admission: bool,
    /// `spec.concurrentAdmissionPolicy`, as compact JSON with sorted keys; empty when absent.
    pub concurrent_admission_policy: String,
    /// `spec.concurrentAdmissionPolicy.migration.constraints.lastAcceptableFlavorName`.
    pub last_acceptable_flavor: Option<String>,
}

/// `spec.queueingStrategy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueingStrategy {
    #[default]
    BestEffortFIFO,
    StrictFIFO,
}

/// `spec.stopPolicy` of a ClusterQueue or LocalQueue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopPolicy {
    #[default]
    None,
    Hold,
    HoldAndDrain,
}

/// `whenCanBorrow` / `whenCanPreempt`: any value other than `TryNextFlavor` acts as `MayStopSearch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FungibilityPolicy {
    MayStopSearch,
    TryNextFlavor,
}

/// `spec.flavorFungibility.preference`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FungibilityPreference {
    #[default]
    BorrowingOverPreemption,
    PreemptionOverBorrowing,
}

/// `spec.flavorFungibility`, with the defaults of absent fields filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlavorFungibility {
    /// Default `MayStopSearch`.
    pub when_can_borrow: FungibilityPolicy,
    /// Default `TryNextFlavor`.
    pub when_can_preempt: FungibilityPolicy,
    /// Absent: `BorrowingOverPreemption`.
    pub preference: Option<FungibilityPreference>,
}

impl Default for FlavorFungibility {
    fn default() -> Self {
        Self {
            when_can_borrow: FungibilityPolicy::MayStopSearch,
            when_can_preempt: FungibilityPolicy::TryNextFlavor,
            preference: None,
        }
    }
}

/// `spec.preemption` if present. The stored strings matter (rules/03 §4.1), so an empty policy differs from `Never`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Preemption {
    pub reclaim_within_cohort: PreemptionPolicy,
    pub within_cluster_queue: PreemptionPolicy,
    pub borrow_within_cohort: Option<BorrowWithinCohort>,
}

/// A preemption policy as stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PreemptionPolicy {
    /// Empty or unknown: allows nothing, but is not `Never`.
    #[default]
    Unset,
    Never,
    LowerPriority,
    LowerOrNewerEqualPriority,
    Any,
}

/// `spec.preemption.borrowWithinCohort`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BorrowWithinCohort {
    pub policy: PreemptionPolicy,
    pub max_priority_threshold: Option<i32>,
}

/// One entry of `admissionChecksStrategy.admissionChecks`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdmissionCheckRule {
    pub name: String,
    /// Empty: all flavors.
    pub on_flavors: Vec<String>,
}

/// `LocalQueue` (rules/01 §3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalQueue {
    pub meta: Meta,
    pub cluster_queue: String,
    pub stop_policy: StopPolicy,
    /// `spec.fairSharing.weight`; absent acts as 1.
    pub fair_weight: Option<Quantity>,
    /// `status.fairSharing.admissionFairSharingStatus.consumedResources`: the initial history of an account.
    pub consumed_resources: Option<ResourceList>,
}

/// `AdmissionCheck`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdmissionCheck {
    pub meta: Meta,
    pub controller_name: String,
    /// Is condition Active of its status True?
    pub active: bool,
}

/// `WorkloadPriorityClass` and `PriorityClass`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriorityClass {
    pub meta: Meta,
    pub value: i32,
    /// For a `PriorityClass` only.
    pub global_default: bool,
}

/// `LimitRange` (v1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitRange {
    pub meta: Meta,
    pub limits: Vec<LimitRangeItem>,
}

impl LimitRange {
    /// What may reject pods, item by item.
    pub(crate) fn constraints(&self) -> impl Iterator<Item = (&str, [&ResourceList; 3])> {
        self.limits.iter().map(|it| (it.kind.as_str(), [&it.max, &it.min, &it.max_limit_request_ratio]))
    }

    /// May it reject any pods?
    pub(crate) fn constrains(&self) -> bool {
        self.constraints().any(|(_, lists)| lists.iter().any(|list| !list.is_empty()))
    }
}

/// One entry of `spec.limits` of a LimitRange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitRangeItem {
    /// `type`: `Container`, `Pod`, `PersistentVolumeClaim`.
    pub kind: String,
    pub max: ResourceList,
    pub min: ResourceList,
    pub default: ResourceList,
    pub default_request: ResourceList,
    pub max_limit_request_ratio: ResourceList,
}

/// `RuntimeClass` (node.k8s.io/v1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeClass {
    pub meta: Meta,
    /// `overhead.podFixed`.
    pub overhead: ResourceList,
}

/// `ResourceClaimTemplate` (resource.k8s.io, rules/09 §8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceClaimTemplate {
    pub meta: Meta,
    /// `spec.spec.devices.requests`.
    pub requests: Vec<DeviceRequest>,
}

/// One request for devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceRequest {
    /// The alternatives of `firstAvailable`, best first.
    pub first_available: Vec<ExactDeviceRequest>,
    pub exactly: Option<ExactDeviceRequest>,
}

/// `exactly` of a request for devices, or an alternative, which never has admin access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactDeviceRequest {
    pub device_class_name: String,
    /// Is one of the `selectors` a CEL expression?
    pub has_expressions: bool,
    /// `ExactCount`, `All`, or a mode of a newer Kubernetes.
    pub allocation_mode: String,
    /// Number of devices.
    pub count: i64,
    pub admin_access: bool,
}

/// `DeviceClass` (resource.k8s.io, rules/09 §8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceClass {
    pub meta: Meta,
    /// The extended resource that its devices provide; empty: none.
    pub extended_resource_name: String,
}

/// A label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    pub match_labels: StringMap,
    pub match_expressions: Vec<Requirement>,
}

/// One expression of a label selector or node selector term.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requirement {
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`; node affinity also `Gt`, `Lt`.
    pub operator: String,
    pub values: Vec<String>,
}

/// One term of a node affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeSelectorTerm {
    pub match_expressions: Vec<Requirement>,
    /// Never evaluated against flavors (rules/03 §5), but against nodes (rules/08 §4.7).
    pub match_fields: Vec<Requirement>,
}

/// One term of a preferred node affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PreferredTerm {
    pub weight: i32,
    /// `preference`.
    pub term: NodeSelectorTerm,
}
