//! `status` of a Workload as it is written: [`WorkloadStatus`] keeps the rare parts together.

use serde::Deserialize;

use super::{
    Admission, AdmissionCheckState, EvictionCount, PodSetRequest, PreemptionGateState, RareStatus, ReclaimablePod,
    RequeueState, WorkloadStatus,
};
use crate::base::shared::Shared;
use crate::objects::conditions::Conditions;
use crate::objects::fields::{evictions, names, unless_empty};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WrittenStatus {
    conditions: Conditions,
    admission: Option<Shared<Admission>>,
    requeue_state: Option<RequeueState>,
    reclaimable_pods: Vec<ReclaimablePod>,
    admission_checks: Vec<AdmissionCheckState>,
    #[serde(deserialize_with = "unless_empty::deserialize")]
    resource_requests: Option<Shared<Vec<PodSetRequest>>>,
    #[serde(deserialize_with = "evictions::deserialize")]
    scheduling_stats: Vec<EvictionCount>,
    accumulated_past_execution_time_seconds: Option<i32>,
    cluster_name: Option<String>,
    nominated_cluster_names: Vec<String>,
    #[serde(deserialize_with = "names::deserialize")]
    unhealthy_nodes: Vec<String>,
    preemption_gates: Vec<PreemptionGateState>,
}

impl From<WrittenStatus> for WorkloadStatus {
    fn from(written: WrittenStatus) -> Self {
        let rare = RareStatus {
            requeue_state: written.requeue_state,
            reclaimable_pods: written.reclaimable_pods,
            admission_checks: written.admission_checks,
            evictions: written.scheduling_stats,
            accumulated_past_execution_time_seconds: written.accumulated_past_execution_time_seconds,
            cluster_name: written.cluster_name,
            nominated_cluster_names: written.nominated_cluster_names,
            unhealthy_nodes: written.unhealthy_nodes,
            preemption_gates: written.preemption_gates,
        };
        WorkloadStatus {
            conditions: written.conditions,
            admission: written.admission,
            resource_requests: written.resource_requests,
            rare: Shared::of(rare),
        }
    }
}
