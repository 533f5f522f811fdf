//! The total requests of a workload: per pod set, as integers (rules/01 §7.3 to §7.5, rules/11 §3.1).

mod transform;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::amount::Amount;
use crate::base::changes::Change;
use crate::base::ids::{FlavorId, ResourceId};
use crate::base::names::Names;
use crate::objects::config::Config;
use crate::objects::resource_names::resource_value;
use crate::objects::{Admission, PodSet, PodSetAssignment, ResourceList, StringMap, WorkloadStatus};
use crate::pods::{container_requests, lists, pod_requests, values};

/// The total of one pod set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSetTotals {
    /// Name of the pod set.
    pub name: String,
    /// Pods that count: those of the pod set without the reclaimable ones.
    pub count: i32,
    /// Resource to the value for all these pods: milli-units of `cpu`, whole units of the rest.
    pub requests: BTreeMap<String, i64>,
    /// Resource to flavor, once quota is reserved.
    pub flavors: Option<StringMap>,
}

/// What device claims change in a workload's requests, per pod set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceRequests {
    /// Resources to add, for one pod.
    pub added: BTreeMap<String, ResourceList>,
    /// Extended resources backed by a device class, to leave out.
    pub replaced: BTreeMap<String, BTreeSet<String>>,
}

/// What a workload charges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// By flavor and resource.
    pub assigned: BTreeMap<(String, String), Amount>,
    /// By resource, without a flavor: not charged.
    pub unassigned: BTreeMap<String, i64>,
}

/// The totals of a workload: from its admission if it has one, else from its pod templates.
///
/// `pod_sets` are already adjusted (`pods::adjust`). `reclaimable_pods` is the feature gate of that name; `devices` is
/// given if gate KueueDRAIntegration is on and claims were resolved.
#[must_use]
pub fn totals(
    pod_sets: &[PodSet],
    status: &WorkloadStatus,
    config: &Config,
    reclaimable_pods: bool,
    devices: Option<&DeviceRequests>,
) -> Vec<PodSetTotals> {
    match &status.admission {
        Some(admission) => {
            let mut names = Names::default();
            let reserved = reserved_totals(&mut names, pod_sets, status, admission, reclaimable_pods);
            let by_name = |(totals, assignment): (&Totals, &PodSetAssignment)| PodSetTotals {
                name: assignment.name.clone(),
                count: totals.count,
                requests: totals
                    .requests
                    .iter()
                    .map(|&(it, value)| (names.canonical_key(it).1.to_owned(), value))
                    .collect(),
                flavors: Some(assignment.flavors.clone()),
            };
            reserved.iter().zip(admission.pod_set_assignments.iter()).map(by_name).collect()
        }
        None => pending_totals(pod_sets, status, config, reclaimable_pods, devices),
    }
}

/// The totals that a workload has while it is pending, whatever its status says (rules/01 §7.3).
#[must_use]
pub(crate) fn pending_totals(
    pod_sets: &[PodSet],
    status: &WorkloadStatus,
    config: &Config,
    reclaimable_pods: bool,
    devices: Option<&DeviceRequests>,
) -> Vec<PodSetTotals> {
    let least = if config.changes.has(Change::RequestsAreNotNegative) { 0 } else { i64::MIN };
    let of_pod_set = |pod_set: &PodSet| {
        let requests = pod_requests(&pod_set.template.spec, config.changes);
        let list = match devices {
            Some(devices) => with_devices(requests, pod_set, devices, config),
            None => transform::charged(requests, &config.resources, config.changes, &ResourceList::new()),
        };
        let count = effective_count(pod_sets, status, &pod_set.name, reclaimable_pods);
        let mut requests = values(&list);
        for value in requests.values_mut() {
            *value = (*value).max(least).saturating_mul(i64::from(count));
        }
        PodSetTotals { name: pod_set.name.clone(), count, requests, flavors: None }
    };
    pod_sets.iter().map(of_pod_set).collect()
}

/// What is charged for one pod, with devices in place of the extended resources that they back.
fn with_devices(requests: ResourceList, pod_set: &PodSet, devices: &DeviceRequests, config: &Config) -> ResourceList {
    let replaced = devices.replaced.get(&pod_set.name);
    let takes_a_part = config.changes.has(Change::DevicesReplaceContainerRequests);
    let mut of_containers = ResourceList::new();
    if let Some(replaced) = replaced.filter(|_| takes_a_part) {
        let spec = &pod_set.template.spec;
        of_containers = container_requests(spec, |container| Cow::Borrowed(&container.resources.requests));
        of_containers.retain(|name, _| replaced.contains(name));
    }
    let mut list = transform::charged(requests, &config.resources, config.changes, &of_containers);
    if let Some(replaced) = replaced.filter(|_| !takes_a_part) {
        list.retain(|name, _| !replaced.contains(name));
    }
    if let Some(added) = devices.added.get(&pod_set.name) {
        lists::add(&mut list, added);
    }
    list
}

/// The totals of a workload from its admission; requests are in canonical order (rules/01 §7.4).
pub fn reserved_totals(
    names: &mut Names,
    pod_sets: &[PodSet],
    status: &WorkloadStatus,
    admission: &Admission,
    reclaimable_pods: bool,
) -> Arc<[Totals]> {
    let of_assignment = |assignment: &PodSetAssignment| {
        let name = assignment.name.as_str();
        let usage = assignment.resource_usage.iter();
        let mut requests: Vec<(ResourceId, i64)> =
            usage.map(|(resource, quantity)| (names.resource(resource), resource_value(resource, quantity))).collect();
        requests.sort_by(|a, b| names.canonical_key(a.0).cmp(&names.canonical_key(b.0)));
        let flavors = assignment.flavors.iter();
        let flavors =
            flavors.map(|(resource, flavor)| (names.resource(resource), names.flavors.intern(flavor))).collect();
        let count = assignment.count.unwrap_or_else(|| spec_count(pod_sets, name));
        let assigned = Totals { count, requests, flavors };
        // Fewer assigned pods mean partial admission, which changes nothing here.
        let now = effective_count(pod_sets, status, name, reclaimable_pods);
        if now < count { assigned.scaled_to(now) } else { assigned }
    };
    admission.pod_set_assignments.iter().map(of_assignment).collect()
}

/// Pods of a pod set without the reclaimable ones; 0 for a pod set that the workload does not have.
#[must_use]
pub(crate) fn effective_count(
    pod_sets: &[PodSet],
    status: &WorkloadStatus,
    pod_set: &str,
    reclaimable_pods: bool,
) -> i32 {
    let count = spec_count(pod_sets, pod_set);
    if !reclaimable_pods {
        return count;
    }
    let entry = status.rare.reclaimable_pods.iter().rev().find(|entry| entry.name == pod_set);
    // More may be reclaimable than there are, just after an elastic job shrank.
    entry.map_or(count, |entry| count.saturating_sub(entry.count.min(count)))
}

fn spec_count(pod_sets: &[PodSet], pod_set: &str) -> i32 {
    pod_sets.iter().rev().find(|candidate| candidate.name == pod_set).map_or(0, |found| found.count)
}

impl PodSetTotals {
    /// Scales the totals to another count, for partial admission (rules/01 §7.5): each value is divided by the old
    /// count, rounded toward zero, and multiplied. Totals of zero pods stay. Not for a pod set with a topology
    /// assignment.
    pub fn scale(&mut self, new_count: i32) {
        if self.count != 0 && self.count != new_count {
            let per_pod = self.per_pod();
            self.requests =
                per_pod.into_iter().map(|(name, value)| (name, value.saturating_mul(i64::from(new_count)))).collect();
            self.count = new_count;
        }
    }

    /// The share of one pod, rounded toward zero; 0 for zero pods.
    #[must_use]
    pub(crate) fn per_pod(&self) -> BTreeMap<String, i64> {
        let share = |value: i64| value.checked_div(i64::from(self.count)).unwrap_or(0);
        self.requests.iter().map(|(name, value)| (name.clone(), share(*value))).collect()
    }
}

/// The charges of these totals, and what has no flavor (rules/01 §7.4).
#[must_use]
pub fn usage(totals: &[PodSetTotals]) -> Usage {
    let mut usage = Usage::default();
    for pod_set in totals {
        for (resource, &value) in &pod_set.requests {
            let flavor = pod_set.flavors.as_ref().and_then(|flavors| flavors.get(resource));
            match flavor.filter(|flavor| !flavor.is_empty()) {
                Some(flavor) => {
                    let amount = usage.assigned.entry((flavor.clone(), resource.clone())).or_default();
                    *amount = amount.plus_units(value);
                }
                None => {
                    let sum = usage.unassigned.entry(resource.clone()).or_default();
                    *sum = sum.saturating_add(value);
                }
            }
        }
    }
    usage
}

/// The totals of one pod set: all its pods, transformed, as integers (rules/01 §7.3, §7.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Effective count.
    pub count: i32,
    /// In canonical order (rules/03 §1); zero quantities stay.
    pub requests: Vec<(ResourceId, i64)>,
    /// The flavors of an admission; empty while pending.
    pub flavors: Vec<(ResourceId, FlavorId)>,
}

impl Totals {
    /// The amount of one resource; 0 if not requested.
    pub fn request(&self, resource: ResourceId) -> i64 {
        self.requests.iter().find(|r| r.0 == resource).map_or(0, |r| r.1)
    }

    /// The flavor of one resource in an admission.
    pub fn flavor(&self, resource: ResourceId) -> Option<FlavorId> {
        self.flavors.iter().find(|f| f.0 == resource).map(|f| f.1)
    }

    /// The totals for another count: truncating division, saturating multiplication (rules/01 §7.5).
    pub(crate) fn scaled_to(&self, count: i32) -> Totals {
        let mut scaled = self.clone();
        if self.count != 0 && self.count != count {
            for (_, value) in &mut scaled.requests {
                *value = value.checked_div(i64::from(self.count)).unwrap_or(0).saturating_mul(i64::from(count));
            }
            scaled.count = count;
        }
        scaled
    }
}

/// Totals by ids, requests in canonical order.
pub(crate) fn intern_totals(names: &mut Names, totals: &[PodSetTotals]) -> Arc<[Totals]> {
    totals
        .iter()
        .map(|t| {
            let mut requests: Vec<_> =
                t.requests.iter().map(|(resource, value)| (names.resource(resource), *value)).collect();
            requests.sort_by(|a, b| names.canonical_key(a.0).cmp(&names.canonical_key(b.0)));
            let flavors = t
                .flavors
                .iter()
                .flatten()
                .map(|(resource, flavor)| (names.resource(resource), names.flavors.intern(flavor.as_str())))
                .collect();
            Totals { count: t.count, requests, flavors }
        })
        .collect()
}

#[cfg(test)]
mod tests;
