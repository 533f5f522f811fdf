//! Workloads: spec and status (rules/01 §6).
//!
//! Fields are named as in Kueue's API; the meaning of an absent one is documented where it matters.

mod written;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::assignments::PodSetAssignments;
use super::fields::{always, as_text, evictions, names, resources, unless_empty};
use super::kinds::{ResourceList, StringMap, Toleration};
use super::pod_set::PodSet;
use super::time::Time;
use super::words::words;
use super::workload_meta::{MetaDetails, WorkloadMeta};
use crate::base::shared::Shared;
use crate::base::text::Text;
use crate::objects::conditions::Conditions;
use written::WrittenStatus;

/// `Workload` (rules/01 §6). Its parts are shared, since workloads are copied and tried far more often than they
/// change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Workload {
    #[serde(skip)]
    pub meta: WorkloadMeta,
    pub pod_sets: Shared<Vec<PodSet>>,
    pub queue_name: Text,
    #[serde(rename = "priorityClassRef")]
    pub priority_class: Option<Shared<PriorityClassRef>>,
    /// Absent acts as 0.
    pub priority: Option<i32>,
    /// `spec.active`; absent acts as true.
    pub active: Option<bool>,
    pub maximum_execution_time_seconds: Option<i32>,
    /// Names of `spec.preemptionGates`.
    #[serde(with = "names")]
    pub preemption_gates: Shared<Vec<String>>,
    #[serde(skip)]
    pub status: Shared<WorkloadStatus>,
}

/// `spec.priorityClassRef`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PriorityClassRef {
    pub group: String,
    pub kind: String,
    pub name: String,
}

/// `status` of a Workload: the fields that the engine reads and writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "WrittenStatus", rename_all = "camelCase")]
pub struct WorkloadStatus {
    pub conditions: Conditions,
    pub admission: Option<Shared<Admission>>,
    /// Totals of a pending workload, written when a head stays pending.
    #[serde(with = "unless_empty")]
    pub resource_requests: Option<Shared<Vec<PodSetRequest>>>,
    /// Parts that few workloads have. They are written beside the others.
    #[serde(rename = "")]
    pub rare: Shared<RareStatus>,
}

/// Parts that few statuses have: checks, evictions, gates, MultiKueue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RareStatus {
    pub requeue_state: Option<RequeueState>,
    pub reclaimable_pods: Vec<ReclaimablePod>,
    pub admission_checks: Vec<AdmissionCheckState>,
    /// `schedulingStats.evictions`.
    #[serde(rename = "schedulingStats", with = "evictions")]
    pub evictions: Vec<EvictionCount>,
    pub accumulated_past_execution_time_seconds: Option<i32>,
    /// `clusterName` (MultiKueue).
    pub cluster_name: Option<String>,
    /// `nominatedClusterNames` (MultiKueue).
    pub nominated_cluster_names: Vec<String>,
    /// Names of `unhealthyNodes`.
    #[serde(with = "names")]
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

// Most of a million pending workloads have the defaults: one of each is kept.
share_defaults! {
    NO_STATUS: WorkloadStatus;
    NOTHING_RARE: RareStatus;
    NO_DETAILS: MetaDetails;
    NO_POD_SETS: Vec<PodSet>;
    NO_NAMES: Vec<String>;
}

/// `status.admission`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Admission {
    pub cluster_queue: Text,
    #[serde(serialize_with = "always")]
    pub pod_set_assignments: PodSetAssignments,
}

/// `status.requeueState`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RequeueState {
    pub count: Option<i32>,
    pub requeue_at: Option<Time>,
}

/// One entry of `status.reclaimablePods`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReclaimablePod {
    #[serde(serialize_with = "always")]
    pub name: String,
    #[serde(serialize_with = "always")]
    pub count: i32,
}

/// One entry of `status.admissionChecks`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AdmissionCheckState {
    #[serde(serialize_with = "always")]
    pub name: String,
    pub state: CheckState,
    #[serde(serialize_with = "always")]
    pub message: String,
    #[serde(rename = "lastTransitionTime")]
    pub last_transition: Time,
    pub requeue_after_seconds: Option<i32>,
    pub retry_count: Option<i32>,
    /// `podSetUpdates` as compact JSON, passed through; empty when absent.
    #[serde(with = "as_text")]
    pub pod_set_updates: String,
    /// The parts that concern nodes.
    #[serde(skip)]
    pub updates: Vec<PodSetUpdate>,
}

/// What a Ready admission check adds to the pods of a pod set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSetUpdate {
    /// Name of the pod set.
    pub name: String,
    pub labels: StringMap,
    pub annotations: StringMap,
    pub node_selector: StringMap,
    pub tolerations: Vec<Toleration>,
}

words! {
    CheckState { Pending, Ready, Retry, Rejected }
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSetRequest {
    pub name: String,
    #[serde(deserialize_with = "resources")]
    pub resources: ResourceList,
}

/// One entry of `status.schedulingStats.evictions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EvictionCount {
    #[serde(serialize_with = "always")]
    pub reason: String,
    #[serde(serialize_with = "always")]
    pub underlying_cause: String,
    #[serde(serialize_with = "always")]
    pub count: i32,
}

/// One entry of `status.preemptionGates`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PreemptionGateState {
    #[serde(serialize_with = "always")]
    pub name: String,
    pub position: String,
    #[serde(rename = "lastTransitionTime")]
    pub last_transition: Time,
}
