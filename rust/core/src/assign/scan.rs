//! The scan over the flavors of one resource group for one group of pod sets (rules/03 §4, §5).

use smallvec::SmallVec;

use super::probe::Probe;
use super::trial::{Ask, Trial};
use super::{
    Attempt, AttemptList, Candidate, Choices, Context, FlavorChoice, Gate, GranularMode, NoFitReason, Oracle,
    PreemptionMode, Reason, ReplacedPodSet, ResourceGroup, ResourceId, Tree, Usage, put,
};
use crate::base::changes::Change;
use crate::base::ids::FlavorId;
use crate::objects::{PodSet, ResourceFlavor, selectors};
use crate::pods::pod_requests;
use crate::topology::request::Wish;

/// The results so far of the scans for one group of pod sets.
pub(super) struct Found<'a> {
    /// The chosen flavor for each resource; empty: none.
    pub flavors: &'a mut Choices,
    pub reasons: &'a mut Vec<Reason>,
    pub error: &'a mut Option<String>,
    pub attempts: &'a mut AttemptList,
}

impl Found<'_> {
    /// The group gets no flavors, for these reasons only (rules/03 §3 rule 4c).
    pub(crate) fn fail(&mut self, reasons: Vec<Reason>) {
        self.flavors.clear();
        *self.reasons = reasons;
    }

    /// Starts the record of another tried flavor. Usually there is one attempt; after a second one, reserves room for
    /// all.
    fn try_one(&mut self, flavor: FlavorId, group: &ResourceGroup) -> &mut Attempt {
        if self.attempts.len() == self.attempts.capacity() {
            self.attempts.reserve_exact(group.flavors.len());
        }
        self.attempts.push(Attempt::of(flavor));
        self.attempts.last_mut().expect("one was just pushed")
    }
}

/// The scans for one group of pod sets.
pub(super) struct Scan<'a> {
    pub context: &'a Context<'a>,
    pub candidate: &'a Candidate<'a>,
    /// Its pod sets.
    pub members: &'a [usize],
    /// Their total requests, in canonical order.
    pub requests: &'a [(ResourceId, i64)],
    /// One pod of each, if they have none.
    pub probe: Option<Probe>,
    /// What earlier groups take.
    pub assumed: &'a Usage,
    /// The slice that the workload replaces.
    pub replaced: Option<&'a [ReplacedPodSet]>,
}

/// The request for a resource, and its index in the resource group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub resource: ResourceId,
    pub units: i64,
    covered: u32,
}

impl Request {
    pub fn covered(&self) -> usize {
        self.covered as usize
    }
}

/// The result of a flavor for each request.
type Modes = SmallVec<[GranularMode; 4]>;

impl Scan<'_> {
    /// Finds the flavor for a resource group that covers `lead`, and returns whether there is one (rules/03 §4).
    ///
    /// In one piece: the loop is hot, and swaps the buffers of the best flavor and the current one.
    pub(crate) fn find_flavor(
        &self,
        tree: &mut Tree,
        group: &ResourceGroup,
        lead: ResourceId,
        probe: Option<&Probe>,
        found: &mut Found<'_>,
        oracle: &mut dyn Oracle,
    ) -> bool {
        let requests = requests_of(group, self.requests);
        let fungibility = &self.context.queue.fungibility;
        let fungible = self.context.gate(Gate::FlavorFungibility);
        let start = match self.candidate.resume {
            // Only the first pod set of a group decides, whatever the others have tried (rules/03 §6).
            Some(resume) if fungible => resume.next_index(self.members[0], lead),
            _ => 0,
        };
        let observes = self.context.gate(Gate::UnadmittedWorkloadsObservability);
        let n_before = found.attempts.len();
        let (mut chosen, mut best) = (None, GranularMode::WORST);
        // The results of the best flavor, and of the one being tried.
        let (mut best_modes, mut modes) = (Modes::new(), Modes::new());
        // Reasons to skip a flavor, each with the number of attempts before it.
        let mut skips: Vec<(usize, Reason)> = Vec::new();
        let mut last_index = None;
        for (index, &flavor) in group.flavors.iter().enumerate().skip(start) {
            last_index = Some(index);
            if let Some(reason) = self.skipped(flavor, lead) {
                skips.push((found.attempts.len() - n_before, reason));
                continue;
            }
            let pod_sets = self.members.iter().map(|&member| &self.candidate.pod_sets[member]);
            match unsuitable(self.context, pod_sets, flavor, group) {
                Ok(None) => {}
                Ok(Some(reason)) => {
                    found.try_one(flavor, group).refuse(Some(reason), observes);
                    continue;
                }
                // A malformed affinity ends the scan: no later flavor can make up for it (rules/03 §4 rule 3c).
                Err(error) => {
                    found.fail(in_order(&found.attempts[n_before..], skips));
                    *found.error = Some(error);
                    found.try_one(flavor, group).refuse(None, observes);
                    return false;
                }
            }
            if let Some(probe) = probe {
                let objections = probe.objections(self.context, tree, group, index);
                if !objections.is_empty() {
                    found.try_one(flavor, group).exceed(objections, observes);
                    continue;
                }
            }
            let attempt = found.try_one(flavor, group);
            let mode = self.try_flavor(tree, &requests, group, index, attempt, &mut modes, oracle);
            let (is_better, is_last) = mode.compare(best, fungibility, fungible);
            if is_better {
                (chosen, best) = (Some(index), mode);
                std::mem::swap(&mut best_modes, &mut modes);
            }
            if is_last {
                break;
            }
        }
        if chosen.is_none() || best.preemption != PreemptionMode::Fit {
            let reasons = in_order(&found.attempts[n_before..], skips);
            match chosen {
                Some(_) => found.reasons.extend(reasons),
                None => found.fail(reasons),
            }
        }
        let Some(index) = chosen else { return false };
        // The record is where the scan ended, not which flavor was chosen (rules/03 §4 rule 4).
        let ended = last_index.filter(|i| i + 1 < group.flavors.len());
        let ended = ended.map_or(-1, |i| i32::try_from(i).expect("at most 64 flavors in a group"));
        let tried_index = if fungible { ended } else { 0 };
        choose(found.flavors, group, index, requests.iter().zip(&best_modes), tried_index);
        true
    }

    /// Why the scan skips a flavor without an attempt.
    fn skipped(&self, flavor: FlavorId, lead: ResourceId) -> Option<Reason> {
        let Self { context, candidate, .. } = self;
        if let Some(nomination) = candidate.nomination.filter(|n| !n.is_empty()) {
            let nominated = self.members.iter().any(|&i| {
                nomination.get(&candidate.pod_sets[i].name).and_then(|flavors| flavors.get(&lead)) == Some(&flavor)
            });
            let respected = context.gate(Gate::RecomputeAssignmentUponPreemptionTargetsOverlap)
                || (context.gate(Gate::TopologyAwareScheduling)
                    && context.gate(Gate::TASRecomputeAssignmentWithinSchedulingCycle));
            if respected && !nominated {
                return Some(Reason::NotNominated(flavor, lead));
            }
        }
        let allowed = candidate.allowed_flavors.filter(|_| context.gate(Gate::ConcurrentAdmission))?;
        (!allowed.contains(&context.names.flavors[flavor])).then_some(Reason::NotAllowed(flavor))
    }

    /// The pod set of the replaced slice that a pod set continues.
    fn replaced_pod_set(&self, index: usize) -> Option<&ReplacedPodSet> {
        let replaced = self.replaced?;
        if !self.context.config.changes.has(Change::GroupMembersMayBeApart) {
            return replaced.get(index);
        }
        let name = &self.candidate.pod_sets[index].name;
        replaced.iter().find(|it| it.name == *name)
    }

    /// Tries one flavor: its mode is that of the worst request. Fills `modes` with those of all requests, and `attempt`
    /// with the result.
    #[allow(clippy::too_many_arguments)]
    fn try_flavor(
        &self,
        tree: &mut Tree,
        requests: &[Request],
        group: &ResourceGroup,
        index: usize,
        attempt: &mut Attempt,
        modes: &mut Modes,
        oracle: &mut dyn Oracle,
    ) -> GranularMode {
        let Context { queue, config, .. } = *self.context;
        let preempts_while_borrowing = queue.can_preempt_while_borrowing(config.fair_sharing.is_some());
        modes.clear();
        let flavor = group.flavors[index];
        let mut worst = GranularMode::BEST;
        for &Request { resource, units: mut requested, covered } in requests {
            // The other resources still say why, and ask the oracle (rules/03 §4 rule 3d).
            if worst.preemption == PreemptionMode::NoFit && !config.changes.has(Change::EveryMisfitIsNamed) {
                break;
            }
            for old in self.members.iter().filter_map(|&member| self.replaced_pod_set(member)) {
                // Nothing runs on its flavor, so nothing would be split over two.
                let may_change = self.context.gate(Gate::ElasticJobsViaWorkloadSlicesFlavorChangeFromZero);
                if may_change && old.totals.count == 0 {
                    continue;
                }
                let original = old.totals.flavor(resource);
                if original != Some(flavor) {
                    worst = GranularMode::WORST;
                    attempt.object(Reason::ReplacedSliceFlavor(flavor, original), NoFitReason::NoMatchingFlavor);
                    break;
                }
                requested = requested.saturating_sub(old.totals.request(resource));
            }
            let fr = group.pair(index, covered as usize);
            let ask = Ask { fr, assumed: self.assumed.get(fr), requested };
            let trial = Trial::new(ask, (tree, self.context.row), preempts_while_borrowing, oracle);
            attempt.add(trial, ask);
            worst = worst.or_worse(trial.mode(), &queue.fungibility);
            modes.push(trial.mode());
        }
        attempt.conclude(worst, self.context.gate(Gate::UnadmittedWorkloadsObservability));
        worst
    }
}

/// Writes what each request gets of the chosen flavor.
fn choose<'a>(
    flavors: &mut Choices,
    group: &ResourceGroup,
    index: usize,
    modes: impl Iterator<Item = (&'a Request, &'a GranularMode)>,
    tried_index: i32,
) {
    for (request, mode) in modes {
        let choice = FlavorChoice {
            resource: request.resource,
            flavor: group.flavors[index],
            pair: Some(group.pair(index, request.covered())),
            mode: mode.preemption.mode(),
            level: mode.level,
            tried_index,
        };
        put(flavors, choice);
    }
}

/// The requests for the resources of a group.
pub(super) fn requests_of(group: &ResourceGroup, requests: &[(ResourceId, i64)]) -> SmallVec<[Request; 4]> {
    let place = |resource| group.covered.iter().position(|it| *it == resource);
    let of = |&(resource, units)| Some(Request { resource, units, covered: place(resource)? as u32 });
    requests.iter().filter_map(of).collect()
}

/// Why the pods can't run on the flavor's nodes (rules/03 §5).
pub(super) fn unsuitable<'a>(
    context: &Context<'_>,
    pod_sets: impl IntoIterator<Item = &'a PodSet>,
    flavor: FlavorId,
    group: &ResourceGroup,
) -> Result<Option<Reason>, String> {
    let object_of = |flavor| context.flavors.get(flavor).and_then(Option::as_ref);
    let Some(object) = object_of(flavor) else {
        return Ok(Some(Reason::FlavorNotFound(flavor)));
    };
    // Only keys that this flavor labels count, not those of other flavors (rules/03 §5 rule 4).
    let by_own_labels = context.config.changes.has(Change::FlavorsAreMatchedByTheirOwnLabels);
    let labels = |flavor, key: &str| object_of(flavor).is_some_and(|it| it.node_labels.contains_key(key));
    let is_relevant =
        |key: &str| labels(flavor, key) || (!by_own_labels && group.flavors.iter().any(|&other| labels(other, key)));
    for pod_set in pod_sets {
        if context.gate(Gate::TopologyAwareScheduling)
            && let Some(reason) = unplaceable(context, pod_set, (flavor, object), &group.covered)
        {
            return Ok(Some(reason));
        }
        let spec = &pod_set.template.spec;
        // PreferNoSchedule is only a preference, and does not count here (rules/03 §5 rule 3).
        let forbidding = |effect: &str| effect == "NoSchedule" || effect == "NoExecute";
        let untolerated = object
            .node_taints
            .iter()
            .filter(|t| forbidding(&t.effect))
            .find(|t| !selectors::tolerated(t, spec.tolerations.iter().chain(&object.tolerations)));
        if let Some(taint) = untolerated {
            return Ok(Some(Reason::UntoleratedTaint(flavor, Box::new(taint.clone()))));
        }
        if !selectors::affinity_matches(spec, &object.node_labels, is_relevant).map_err(|e| e.0)? {
            return Ok(Some(Reason::AffinityMismatch(flavor)));
        }
    }
    Ok(None)
}

/// Why a flavor and a pod set are incompatible in placement on nodes (rules/08 §3).
fn unplaceable(
    context: &Context<'_>,
    pod_set: &PodSet,
    (flavor, object): (FlavorId, &ResourceFlavor),
    covered: &[ResourceId],
) -> Option<Reason> {
    let is_placing = !object.topology_name.is_empty();
    if !requests_topology(pod_set) {
        return (is_placing && !all_topology(context)).then_some(Reason::TopologyOnly(flavor));
    }
    if !is_placing {
        return requests_any(pod_set, covered, context).then_some(Reason::TopologyUnsupported(flavor));
    }
    let Some(levels) = context.sites.levels(flavor) else { return Some(Reason::TopologyUnknown(flavor)) };
    let wish = Wish::new(pod_set.topology_request.as_deref(), false, levels);
    let wish = wish.within(context.config.gates, context.config.changes);
    (!wish.fits_levels(levels)).then_some(Reason::LevelUnknown(flavor))
}

/// All reasons, in the order of the flavors.
fn in_order(attempts: &[Attempt], skips: Vec<(usize, Reason)>) -> Vec<Reason> {
    let mut skips = skips.into_iter().peekable();
    let mut reasons = Vec::with_capacity(attempts.iter().map(|attempt| attempt.reasons.len()).sum());
    for (index, attempt) in attempts.iter().enumerate() {
        while let Some((_, reason)) = skips.next_if(|(before, _)| *before == index) {
            reasons.push(reason);
        }
        reasons.extend(attempt.reasons.iter().cloned());
    }
    reasons.extend(skips.map(|(_, reason)| reason));
    reasons
}

/// Does a pod set itself request topology-aware placement?
pub(crate) fn requests_topology(pod_set: &PodSet) -> bool {
    pod_set.topology_request.as_ref().is_some_and(|request| request.is_explicit())
}

/// Do the pods themselves, before any transformation, request one of these resources?
fn requests_any(pod_set: &PodSet, covered: &[ResourceId], context: &Context<'_>) -> bool {
    let own = pod_requests(&pod_set.template.spec, context.config.changes);
    covered.iter().any(|resource| own.contains_key(context.names.resource_text(*resource)))
}

/// Are the pods of a pod set placed on nodes (rules/08 §2.2)?
pub(super) fn is_placed(context: &Context<'_>, pod_set: &PodSet) -> bool {
    context.gate(Gate::TopologyAwareScheduling) && (requests_topology(pod_set) || all_topology(context))
}

/// Are all flavors of the ClusterQueue topology-aware, so that every workload uses topology (rules/03 §5 rule 2)?
fn all_topology(context: &Context<'_>) -> bool {
    context.queue.groups.iter().flat_map(|g| &g.flavors).all(|&flavor| {
        let object = context.flavors.get(flavor).and_then(Option::as_ref);
        object.is_some_and(|f| !f.topology_name.is_empty())
    })
}
