//! Objects of the core as JSON, with the names of v1beta2.

pub mod objects;
pub mod topology;
pub mod workload;

use kueuecore::base::gates::{Gate, Gates};
use kueuecore::objects::{
    Admission, AdmissionCheckState, CheckState, Condition, ConditionStatus, PodSetAssignment, RequeueState,
    ResourceList, Time, WorkloadStatus,
};
use serde_json::{Map, Value, json};

use crate::time::format_time;

/// A Workload's `status` as the API server shows it, without empty parts.
///
/// Decoding gives the same status again. Fractions of a second are printed, although an API server would cut them off:
/// to imitate one, round the times down before storing them. Gates decide how topology is written.
#[must_use]
pub fn workload_status(status: &WorkloadStatus, gates: &Gates) -> Value {
    let mut out = Map::new();
    put_list(&mut out, "conditions", &status.conditions, condition);
    if let Some(of) = &status.admission {
        out.insert("admission".to_owned(), admission(of, gates));
    }
    if let Some(state) = &status.rare.requeue_state {
        out.insert("requeueState".to_owned(), requeue_state(state));
    }
    put_list(
        &mut out,
        "reclaimablePods",
        &status.rare.reclaimable_pods,
        |pods| json!({"name": pods.name, "count": pods.count}),
    );
    put_list(&mut out, "admissionChecks", &status.rare.admission_checks, check_state);
    put_list(&mut out, "resourceRequests", status.resource_requests.as_deref().unwrap_or(&Vec::new()), |request| {
        let mut entry = Map::new();
        put_text(&mut entry, "name", &request.name);
        put_resources(&mut entry, "resources", &request.resources);
        Value::Object(entry)
    });
    put(&mut out, "accumulatedPastExecutionTimeSeconds", status.rare.accumulated_past_execution_time_seconds);
    if !status.rare.evictions.is_empty() {
        let mut stats = Map::new();
        put_list(&mut stats, "evictions", &status.rare.evictions, |eviction| {
            json!({
                "reason": eviction.reason,
                "underlyingCause": eviction.underlying_cause,
                "count": eviction.count,
            })
        });
        out.insert("schedulingStats".to_owned(), Value::Object(stats));
    }
    put_list(&mut out, "nominatedClusterNames", &status.rare.nominated_cluster_names, |name| {
        Value::from(name.as_str())
    });
    put(&mut out, "clusterName", status.rare.cluster_name.clone());
    put_list(&mut out, "unhealthyNodes", &status.rare.unhealthy_nodes, |name| json!({"name": name}));
    put_list(&mut out, "preemptionGates", &status.rare.preemption_gates, |gate| {
        let mut entry = Map::new();
        entry.insert("name".to_owned(), Value::from(gate.name.as_str()));
        put_text(&mut entry, "position", &gate.position);
        put_time(&mut entry, "lastTransitionTime", gate.last_transition);
        Value::Object(entry)
    });
    Value::Object(out)
}

/// `status.admission`.
#[must_use]
pub fn admission(admission: &Admission, gates: &Gates) -> Value {
    let by_prefix = [Gate::TopologyAwareScheduling, Gate::TASAssignmentsEncodingByHostnamePrefix];
    let by_prefix = by_prefix.into_iter().all(|gate| gates.enabled(gate));
    let assignments = admission.pod_set_assignments.iter().map(|it| assignment(it, by_prefix));
    let assignments: Vec<Value> = assignments.collect();
    let mut out = Map::new();
    // Kueue accepts an admission that names no ClusterQueue, but not an empty name.
    put_text(&mut out, "clusterQueue", &admission.cluster_queue);
    out.insert("podSetAssignments".to_owned(), Value::from(assignments));
    Value::Object(out)
}

/// One condition.
#[must_use]
pub fn condition(condition: &Condition) -> Value {
    let mut out = Map::new();
    out.insert("type".to_owned(), Value::from(condition.kind.as_str()));
    out.insert("status".to_owned(), Value::from(condition_status(condition.status)));
    out.insert("reason".to_owned(), Value::from(condition.reason.as_str()));
    out.insert("message".to_owned(), Value::from(condition.text().as_str()));
    put_time(&mut out, "lastTransitionTime", condition.last_transition);
    if condition.observed_generation != 0 {
        out.insert("observedGeneration".to_owned(), Value::from(condition.observed_generation));
    }
    Value::Object(out)
}

/// `True`, `False` or `Unknown`.
#[must_use]
pub fn condition_status(status: ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    }
}

/// A resource list.
#[must_use]
pub fn resource_list(resources: &ResourceList) -> Value {
    resources.iter().map(|(name, quantity)| (name.clone(), Value::from(quantity.to_string()))).collect()
}

fn assignment(assignment: &PodSetAssignment, by_prefix: bool) -> Value {
    let mut out = Map::new();
    out.insert("name".to_owned(), Value::from(assignment.name.as_str()));
    if !assignment.flavors.is_empty() {
        out.insert("flavors".to_owned(), json!(assignment.flavors));
    }
    put_resources(&mut out, "resourceUsage", &assignment.resource_usage);
    put(&mut out, "count", assignment.count);
    if let Some(of) = &assignment.topology_assignment {
        out.insert("topologyAssignment".to_owned(), topology::assignment(of, by_prefix));
    }
    put_text(&mut out, "delayedTopologyRequest", &assignment.delayed_topology_request);
    Value::Object(out)
}

fn requeue_state(state: &RequeueState) -> Value {
    let mut out = Map::new();
    put(&mut out, "count", state.count);
    put(&mut out, "requeueAt", state.requeue_at.map(format_time));
    Value::Object(out)
}

fn check_state(check: &AdmissionCheckState) -> Value {
    let state = match check.state {
        CheckState::Pending => "Pending",
        CheckState::Ready => "Ready",
        CheckState::Retry => "Retry",
        CheckState::Rejected => "Rejected",
    };
    let mut out = Map::new();
    out.insert("name".to_owned(), Value::from(check.name.as_str()));
    out.insert("state".to_owned(), Value::from(state));
    out.insert("message".to_owned(), Value::from(check.message.as_str()));
    put_time(&mut out, "lastTransitionTime", check.last_transition);
    put(&mut out, "requeueAfterSeconds", check.requeue_after_seconds);
    put(&mut out, "retryCount", check.retry_count);
    put_json(&mut out, "podSetUpdates", &check.pod_set_updates);
    Value::Object(out)
}

fn put<T: Into<Value>>(out: &mut Map<String, Value>, name: &str, value: Option<T>) {
    if let Some(value) = value {
        out.insert(name.to_owned(), value.into());
    }
}

fn put_text(out: &mut Map<String, Value>, name: &str, text: &str) {
    if !text.is_empty() {
        out.insert(name.to_owned(), Value::from(text));
    }
}

/// A part kept as JSON text; invalid JSON did not come from us and is left out.
fn put_json(out: &mut Map<String, Value>, name: &str, text: &str) {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        out.insert(name.to_owned(), value);
    }
}

fn put_time(out: &mut Map<String, Value>, name: &str, time: Time) {
    if time != Time::ABSENT {
        out.insert(name.to_owned(), Value::from(format_time(time)));
    }
}

fn put_resources(out: &mut Map<String, Value>, name: &str, resources: &ResourceList) {
    if !resources.is_empty() {
        out.insert(name.to_owned(), resource_list(resources));
    }
}

fn put_list<T>(out: &mut Map<String, Value>, name: &str, items: &[T], one: impl Fn(&T) -> Value) {
    if !items.is_empty() {
        out.insert(name.to_owned(), Value::Array(items.iter().map(one).collect()));
    }
}

#[cfg(test)]
mod tests {
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
