//! What an update may not change (rules/01 §1-6).

use std::collections::BTreeSet;

use kueuecore::base::changes::{Change, Changes};
use kueuecore::base::gates::{Gate, Gates};
use kueuecore::objects::config::Config;
use kueuecore::objects::{
    Admission, CheckState, ClusterQueue, Object, PodSet, ReclaimablePod, ResourceFlavor, Topology, Workload,
};

use super::quotas::{cluster_queue_spec, flavor_names, on_flavors};
use super::workload::{GATED_BY, annotation, gated_by_update, is_elastic, is_reserved, is_true};
use super::{IMMUTABLE, WHOLE, without_repetition};
use crate::encode;
use crate::field_error::{FieldError, quoted};
use crate::kinds::uid_of;

const REPLACEMENT_FOR: &str = "kueue.x-k8s.io/workload-slice-replacement-for";

/// Errors of an API server with Kueue's webhooks for an update; empty if it is accepted.
///
/// Everything that holds for a new object is checked again. The value of a changed pod set is not shown.
#[must_use]
pub fn update(old: &Object, new: &Object, config: &Config) -> Vec<FieldError> {
    if let Some(error) = another_object(old, new) {
        return vec![error];
    }
    let of_schema = update_schema(old, new, config.changes);
    if of_schema.is_empty() { update_webhook(old, new, config) } else { of_schema }
}

/// The rules of the CustomResourceDefinitions that compare with the state before.
pub(crate) fn update_schema(old: &Object, new: &Object, changes: Changes) -> Vec<FieldError> {
    match (old, new) {
        (Object::LocalQueue(old), Object::LocalQueue(new)) => {
            fixed_text(&old.cluster_queue, &new.cluster_queue, "spec.clusterQueue")
        }
        (Object::AdmissionCheck(old), Object::AdmissionCheck(new)) => {
            fixed_text(&old.controller_name, &new.controller_name, "spec.controllerName")
        }
        (Object::ResourceFlavor(old), Object::ResourceFlavor(new)) => resource_flavor(old, new, changes),
        (Object::Topology(old), Object::Topology(new)) => topology(old, new, changes),
        (Object::Workload(old), Object::Workload(new)) => workload_schema(old, new, changes),
        _ => Vec::new(),
    }
}

/// Errors of Kueue's webhooks for an update that the schema accepts.
pub(crate) fn update_webhook(old: &Object, new: &Object, config: &Config) -> Vec<FieldError> {
    match (old, new) {
        (Object::ClusterQueue(old), Object::ClusterQueue(new)) => without_repetition(cluster_queue(old, new, config)),
        (Object::Workload(old), Object::Workload(new)) => without_repetition(workload(old, new, config)),
        _ => super::create(new, config),
    }
}

/// The UID of an update must be absent or that of the stored object.
fn another_object(old: &Object, new: &Object) -> Option<FieldError> {
    let (old, new) = (uid_of(old), uid_of(new));
    if old.is_empty() || new.is_empty() || old == new {
        return None;
    }
    let detail = format!("this is a different object: the existing one has UID {}; delete it first", quoted(old));
    Some(FieldError::invalid("metadata.uid", quoted(new), detail))
}

/// A text that may not change once it is set.
fn fixed_text(old: &str, new: &str, path: &str) -> Vec<FieldError> {
    if old.is_empty() || new.is_empty() || old == new {
        return Vec::new();
    }
    vec![FieldError::invalid(path, quoted(new), IMMUTABLE)]
}

fn resource_flavor(old: &ResourceFlavor, new: &ResourceFlavor, changes: Changes) -> Vec<FieldError> {
    if old.topology_name.is_empty() {
        return Vec::new();
    }
    let keeps_labels = !changes.has(Change::TopologyFlavorLabelsMutable);
    let fields = [
        ("nodeLabels", keeps_labels && old.node_labels != new.node_labels),
        ("tolerations", keeps_labels && old.tolerations != new.tolerations),
        ("topologyName", old.topology_name != new.topology_name),
    ];
    if !changes.has(Change::TopologyFlavorTaintsMutable) {
        let is_changed = fields.iter().any(|(_, is_changed)| *is_changed) || old.node_taints != new.node_taints;
        let detail = "resourceFlavorSpec are immutable when topologyName is set";
        return is_changed.then(|| FieldError::unshown("spec", detail)).into_iter().collect();
    }
    let changed = fields.iter().filter(|(_, is_changed)| *is_changed);
    changed
        .map(|(field, _)| {
            let verb = if *field == "topologyName" { "is" } else { "are" };
            FieldError::unshown("spec", format!("{field} {verb} immutable when topologyName is set"))
        })
        .collect()
}

fn topology(old: &Topology, new: &Topology, changes: Changes) -> Vec<FieldError> {
    if !changes.has(Change::TopologyLevelsMutable) {
        let is_changed = old.levels != new.levels;
        return is_changed.then(|| FieldError::unshown("spec.levels", IMMUTABLE)).into_iter().collect();
    }
    let ends_at_host = |levels: &[String]| levels.last().is_some_and(|level| level == "kubernetes.io/hostname");
    if old.levels == new.levels || (ends_at_host(&old.levels) && ends_at_host(&new.levels)) {
        return Vec::new();
    }
    let detail =
        "levels are mutable only when kubernetes.io/hostname is the lowest level both before and after the change";
    vec![FieldError::unshown("spec.levels", detail)]
}

/// A check may keep flavors that the ClusterQueue does not have if neither check nor flavors changed.
fn cluster_queue(old: &ClusterQueue, new: &ClusterQueue, config: &Config) -> Vec<FieldError> {
    let mut errors = cluster_queue_spec(new, config);
    let lenient = !config.gates.enabled(Gate::RejectUpdatesToCQWithInvalidOnFlavors)
        && flavor_names(&old.resource_groups) == flavor_names(&new.resource_groups);
    errors.extend(on_flavors(new, |check| lenient && flavors_of_check(old, check) == flavors_of_check(new, check)));
    if old.concurrent_admission_policy != new.concurrent_admission_policy {
        let policy = &new.concurrent_admission_policy;
        let shown = if policy.is_empty() { "null" } else { policy };
        errors.push(FieldError::invalid("spec.concurrentAdmissionPolicy", shown, IMMUTABLE));
    }
    errors
}

fn flavors_of_check<'a>(queue: &'a ClusterQueue, name: &str) -> Option<BTreeSet<&'a str>> {
    let check = queue.admission_checks.iter().find(|check| check.name == name)?;
    Some(check.on_flavors.iter().map(String::as_str).collect())
}

fn workload_schema(old: &Workload, new: &Workload, changes: Changes) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut refuse = |path: &str, detail: &str| errors.push(FieldError::unshown(path, detail));
    if is_reserved(old) {
        match (&old.priority_class, &new.priority_class) {
            (None, None) => {}
            (Some(old), Some(new)) => {
                if old.group != new.group {
                    refuse(WHOLE, "priorityClassRef.group is immutable while workload quota reserved");
                }
                if old.kind != new.kind {
                    refuse(WHOLE, "priorityClassRef.kind is immutable while workload quota reserved");
                }
                let of_pods = new.group == "scheduling.k8s.io" && new.kind == "PriorityClass";
                if of_pods && old.name != new.name {
                    refuse(
                        WHOLE,
                        "priorityClassRef.name is immutable for scheduling.k8s.io/priorityclass while workload quota reserved",
                    );
                }
            }
            _ => refuse(WHOLE, "priorityClassRef is immutable while workload quota reserved"),
        }
    }
    let is_named = !old.queue_name.is_empty() && !new.queue_name.is_empty();
    let is_fixed = is_named || changes.has(Change::QueueNameFixedWhileReserved);
    if is_fixed && is_reserved(old) && is_reserved(new) && old.queue_name != new.queue_name {
        refuse(WHOLE, "queueName is immutable while workload quota reserved");
    }
    let limit = |workload: &Workload| workload.maximum_execution_time_seconds.unwrap_or(0);
    if is_true(old, "Admitted") && is_true(new, "Admitted") && limit(old) != limit(new) {
        refuse(WHOLE, "maximumExecutionTimeSeconds is immutable while workload quota reserved");
    }
    if let (Some(old), Some(new)) = (&old.status.rare.cluster_name, &new.status.rare.cluster_name)
        && old != new
    {
        refuse("status", "clusterName is immutable once set");
    }
    errors
}

fn workload(old: &Workload, new: &Workload, config: &Config) -> Vec<FieldError> {
    let gates = &config.gates;
    let mut errors = super::workload::errors(new, Some(old), config);
    if is_reserved(old) {
        errors.extend(pod_sets(&old.pod_sets, &new.pod_sets, gates));
    }
    if is_reserved(old) && is_reserved(new) {
        errors.extend(reclaimable_pods(old, new, config));
    }
    if let (Some(old), Some(new)) = (&old.status.admission, &new.status.admission) {
        errors.extend(admission(old, new, gates));
    }
    errors.extend(pod_set_updates(old, new));
    errors.extend(cluster_name(old, new, gates));
    if gates.enabled(Gate::AdmissionGatedBy) {
        let gated_by = |workload| annotation(workload, GATED_BY).unwrap_or("").to_owned();
        errors.extend(gated_by_update(&gated_by(old), &gated_by(new)));
    }
    errors
}

/// Pod sets of elastic workloads may shrink.
fn pod_sets(old: &[PodSet], new: &[PodSet], gates: &Gates) -> Vec<FieldError> {
    if old.len() != new.len() {
        return vec![FieldError::unshown("spec.podSets", IMMUTABLE)];
    }
    let may_shrink = gates.enabled(Gate::ElasticJobsViaWorkloadSlices);
    let mut errors = Vec::new();
    for (i, (old, new)) in old.iter().zip(new).enumerate() {
        let shrunk = may_shrink && new.count < old.count;
        let same = if shrunk { *old == PodSet { count: old.count, ..new.clone() } } else { old == new };
        if !same {
            errors.push(FieldError::unshown(format!("spec.podSets.{i}"), IMMUTABLE));
        }
    }
    errors
}

/// Topology assignments may be added later; nothing else may change.
fn admission(old: &Admission, new: &Admission, gates: &Gates) -> Vec<FieldError> {
    let mut assignments = old.pod_set_assignments.to_vec();
    if gates.enabled(Gate::TopologyAwareScheduling) && assignments.len() == new.pod_set_assignments.len() {
        for (old, new) in assignments.iter_mut().zip(new.pod_set_assignments.iter()) {
            old.topology_assignment.clone_from(&new.topology_assignment);
            old.delayed_topology_request.clone_from(&new.delayed_topology_request);
        }
    }
    if old.cluster_queue == new.cluster_queue && assignments == *new.pod_set_assignments {
        return Vec::new();
    }
    vec![FieldError::invalid("status.admission", encode::admission(new, gates).to_string(), IMMUTABLE)]
}

/// Counts only grow while quota is reserved, except in pod sets that an elastic workload shrank.
fn reclaimable_pods(old: &Workload, new: &Workload, config: &Config) -> Vec<FieldError> {
    let shrunk = shrunk_pod_sets(new, &config.gates);
    let than = if config.changes.has(Change::JobTextsAreCorrected) { "than" } else { "then" };
    let count_in = |pods: &[ReclaimablePod], name: &str| pods.iter().find(|p| p.name == name).map(|p| p.count);
    let path = |name: &str| format!("status.reclaimablePods[{name}]");
    let mut errors = Vec::new();
    for pods in &new.status.rare.reclaimable_pods {
        let before = count_in(&old.status.rare.reclaimable_pods, &pods.name);
        if let Some(before) = before.filter(|before| pods.count < *before && !shrunk.contains(pods.name.as_str())) {
            let detail = format!("cannot be less {than} {before}");
            errors.push(FieldError::invalid(format!("{}.count", path(&pods.name)), pods.count.to_string(), detail));
        }
    }
    for pods in &old.status.rare.reclaimable_pods {
        let kept = count_in(&new.status.rare.reclaimable_pods, &pods.name).is_some();
        if !kept && !shrunk.contains(pods.name.as_str()) {
            errors.push(FieldError::required(path(&pods.name), "cannot be removed"));
        }
    }
    errors
}

/// The pod sets of an elastic workload with fewer pods than were admitted.
fn shrunk_pod_sets<'a>(workload: &'a Workload, gates: &Gates) -> BTreeSet<&'a str> {
    let admission = workload.status.admission.as_ref().filter(|_| is_elastic(workload, gates));
    let size = |name: &str| workload.pod_sets.iter().find(|p| p.name == name).map_or(0, |p| p.count);
    let assignments = admission.into_iter().flat_map(|admission| admission.pod_set_assignments.iter());
    assignments.filter(|a| a.count.is_some_and(|count| count > size(&a.name))).map(|a| a.name.as_str()).collect()
}

/// A check that stays Ready may not change its pod set updates.
fn pod_set_updates(old: &Workload, new: &Workload) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, before) in old.status.rare.admission_checks.iter().enumerate() {
        let Some(after) = new.status.rare.admission_checks.iter().find(|check| check.name == before.name) else {
            continue;
        };
        let both_ready = before.state == CheckState::Ready && after.state == CheckState::Ready;
        if both_ready && before.pod_set_updates != after.pod_set_updates {
            let shown = if after.pod_set_updates.is_empty() { "null" } else { &after.pod_set_updates };
            errors.push(FieldError::invalid(format!("status.admissionChecks[{i}].podSetUpdates"), shown, IMMUTABLE));
        }
    }
    errors
}

/// The worker cluster must be a nominated one, except when an elastic workload's slice is replaced.
fn cluster_name(old: &Workload, new: &Workload, gates: &Gates) -> Option<FieldError> {
    let replaces = gates.enabled(Gate::ElasticJobsViaWorkloadSlices) && annotation(new, REPLACEMENT_FOR).is_some();
    let name = new.status.rare.cluster_name.as_ref()?;
    if replaces || old.status.rare.cluster_name.is_some() || old.status.rare.nominated_cluster_names.contains(name) {
        return None;
    }
    let detail = "when setting clusterName it must be one of the nominatedClusterNames";
    Some(FieldError::invalid("status.clusterName", quoted(name), detail))
}
