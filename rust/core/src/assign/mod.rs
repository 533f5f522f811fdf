//! Flavor assignment: which flavors a pending workload would use, and whether it fits (rules/03).
//!
//! A pure function over the tables: it reads quota from one tree, asks an [`Oracle`] what a preemption could do, and
//! changes nothing.

mod assignment;
mod attempts;
mod modes;
mod partial;
mod reasons;
mod scan;
mod usage;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

pub use assignment::{Assignment, Choices, FlavorChoice, PodSetAssignment, Requests};
pub use attempts::{Attempt, AttemptList};
pub use modes::{GranularMode, Mode, Possibility, PreemptionMode};
pub use partial::search_counts;
pub use reasons::{NoFitReason, Reason};
pub use scan::requests_topology;
pub use usage::Usage;

use crate::amount::Amount;
use crate::config::Config;
use crate::gates::Gate;
use crate::ids::{FlavorId, FlavorResourceId, IdVec, ResourceId, ShapeId};
use crate::names::Names;
use crate::objects::{FlavorFungibility, PodSet, Preemption, PreemptionPolicy, ResourceFlavor};
use crate::tree::{Column, Row, Tree};

/// A resource group by ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceGroup {
    /// What it covers.
    pub covered: Vec<ResourceId>,
    /// In order of preference.
    pub flavors: Vec<FlavorId>,
    /// Each flavor with each covered resource, all of a flavor together.
    pub pairs: Vec<FlavorResourceId>,
}

impl ResourceGroup {
    /// The pair of a flavor and a covered resource, by their places in the group.
    fn pair(&self, flavor: usize, covered: usize) -> FlavorResourceId {
        self.pairs[flavor * self.covered.len() + covered]
    }
}

/// What assignment reads of a ClusterQueue.
#[derive(Clone, Debug, Default)]
pub struct QueueRules {
    /// Resource groups.
    pub groups: Vec<ResourceGroup>,
    /// `flavorFungibility`.
    pub fungibility: FlavorFungibility,
    /// `preemption`.
    pub preemption: Option<Preemption>,
}

impl QueueRules {
    /// The first group that covers a resource.
    pub fn group_of(&self, resource: ResourceId) -> Option<&ResourceGroup> {
        self.groups.iter().find(|g| g.covered.contains(&resource))
    }

    /// May a request that exceeds nominal quota preempt at all (rules/03 §4.1)? The stored policies are compared.
    fn can_preempt_while_borrowing(&self, fair_sharing: bool) -> bool {
        let Some(preemption) = &self.preemption else { return false };
        preemption.borrow_within_cohort.as_ref().is_some_and(|b| b.policy != PreemptionPolicy::Never)
            || (fair_sharing && preemption.reclaim_within_cohort != PreemptionPolicy::Never)
    }
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

    fn flavor(&self, resource: ResourceId) -> Option<FlavorId> {
        self.flavors.iter().find(|f| f.0 == resource).map(|f| f.1)
    }

    /// The totals for another count: truncating division, saturating multiplication (rules/01 §7.5).
    pub fn scaled_to(&self, count: i32) -> Totals {
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

/// The index of the last tried flavor of each resource, per pod set.
pub type ScanProgress = SmallVec<[SmallVec<[(ResourceId, i32); 4]>; 1]>;

/// Where the scan of flavors stopped, to go on from there in a later cycle (rules/03 §6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// Per pod set: index of the last tried flavor of each resource; -1: all were tried.
    pub tried: ScanProgress,
    /// `AllocatableResourceGeneration` of the ClusterQueue then.
    pub generation: i64,
    /// The cycle.
    pub cycle: u64,
    /// The workload's shape; `None`: unknown.
    pub shape: Option<ShapeId>,
}

impl Resume {
    /// Are there flavors that were not tried yet?
    pub fn has_pending_flavors(&self) -> bool {
        self.tried.iter().flatten().any(|(_, index)| *index != -1)
    }

    /// Must the scan start over (rules/03 §6)?
    pub fn is_outdated(&self, generation: i64, cycle: u64, shape: Option<ShapeId>, preserve_progress: bool) -> bool {
        if preserve_progress {
            if self.shape.is_some() && shape.is_some() && self.shape != shape {
                return true;
            }
            if cycle.saturating_sub(self.cycle) <= 1 {
                return false;
            }
        }
        generation > self.generation
    }

    fn next_index(&self, pod_set: usize, resource: ResourceId) -> usize {
        self.tried
            .get(pod_set)
            .and_then(|tried| tried.iter().find(|t| t.0 == resource))
            .map_or(0, |t| usize::try_from(t.1 + 1).unwrap_or(0))
    }
}

/// Pod set name to the flavor of each resource, to which a recomputation keeps.
pub type Nomination = BTreeMap<String, BTreeMap<ResourceId, FlavorId>>;

/// The workload to assign.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Pod sets, adjusted (rules/01 §7.3 step 1).
    pub pod_sets: &'a [PodSet],
    /// Totals of each pod set.
    pub totals: &'a [Totals],
    /// Shape; `None`: unknown.
    pub shape: Option<ShapeId>,
    /// Progress of an earlier scan that still holds.
    pub resume: Option<&'a Resume>,
    /// Flavors that a variant may use; `None`: all (concurrent admission).
    pub allowed_flavors: Option<&'a [String]>,
    /// Totals of the slice that it replaces (elastic workloads).
    pub replaced_slice: Option<&'a [ReplacedPodSet]>,
    /// Restricts a recomputation to the flavors of the nomination.
    pub nomination: Option<&'a Nomination>,
}

/// A pod set of a replaced workload slice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplacedPodSet {
    /// Name of the pod set.
    pub name: String,
    /// Its totals and flavors.
    pub totals: Totals,
}

/// What assignment reads besides the workload.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Names.
    pub names: &'a Names,
    /// ResourceFlavors; `None`: there is no such object.
    pub flavors: &'a IdVec<FlavorId, Option<Arc<ResourceFlavor>>>,
    /// Configuration and feature gates.
    pub config: &'a Config,
    /// The ClusterQueue.
    pub queue: &'a QueueRules,
    /// Its row in the tree.
    pub row: Row,
    /// Its `AllocatableResourceGeneration`.
    pub generation: i64,
    /// The number of the scheduling cycle.
    pub cycle: u64,
}

impl Context<'_> {
    fn gate(&self, gate: Gate) -> bool {
        self.config.gates.enabled(gate)
    }

    fn ignores_undeclared(&self) -> bool {
        self.gate(Gate::QuotaCheckStrategy) && self.config.resources.ignore_undeclared
    }
}

/// What a preemption for one flavor-resource could do (rules/04 §6). It may use the tree for its simulation, and leaves
/// it as it was.
pub trait Oracle {
    /// For `amount` in a column: the possibility, and the borrowing level after the preemption; `level` is that without
    /// any.
    fn simulate(&mut self, tree: &mut Tree, row: Row, column: Column, amount: Amount, level: u32)
    -> (Possibility, u32);
}

/// One pod set with the requests that are assigned.
struct PodSetRequest {
    index: usize,
    count: i32,
    requests: Requests,
    carried: Choices,
}

/// Assigns flavors to a workload, at full or at reduced counts (rules/03 §3).
pub fn assign(
    context: &Context<'_>,
    tree: &mut Tree,
    candidate: &Candidate<'_>,
    counts: Option<&[i32]>,
    oracle: &mut dyn Oracle,
) -> Assignment {
    let mut assignment = Assignment {
        pod_sets: SmallVec::with_capacity(candidate.totals.len()),
        borrowing: 0,
        usage: Usage::default(),
        resume: Resume {
            tried: SmallVec::with_capacity(candidate.totals.len()),
            generation: context.generation,
            cycle: context.cycle,
            shape: candidate.shape,
        },
        no_fit_reason: NoFitReason::None,
        override_mode: None,
    };
    let requests = pod_set_requests(context, candidate, counts);
    if candidate.pod_sets.iter().all(|pod_set| group_name(pod_set).is_none()) {
        for request in requests {
            if !assign_group(context, tree, candidate, [request], &mut assignment, oracle) {
                break;
            }
        }
    } else {
        for group in grouped(candidate, requests) {
            if !assign_group(context, tree, candidate, group, &mut assignment, oracle) {
                break;
            }
        }
    }
    if assignment.mode() != Mode::NoFit {
        for pod_set in assignment.pod_sets.iter_mut().filter(|ps| ps.count > 0) {
            pod_set.error = scan::lacks_topology(context, &candidate.pod_sets[pod_set.index]);
        }
    }
    if context.gate(Gate::UnadmittedWorkloadsObservability) && assignment.mode() == Mode::NoFit {
        assignment.no_fit_reason = no_fit_reason(&assignment, context.queue);
    }
    assignment
}

fn pod_set_requests<'a>(
    context: &'a Context<'_>,
    candidate: &'a Candidate<'_>,
    counts: Option<&'a [i32]>,
) -> impl Iterator<Item = PodSetRequest> + 'a {
    let pods = context.names.find_resource("pods").filter(|pods| context.queue.group_of(*pods).is_some());
    candidate.totals.iter().enumerate().map(move |(index, totals)| {
        let totals = match counts {
            Some(counts) => Cow::Owned(totals.scaled_to(counts[index])),
            None => Cow::Borrowed(totals),
        };
        let mut requests = Requests::from_slice(&totals.requests);
        if let Some(pods) = pods {
            set_request(context.names, &mut requests, pods, i64::from(totals.count));
        }
        let carried = if context.gate(Gate::TopologyAwareScheduling) { totals.flavors.as_slice() } else { &[] };
        let carried = carried
            .iter()
            .map(|&(resource, flavor)| {
                let pair = context.names.find_flavor_resource(flavor, resource);
                FlavorChoice { resource, flavor, pair, mode: Mode::Fit, level: 0, tried_index: 0 }
            })
            .collect();
        PodSetRequest { index, count: totals.count, requests, carried }
    })
}

fn set_request(names: &Names, requests: &mut Requests, resource: ResourceId, value: i64) {
    let key = names.canonical_key(resource);
    match requests.binary_search_by(|(r, _)| names.canonical_key(*r).cmp(&key)) {
        Ok(at) => requests[at].1 = value,
        Err(at) => requests.insert(at, (resource, value)),
    }
}

fn group_name(pod_set: &PodSet) -> Option<&String> {
    pod_set.topology_request.as_ref().and_then(|topology| topology.pod_set_group_name.as_ref())
}

/// Pod sets of the same topology group are assigned together (rules/03 §3 rule 3).
fn grouped(candidate: &Candidate<'_>, requests: impl Iterator<Item = PodSetRequest>) -> Vec<Vec<PodSetRequest>> {
    let mut groups: Vec<(String, Vec<PodSetRequest>)> = Vec::new();
    for request in requests {
        let name = group_name(&candidate.pod_sets[request.index]);
        let key = name.map_or_else(|| request.index.to_string(), String::clone);
        match groups.iter_mut().find(|g| g.0 == key) {
            Some(group) => group.1.push(request),
            None => groups.push((key, vec![request])),
        }
    }
    groups.into_iter().map(|g| g.1).collect()
}

/// Assigns one group and says whether the next one is to be looked at.
fn assign_group(
    context: &Context<'_>,
    tree: &mut Tree,
    candidate: &Candidate<'_>,
    group: impl AsRef<[PodSetRequest]> + IntoIterator<Item = PodSetRequest>,
    assignment: &mut Assignment,
    oracle: &mut dyn Oracle,
) -> bool {
    let pod_sets = group.as_ref();
    let n_pod_sets = pod_sets.len();
    // Each is in canonical order.
    let mut summed = Cow::Borrowed(&pod_sets[0].requests);
    for pod_set in &pod_sets[1..] {
        for &(resource, value) in &pod_set.requests {
            let before = summed.iter().find(|s| s.0 == resource).map_or(0, |s| s.1);
            set_request(context.names, summed.to_mut(), resource, before.saturating_add(value));
        }
    }
    let members: SmallVec<[usize; 4]> = pod_sets.iter().map(|ps| ps.index).collect();
    let mut chosen = Choices::new();
    for choice in pod_sets.iter().flat_map(|ps| &ps.carried) {
        put(&mut chosen, *choice);
    }
    let mut reasons = Vec::new();
    let mut error = None;
    let mut attempts = AttemptList::new();
    for &(resource, quantity) in summed.iter() {
        let resource_group = context.queue.group_of(resource);
        if resource_group.is_none() && (quantity == 0 || context.ignores_undeclared()) {
            continue;
        }
        if chosen.iter().any(|choice| choice.resource == resource) {
            continue;
        }
        let found = scan::find_flavor(context, tree, candidate, &members, &summed, resource, &assignment.usage, oracle);
        if let Some(resource_group) = resource_group {
            let observability = context.gate(Gate::UnadmittedWorkloadsObservability);
            attempts::merge(&mut attempts, found.attempts, resource, resource_group, observability);
        }
        if found.error.is_some() || found.flavors.is_empty() {
            chosen.clear();
            reasons = found.reasons;
            error = found.error;
            break;
        }
        found.flavors.into_iter().for_each(|choice| put(&mut chosen, choice));
        append_all(&mut reasons, found.reasons);
    }
    let mut go_on = true;
    for (at, pod_set) in group.into_iter().enumerate() {
        let is_last = at + 1 == n_pod_sets;
        let flavors: Choices =
            chosen.iter().filter(|f| pod_set.requests.iter().any(|r| r.0 == f.resource)).copied().collect();
        if error.is_some() || (!pod_set.requests.is_empty() && flavors.is_empty()) {
            go_on = false;
        }
        let result = PodSetAssignment {
            index: pod_set.index,
            count: pod_set.count,
            requests: pod_set.requests,
            flavors,
            reasons: if is_last { std::mem::take(&mut reasons) } else { reasons.clone() },
            error: error.clone(),
            attempts: if is_last { std::mem::take(&mut attempts) } else { attempts.clone() },
        };
        append(context, candidate, assignment, result);
    }
    go_on
}

/// Appends, without a copy where there is nothing yet.
fn append_all(reasons: &mut Vec<Reason>, mut more: Vec<Reason>) {
    if reasons.is_empty() {
        *reasons = more;
    } else {
        reasons.append(&mut more);
    }
}

fn put(chosen: &mut Choices, choice: FlavorChoice) {
    match chosen.iter_mut().find(|f| f.resource == choice.resource) {
        Some(known) => *known = choice,
        None => chosen.push(choice),
    }
}

fn append(context: &Context<'_>, candidate: &Candidate<'_>, assignment: &mut Assignment, pod_set: PodSetAssignment) {
    let mut tried = SmallVec::with_capacity(pod_set.flavors.len());
    for choice in &pod_set.flavors {
        assignment.borrowing = assignment.borrowing.max(choice.level);
        let mut value = pod_set.requests.iter().find(|r| r.0 == choice.resource).map_or(0, |r| r.1);
        if let Some(replaced) = scan::replaced_slice(context, candidate) {
            // Only what the new slice takes beyond the old one is counted.
            let name = &candidate.pod_sets[pod_set.index].name;
            value = value.saturating_sub(
                replaced.iter().find(|r| r.name == *name).map_or(0, |r| r.totals.request(choice.resource)),
            );
        }
        if let Some(pair) = choice.pair {
            assignment.usage.add(pair, value);
        }
        tried.push((choice.resource, choice.tried_index));
    }
    assignment.resume.tried.push(tried);
    assignment.pod_sets.push(pod_set);
}

/// The most severe reason over pod sets and resource groups of the least severe one within a group (rules/03 §7.1).
fn no_fit_reason(assignment: &Assignment, queue: &QueueRules) -> NoFitReason {
    let mut overall = NoFitReason::None;
    for pod_set in assignment.pod_sets.iter().filter(|ps| ps.mode() == Mode::NoFit) {
        if pod_set.attempts.is_empty() {
            overall = overall.max(NoFitReason::NoMatchingFlavor);
            continue;
        }
        let no_fits = || pod_set.attempts.iter().filter(|a| a.mode == Mode::NoFit);
        let is_in = |a: &Attempt, group: &ResourceGroup| group.flavors.contains(&a.flavor);
        let per_group =
            queue.groups.iter().filter_map(|g| no_fits().filter(|a| is_in(a, g)).map(|a| a.no_fit_reason).min());
        let homeless = no_fits().filter(|a| !queue.groups.iter().any(|g| is_in(a, g))).map(|a| a.no_fit_reason);
        overall = overall.max(per_group.chain(homeless).max().unwrap_or_default());
    }
    overall
}

#[cfg(test)]
mod tests;
