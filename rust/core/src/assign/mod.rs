//! Flavor assignment: which flavors a pending workload would use, and whether it fits (rules/03).
//!
//! A pure function over the tables: it reads quota from one tree, asks an [`Oracle`] what a preemption could do, and
//! changes nothing.

mod assignment;
mod attempts;
mod by_plan;
pub mod messages;
mod modes;
mod partial;
pub mod plan;
mod pod_set;
mod probe;
mod reasons;
pub mod rules;
mod scan;
mod stored;
mod trial;
mod usage;

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::base::amount::Amount;
use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::base::ids::{FlavorId, FlavorResourceId, IdVec, ResourceId, ShapeId};
use crate::base::names::Names;
use crate::base::shared::Shared;
use crate::objects::config::Config;
use crate::objects::{PodSet, Preemption, PreemptionPolicy, ResourceFlavor, TopologyAssignment};
use crate::pods::totals::Totals;
use crate::quota::tree::{Column, Row, Tree};
use crate::topology::sites::Sites;

pub use crate::objects::message::Reason;
pub use assignment::Assignment;
pub use attempts::{Attempt, AttemptList};
pub use modes::{Fungibility, Mode, Possibility};
pub(crate) use modes::{GranularMode, PreemptionMode};
pub use partial::search_counts;
pub(crate) use pod_set::Grant;
pub use pod_set::{Choices, Delay, FlavorChoice, PodSetAssignment, Requests};
pub use reasons::NoFitReason;
pub(crate) use reasons::Observing;
pub(crate) use scan::requests_topology;
pub use usage::Usage;

use probe::Probe;
use scan::{Found, Scan};

/// A resource group by ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResourceGroup {
    /// The resources it covers.
    pub covered: Vec<ResourceId>,
    /// In order of preference.
    pub flavors: Vec<FlavorId>,
    /// Every flavor with every covered resource, grouped by flavor.
    pub pairs: Vec<FlavorResourceId>,
    /// Does it have a flavor twice, or one that another group has, too? Kueue's webhook allows neither.
    pub repeats: bool,
}

impl ResourceGroup {
    /// The pair of a flavor and a covered resource, by their indexes in the group.
    fn pair(&self, flavor: usize, covered: usize) -> FlavorResourceId {
        self.pairs[flavor * self.covered.len() + covered]
    }
}

/// What assignment reads of a ClusterQueue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct QueueRules {
    /// Resource groups.
    pub groups: Vec<ResourceGroup>,
    /// `flavorFungibility`.
    pub fungibility: Fungibility,
    /// `preemption`.
    pub preemption: Option<Preemption>,
}

impl QueueRules {
    /// The first group that covers a resource.
    pub fn group_of(&self, resource: ResourceId) -> Option<&ResourceGroup> {
        self.groups.iter().find(|g| g.covered.contains(&resource))
    }

    /// Does any group have a flavor?
    pub fn has_flavor(&self, flavor: FlavorId) -> bool {
        self.groups.iter().any(|group| group.flavors.contains(&flavor))
    }

    /// May a request that exceeds nominal quota preempt at all (rules/03 §4.1)? The stored policies are compared.
    fn can_preempt_while_borrowing(&self, fair_sharing: bool) -> bool {
        let Some(preemption) = &self.preemption else { return false };
        preemption.borrow_within_cohort.as_ref().is_some_and(|b| b.policy != PreemptionPolicy::Never)
            || (fair_sharing && preemption.reclaim_within_cohort != PreemptionPolicy::Never)
    }
}

/// The index of the last tried flavor of each resource, per pod set.
pub type ScanProgress = SmallVec<[SmallVec<[(ResourceId, i32); 4]>; 1]>;

/// Where the flavor scan stopped, to continue from there in a later cycle (rules/03 §6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// Per pod set: index of the last tried flavor of each resource; -1: all were tried.
    pub tried: ScanProgress,
    /// `AllocatableResourceGeneration` of the ClusterQueue then.
    pub generation: i64,
    pub cycle: u64,
    /// The workload's shape; `None`: unknown.
    pub shape: Option<ShapeId>,
}

impl Resume {
    /// Are there untried flavors?
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

/// Pod set name to the flavor of each resource, which a recomputation must keep.
pub type Nomination = BTreeMap<String, BTreeMap<ResourceId, FlavorId>>;

/// The workload to assign.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Pod sets, adjusted (rules/01 §7.3 step 1).
    pub pod_sets: &'a [PodSet],
    /// Totals of each pod set.
    pub totals: &'a [Totals],
    /// What one pod of each pod set requests; empty: each has pods, whose totals say so.
    pub of_one_pod: &'a [Totals],
    /// Progress of an earlier scan, if still valid.
    pub resume: Option<&'a Resume>,
    /// Flavors that a variant may use; `None`: all (concurrent admission).
    pub allowed_flavors: Option<&'a [String]>,
    /// Totals of the slice that it replaces (elastic workloads).
    pub replaced_slice: Option<&'a [ReplacedPodSet]>,
    /// Restricts a recomputation to the flavors of the nomination.
    pub nomination: Option<&'a Nomination>,
    /// By pod set, its current placement if the workload has quota, or whether it waits for one; empty: no quota.
    pub places: &'a [(Option<Shared<TopologyAssignment>>, Option<Delay>)],
}

/// A pod set of a replaced workload slice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplacedPodSet {
    /// Name of the pod set.
    pub name: String,
    /// Its totals and flavors.
    pub totals: Totals,
}

/// The inputs of assignment besides the workload.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub names: &'a Names,
    /// ResourceFlavors; `None`: the flavor does not exist.
    pub flavors: &'a IdVec<FlavorId, Option<Arc<ResourceFlavor>>>,
    /// Configuration and feature gates.
    pub config: &'a Config,
    /// The ClusterQueue.
    pub queue: &'a QueueRules,
    /// Its row in the tree.
    pub row: Row,
    /// The nodes of topology-aware flavors.
    pub sites: &'a Sites,
}

impl Context<'_> {
    /// The requests for which preemption makes room (rules/03 §8).
    pub(crate) fn requests_to_preempt_for(&self, assignment: &Assignment, candidate: &Candidate<'_>) -> Usage {
        assignment.requests_to_preempt_for(candidate, self.names, self.config.changes)
    }

    fn gate(&self, gate: Gate) -> bool {
        self.config.gates.enabled(gate)
    }

    fn ignores_undeclared(&self) -> bool {
        self.gate(Gate::QuotaCheckStrategy) && self.config.resources.ignore_undeclared
    }
}

/// The possible result of a preemption for one flavor-resource (rules/04 §6). It may use the tree for a simulation, and
/// restores it.
pub trait Oracle {
    /// For `amount` in a column: the possibility, and the borrowing level after the preemption; `level` is the one
    /// without preemption.
    fn simulate(&mut self, tree: &mut Tree, row: Row, column: Column, amount: Amount, level: u32)
    -> (Possibility, u32);

    /// May the ClusterQueue borrow this now? Always, without an experiment (rules/13 §3).
    fn may_borrow(&self, _fr: FlavorResourceId) -> bool {
        true
    }
}

/// Assigns flavors to a workload, at full or reduced counts (rules/03 §3).
pub fn assign(
    context: &Context<'_>,
    tree: &mut Tree,
    candidate: &Candidate<'_>,
    counts: Option<&[i32]>,
    oracle: &mut dyn Oracle,
) -> Assignment {
    let n_pod_sets = candidate.totals.len();
    let mut draft = Draft { pod_sets: Vec::with_capacity(n_pod_sets), borrowing: 0, usage: Usage::default() };
    let is_whole = if candidate.pod_sets.iter().all(|pod_set| group_name(pod_set).is_none()) {
        (0..n_pod_sets).all(|index| assign_group(context, tree, candidate, counts, &[index], &mut draft, oracle))
    } else {
        let mut groups = grouped(candidate.pod_sets).into_iter();
        groups.all(|members| assign_group(context, tree, candidate, counts, &members, &mut draft, oracle))
    };
    let Draft { pod_sets, borrowing, usage } = draft;
    Assignment::new(pod_sets, usage, borrowing)
        .of_whole(is_whole)
        .with_reason(context.queue, Observing::new(context.config))
}

/// An assignment in progress.
struct Draft {
    pod_sets: Vec<PodSetAssignment>,
    borrowing: u32,
    usage: Usage,
}

fn group_name(pod_set: &PodSet) -> Option<&String> {
    pod_set.topology_request.as_ref().and_then(|topology| topology.pod_set_group_name.as_ref())
}

/// Pod sets of the same topology group are assigned together (rules/03 §3 rule 3).
fn grouped(pod_sets: &[PodSet]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for (index, pod_set) in pod_sets.iter().enumerate() {
        // A pod set without a group is known by its index, so a group named "1" takes in the second one (rules/03 §3
        // rule 3).
        let key = group_name(pod_set).map_or_else(|| index.to_string(), String::clone);
        match groups.iter_mut().find(|g| g.0 == key) {
            Some(group) => group.1.push(index),
            None => groups.push((key, vec![index])),
        }
    }
    groups.into_iter().map(|g| g.1).collect()
}

/// A pod set with nothing assigned except what an earlier admission carries over.
fn unassigned(
    context: &Context<'_>,
    candidate: &Candidate<'_>,
    counts: Option<&[i32]>,
    index: usize,
) -> PodSetAssignment {
    let totals = &candidate.totals[index];
    let mut pod_set = PodSetAssignment { index, count: totals.count, ..PodSetAssignment::default() };
    match counts {
        Some(counts) => {
            let scaled = totals.scaled_to(counts[index]);
            pod_set.count = scaled.count;
            pod_set.requests.extend_from_slice(&scaled.requests);
        }
        None => pod_set.requests.extend_from_slice(&totals.requests),
    }
    count_pods(context, &mut pod_set.requests, pod_set.count);
    if !totals.flavors.is_empty() && context.gate(Gate::TopologyAwareScheduling) {
        pod_set.flavors.extend(totals.flavors.iter().map(|&(resource, flavor)| {
            let pair = context.names.find_flavor_resource(flavor, resource);
            FlavorChoice { resource, flavor, pair, mode: Mode::Fit, level: 0, tried_index: 0 }
        }));
    }
    if let Some((place, delayed)) = candidate.places.get(index) {
        pod_set.place.clone_from(place);
        // Kueue copies a pod set for other counts without its delayed request, unless it has a place.
        pod_set.delayed = delayed.filter(|_| counts.is_none() || place.is_some());
    }
    pod_set
}

/// Adds the number of pods to the requests, if there is quota for pods.
fn count_pods(context: &Context<'_>, requests: &mut Requests, count: i32) {
    if let Some(pods) = context.names.pods().filter(|&pods| context.queue.group_of(pods).is_some()) {
        set_request(context.names, requests, pods, i64::from(count));
    }
}

fn set_request(names: &Names, requests: &mut Requests, resource: ResourceId, value: i64) {
    let key = names.canonical_key(resource);
    match requests.binary_search_by(|(r, _)| names.canonical_key(*r).cmp(&key)) {
        Ok(at) => requests[at].1 = value,
        Err(at) => requests.insert(at, (resource, value)),
    }
}

/// The total requests of the pod sets of a group, in canonical order.
fn summed(names: &Names, pod_sets: &[PodSetAssignment], last: &PodSetAssignment) -> Requests {
    let mut sum = Requests::new();
    for pod_set in pod_sets.iter().chain([last]) {
        for &(resource, value) in &pod_set.requests {
            let before = sum.iter().find(|s| s.0 == resource).map_or(0, |s| s.1);
            set_request(names, &mut sum, resource, before.saturating_add(value));
        }
    }
    sum
}

/// Assigns one group, given by the indexes of its pod sets, and returns whether to continue with the next one.
fn assign_group(
    context: &Context<'_>,
    tree: &mut Tree,
    candidate: &Candidate<'_>,
    counts: Option<&[i32]>,
    members: &[usize],
    draft: &mut Draft,
    oracle: &mut dyn Oracle,
) -> bool {
    let n_before = draft.pod_sets.len();
    for &index in members {
        draft.pod_sets.push(unassigned(context, candidate, counts, index));
    }
    let replaced = replaced_slice(context, candidate);
    // The results are written to the last one, and shared with the others at the end.
    let (earlier, own) = draft.pod_sets.split_at_mut(n_before);
    let probe = Probe::new(context, candidate, earlier, own);
    let (last, others) = own.split_last_mut().expect("no group is empty");
    let sum;
    let mut requests = &last.requests;
    if !others.is_empty() {
        sum = summed(context.names, others, last);
        requests = &sum;
        let mut carried = Choices::new();
        for choice in others.iter().chain([&*last]).flat_map(|ps| &ps.flavors) {
            put(&mut carried, *choice);
        }
        last.flavors = carried;
    }
    let mut found = Found {
        flavors: &mut last.flavors,
        reasons: &mut last.reasons,
        error: &mut last.error,
        attempts: &mut last.attempts,
    };
    let scan = Scan { context, candidate, members, requests, probe, assumed: &draft.usage, replaced };
    find_flavors(&scan, tree, &mut found, oracle);
    for pod_set in others {
        pod_set.flavors.clone_from(&last.flavors);
        pod_set.reasons.clone_from(&last.reasons);
        pod_set.error.clone_from(&last.error);
        pod_set.attempts.clone_from(&last.attempts);
    }
    let mut goes_on = true;
    for at in n_before..draft.pod_sets.len() {
        let PodSetAssignment { index, requests, flavors, error, .. } = &mut draft.pod_sets[at];
        if requests.is_empty() && group_name(&candidate.pod_sets[*index]).is_some() {
            // A pod set without requests is still placed on the nodes of its group.
            let is_given = context.config.changes.has(Change::GroupGivesItsFlavor);
            flavors.retain(|choice| is_given && context.sites.has(choice.flavor));
        } else {
            flavors.retain(|choice| requests.iter().any(|request| request.0 == choice.resource));
        }
        // Later pod sets are not evaluated then, and are missing from messages too (rules/03 §3 rule 7).
        goes_on &= error.is_none() && (requests.is_empty() || !flavors.is_empty());
        count(candidate, replaced, draft, at);
    }
    goes_on
}

/// Finds a flavor for each resource of a group of pod sets, as far as there is one (rules/03 §3 rule 4).
fn find_flavors(scan: &Scan<'_>, tree: &mut Tree, found: &mut Found<'_>, oracle: &mut dyn Oracle) {
    let context = scan.context;
    for &(resource, quantity) in scan.requests {
        let Some(group) = context.queue.group_of(resource) else {
            // Requesting zero of a resource without quota does not fail, but gets no flavor (rules/03 §3 rule 4a).
            if quantity == 0 || context.ignores_undeclared() {
                continue;
            }
            found.fail(vec![Reason::ResourceUnavailable(resource)]);
            break;
        };
        // Its resource group has been scanned for an earlier resource, or a second pass carried the flavor over
        // (rules/03 §3 rule 4b).
        if found.flavors.iter().any(|choice| choice.resource == resource) {
            continue;
        }
        let n_attempts = found.attempts.len();
        let before = scan.probe.as_ref().map(|_| (found.flavors.clone(), found.reasons.clone()));
        let mut has_flavor = scan.find_flavor(tree, group, resource, scan.probe.as_ref(), found, oracle);
        // Room for a pod is only preferred: there is none to be placed now (rules/03 §4 rule 3d).
        if let Some((flavors, reasons)) = before.filter(|_| !has_flavor && found.error.is_none()) {
            found.attempts.truncate(n_attempts);
            (*found.flavors, *found.reasons) = (flavors, reasons);
            has_flavor = scan.find_flavor(tree, group, resource, None, found, oracle);
        }
        if group.repeats {
            let observability = context.gate(Gate::UnadmittedWorkloadsObservability);
            attempts::merge(found.attempts, n_attempts, resource, group, observability);
        }
        // If one group has no flavor, the others get none either: nothing is assigned in part (rules/03 §3 rule 4c).
        if !has_flavor {
            break;
        }
    }
}

/// Sets the flavor of a resource, replacing an earlier choice.
fn put(flavors: &mut Choices, choice: FlavorChoice) {
    match flavors.iter_mut().find(|known| known.resource == choice.resource) {
        Some(known) => *known = choice,
        None => flavors.push(choice),
    }
}

/// The totals of the slice that a workload replaces, if the gate for slices is on.
fn replaced_slice<'a>(context: &Context<'_>, candidate: &Candidate<'a>) -> Option<&'a [ReplacedPodSet]> {
    candidate.replaced_slice.filter(|_| context.gate(Gate::ElasticJobsViaWorkloadSlices))
}

/// Adds the usage of a pod set.
fn count(candidate: &Candidate<'_>, replaced: Option<&[ReplacedPodSet]>, draft: &mut Draft, index: usize) {
    let pod_set = &draft.pod_sets[index];
    for choice in &pod_set.flavors {
        draft.borrowing = draft.borrowing.max(choice.level);
        let mut value = pod_set.requests.iter().find(|r| r.0 == choice.resource).map_or(0, |r| r.1);
        if let Some(replaced) = replaced {
            // Only what the new slice takes beyond the old one counts.
            let name = &candidate.pod_sets[pod_set.index].name;
            value = value.saturating_sub(
                replaced.iter().find(|r| r.name == *name).map_or(0, |r| r.totals.request(choice.resource)),
            );
        }
        if let Some(pair) = choice.pair {
            draft.usage.add(pair, value);
        }
    }
}

/// The most severe reason over pod sets and resource groups of the least severe one within a group (rules/03 §7.1).
fn no_fit_reason(pod_sets: &[PodSetAssignment], queue: &QueueRules, observing: Observing) -> NoFitReason {
    let mut overall = NoFitReason::None;
    for pod_set in pod_sets.iter().filter(|ps| ps.mode() == Mode::NoFit) {
        if pod_set.attempts.is_empty() {
            overall = overall.max(NoFitReason::NoMatchingFlavor);
            continue;
        }
        let is_uncovered = |reason: &Reason| matches!(reason, Reason::ResourceUnavailable(_));
        if observing.counts_uncovered && pod_set.reasons.iter().any(is_uncovered) {
            overall = overall.max(NoFitReason::NoMatchingFlavor);
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
