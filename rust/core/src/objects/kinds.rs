//! The objects other than workloads, and their parts.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::fields::{
    admission_checks, admission_scope, always, as_text, node_labels, pod_fixed, presence, read_text, resources, weight,
};
use super::time::Time;
use super::words::{Word, read_word, words};
use crate::base::quantity::Quantity;

/// Resource name to quantity, as in `resources.requests`.
pub type ResourceList = BTreeMap<String, Quantity>;
/// Labels, annotations, node selectors.
pub type StringMap = BTreeMap<String, String>;

/// What every object carries in `metadata`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Meta {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`; empty for cluster-scoped kinds and for objects that have none.
    pub namespace: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.creationTimestamp`.
    #[serde(rename = "creationTimestamp")]
    pub created: Time,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.labels`.
    pub labels: StringMap,
    /// `metadata.annotations`.
    pub annotations: StringMap,
    /// `metadata.ownerReferences`, the fields that are read.
    #[serde(rename = "ownerReferences")]
    pub owners: Vec<OwnerReference>,
    /// Is `metadata.deletionTimestamp` set?
    #[serde(rename = "deletionTimestamp", deserialize_with = "presence", skip_serializing)]
    pub deleting: bool,
}

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceFlavor {
    #[serde(skip)]
    pub meta: Meta,
    pub node_labels: StringMap,
    pub node_taints: Vec<Taint>,
    pub tolerations: Vec<Toleration>,
    /// Empty: not a topology-aware flavor.
    pub topology_name: String,
}

/// A taint of a flavor's nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Taint {
    pub key: String,
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// A toleration, of a pod or of a flavor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Topology {
    #[serde(skip)]
    pub meta: Meta,
    /// `spec.levels[].nodeLabel`, the widest level first.
    #[serde(with = "node_labels")]
    pub levels: Vec<String>,
}

/// `spec.resourceGroups[]` of a ClusterQueue or Cohort.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceGroup {
    #[serde(serialize_with = "always")]
    pub covered_resources: Vec<String>,
    /// In order of preference.
    #[serde(serialize_with = "always")]
    pub flavors: Vec<FlavorQuotas>,
}

/// One flavor of a resource group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FlavorQuotas {
    #[serde(serialize_with = "always")]
    pub name: String,
    #[serde(serialize_with = "always")]
    pub resources: Vec<ResourceQuota>,
}

/// The quota of one resource in one flavor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceQuota {
    pub name: String,
    pub nominal_quota: Quantity,
    /// Absent: unlimited.
    pub borrowing_limit: Option<Quantity>,
    /// Absent: everything is lent.
    pub lending_limit: Option<Quantity>,
}

/// `Cohort` (rules/01 §2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Cohort {
    #[serde(skip)]
    pub meta: Meta,
    /// Empty: a root.
    pub parent_name: String,
    pub resource_groups: Vec<ResourceGroup>,
    /// `spec.fairSharing.weight`; absent acts as 1.
    #[serde(rename = "fairSharing", with = "weight")]
    pub fair_weight: Option<Quantity>,
}

/// `ClusterQueue` (rules/01 §1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterQueue {
    #[serde(skip)]
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
    #[serde(rename = "admissionChecksStrategy", with = "admission_checks")]
    pub admission_checks: Vec<AdmissionCheckRule>,
    pub stop_policy: StopPolicy,
    /// `spec.fairSharing.weight`; absent acts as 1.
    #[serde(rename = "fairSharing", with = "weight")]
    pub fair_weight: Option<Quantity>,
    /// `spec.admissionScope.admissionMode` is `UsageBasedAdmissionFairSharing`.
    #[serde(rename = "admissionScope", with = "admission_scope")]
    pub usage_based_admission: bool,
    /// `spec.concurrentAdmissionPolicy`, as compact JSON with sorted keys; empty when absent.
    #[serde(with = "as_text")]
    pub concurrent_admission_policy: String,
    /// `spec.concurrentAdmissionPolicy.migration.constraints.lastAcceptableFlavorName`.
    #[serde(skip)]
    pub last_acceptable_flavor: Option<String>,
}

words! {
    QueueingStrategy { StrictFIFO, BestEffortFIFO }
    StopPolicy { None, Hold, HoldAndDrain }
    FungibilityPolicy { MayStopSearch, TryNextFlavor }
    FungibilityPreference { BorrowingOverPreemption, PreemptionOverBorrowing }
    // Each policy takes some of these: see the schema. `Unset` has no word.
    PreemptionPolicy { Never, LowerPriority, LowerOrNewerEqualPriority, Any }
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FungibilityPolicy {
    #[default]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FlavorFungibility {
    /// Default `MayStopSearch`.
    pub when_can_borrow: FungibilityPolicy,
    /// Default `TryNextFlavor`.
    #[serde(deserialize_with = "preempt_policy")]
    pub when_can_preempt: FungibilityPolicy,
    /// Absent: `BorrowingOverPreemption`.
    #[serde(deserialize_with = "read_word")]
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

/// Reads `whenCanPreempt`, whose default is not what an unknown word means.
fn preempt_policy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FungibilityPolicy, D::Error> {
    let absent = FlavorFungibility::default().when_can_preempt;
    read_text(deserializer, |word| if word.is_empty() { absent } else { Word::read(word).unwrap_or_default() })
}

/// `spec.preemption` if present. The stored strings matter (rules/03 §4.1), so an empty policy differs from `Never`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BorrowWithinCohort {
    pub policy: PreemptionPolicy,
    pub max_priority_threshold: Option<i32>,
}

/// One entry of `admissionChecksStrategy.admissionChecks`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AdmissionCheckRule {
    pub name: String,
    /// Empty: all flavors.
    pub on_flavors: Vec<String>,
}

/// `LocalQueue` (rules/01 §3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LocalQueue {
    #[serde(skip)]
    pub meta: Meta,
    pub cluster_queue: String,
    pub stop_policy: StopPolicy,
    /// `spec.fairSharing.weight`; absent acts as 1.
    #[serde(rename = "fairSharing", with = "weight")]
    pub fair_weight: Option<Quantity>,
    /// `status.fairSharing.admissionFairSharingStatus.consumedResources`: the initial history of an account.
    #[serde(skip)]
    pub consumed_resources: Option<ResourceList>,
}

/// `AdmissionCheck`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AdmissionCheck {
    #[serde(skip)]
    pub meta: Meta,
    pub controller_name: String,
    /// Is condition Active of its status True?
    #[serde(skip)]
    pub active: bool,
}

/// `WorkloadPriorityClass` and `PriorityClass`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PriorityClass {
    #[serde(rename = "metadata")]
    pub meta: Meta,
    #[serde(serialize_with = "always")]
    pub value: i32,
    /// For a `PriorityClass` only.
    #[serde(skip_serializing)]
    pub global_default: bool,
}

/// `LimitRange` (v1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LimitRange {
    #[serde(skip)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LimitRangeItem {
    /// `type`: `Container`, `Pod`, `PersistentVolumeClaim`.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(deserialize_with = "resources")]
    pub max: ResourceList,
    #[serde(deserialize_with = "resources")]
    pub min: ResourceList,
    #[serde(deserialize_with = "resources")]
    pub default: ResourceList,
    #[serde(deserialize_with = "resources")]
    pub default_request: ResourceList,
    #[serde(deserialize_with = "resources")]
    pub max_limit_request_ratio: ResourceList,
}

/// `RuntimeClass` (node.k8s.io/v1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RuntimeClass {
    #[serde(rename = "metadata")]
    pub meta: Meta,
    /// `overhead.podFixed`.
    #[serde(deserialize_with = "pod_fixed")]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceClass {
    #[serde(skip)]
    pub meta: Meta,
    /// The extended resource that its devices provide; empty: none.
    pub extended_resource_name: String,
}

/// A label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelSelector {
    pub match_labels: StringMap,
    pub match_expressions: Vec<Requirement>,
}

/// One expression of a label selector or node selector term.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Requirement {
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`; node affinity also `Gt`, `Lt`.
    pub operator: String,
    pub values: Vec<String>,
}

/// One term of a node affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSelectorTerm {
    pub match_expressions: Vec<Requirement>,
    /// Never evaluated against flavors (rules/03 §5), but against nodes (rules/08 §4.7).
    pub match_fields: Vec<Requirement>,
}

/// One term of a preferred node affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PreferredTerm {
    pub weight: i32,
    /// `preference`.
    #[serde(rename = "preference")]
    pub term: NodeSelectorTerm,
}
