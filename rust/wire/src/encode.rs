//! Objects of the core as JSON, with the names of v1beta2.

pub mod objects;
pub mod topology;

use kueuecore::base::gates::{Gate, Gates};
use kueuecore::objects::words::Word;
use kueuecore::objects::{Admission, Condition, ConditionStatus, ResourceList, WorkloadStatus};
use serde_json::Value;

use crate::written::written;

/// A Workload's `status` as the API server shows it, without empty parts.
///
/// Decoding gives the same status again. Fractions of a second are printed, although an API server would cut them off:
/// to imitate one, round the times down before storing them. Gates decide how topology is written.
#[must_use]
pub fn workload_status(status: &WorkloadStatus, gates: &Gates) -> Value {
    let mut out = written(status);
    if let Some(of) = &status.admission {
        out["admission"] = admission(of, gates);
    }
    out
}

/// `status.admission`.
#[must_use]
pub fn admission(admission: &Admission, gates: &Gates) -> Value {
    let by_prefix = [Gate::TopologyAwareScheduling, Gate::TASAssignmentsEncodingByHostnamePrefix];
    let by_prefix = by_prefix.into_iter().all(|gate| gates.enabled(gate));
    let mut out = written(admission);
    for (i, assignment) in admission.pod_set_assignments.iter().enumerate() {
        if let Some(of) = &assignment.topology_assignment {
            out["podSetAssignments"][i]["topologyAssignment"] = topology::assignment(of, by_prefix);
        }
    }
    out
}

#[must_use]
pub fn condition(condition: &Condition) -> Value {
    written(condition)
}

/// `True`, `False` or `Unknown`.
#[must_use]
pub fn condition_status(status: ConditionStatus) -> &'static str {
    status.word()
}

/// A resource list.
#[must_use]
pub fn resource_list(resources: &ResourceList) -> Value {
    written(resources)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::decode;

    fn full() -> Value {
        json!({
            "conditions": [
                {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "m",
                 "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 2},
                {"type": "PodsReady", "status": "Unknown", "reason": "", "message": ""},
            ],
            "admission": {"clusterQueue": "cq", "podSetAssignments": [
                {"name": "main", "flavors": {"cpu": "spot"}, "resourceUsage": {"cpu": "1500m"}, "count": 3,
                 "topologyAssignment": {"levels": ["host"], "slices": [
                     {"domainCount": 2, "podCounts": {"universal": 1}, "valuesPerLevel": [
                         {"individual": {"prefix": "h", "roots": ["1", "2"]}}]}]},
                 "delayedTopologyRequest": "Pending"},
                {"name": "other"},
            ]},
            "requeueState": {"count": 2, "requeueAt": "2026-01-01T00:01:00Z"},
            "reclaimablePods": [{"name": "main", "count": 1}],
            "admissionChecks": [
                {"name": "check", "state": "Retry", "message": "", "lastTransitionTime": "2026-01-01T00:00:01Z",
                 "requeueAfterSeconds": 5, "retryCount": 1, "podSetUpdates": [{"name": "main", "labels": {"a": "b"}}]},
            ],
            "resourceRequests": [{"name": "main", "resources": {"memory": "1Gi"}}],
            "accumulatedPastExecutionTimeSeconds": 7,
            "schedulingStats": {"evictions": [{"reason": "Preempted", "underlyingCause": "", "count": 1}]},
            "nominatedClusterNames": ["w1", "w2"],
            "clusterName": "w1",
            "unhealthyNodes": [{"name": "n1"}],
            "preemptionGates": [{"name": "g", "position": "Closed", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        })
    }

    #[test]
    fn a_status_survives_a_round_trip() {
        let status = decode::workload_status(&full()).expect("the status is well formed");
        let encoded = workload_status(&status, &Gates::default());
        assert_eq!(encoded, full());
        assert_eq!(decode::workload_status(&encoded), Ok(status));
    }

    #[test]
    fn an_empty_status_is_an_empty_object() {
        assert_eq!(workload_status(&WorkloadStatus::default(), &Gates::default()), json!({}));
    }
}
