//! Workloads: rules for new ones and for updates (rules/01 §6).

use std::collections::BTreeSet;

use kueuecore::base::changes::Change;
use kueuecore::base::gates::{Gate, Gates};
use kueuecore::objects::config::Config;
use kueuecore::objects::{Condition, ConditionStatus, Container, PodSet, ResourceList, TopologyRequest, Workload};

use super::labels;
use super::quotas::negative;
use super::resource_flavor::tolerations;
use crate::field_error::{FieldError, quoted};
use crate::names::dns1123_subdomain_errors;

pub(super) const ELASTIC: &str = "kueue.x-k8s.io/elastic-job";
pub(super) const GATED_BY: &str = "kueue.x-k8s.io/admission-gated-by";
const PRIORITY_BOOST: &str = "kueue.x-k8s.io/priority-boost";

/// `before` is the workload before an update.
pub(super) fn errors(workload: &Workload, before: Option<&Workload>, config: &Config) -> Vec<FieldError> {
    let gates = &config.gates;
    let mut errors = Vec::new();
    for (i, pod_set) in workload.pod_sets.iter().enumerate() {
        errors.extend(pod_set_errors(pod_set, &format!("spec.podSets[{i}]"), config));
    }
    let n_variable = workload.pod_sets.iter().filter(|pod_set| pod_set.min_count.is_some()).count();
    let mut variable = |detail| errors.push(FieldError::invalid("spec.podSets", n_variable.to_string(), detail));
    if n_variable > 1 {
        variable("at most one podSet can use minCount");
    }
    if n_variable > 0 && is_elastic(workload, gates) {
        variable("partial admission and elastic job cannot be used together");
    }
    if is_reserved(workload) {
        errors.extend(admission(workload, before));
    }
    errors.extend(conditions(&workload.status.conditions));
    errors.extend(reclaimable_pods(workload, before, gates));
    errors.extend(admission_checks(workload));
    if gates.enabled(Gate::AdmissionGatedBy) && before.is_none() {
        errors.extend(gated_by(annotation(workload, GATED_BY).unwrap_or("")));
    }
    if gates.enabled(Gate::PriorityBoost) {
        errors.extend(priority_boost(workload));
    }
    errors
}

pub(super) fn annotation<'a>(workload: &'a Workload, name: &str) -> Option<&'a str> {
    workload.meta.details.annotations.get(name).map(String::as_str)
}

pub(super) fn is_elastic(workload: &Workload, gates: &Gates) -> bool {
    gates.enabled(Gate::ElasticJobsViaWorkloadSlices) && annotation(workload, ELASTIC) == Some("true")
}

pub(super) fn is_true(workload: &Workload, condition: &str) -> bool {
    workload.status.conditions.iter().any(|c| c.kind.as_str() == condition && c.status == ConditionStatus::True)
}

pub(super) fn is_reserved(workload: &Workload) -> bool {
    is_true(workload, "QuotaReserved")
}

fn pod_set_errors(pod_set: &PodSet, path: &str, config: &Config) -> Vec<FieldError> {
    let gates = &config.gates;
    let mut errors = Vec::new();
    let template = &pod_set.template;
    if gates.enabled(Gate::WorkloadValidationForPodSetMetadata) {
        errors.extend(labels::labels(&template.metadata.labels, &format!("{path}.template.metadata.labels")));
        errors.extend(labels::annotations(
            &template.metadata.annotations,
            &format!("{path}.template.metadata.annotations"),
        ));
    }
    let no_negative = gates.enabled(Gate::WorkloadValidateResourcesAreNonNegative);
    // Before the change, the key was looked for only in requests of containers.
    let is_reserved = config.changes.has(Change::PodsKeyIsReserved);
    let mut containers = |name: &str, containers: &[Container]| {
        for (i, container) in containers.iter().enumerate() {
            let path = format!("{path}.template.spec.{name}[{i}].resources");
            errors.extend(resource_list(&container.resources.requests, &format!("{path}.requests"), true, no_negative));
            let limits = &container.resources.limits;
            errors.extend(resource_list(limits, &format!("{path}.limits"), is_reserved, no_negative));
        }
    };
    containers("initContainers", &template.spec.init_containers);
    containers("containers", &template.spec.containers);
    if let Some(resources) = &template.spec.resources {
        let path = format!("{path}.template.spec.resources");
        errors.extend(resource_list(&resources.requests, &format!("{path}.requests"), is_reserved, no_negative));
        errors.extend(resource_list(&resources.limits, &format!("{path}.limits"), is_reserved, no_negative));
    }
    if gates.enabled(Gate::TASValidateWorkloadSliceSize)
        && let Some(request) = &pod_set.topology_request
    {
        errors.extend(slice_size(request, &format!("{path}.topologyRequest")));
    }
    errors
}

/// `is_reserved`: may no amount of `pods` be among them?
fn resource_list(resources: &ResourceList, path: &str, is_reserved: bool, no_negative: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (name, quantity) in resources {
        let path = format!("{path}[{name}]");
        if is_reserved && name == "pods" {
            errors.push(FieldError::invalid(&path, quoted("pods"), "the key is reserved for internal kueue use"));
        }
        if no_negative {
            errors.extend(negative(quantity, &path));
        }
    }
    errors
}

fn slice_size(request: &TopologyRequest, path: &str) -> Vec<FieldError> {
    const TOO_SMALL: &str = "must be greater than 0";
    let mut errors = Vec::new();
    let size_path = format!("{path}.podSetSliceSize");
    match (&request.slice_required_topology, request.slice_size) {
        (Some(_), None) => {
            errors.push(FieldError::required(size_path, "must be set when podSetSliceRequiredTopology is specified"));
        }
        (Some(_), Some(size)) if size <= 0 => {
            errors.push(FieldError::invalid(size_path, size.to_string(), TOO_SMALL));
        }
        (None, Some(_)) => errors
            .push(FieldError::forbidden(size_path, "may not be set when podSetSliceRequiredTopology is not specified")),
        _ => {}
    }
    for (i, layer) in request.constraints.iter().enumerate().filter(|(_, layer)| layer.size <= 0) {
        let path = format!("{path}.podsetSliceRequiredTopologyConstraints[{i}].size");
        errors.push(FieldError::invalid(path, layer.size.to_string(), TOO_SMALL));
    }
    errors
}

/// The names of the pod sets, sorted.
fn pod_set_names(workload: &Workload) -> BTreeSet<&str> {
    workload.pod_sets.iter().map(|pod_set| pod_set.name.as_str()).collect()
}

fn admission(workload: &Workload, before: Option<&Workload>) -> Vec<FieldError> {
    let path = "status.admission";
    let Some(admission) = &workload.status.admission else {
        // An update may move a workload that was invalid before towards a valid one.
        let was_so = before.is_some_and(|before| is_reserved(before) && before.status.admission.is_none());
        let missing = FieldError::required(path, "must be set while the QuotaReserved condition is true");
        return if was_so { Vec::new() } else { vec![missing] };
    };
    let names = pod_set_names(workload);
    let mut errors = Vec::new();
    for (i, assignment) in admission.pod_set_assignments.iter().enumerate() {
        let path = format!("{path}.podSetAssignments[{i}]");
        if !names.contains(assignment.name.as_str()) {
            errors.push(FieldError::not_found(format!("{path}.name"), quoted(&assignment.name)));
        }
        let count = assignment.count.unwrap_or(0);
        for (resource, quantity) in assignment.resource_usage.iter().filter(|_| count > 0) {
            let value = if resource == "cpu" { quantity.ceil_milli() } else { quantity.ceil_units() };
            if value % i64::from(count) != 0 {
                let detail = format!("is not a multiple of {count}");
                let path = format!("{path}.resourceUsage[{resource}]");
                errors.push(FieldError::invalid(path, quoted(&quantity.to_string()), detail));
            }
        }
    }
    // The schema has this rule too, but objects that were never JSON have not passed it.
    if admission.pod_set_assignments.len() != workload.pod_sets.len() {
        errors.push(FieldError::unshown(
            super::WHOLE,
            "podSetAssignments must have the same number of podSets as the spec",
        ));
    }
    errors
}

fn conditions(conditions: &[Condition]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let path = format!("status.conditions[{i}]");
        if !seen.insert(condition.kind.as_str()) {
            errors.push(FieldError::duplicate(&path, quoted(condition.kind.as_str())));
        }
        if condition.kind.as_str().is_empty() {
            errors.push(FieldError::required(format!("{path}.type"), "is required"));
        } else {
            errors.extend(labels::key(condition.kind.as_str(), &format!("{path}.type")));
        }
    }
    errors
}

/// A count that already exceeded its pod set may stay: an elastic workload shrinks step by step.
fn reclaimable_pods(workload: &Workload, before: Option<&Workload>, gates: &Gates) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for pods in &workload.status.rare.reclaimable_pods {
        let path = format!("status.reclaimablePods[{}]", pods.name);
        let stale = is_elastic(workload, gates)
            && before.is_some_and(|before| before.status.rare.reclaimable_pods.contains(pods));
        match workload.pod_sets.iter().find(|pod_set| pod_set.name == pods.name) {
            None => {
                let supported: Vec<&str> = workload.pod_sets.iter().map(|pod_set| pod_set.name.as_str()).collect();
                errors.push(FieldError::unsupported(format!("{path}.name"), quoted(&pods.name), &supported));
            }
            Some(pod_set) if pods.count > pod_set.count && !stale => {
                let detail = format!("should be less or equal to {}", pod_set.count);
                errors.push(FieldError::invalid(format!("{path}.count"), pods.count.to_string(), detail));
            }
            Some(_) => {}
        }
    }
    errors
}

fn admission_checks(workload: &Workload) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let names: Vec<&str> = pod_set_names(workload).into_iter().collect();
    for (i, check) in workload.status.rare.admission_checks.iter().enumerate() {
        for (j, update) in check.updates.iter().enumerate() {
            let path = format!("status.admissionChecks[{i}].podSetUpdates[{j}]");
            if !names.contains(&update.name.as_str()) {
                errors.push(FieldError::unsupported(format!("{path}.name"), quoted(&update.name), &names));
            }
            errors.extend(tolerations(&update.tolerations, &format!("{path}.tolerations")));
            errors.extend(labels::annotations(&update.annotations, &format!("{path}.annotations")));
            errors.extend(labels::labels(&update.node_selector, &format!("{path}.nodeSelector")));
            errors.extend(labels::labels(&update.labels, &format!("{path}.labels")));
        }
    }
    errors
}

fn annotation_path(name: &str) -> String {
    format!("metadata.annotations[{name}]")
}

fn priority_boost(workload: &Workload) -> Option<FieldError> {
    let value = annotation(workload, PRIORITY_BOOST)?;
    let detail = if value.is_empty() {
        "must be a valid signed integer; use \"0\" explicitly, empty string is not allowed"
    } else if value.parse::<i32>().is_err() {
        "must be a valid signed integer"
    } else {
        return None;
    };
    Some(FieldError::invalid(annotation_path(PRIORITY_BOOST), quoted(value), detail))
}

/// The format of the list of admission gates.
pub(super) fn gated_by(value: &str) -> Vec<FieldError> {
    let path = annotation_path(GATED_BY);
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for gate in gate_names(value) {
        if gate.is_empty() {
            errors.push(FieldError::invalid(&path, quoted(value), "cannot contain empty gate names"));
        } else if !seen.insert(gate) {
            errors.push(FieldError::invalid(&path, quoted(value), format!("duplicate gate name: {gate}")));
        } else {
            errors.extend(domain_prefixed(gate, &path));
            if gate.len() > 63 {
                errors.push(FieldError::too_long(&path, 63));
            }
        }
    }
    errors
}

/// Forbidden changes between two lists of admission gates.
pub(super) fn gated_by_update(old: &str, new: &str) -> Vec<FieldError> {
    let path = annotation_path(GATED_BY);
    let mut errors = Vec::new();
    if old.is_empty() && !new.is_empty() {
        errors.push(FieldError::forbidden(&path, "cannot add admission gate after creation"));
    }
    let kept = gate_names(old);
    if !old.is_empty() && !new.is_empty() && gate_names(new).iter().any(|gate| !kept.contains(gate)) {
        errors.push(FieldError::forbidden(&path, "can only remove gates, not add new ones"));
    }
    errors.extend(gated_by(new));
    errors
}

fn gate_names(value: &str) -> Vec<&str> {
    if value.trim().is_empty() { Vec::new() } else { value.split(',').map(str::trim).collect() }
}

/// A path such as `acme.io/foo`.
fn domain_prefixed(gate: &str, path: &str) -> Vec<FieldError> {
    let (host, rest) = gate.split_once('/').unwrap_or((gate, ""));
    if host.is_empty() || rest.is_empty() {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return vec![FieldError::invalid(path, quoted(gate), detail)];
    }
    let complaints = dns1123_subdomain_errors(host).into_iter();
    let mut errors: Vec<FieldError> =
        complaints.map(|detail| FieldError::invalid(path, quoted(host), detail)).collect();
    if !rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b)) {
        let detail = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";
        errors.push(FieldError::invalid(path, quoted(rest), detail));
    }
    errors
}
