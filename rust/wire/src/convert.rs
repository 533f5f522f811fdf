//! Older versions to v1beta2, field by field (rules/01 §8).

use serde_json::{Map, Value, json};

use crate::kinds::Kind;

/// Turns an object of an older version into the preferred one; a field with an unexpected shape stays as it is.
pub fn to_preferred(kind: Kind, api_version: &str, object: &mut Value) {
    if api_version == kind.preferred_version() {
        return;
    }
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), Value::from(kind.preferred_version()));
    }
    match kind {
        Kind::ClusterQueue => cluster_queue(object),
        Kind::Workload => workload(object),
        Kind::MultiKueueCluster => multikueue_cluster(object),
        _ => {}
    }
}

fn fields<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    object.get_mut(name)?.as_object_mut()
}

/// Moves a field to its new name, unless the new name is already set.
fn rename(fields: &mut Map<String, Value>, old: &str, new: &str) {
    if let Some(value) = fields.remove(old)
        && !fields.contains_key(new)
    {
        fields.insert(new.to_owned(), value);
    }
}

fn cluster_queue(object: &mut Value) {
    if let Some(spec) = fields(object, "spec") {
        rename(spec, "cohort", "cohortName");
        let names: Vec<Value> = match spec.remove("admissionChecks") {
            Some(Value::Array(names)) => names.into_iter().map(|name| json!({"name": name})).collect(),
            _ => Vec::new(),
        };
        // A non-empty list of names takes precedence over a strategy.
        if !names.is_empty() {
            spec.insert("admissionChecksStrategy".to_owned(), json!({"admissionChecks": names}));
        }
        if let Some(fungibility) = spec.get_mut("flavorFungibility").and_then(Value::as_object_mut) {
            for (field, old) in [("whenCanBorrow", "Borrow"), ("whenCanPreempt", "Preempt")] {
                if fungibility.get(field).and_then(Value::as_str) == Some(old) {
                    fungibility.insert(field.to_owned(), Value::from("MayStopSearch"));
                }
            }
        }
    }
}

fn workload(object: &mut Value) {
    if let Some(spec) = fields(object, "spec") {
        let name = spec.remove("priorityClassName").unwrap_or_default();
        let source = spec.remove("priorityClassSource").unwrap_or_default();
        let class = match source.as_str() {
            Some("kueue.x-k8s.io/workloadpriorityclass") => Some(("kueue.x-k8s.io", "WorkloadPriorityClass")),
            Some("scheduling.k8s.io/priorityclass") => Some(("scheduling.k8s.io", "PriorityClass")),
            _ => None,
        };
        if let Some((group, kind)) = class {
            spec.insert("priorityClassRef".to_owned(), json!({"group": group, "kind": kind, "name": name}));
        }
    }
    if let Some(status) = fields(object, "status") {
        rename(status, "accumulatedPastExexcutionTimeSeconds", "accumulatedPastExecutionTimeSeconds");
        let assignments = status.get_mut("admission").and_then(|a| a.get_mut("podSetAssignments"));
        for assignment in assignments.and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(topology) = assignment.get_mut("topologyAssignment").and_then(Value::as_object_mut) {
                slices(topology);
            }
        }
    }
}

/// The two ways to name a cluster moved into `clusterSource`; a kubeConfig without a location counts as absent.
fn multikueue_cluster(object: &mut Value) {
    let Some(spec) = fields(object, "spec") else { return };
    let mut source = Map::new();
    if let Some(config) = spec.remove("kubeConfig")
        && config.get("location").and_then(Value::as_str).is_some_and(|location| !location.is_empty())
    {
        source.insert("kubeConfig".to_owned(), config);
    }
    if let Some(profile) = spec.remove("clusterProfileRef").filter(|profile| !profile.is_null()) {
        source.insert("clusterProfileRef".to_owned(), profile);
    }
    spec.insert("clusterSource".to_owned(), Value::Object(source));
}

/// Turns `domains`, one entry per domain, into `slices`: always a single slice here, with its values listed.
fn slices(topology: &mut Map<String, Value>) {
    let Some(Value::Array(domains)) = topology.remove("domains") else { return };
    if domains.is_empty() {
        return;
    }
    let n_levels = topology.get("levels").and_then(Value::as_array).map_or(0, Vec::len);
    let per_level: Vec<Value> = (0..n_levels)
        .map(|level| {
            let roots: Vec<Value> =
                domains.iter().map(|d| d["values"].get(level).cloned().unwrap_or_default()).collect();
            if roots.iter().all(|root| *root == roots[0]) {
                json!({"universal": roots[0]})
            } else {
                json!({"individual": {"roots": roots}})
            }
        })
        .collect();
    let counts: Vec<Value> = domains.iter().map(|d| d["count"].clone()).collect();
    let pod_counts = if counts.iter().all(|count| *count == counts[0]) {
        json!({"universal": counts[0]})
    } else {
        json!({"individual": counts})
    };
    topology.insert(
        "slices".to_owned(),
        json!([{"domainCount": domains.len(), "podCounts": pod_counts, "valuesPerLevel": per_level}]),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(kind: Kind, spec: Value) -> Value {
        let mut object = json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "spec": spec});
        to_preferred(kind, "kueue.x-k8s.io/v1beta1", &mut object);
        assert_eq!(object["apiVersion"], "kueue.x-k8s.io/v1beta2");
        object["spec"].take()
    }

    #[test]
    fn renamed_fields_arrive_under_their_new_names() {
        let table = [
            (
                Kind::ClusterQueue,
                json!({"cohort": "c", "admissionChecks": [], "admissionChecksStrategy": {"admissionChecks": [{"name": "a"}]}}),
                json!({"cohortName": "c", "admissionChecksStrategy": {"admissionChecks": [{"name": "a"}]}}),
            ),
            (
                Kind::ClusterQueue,
                json!({"admissionChecks": ["b"], "admissionChecksStrategy": {"admissionChecks": [{"name": "a"}]}}),
                json!({"admissionChecksStrategy": {"admissionChecks": [{"name": "b"}]}}),
            ),
            (
                Kind::ClusterQueue,
                json!({"flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "Preempt"}}),
                json!({"flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "MayStopSearch"}}),
            ),
            (
                Kind::Workload,
                json!({"priorityClassName": "n", "priorityClassSource": "scheduling.k8s.io/priorityclass"}),
                json!({"priorityClassRef": {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "n"}}),
            ),
            (Kind::Workload, json!({"priorityClassName": "n", "priorityClassSource": ""}), json!({})),
            (
                Kind::MultiKueueCluster,
                json!({"kubeConfig": {"location": "l", "locationType": "Path"}}),
                json!({"clusterSource": {"kubeConfig": {"location": "l", "locationType": "Path"}}}),
            ),
            (
                Kind::MultiKueueCluster,
                json!({"kubeConfig": {"location": ""}, "clusterProfileRef": {"name": "p"}}),
                json!({"clusterSource": {"clusterProfileRef": {"name": "p"}}}),
            ),
        ];
        for (kind, old, new) in table {
            assert_eq!(converted(kind, old.clone()), new, "{old}");
        }
    }
}
