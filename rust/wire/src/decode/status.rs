//! Workload status (rules/01 §6).

use kueuecore::base::shared::Shared;
use kueuecore::objects::{
    Admission, AdmissionCheckState, CheckState, Condition, ConditionStatus, EvictionCount, PodSetAssignment,
    PodSetRequest, PodSetUpdate, PreemptionGateState, RareStatus, ReclaimablePod, RequeueState, ResourceList,
    StringMap, Time, Toleration, TopologyAssignment, WorkloadStatus,
};
use serde::Deserialize;

use super::pod::TolerationWire;
use super::topology;
use super::workload::NameWire;
use crate::read::{list, maybe, maybe_time, nil, resources, text, time};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StatusWire {
    #[serde(deserialize_with = "list::<_, ConditionWire, _>")]
    conditions: Vec<Condition>,
    #[serde(deserialize_with = "maybe::<_, AdmissionWire, _>")]
    admission: Option<Admission>,
    #[serde(deserialize_with = "maybe::<_, RequeueWire, _>")]
    requeue_state: Option<RequeueState>,
    #[serde(deserialize_with = "list::<_, ReclaimableWire, _>")]
    reclaimable_pods: Vec<ReclaimablePod>,
    #[serde(deserialize_with = "list::<_, CheckWire, _>")]
    admission_checks: Vec<AdmissionCheckState>,
    #[serde(deserialize_with = "list::<_, RequestWire, _>")]
    resource_requests: Vec<PodSetRequest>,
    #[serde(deserialize_with = "nil")]
    scheduling_stats: StatsWire,
    accumulated_past_execution_time_seconds: Option<i32>,
    cluster_name: Option<String>,
    #[serde(deserialize_with = "nil")]
    nominated_cluster_names: Vec<String>,
    #[serde(deserialize_with = "list::<_, NameWire, _>")]
    unhealthy_nodes: Vec<String>,
    #[serde(deserialize_with = "list::<_, GateWire, _>")]
    preemption_gates: Vec<PreemptionGateState>,
}

impl From<StatusWire> for WorkloadStatus {
    fn from(wire: StatusWire) -> Self {
        let rare = RareStatus {
            requeue_state: wire.requeue_state,
            reclaimable_pods: wire.reclaimable_pods,
            admission_checks: wire.admission_checks,
            evictions: wire.scheduling_stats.evictions,
            accumulated_past_execution_time_seconds: wire.accumulated_past_execution_time_seconds,
            cluster_name: wire.cluster_name,
            nominated_cluster_names: wire.nominated_cluster_names,
            unhealthy_nodes: wire.unhealthy_nodes,
            preemption_gates: wire.preemption_gates,
        };
        WorkloadStatus {
            conditions: wire.conditions.into(),
            admission: wire.admission.map(Into::into),
            resource_requests: Some(wire.resource_requests).filter(|requests| !requests.is_empty()).map(Shared::from),
            rare: Shared::of(rare),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ConditionWire {
    #[serde(deserialize_with = "nil", rename = "type")]
    kind: String,
    #[serde(deserialize_with = "nil")]
    status: String,
    #[serde(deserialize_with = "nil")]
    reason: String,
    #[serde(deserialize_with = "nil")]
    message: String,
    #[serde(deserialize_with = "time")]
    last_transition_time: Time,
    #[serde(deserialize_with = "nil")]
    observed_generation: i64,
}

impl From<ConditionWire> for Condition {
    fn from(wire: ConditionWire) -> Self {
        Condition {
            kind: wire.kind.as_str().into(),
            status: match wire.status.as_str() {
                "True" => ConditionStatus::True,
                "False" => ConditionStatus::False,
                _ => ConditionStatus::Unknown,
            },
            reason: wire.reason.into(),
            message: wire.message.into(),
            last_transition: wire.last_transition_time,
            observed_generation: wire.observed_generation,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AdmissionWire {
    #[serde(deserialize_with = "nil")]
    cluster_queue: String,
    #[serde(deserialize_with = "list::<_, AssignmentWire, _>")]
    pod_set_assignments: Vec<PodSetAssignment>,
}

impl From<AdmissionWire> for Admission {
    fn from(wire: AdmissionWire) -> Self {
        Admission { cluster_queue: wire.cluster_queue.into(), pod_set_assignments: wire.pod_set_assignments.into() }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct AssignmentWire {
    #[serde(deserialize_with = "nil")]
    name: String,
    #[serde(deserialize_with = "nil")]
    flavors: StringMap,
    #[serde(deserialize_with = "resources")]
    resource_usage: ResourceList,
    count: Option<i32>,
    #[serde(deserialize_with = "topology::assignment")]
    topology_assignment: Option<Shared<TopologyAssignment>>,
    #[serde(deserialize_with = "nil")]
    delayed_topology_request: String,
}

impl From<AssignmentWire> for PodSetAssignment {
    fn from(wire: AssignmentWire) -> Self {
        PodSetAssignment {
            name: wire.name,
            flavors: wire.flavors,
            resource_usage: wire.resource_usage,
            count: wire.count,
            topology_assignment: wire.topology_assignment,
            delayed_topology_request: wire.delayed_topology_request,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RequeueWire {
    count: Option<i32>,
    #[serde(deserialize_with = "maybe_time")]
    requeue_at: Option<Time>,
}

impl From<RequeueWire> for RequeueState {
    fn from(wire: RequeueWire) -> Self {
        RequeueState { count: wire.count, requeue_at: wire.requeue_at }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ReclaimableWire {
    #[serde(deserialize_with = "nil")]
    name: String,
    #[serde(deserialize_with = "nil")]
    count: i32,
}

impl From<ReclaimableWire> for ReclaimablePod {
    fn from(wire: ReclaimableWire) -> Self {
        ReclaimablePod { name: wire.name, count: wire.count }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CheckWire {
    #[serde(deserialize_with = "nil")]
    name: String,
    #[serde(deserialize_with = "nil")]
    state: String,
    #[serde(deserialize_with = "nil")]
    message: String,
    #[serde(deserialize_with = "time")]
    last_transition_time: Time,
    requeue_after_seconds: Option<i32>,
    retry_count: Option<i32>,
    #[serde(deserialize_with = "text")]
    pod_set_updates: String,
}

impl From<CheckWire> for AdmissionCheckState {
    fn from(wire: CheckWire) -> Self {
        AdmissionCheckState {
            name: wire.name,
            state: match wire.state.as_str() {
                "Ready" => CheckState::Ready,
                "Retry" => CheckState::Retry,
                "Rejected" => CheckState::Rejected,
                _ => CheckState::Pending,
            },
            message: wire.message,
            last_transition: wire.last_transition_time,
            requeue_after_seconds: wire.requeue_after_seconds,
            retry_count: wire.retry_count,
            updates: serde_json::from_str::<Vec<UpdateWire>>(&wire.pod_set_updates)
                .map(|updates| updates.into_iter().map(PodSetUpdate::from).collect())
                .unwrap_or_default(),
            pod_set_updates: wire.pod_set_updates,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RequestWire {
    #[serde(deserialize_with = "nil")]
    name: String,
    #[serde(deserialize_with = "resources")]
    resources: ResourceList,
}

impl From<RequestWire> for PodSetRequest {
    fn from(wire: RequestWire) -> Self {
        PodSetRequest { name: wire.name, resources: wire.resources }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct StatsWire {
    #[serde(deserialize_with = "list::<_, EvictionWire, _>")]
    evictions: Vec<EvictionCount>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct EvictionWire {
    #[serde(deserialize_with = "nil")]
    reason: String,
    #[serde(deserialize_with = "nil")]
    underlying_cause: String,
    #[serde(deserialize_with = "nil")]
    count: i32,
}

impl From<EvictionWire> for EvictionCount {
    fn from(wire: EvictionWire) -> Self {
        EvictionCount { reason: wire.reason, underlying_cause: wire.underlying_cause, count: wire.count }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct GateWire {
    #[serde(deserialize_with = "nil")]
    name: String,
    #[serde(deserialize_with = "nil")]
    position: String,
    #[serde(deserialize_with = "time")]
    last_transition_time: Time,
}

impl From<GateWire> for PreemptionGateState {
    fn from(wire: GateWire) -> Self {
        PreemptionGateState { name: wire.name, position: wire.position, last_transition: wire.last_transition_time }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct UpdateWire {
    #[serde(deserialize_with = "nil")]
    name: String,
    #[serde(deserialize_with = "nil")]
    labels: StringMap,
    #[serde(deserialize_with = "nil")]
    annotations: StringMap,
    #[serde(deserialize_with = "nil")]
    node_selector: StringMap,
    #[serde(deserialize_with = "list::<_, TolerationWire, _>")]
    tolerations: Vec<Toleration>,
}

impl From<UpdateWire> for PodSetUpdate {
    fn from(wire: UpdateWire) -> Self {
        let UpdateWire { name, labels, annotations, node_selector, tolerations } = wire;
        PodSetUpdate { name, labels, annotations, node_selector, tolerations }
    }
}
