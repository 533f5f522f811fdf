//! ClusterQueues and Cohorts (rules/01 §1-2).

use std::cmp::Ordering;
use std::collections::BTreeSet;

use kueuecore::base::changes::{Change, Changes};
use kueuecore::base::gates::Gate;
use kueuecore::base::quantity::Quantity;
use kueuecore::objects::config::Config;
use kueuecore::objects::{
    ClusterQueue, Cohort, FlavorQuotas, FungibilityPolicy, FungibilityPreference, PreemptionPolicy, QueueingStrategy,
    ResourceGroup, ResourceQuota,
};
use serde_json::Value;

use super::{NEGATIVE, labels};
use crate::field_error::{FieldError, quoted};

const GROUPS: &str = "spec.resourceGroups";

/// What is the same for all limits of one object.
struct Limits {
    /// Without a parent, limits have no meaning and are rejected.
    has_parent: bool,
    /// What this kind calls its parent.
    parent: &'static str,
    /// A Cohort may lend more than its own quota: its children's, too.
    lend_at_most_nominal: bool,
}

pub(super) fn cluster_queue(queue: &ClusterQueue, config: &Config) -> Vec<FieldError> {
    let mut errors = cluster_queue_spec(queue, config);
    errors.extend(on_flavors(queue, |_| false));
    errors
}

/// All checks except that of `onFlavors`.
pub(super) fn cluster_queue_spec(queue: &ClusterQueue, config: &Config) -> Vec<FieldError> {
    let limits = Limits { has_parent: !queue.cohort_name.is_empty(), parent: "cohort", lend_at_most_nominal: true };
    let mut errors = resource_groups(&queue.resource_groups, &limits);
    if let Some(selector) = &queue.namespace_selector {
        errors.extend(labels::selector(selector, "spec.namespaceSelector"));
    }
    errors.extend(preemption(queue));
    errors.extend(fungibility(queue));
    errors.extend(weight(queue.fair_weight.as_ref()));
    errors.extend(totals(&queue.resource_groups));
    if config.gates.enabled(Gate::ConcurrentAdmission) {
        errors.extend(concurrent_admission(queue, config.changes));
    }
    errors
}

pub(super) fn cohort(cohort: &Cohort) -> Vec<FieldError> {
    let limits = Limits { has_parent: !cohort.parent_name.is_empty(), parent: "parent", lend_at_most_nominal: false };
    let mut errors = weight(cohort.fair_weight.as_ref());
    errors.extend(resource_groups(&cohort.resource_groups, &limits));
    errors
}

/// The names of all flavors of a ClusterQueue, sorted.
pub(super) fn flavor_names(groups: &[ResourceGroup]) -> BTreeSet<&str> {
    groups.iter().flat_map(|group| &group.flavors).map(|flavor| flavor.name.as_str()).collect()
}

/// Flavors of admission checks that the ClusterQueue does not have, except for checks that `is_tolerated` names.
pub(super) fn on_flavors(queue: &ClusterQueue, is_tolerated: impl Fn(&str) -> bool) -> Vec<FieldError> {
    let flavors = flavor_names(&queue.resource_groups);
    let supported: Vec<&str> = flavors.iter().copied().collect();
    let mut errors = Vec::new();
    for (i, check) in queue.admission_checks.iter().enumerate() {
        for (j, flavor) in check.on_flavors.iter().enumerate() {
            if !flavors.contains(flavor.as_str()) && !is_tolerated(&check.name) {
                let path = format!("spec.admissionChecksStrategy.admissionChecks[{i}].onFlavors[{j}]");
                errors.push(FieldError::unsupported(path, quoted(flavor), &supported));
            }
        }
    }
    errors
}

fn resource_groups(groups: &[ResourceGroup], limits: &Limits) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut resources = BTreeSet::new();
    let mut flavors = BTreeSet::new();
    for (i, group) in groups.iter().enumerate() {
        for (j, name) in group.covered_resources.iter().enumerate() {
            let path = format!("{GROUPS}[{i}].coveredResources[{j}]");
            errors.extend(labels::key(name, &path));
            if !resources.insert(name.as_str()) {
                errors.push(FieldError::duplicate(path, quoted(name)));
            }
        }
        for (j, flavor) in group.flavors.iter().enumerate() {
            let path = format!("{GROUPS}[{i}].flavors[{j}]");
            errors.extend(flavor_quotas(flavor, &group.covered_resources, limits, &path));
            if !flavors.insert(flavor.name.as_str()) {
                errors.push(FieldError::duplicate(format!("{path}.name"), quoted(&flavor.name)));
            }
        }
    }
    errors
}

/// Compares only as many resources as are covered: the schema checks the count.
fn flavor_quotas(flavor: &FlavorQuotas, covered: &[String], limits: &Limits, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, (quota, name)) in flavor.resources.iter().zip(covered).enumerate() {
        let path = format!("{path}.resources[{i}]");
        if quota.name != *name {
            let detail = "must match the name in coveredResources";
            errors.push(FieldError::invalid(format!("{path}.name"), quoted(&quota.name), detail));
        }
        errors.extend(resource_quota(quota, limits, &path));
    }
    errors
}

fn resource_quota(quota: &ResourceQuota, limits: &Limits, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(negative(&quota.nominal_quota, &format!("{path}.nominalQuota")));
    let orphaned = |limit: &Quantity, path: &str| {
        let detail = format!("must be nil when {} is empty", limits.parent);
        (!limits.has_parent).then(|| FieldError::invalid(path, shown(limit), detail))
    };
    if let Some(limit) = &quota.borrowing_limit {
        let path = format!("{path}.borrowingLimit");
        errors.extend(orphaned(limit, &path));
        errors.extend(negative(limit, &path));
    }
    if let Some(limit) = &quota.lending_limit {
        let path = format!("{path}.lendingLimit");
        errors.extend(negative(limit, &path));
        errors.extend(orphaned(limit, &path));
        if limits.lend_at_most_nominal && limit.cmp_value(&quota.nominal_quota) == Ordering::Greater {
            let detail = "must be less than or equal to the nominalQuota";
            errors.push(FieldError::invalid(path, shown(limit), detail));
        }
    }
    errors
}

pub(super) fn negative(quantity: &Quantity, path: &str) -> Option<FieldError> {
    (quantity.signum() < 0).then(|| FieldError::invalid(path, shown(quantity), NEGATIVE))
}

fn shown(quantity: &Quantity) -> String {
    quoted(&quantity.to_string())
}

fn weight(weight: Option<&Quantity>) -> Vec<FieldError> {
    let Some(weight) = weight else { return Vec::new() };
    let path = "spec.fairSharing";
    let mut errors: Vec<FieldError> = negative(weight, path).into_iter().collect();
    // The bound in Kueue's message is ten times the real one.
    let least = Quantity::parse("1n").unwrap_or_default();
    if weight.signum() > 0 && weight.cmp_value(&least) != Ordering::Greater {
        errors.push(FieldError::invalid(path, shown(weight), "When not 0, weight must be > 10e-9"));
    }
    errors
}

fn preemption(queue: &ClusterQueue) -> Option<FieldError> {
    let preemption = queue.preemption.as_ref()?;
    let borrow = preemption.borrow_within_cohort.as_ref()?;
    if preemption.reclaim_within_cohort != PreemptionPolicy::Never || borrow.policy == PreemptionPolicy::Never {
        return None;
    }
    Some(FieldError::unshown("spec.preemption", "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"))
}

/// A default preference looks like an absent one here; only the schema sees the difference.
fn fungibility(queue: &ClusterQueue) -> Option<FieldError> {
    let fungibility = &queue.flavor_fungibility;
    let both_try = fungibility.when_can_borrow == FungibilityPolicy::TryNextFlavor
        && fungibility.when_can_preempt == FungibilityPolicy::TryNextFlavor;
    if both_try || fungibility.preference != Some(FungibilityPreference::PreemptionOverBorrowing) {
        return None;
    }
    let preference = quoted("PreemptionOverBorrowing");
    let detail = format!("preference {preference} requires both whenCanBorrow and whenCanPreempt to be TryNextFlavor");
    Some(FieldError::invalid("spec.flavorFungibility.preference", preference, detail))
}

fn totals(groups: &[ResourceGroup]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let n_flavors: usize = groups.iter().map(|group| group.flavors.len()).sum();
    if n_flavors > 256 {
        let detail = format!("total number of flavors across all resourceGroups must be ≤ 256, got {n_flavors}");
        errors.push(FieldError::invalid(GROUPS, n_flavors.to_string(), detail));
    }
    let n_covered: usize = groups.iter().map(|group| group.covered_resources.len()).sum();
    if n_covered > 256 {
        let detail =
            format!("total number of covered resources across all resourceGroups must be ≤ 256, got {n_covered}");
        errors.push(FieldError::invalid(GROUPS, n_covered.to_string(), detail));
    }
    for (i, group) in groups.iter().enumerate() {
        let n_pairs: usize = group.flavors.iter().map(|flavor| flavor.resources.len()).sum();
        if n_pairs > 512 {
            let detail =
                format!("number of flavor-resource combinations in a resourceGroup must be ≤ 512, got {n_pairs}");
            errors.push(FieldError::invalid(format!("{GROUPS}[{i}]"), n_pairs.to_string(), detail));
        }
    }
    errors
}

fn concurrent_admission(queue: &ClusterQueue, changes: Changes) -> Vec<FieldError> {
    let Ok(policy) = serde_json::from_str::<Value>(&queue.concurrent_admission_policy) else { return Vec::new() };
    let mut errors = Vec::new();
    let n_groups = queue.resource_groups.len();
    if n_groups != 1 {
        let detail = "must have exactly one ResourceGroup when ConcurrentAdmissionPolicy is defined";
        errors.push(FieldError::invalid(GROUPS, n_groups.to_string(), detail));
    }
    if let [group] = queue.resource_groups.as_slice() {
        let most = if changes.has(Change::ConcurrentFlavorsUpTo32) { 32 } else { 16 };
        if group.flavors.len() > most {
            let detail = format!(
                "cannot have more than {most} resource flavors in the ResourceGroup when ConcurrentAdmissionPolicy is \
                 defined"
            );
            errors.push(FieldError::invalid(format!("{GROUPS}[0].flavors"), group.flavors.len().to_string(), detail));
        }
    }
    errors.extend(migration(queue, &policy["migration"]));
    if queue.queueing_strategy == QueueingStrategy::StrictFIFO {
        let detail = "StrictFIFO queueing strategy cannot be used when ConcurrentAdmissionPolicy is defined";
        errors.push(FieldError::invalid("spec.queueingStrategy", quoted("StrictFIFO"), detail));
    }
    errors
}

fn migration(queue: &ClusterQueue, migration: &Value) -> Option<FieldError> {
    let path = "spec.concurrentAdmissionPolicy.migration.constraints";
    let constraints = migration.get("constraints").filter(|constraints| !constraints.is_null())?;
    let mode = migration["mode"].as_str().unwrap_or("");
    if !["", "TryPreferredFlavors"].contains(&mode) {
        let detail = format!("may only be set when migration.mode is \"TryPreferredFlavors\" (got {})", quoted(mode));
        return Some(FieldError::forbidden(path, detail));
    }
    let last = constraints["lastAcceptableFlavorName"].as_str()?;
    let flavors = flavor_names(&queue.resource_groups);
    if flavors.contains(last) {
        return None;
    }
    let flavors: Vec<&str> = flavors.into_iter().collect();
    let detail = format!("must be one of the flavors defined in the ClusterQueue: [{}]", flavors.join(" "));
    Some(FieldError::invalid(format!("{path}.lastAcceptableFlavorName"), quoted(last), detail))
}
