//! Workloads: what they ask for, and their statuses (rules/01 §6).
//!
//! Fields are named as in Kueue's API; what an absent one means is said where it matters.

#![allow(missing_docs)]

use std::sync::LazyLock;

use super::kinds::{Meta, NodeSelectorTerm, OwnerReference, ResourceList, StringMap, Time, Toleration};
use crate::base::key::Key;
use crate::base::shared::Shared;
use crate::base::text::Text;
use crate::objects::condition_type::ConditionType;
use crate::objects::message::Message;

/// `Workload` (rules/01 §6). Its parts are shared, as workloads are copied and tried far more often than they change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    pub meta: WorkloadMeta,
    pub pod_sets: Shared<Vec<PodSet>>,
    pub queue_name: Text,
    pub priority_class: Option<Shared<PriorityClassRef>>,
    /// Absent acts as 0.
    pub priority: Option<i32>,
    /// `spec.active`; absent acts as true.
    pub active: Option<bool>,
    pub maximum_execution_time_seconds: Option<i32>,
    /// Names of `spec.preemptionGates`.
    pub preemption_gates: Shared<Vec<String>>,
    pub status: Shared<WorkloadStatus>,
}

/// `metadata` of a Workload.
#[derive(Clone, Debug, Default)]
pub struct WorkloadMeta {
    /// Namespace, name and UID.
    pub key: Key,
    pub created: Time,
    pub generation: i64,
    pub details: Shared<MetaDetails>,
}

/// What scheduling reads of a Workload's metadata, and many have none of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaDetails {
    pub labels: StringMap,
    pub annotations: StringMap,
    pub owners: Vec<OwnerReference>,
    pub deleting: bool,
}

impl From<Meta> for WorkloadMeta {
    fn from(meta: Meta) -> Self {
        let Meta { name, namespace, uid, created, generation, labels, annotations, owners, deleting } = meta;
        let details = MetaDetails { labels, annotations, owners, deleting };
        Self { key: Key::new(&namespace, &name, &uid), created, generation, details: Shared::of(details) }
    }
}

impl PartialEq for WorkloadMeta {
    fn eq(&self, other: &Self) -> bool {
        let facts = |meta: &Self| (meta.created, meta.generation);
        self.key.is_same(&other.key) && facts(self) == facts(other) && self.details == other.details
    }
}

impl Eq for WorkloadMeta {}

/// `spec.priorityClassRef`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriorityClassRef {
    pub group: String,
    pub kind: String,
    pub name: String,
}

/// One pod set of a Workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodSet {
    pub name: String,
    pub count: i32,
    pub min_count: Option<i32>,
    pub template: PodTemplate,
    pub topology_request: Option<TopologyRequest>,
}

/// `podSets[].topologyRequest`: what tells whether topology is asked for; the rest enters as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TopologyRequest {
    pub required: Option<String>,
    pub preferred: Option<String>,
    pub unconstrained: Option<bool>,
    pub pod_set_group_name: Option<String>,
    /// Is a slice layer asked for (`podSetSliceRequiredTopology`, `...Constraints`)?
    pub sliced: bool,
    /// The whole request as compact JSON with sorted keys, for equality.
    pub text: String,
}

/// `podSets[].template`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodTemplate {
    pub labels: StringMap,
    pub annotations: StringMap,
    pub spec: PodSpec,
}

/// The fields of a pod spec that scheduling reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodSpec {
    pub init_containers: Vec<Container>,
    pub containers: Vec<Container>,
    pub node_selector: StringMap,
    /// `affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`.
    pub required_node_affinity: Option<Vec<NodeSelectorTerm>>,
    pub tolerations: Vec<Toleration>,
    pub runtime_class_name: Option<String>,
    pub priority_class_name: String,
    pub priority: Option<i32>,
    /// `overhead`; `None` when absent.
    pub overhead: Option<ResourceList>,
    /// Pod-level `resources`.
    pub resources: Option<Resources>,
    /// `resourceClaims`, in order.
    pub resource_claims: Vec<PodResourceClaim>,
    /// What only equality looks at, as compact JSON with sorted keys: affinity, topologySpreadConstraints,
    /// resourceClaims. Empty when all are absent.
    pub opaque: String,
}

impl PodSpec {
    /// Does it name a claim, or a template of one?
    #[must_use]
    pub(crate) fn claims_devices(&self) -> bool {
        self.resource_claims.iter().any(|claim| claim.claim_name.is_some() || claim.template_name.is_some())
    }
}

/// One entry of `resourceClaims` of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodResourceClaim {
    /// `resourceClaimName`.
    pub claim_name: Option<String>,
    /// `resourceClaimTemplateName`.
    pub template_name: Option<String>,
}

/// One container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Container {
    pub name: String,
    pub resources: Resources,
    /// `restartPolicy: Always` of an init container: a sidecar.
    pub sidecar: bool,
    /// `ports` as compact JSON with sorted keys, for equality; empty when absent.
    pub ports: String,
}

/// `resources` of a container or a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resources {
    pub requests: ResourceList,
    pub limits: ResourceList,
}

/// `status` of a Workload: the fields that the engine reads and writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadStatus {
    pub conditions: Vec<Condition>,
    pub admission: Option<Shared<Admission>>,
    pub requeue_state: Option<RequeueState>,
    pub reclaimable_pods: Vec<ReclaimablePod>,
    pub admission_checks: Vec<AdmissionCheckState>,
    /// Totals of a pending workload, written when a head stays pending.
    pub resource_requests: Option<Shared<Vec<PodSetRequest>>>,
    /// `schedulingStats.evictions`.
    pub evictions: Vec<EvictionCount>,
    pub accumulated_past_execution_time_seconds: Option<i32>,
    /// `clusterName` (MultiKueue).
    pub cluster_name: Option<String>,
    /// `nominatedClusterNames` (MultiKueue).
    pub nominated_cluster_names: Vec<String>,
    /// Names of `unhealthyNodes`.
    pub unhealthy_nodes: Vec<String>,
    /// `preemptionGates`: name and position.
    pub preemption_gates: Vec<PreemptionGateState>,
}

macro_rules! share_defaults {
    ($($name:ident: $of:ty;)*) => {$(
        static $name: LazyLock<Shared<$of>> = LazyLock::new(|| <$of>::default().into());

        impl Default for Shared<$of> {
            fn default() -> Self {
                $name.clone()
            }
        }
    )*};
}

// What most of a million that wait have: one of each is kept.
share_defaults! {
    NO_STATUS: WorkloadStatus;
    NO_DETAILS: MetaDetails;
    NO_POD_SETS: Vec<PodSet>;
    NO_NAMES: Vec<String>;
    NO_ASSIGNMENTS: Vec<PodSetAssignment>;
}

/// A condition. `kind` is its `type`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    pub kind: ConditionType,
    pub status: ConditionStatus,
    pub reason: Text,
    pub message: Message,
    pub last_transition: Time,
    pub observed_generation: i64,
}

/// `status` of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConditionStatus {
    True,
    False,
    #[default]
    Unknown,
}

/// `status.admission`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    pub cluster_queue: Text,
    pub pod_set_assignments: Shared<Vec<PodSetAssignment>>,
}

/// One entry of `status.admission.podSetAssignments`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSetAssignment {
    pub name: String,
    /// Resource to flavor.
    pub flavors: StringMap,
    /// Resource to the total of the pod set.
    pub resource_usage: ResourceList,
    /// Absent: the count of the spec.
    pub count: Option<i32>,
    /// `topologyAssignment` as compact JSON, passed through; empty when absent.
    pub topology_assignment: String,
    /// `delayedTopologyRequest`: `Pending` or `Ready`; empty when absent.
    pub delayed_topology_request: String,
}

/// `status.requeueState`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequeueState {
    pub count: Option<i32>,
    pub requeue_at: Option<Time>,
}

/// One entry of `status.reclaimablePods`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReclaimablePod {
    pub name: String,
    pub count: i32,
}

/// One entry of `status.admissionChecks`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdmissionCheckState {
    pub name: String,
    pub state: CheckState,
    pub message: String,
    pub last_transition: Time,
    pub requeue_after_seconds: Option<i32>,
    pub retry_count: Option<i32>,
    /// `podSetUpdates` as compact JSON, passed through; empty when absent.
    pub pod_set_updates: String,
}

/// `state` of an admission check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckState {
    #[default]
    Pending,
    Ready,
    Retry,
    Rejected,
}

/// One entry of `status.resourceRequests`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSetRequest {
    pub name: String,
    pub resources: ResourceList,
}

/// One entry of `status.schedulingStats.evictions`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvictionCount {
    pub reason: String,
    pub underlying_cause: String,
    pub count: i32,
}

/// One entry of `status.preemptionGates`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreemptionGateState {
    pub name: String,
    pub position: String,
    pub last_transition: Time,
}
