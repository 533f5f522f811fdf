//! Are the requests of a workload allowed? (rules/01 §7.6)

use std::fmt;

use crate::base::changes::Changes;
use crate::objects::{Container, LimitRangeItem, PodSet, PodSpec, Resources};

use super::limit_range::LimitRangeSummary;
use super::lists::{greater_resources, keep_max, keep_min};
use super::requests::pod_requests;

const ABOVE_LIMITS: &str = "requests must not exceed its limits";
const ABOVE_MAX: &str = "requests must not be above the limitRange max";
const BELOW_MIN: &str = "requests must not be below the limitRange min";

/// Invalid resources of one container or pod, as the API server would report them. The kind is always `Invalid value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The path, such as `spec.podSets[0].template.spec.containers[0]`.
    pub field: String,
    /// The resources, by name.
    pub resources: Vec<String>,
    /// What is wrong with them.
    pub detail: &'static str,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.resources.iter().map(|name| format!("\"{name}\"")).collect();
        write!(f, "{}: Invalid value: [{}]: {}", self.field, names.join(","), self.detail)
    }
}

/// Why a workload's resources are invalid; displays as Kueue's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidResources {
    /// Requests above their limits.
    AboveLimits(Vec<FieldError>),
    /// Requests or limits outside the LimitRanges of the namespace.
    OutsideLimitRange(Vec<FieldError>),
}

impl fmt::Display for InvalidResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, errors) = match self {
            Self::AboveLimits(errors) => ("resources validation failed", errors),
            Self::OutsideLimitRange(errors) => ("resources didn't satisfy LimitRange constraints", errors),
        };
        let texts: Vec<String> = errors.iter().map(FieldError::to_string).collect();
        // A single error plain, several as a list.
        match texts.as_slice() {
            [text] => write!(f, "{what}: {text}"),
            texts => write!(f, "{what}: [{}]", texts.join(", ")),
        }
    }
}

impl std::error::Error for InvalidResources {}

/// Checks the pod sets of a workload, already adjusted, against its own limits first and then against the LimitRanges.
///
/// # Errors
/// All violations of the first of the two checks that finds any.
pub(crate) fn check_resources(
    pod_sets: &[PodSet],
    limits: &LimitRangeSummary,
    changes: Changes,
) -> Result<(), InvalidResources> {
    let above_limits = resource_errors(pod_sets);
    if !above_limits.is_empty() {
        return Err(InvalidResources::AboveLimits(above_limits));
    }
    let outside = limit_range_errors(pod_sets, limits, changes);
    if outside.is_empty() { Ok(()) } else { Err(InvalidResources::OutsideLimitRange(outside)) }
}

/// Requests above the limit of the same resource: init containers, containers, then the pod itself.
#[must_use]
pub fn resource_errors(pod_sets: &[PodSet]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, pod_set) in pod_sets.iter().enumerate() {
        let (pod, path) = (&pod_set.template.spec, pod_path(i));
        let mut check = |resources: &Resources, field: String| {
            push(&mut errors, field, greater_resources(&resources.requests, &resources.limits), ABOVE_LIMITS);
        };
        for (i, container) in pod.init_containers.iter().enumerate() {
            check(&container.resources, format!("{path}.initContainers[{i}]"));
        }
        for (i, container) in pod.containers.iter().enumerate() {
            check(&container.resources, format!("{path}.containers[{i}]"));
        }
        if let Some(resources) = &pod.resources {
            check(resources, format!("{path}.resources"));
        }
    }
    errors
}

/// Resources outside the LimitRanges, in all pod sets.
#[must_use]
pub fn limit_range_errors(pod_sets: &[PodSet], limits: &LimitRangeSummary, changes: Changes) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, pod_set) in pod_sets.iter().enumerate() {
        errors.append(&mut pod_limit_range_errors(&pod_set.template.spec, &pod_path(i), limits, changes));
    }
    errors
}

/// Resources outside the LimitRanges in one pod spec, located at `path`. Ratios are not checked.
#[must_use]
pub fn pod_limit_range_errors(
    pod: &PodSpec,
    path: &str,
    limits: &LimitRangeSummary,
    changes: Changes,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(item) = limits.container() {
        check_containers(&pod.init_containers, &format!("{path}.initContainers"), item, &mut errors);
        check_containers(&pod.containers, &format!("{path}.containers"), item, &mut errors);
    }
    if let Some(item) = limits.pod() {
        let total = pod_requests(pod, changes);
        push(&mut errors, path.to_owned(), greater_resources(&total, &item.max), ABOVE_MAX);
        push(&mut errors, path.to_owned(), greater_resources(&item.min, &total), BELOW_MIN);
    }
    errors
}

/// The larger of request and limit may not exceed the maximum, the smaller not be below the minimum.
fn check_containers(containers: &[Container], path: &str, item: &LimitRangeItem, errors: &mut Vec<FieldError>) {
    for (i, container) in containers.iter().enumerate() {
        let Resources { requests, limits } = &container.resources;
        let (mut smaller, mut larger) = (requests.clone(), requests.clone());
        keep_min(&mut smaller, limits);
        keep_max(&mut larger, limits);
        push(errors, format!("{path}[{i}]"), greater_resources(&larger, &item.max), ABOVE_MAX);
        push(errors, format!("{path}[{i}]"), greater_resources(&item.min, &smaller), BELOW_MIN);
    }
}

fn push(errors: &mut Vec<FieldError>, field: String, resources: Vec<String>, detail: &'static str) {
    if !resources.is_empty() {
        errors.push(FieldError { field, resources, detail });
    }
}

fn pod_path(pod_set_index: usize) -> String {
    format!("spec.podSets[{pod_set_index}].template.spec")
}
