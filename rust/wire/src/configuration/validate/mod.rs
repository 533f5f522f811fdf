//! What Kueue rejects in a Configuration, with its messages; all errors are reported (rules/11 §2).

mod devices;
mod jobs;
mod manager;

use std::collections::{BTreeMap, BTreeSet};

use kueuecore::base::changes::{Change, Changes};
use kueuecore::base::gates::{Gate, Gates};
use kueuecore::base::releases::Release;
use serde::Serialize;

use super::file::{AdmissionFairSharing, File, ObjectRetentionPolicies, Resources, WaitForPodsReady};
use crate::duration::Duration;
use crate::field_error::{FieldError, quoted};

const NEGATIVE: &str = "must be greater than or equal to 0";

/// All errors that a release finds in a defaulted v1beta2 file, section by section in Kueue's order.
pub(super) fn validate(file: &File, gates: Gates, release: Release) -> Vec<FieldError> {
    let mut errors = Vec::new();
    unscheduled_timeout(file, gates, &mut errors);
    if let Some(wait) = file.wait_for_pods_ready.as_ref().filter(|_| !gates.enabled(Gate::DisableWaitForPodsReady)) {
        wait_for_pods_ready(wait, &mut errors);
    }
    jobs::integrations(file, release, &mut errors);
    jobs::multikueue(file, &mut errors);
    if let Some(fair) = &file.fair_sharing {
        fair_sharing(&fair.preemption_strategies, &mut errors);
    }
    if let Some(fair) = &file.admission_fair_sharing {
        admission_fair_sharing(fair, &mut errors);
    }
    manager::certificates(file, &mut errors);
    if let Some(resources) = &file.resources {
        transformations(resources, gates, &mut errors);
        devices::mappings(&resources.device_class_mappings, gates, Changes::of(release), &mut errors);
    }
    jobs::managed_namespaces(file, &mut errors);
    if let Some(policies) = &file.object_retention_policies {
        retention(policies, &mut errors);
    }
    manager::tls(file, &mut errors);
    manager::visibility_server(file, &mut errors);
    manager::custom_labels(&file.metrics.custom_labels, &mut errors);
    if Changes::of(release).has(Change::LocalQueueSelectorIsChecked) {
        jobs::local_queue_selector(file, &mut errors);
    }
    if let Some(resources) = file.resources.as_ref().filter(|_| gates.enabled(Gate::QuotaCheckStrategy)) {
        quota_check_strategy(resources, &mut errors);
    }
    without_repetition(errors)
}

/// Kueue reports an error once, however many checks find it.
fn without_repetition(errors: Vec<FieldError>) -> Vec<FieldError> {
    let mut seen = BTreeSet::new();
    errors.into_iter().filter(|error| seen.insert(error.to_string())).collect()
}

fn wait_for_pods_ready(wait: &WaitForPodsReady, errors: &mut Vec<FieldError>) {
    let timeout = wait.timeout.unwrap_or_default();
    if timeout.ns == 0 {
        errors.push(FieldError::required("waitForPodsReady.timeout", "must be specified"));
    }
    not_negative_duration("waitForPodsReady.timeout", Some(timeout), errors);
    not_negative_duration("waitForPodsReady.recoveryTimeout", wait.recovery_timeout, errors);
    let Some(strategy) = &wait.requeuing_strategy else { return };
    let path = |field: &str| format!("waitForPodsReady.requeuingStrategy.{field}");
    if let Some(timestamp) = &strategy.timestamp {
        one_of(&path("timestamp"), timestamp, &["Creation", "Eviction"], errors);
    }
    for (field, value) in [
        ("backoffLimitCount", strategy.backoff_limit_count),
        ("backoffBaseSeconds", strategy.backoff_base_seconds),
        ("backoffMaxSeconds", strategy.backoff_max_seconds),
    ] {
        if let Some(value) = value.filter(|&value| value < 0) {
            errors.push(FieldError::invalid(path(field), value.to_string(), NEGATIVE));
        }
    }
}

/// The field needs its gate, which cannot be on where waiting for pods is off.
fn unscheduled_timeout(file: &File, gates: Gates, errors: &mut Vec<FieldError>) {
    const PATH: &str = "waitForPodsReady.unscheduledTimeout";
    const GATE: Gate = Gate::WaitForPodsReadyUnscheduledTimeout;
    let is_on = gates.enabled(GATE);
    if is_on && gates.enabled(Gate::DisableWaitForPodsReady) {
        let detail = format!("{} and DisableWaitForPodsReady exclude each other", GATE.name());
        errors.push(FieldError::unshown("featureGates", detail));
    }
    let Some(wait) = &file.wait_for_pods_ready else { return };
    let Some(timeout) = wait.unscheduled_timeout else { return };
    let most = wait.timeout.unwrap_or_default();
    if !is_on {
        let detail = format!("requires feature gate {}", GATE.name());
        errors.push(FieldError::invalid(PATH, quoted(&timeout.to_string()), detail));
    } else if timeout.ns > most.ns {
        let detail = "must be less than or equal to timeout";
        errors.push(FieldError::invalid(PATH, quoted(&timeout.to_string()), detail));
    }
    not_negative_duration(PATH, Some(timeout), errors);
}

fn fair_sharing(strategies: &[String], errors: &mut Vec<FieldError>) {
    const PATH: &str = "fairSharing.preemptionStrategies";
    const ACCEPTED: [&[&str]; 3] = [
        &["LessThanOrEqualToFinalShare"],
        &["LessThanInitialShare"],
        &["LessThanOrEqualToFinalShare", "LessThanInitialShare"],
    ];
    if strategies.is_empty() {
        errors.push(FieldError::required(PATH, "must be specified"));
    } else if !ACCEPTED.iter().any(|accepted| strategies == *accepted) {
        let accepted = ACCEPTED.map(|accepted| accepted.join(","));
        errors.push(FieldError::unsupported(PATH, json(&strategies), &accepted));
    }
}

fn admission_fair_sharing(fair: &AdmissionFairSharing, errors: &mut Vec<FieldError>) {
    let half_life = quoted(&fair.usage_half_life_time.to_string());
    if fair.usage_half_life_time.ns < 0 {
        errors.push(FieldError::invalid("admissionFairSharing.usageHalfLifeTime", &half_life, NEGATIVE));
    }
    if fair.usage_sampling_interval.ns <= 0 {
        // Kueue shows the half-life here.
        let path = "admissionFairSharing.usageSamplingInterval";
        errors.push(FieldError::invalid(path, half_life, "must be greater than 0"));
    }
    for (resource, _) in fair.resource_weights.iter().filter(|(_, weight)| **weight < 0.0) {
        let path = format!("admissionFairSharing.resourceWeights[{resource}]");
        errors.push(FieldError::invalid(path, weights_as_json(&fair.resource_weights), NEGATIVE));
    }
}

/// Whole weights without a decimal point, as Go prints them.
fn weights_as_json(weights: &BTreeMap<String, f64>) -> String {
    let number = |weight: f64| {
        if weight.fract() == 0.0 && weight.abs() < 1e21 { format!("{weight:.0}") } else { weight.to_string() }
    };
    let entries: Vec<String> =
        weights.iter().map(|(name, weight)| format!("{}:{}", json(name), number(*weight))).collect();
    format!("{{{}}}", entries.join(","))
}

fn transformations(resources: &Resources, gates: Gates, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (i, transformation) in resources.transformations.iter().enumerate() {
        let path = format!("resources.transformations[{i}]");
        let strategy = transformation.strategy.as_deref().unwrap_or_default();
        one_of(&format!("{path}.strategy"), strategy, &["Retain", "Replace"], errors);
        if !seen.insert(&transformation.input) {
            errors.push(FieldError::duplicate(format!("{path}.input"), quoted(&transformation.input)));
        }
        reserved_name(&transformation.input, &format!("{path}.input"), gates, errors);
        for output in transformation.outputs.keys() {
            reserved_name(output, &format!("{path}.outputs[{output}]"), gates, errors);
        }
    }
}

/// `pods` is what Kueue counts pods by (rules/11 §3).
fn reserved_name(name: &str, path: &str, gates: Gates, errors: &mut Vec<FieldError>) {
    if name == "pods" && gates.enabled(Gate::ReservedResourceNameValidation) {
        errors.push(FieldError::invalid(path, quoted(name), "the resource name is reserved for the number of pods"));
    }
}

fn retention(policies: &ObjectRetentionPolicies, errors: &mut Vec<FieldError>) {
    let Some(workloads) = &policies.workloads else { return };
    not_negative_duration("objectRetentionPolicies.workloads.afterFinished", workloads.after_finished, errors);
    let path = "objectRetentionPolicies.workloads.afterDeactivatedByKueue";
    not_negative_duration(path, workloads.after_deactivated_by_kueue, errors);
}

fn quota_check_strategy(resources: &Resources, errors: &mut Vec<FieldError>) {
    const PATH: &str = "resources.quotaCheckStrategy";
    let Some(strategy) = &resources.quota_check_strategy else { return };
    if strategy == "IgnoreUndeclared" && !resources.exclude_resource_prefixes.is_empty() {
        let detail = "excludeResourcePrefixes is not allowed when quotaCheckStrategy is IgnoreUndeclared";
        errors.push(FieldError::invalid(PATH, quoted(strategy), detail));
    }
    one_of(PATH, strategy, &["IgnoreUndeclared", "BlockUndeclared"], errors);
}

fn one_of(path: &str, value: &str, supported: &[&str], errors: &mut Vec<FieldError>) {
    if !supported.contains(&value) {
        errors.push(FieldError::unsupported(path, quoted(value), supported));
    }
}

fn not_negative_duration(path: &str, value: Option<Duration>, errors: &mut Vec<FieldError>) {
    if let Some(value) = value.filter(|value| value.ns < 0) {
        errors.push(FieldError::invalid(path, quoted(&value.to_string()), NEGATIVE));
    }
}

/// A value as compact JSON in the order of its fields, escaped for HTML as Go does.
pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> String {
    let text = serde_json::to_string(value).expect("plain data with string keys is always JSON");
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
