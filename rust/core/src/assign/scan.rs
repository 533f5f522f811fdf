//! The scan over the flavors of one resource group for one group of pod sets (rules/03 §4, §5).

use smallvec::SmallVec;

use super::{
    Amount, Attempt, AttemptList, Candidate, Choices, Context, FlavorChoice, FlavorResourceId, Gate, GranularMode,
    Mode, NoFitReason, Oracle, PreemptionMode, Reason, ReplacedPodSet, ResourceGroup, ResourceId, Tree, Usage,
};
use crate::ids::FlavorId;
use crate::objects::PodSet;
use crate::pods::pod_requests;
use crate::quota::Room;
use crate::selectors;

/// What the scan found.
#[derive(Default)]
pub(super) struct Found {
    /// The chosen flavor for each resource; empty: none.
    pub flavors: Choices,
    pub reasons: Vec<Reason>,
    pub error: Option<String>,
    pub attempts: AttemptList,
}

/// The totals of the replaced slice, if the gate lets slices count.
pub(super) fn replaced_slice<'a>(context: &Context<'_>, candidate: &Candidate<'a>) -> Option<&'a [ReplacedPodSet]> {
    candidate.replaced_slice.filter(|_| context.gate(Gate::ElasticJobsViaWorkloadSlices))
}

/// Finds the flavor for the resource group of `lead` (rules/03 §4).
#[allow(clippy::too_many_arguments)]
pub(super) fn find_flavor(
    context: &Context<'_>,
    tree: &mut Tree,
    candidate: &Candidate<'_>,
    members: &[usize],
    requests: &[(ResourceId, i64)],
    lead: ResourceId,
    assumed: &Usage,
    oracle: &mut dyn Oracle,
) -> Found {
    let mut found = Found::default();
    let Some(group) = context.queue.group_of(lead) else {
        found.reasons.push(Reason::ResourceUnavailable(lead));
        return found;
    };
    let requests: SmallVec<[Request; 4]> = requests
        .iter()
        .filter_map(|&(resource, units)| {
            let covered = group.covered.iter().position(|it| *it == resource)?;
            Some(Request { resource, units, covered })
        })
        .collect();
    let fungible = context.gate(Gate::FlavorFungibility);
    let start = match candidate.resume {
        Some(resume) if fungible => resume.next_index(members[0], lead),
        _ => 0,
    };
    let (mut has_best, mut best) = (false, GranularMode::WORST);
    // What the best flavor gives, and what the one that is tried does.
    let (mut choices, mut spare) = (Choices::new(), Choices::new());
    // Reasons to skip a flavor, each with the number of attempts before it.
    let mut skips: Vec<(usize, Reason)> = Vec::new();
    let mut last_index = None;
    for (index, &flavor) in group.flavors.iter().enumerate().skip(start) {
        last_index = Some(index);
        if let Some(reason) = skipped(context, candidate, members, flavor, lead) {
            skips.push((found.attempts.len(), reason));
            continue;
        }
        match unsuitable(context, candidate, members, flavor, &group.covered) {
            Ok(None) => {}
            Ok(Some(reason)) => {
                push(&mut found.attempts, no_fit_attempt(context, flavor, vec![reason]), group);
                continue;
            }
            Err(error) => {
                found.error = Some(error);
                found.reasons = in_order(&found.attempts, skips);
                push(&mut found.attempts, no_fit_attempt(context, flavor, Vec::new()), group);
                return found;
            }
        }
        let tried = try_flavor(context, tree, candidate, members, &requests, group, index, assumed, &mut spare, oracle);
        let attempt = Attempt {
            flavor,
            mode: tried.mode.preemption.mode(),
            level: tried.max_level,
            possibility: tried.mode.preemption.possibility(),
            reasons: tried.reasons,
            no_fit_reason: observed(context, tried.no_fit_reason),
        };
        push(&mut found.attempts, attempt, group);
        let (is_better, is_last) = if fungible {
            let fungibility = &context.queue.fungibility;
            let is_last = !tried.mode.try_next(fungibility);
            (is_last || tried.mode.preferred_to(best, fungibility), is_last)
        } else {
            let is_better = tried.mode.preemption > best.preemption;
            (is_better, is_better && tried.mode.preemption == PreemptionMode::Fit)
        };
        if is_better {
            has_best = true;
            best = tried.mode;
            std::mem::swap(&mut choices, &mut spare);
        }
        if is_last {
            break;
        }
    }
    if has_best && fungible {
        // What is kept is where the scan ended, not which flavor was chosen (rules/03 §4 rule 4).
        let ended = last_index.filter(|i| i + 1 < group.flavors.len());
        let tried_index = ended.map_or(-1, |i| i32::try_from(i).expect("at most 64 flavors in a group"));
        for choice in &mut choices {
            choice.tried_index = tried_index;
        }
    }
    if !has_best || best.preemption != PreemptionMode::Fit {
        found.reasons = in_order(&found.attempts, skips);
    }
    found.flavors = choices;
    found
}

/// One attempt is the rule; whoever tries a second flavor may try all.
fn push(attempts: &mut AttemptList, attempt: Attempt, group: &ResourceGroup) {
    if attempts.len() == attempts.inline_size() {
        attempts.reserve_exact(group.flavors.len());
    }
    attempts.push(attempt);
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

/// Flavors that the scan passes over without an attempt.
fn skipped(
    context: &Context<'_>,
    candidate: &Candidate<'_>,
    members: &[usize],
    flavor: FlavorId,
    lead: ResourceId,
) -> Option<Reason> {
    if let Some(nomination) = candidate.nomination.filter(|n| !n.is_empty()) {
        let nominated = members.iter().any(|&i| {
            nomination.get(&candidate.pod_sets[i].name).and_then(|flavors| flavors.get(&lead)) == Some(&flavor)
        });
        let respected = context.gate(Gate::RecomputeAssignmentUponPreemptionTargetsOverlap)
            || (context.gate(Gate::TopologyAwareScheduling)
                && context.gate(Gate::TASRecomputeAssignmentWithinSchedulingCycle));
        if respected && !nominated {
            return Some(Reason::NotNominated(flavor, lead));
        }
    }
    let name = &context.names.flavors[flavor];
    let allowed = candidate.allowed_flavors.is_none_or(|allowed| allowed.contains(name));
    if context.gate(Gate::ConcurrentAdmission) && !allowed {
        return Some(Reason::NotAllowed(flavor));
    }
    None
}

/// Does a pod set ask for topology-aware placement itself?
pub fn requests_topology(pod_set: &PodSet) -> bool {
    pod_set
        .topology_request
        .as_ref()
        .is_some_and(|t| t.required.is_some() || t.preferred.is_some() || t.unconstrained.is_some() || t.sliced)
}

/// Why the pods can't run on the flavor's nodes (rules/03 §5).
fn unsuitable(
    context: &Context<'_>,
    candidate: &Candidate<'_>,
    members: &[usize],
    flavor: FlavorId,
    covered: &[ResourceId],
) -> Result<Option<Reason>, String> {
    let Some(object) = context.flavors.get(flavor).and_then(Option::as_ref) else {
        return Ok(Some(Reason::FlavorNotFound(flavor)));
    };
    for &index in members {
        let pod_set = &candidate.pod_sets[index];
        if context.gate(Gate::TopologyAwareScheduling) {
            let wants = requests_topology(pod_set);
            let has = !object.topology_name.is_empty();
            if wants && !has && requests_any(pod_set, covered, context) {
                return Ok(Some(Reason::TopologyUnsupported(flavor)));
            }
            if !wants && has && !all_topology(context) {
                return Ok(Some(Reason::TopologyOnly(flavor)));
            }
        }
        let spec = &pod_set.template.spec;
        let forbidding = |effect: &str| effect == "NoSchedule" || effect == "NoExecute";
        let untolerated = object
            .node_taints
            .iter()
            .filter(|t| forbidding(&t.effect))
            .find(|t| !selectors::tolerated(t, spec.tolerations.iter().chain(&object.tolerations)));
        if let Some(taint) = untolerated {
            return Ok(Some(Reason::UntoleratedTaint(flavor, Box::new(taint.clone()))));
        }
        if !selectors::affinity_matches(spec, &object.node_labels).map_err(|e| e.0)? {
            return Ok(Some(Reason::AffinityMismatch(flavor)));
        }
    }
    Ok(None)
}

/// Do the pods themselves, before any transformation, request one of these resources?
fn requests_any(pod_set: &PodSet, covered: &[ResourceId], context: &Context<'_>) -> bool {
    let own = pod_requests(&pod_set.template.spec);
    covered.iter().any(|resource| own.contains_key(context.names.resource_text(*resource)))
}

/// Why a pod set that needs topology has none to be placed in: the ClusterQueue has no topology-aware flavor
/// (rules/03 §3).
pub(super) fn lacks_topology(context: &Context<'_>, pod_set: &PodSet) -> Option<String> {
    let has_topology = |flavor: &FlavorId| {
        let object = context.flavors.get(*flavor).and_then(Option::as_ref);
        object.is_some_and(|f| !f.topology_name.is_empty())
    };
    let none_has = !context.queue.groups.iter().flat_map(|g| &g.flavors).any(has_topology);
    let wants = requests_topology(pod_set) || all_topology(context);
    (context.gate(Gate::TopologyAwareScheduling) && wants && none_has)
        .then(|| "workload requires Topology, but there is no TAS cache information".to_owned())
}

/// Are all flavors of the ClusterQueue topology-aware, so that every workload uses topology (rules/03 §5 rule 2)?
fn all_topology(context: &Context<'_>) -> bool {
    context.queue.groups.iter().flat_map(|g| &g.flavors).all(|&flavor| {
        let object = context.flavors.get(flavor).and_then(Option::as_ref);
        object.is_some_and(|f| !f.topology_name.is_empty())
    })
}

/// What is asked for of a resource, and its place in the resource group.
struct Request {
    resource: ResourceId,
    units: i64,
    covered: usize,
}

struct Tried {
    mode: GranularMode,
    max_level: u32,
    reasons: Vec<Reason>,
    no_fit_reason: NoFitReason,
}

/// Tries one flavor; `choices` are then what it gives.
#[allow(clippy::too_many_arguments)]
fn try_flavor(
    context: &Context<'_>,
    tree: &mut Tree,
    candidate: &Candidate<'_>,
    members: &[usize],
    requests: &[Request],
    group: &ResourceGroup,
    index: usize,
    assumed: &Usage,
    choices: &mut Choices,
    oracle: &mut dyn Oracle,
) -> Tried {
    choices.clear();
    let flavor = group.flavors[index];
    let mut tried =
        Tried { mode: GranularMode::BEST, max_level: 0, reasons: Vec::new(), no_fit_reason: NoFitReason::None };
    for &Request { resource, units: mut requested, covered } in requests {
        if let Some(replaced) = replaced_slice(context, candidate) {
            for old in members.iter().filter_map(|&i| replaced.get(i)) {
                let original = old.totals.flavor(resource);
                if original != Some(flavor) {
                    tried.mode = GranularMode::WORST;
                    tried.reasons.push(Reason::ReplacedSliceFlavor(flavor, original));
                    tried.no_fit_reason = tried.no_fit_reason.max(NoFitReason::NoMatchingFlavor);
                    break;
                }
                requested = requested.saturating_sub(old.totals.request(resource));
            }
        }
        let fr = group.pair(index, covered);
        let checked = check_quota(context, tree, fr, assumed.get(fr), requested, oracle);
        if let Some((reason, no_fit_reason)) = checked.reason {
            tried.reasons.push(reason);
            tried.no_fit_reason = tried.no_fit_reason.max(no_fit_reason);
        }
        tried.max_level = tried.max_level.max(checked.mode.level);
        if tried.mode.preferred_to(checked.mode, &context.queue.fungibility) {
            tried.mode = checked.mode;
        }
        if tried.mode.preemption != PreemptionMode::NoFit {
            choices.push(FlavorChoice {
                resource,
                flavor,
                pair: Some(fr),
                mode: checked.mode.preemption.mode(),
                level: checked.mode.level,
                tried_index: 0,
            });
        }
    }
    tried
}

struct Checked {
    mode: GranularMode,
    reason: Option<(Reason, NoFitReason)>,
}

/// The quota check of one flavor-resource (rules/03 §4.1).
fn check_quota(
    context: &Context<'_>,
    tree: &mut Tree,
    fr: FlavorResourceId,
    assumed: Amount,
    requested: i64,
    oracle: &mut dyn Oracle,
) -> Checked {
    let row = context.row;
    let amount = assumed.plus_units(requested);
    let column = tree.column(fr);
    let maximum = column.map_or(Amount::ZERO, |c| tree.potential_available(row, c));
    let checked = |preemption, level, reason| Checked { mode: GranularMode { preemption, level }, reason };
    if amount > maximum {
        let reason = Reason::ExceedsMaximum { fr, assumed, requested, maximum };
        return checked(PreemptionMode::NoFit, 0, Some((reason, NoFitReason::ExceedsMaxQuota)));
    }
    let Some(column) = column else {
        // No quota anywhere, and nothing asked for.
        return checked(PreemptionMode::Fit, 0, None);
    };
    let Room { available, level, is_inside: may_reclaim } = tree.room(row, column, amount);
    let available = available.max(Amount::ZERO);
    if amount <= available {
        return checked(PreemptionMode::Fit, level, None);
    }
    let reason = Reason::Insufficient { fr, missing: amount.minus(available) };
    let fair_sharing = context.config.fair_sharing.is_some();
    if tree.nominal(row, column) >= amount || may_reclaim || context.queue.can_preempt_while_borrowing(fair_sharing) {
        let (possibility, level) = oracle.simulate(tree, row, column, amount, level);
        return checked(possibility.into(), level, Some((reason, NoFitReason::None)));
    }
    checked(PreemptionMode::NoFit, level, Some((reason, NoFitReason::WaitingForQuota)))
}

fn no_fit_attempt(context: &Context<'_>, flavor: FlavorId, reasons: Vec<Reason>) -> Attempt {
    Attempt {
        flavor,
        mode: Mode::NoFit,
        level: 0,
        possibility: None,
        reasons,
        no_fit_reason: observed(context, NoFitReason::NoMatchingFlavor),
    }
}

fn observed(context: &Context<'_>, reason: NoFitReason) -> NoFitReason {
    if context.gate(Gate::UnadmittedWorkloadsObservability) { reason } else { NoFitReason::None }
}
