//! The requests of pod sets and their suitable flavors, computed once for all workloads with these pod sets and
//! ClusterQueues with these rules. Only the quota remains to be checked.
//!
//! [`super::assign`] gives the same results for workloads that have a plan, and handles all others.

use std::sync::Arc;

use smallvec::SmallVec;

use super::modes::{GranularMode, PreemptionMode};
use super::pod_set::{Choices, FlavorChoice, Grant, PodSetAssignment, Requests};
use super::rules::RulesId;
use super::scan::{Request, is_placed, requests_of, unsuitable};
use super::trial::{Ask, Trial};
use super::{
    Attempt, Context, Gate, Observing, PodSet, QueueRules, Reason, ResourceGroup, ResourceId, Totals, Usage,
    count_pods, group_name,
};
use crate::base::changes::Change;

/// What a plan applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanKey {
    /// Number of the spec.
    pub spec: u64,
    /// The rules of the ClusterQueue.
    pub rules: RulesId,
}

/// Everything that does not depend on quota and usage.
#[derive(Debug)]
pub struct Plan {
    pub(super) key: PlanKey,
    pub(super) rules: Arc<QueueRules>,
    pub(super) pod_sets: SmallVec<[PodSetPlan; 1]>,
    /// Number of requested resources, over all pod sets.
    pub(super) n_requests: usize,
    /// Number of trials if every flavor is tried.
    pub(super) n_trials: usize,
    /// The feature gate FlavorFungibility.
    pub(super) fungible: bool,
    /// Are the reasons recorded why nothing fits, and which?
    pub(super) observing: Observing,
    /// The change EveryMisfitIsNamed.
    names_every_misfit: bool,
    pub(super) preempts_while_borrowing: bool,
}

#[derive(Debug)]
pub(super) struct PodSetPlan {
    count: i32,
    pub requests: Requests,
    /// In order of execution.
    pub scans: SmallVec<[ScanPlan; 1]>,
    /// What ends the evaluation after these: no flavor has quota for the resource.
    pub unavailable: Option<ResourceId>,
}

/// The scan of a resource group for a pod set.
#[derive(Debug)]
pub(super) struct ScanPlan {
    group: usize,
    pub requests: SmallVec<[Request; 4]>,
    /// By flavor, why it is unsuitable; empty: all are suitable.
    refusals: Box<[Option<Reason>]>,
}

/// The results of a plan's scans.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub scans: SmallVec<[Scanned; 2]>,
    /// For all scans, the suitable flavors one by one, each with all requests.
    pub trials: SmallVec<[Trial; 4]>,
}

/// The result of one scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanned {
    /// The evaluated flavors: `start..end`.
    pub start: u32,
    pub end: u32,
    /// The chosen flavor, and the first of its trials.
    pub chosen: Option<(u32, u32)>,
}

/// The chosen flavors, by scan: together with the plan they determine a fitting assignment.
pub(crate) type Chosen = SmallVec<[Option<u32>; 4]>;

impl Plan {
    /// The plan for pod sets with these totals; `None`: evaluate them one by one. `context` has these rules, and no
    /// tree.
    pub(crate) fn new(
        key: PlanKey,
        context: &Context<'_>,
        rules: &Arc<QueueRules>,
        pod_sets: &[PodSet],
        totals: &[Totals],
    ) -> Option<Self> {
        let groups = &rules.groups;
        let covers = |resource| groups.iter().filter(|group| group.covered.contains(&resource)).count();
        let is_plain = groups.iter().all(|group| !group.repeats && group.covered.iter().all(|&it| covers(it) == 1));
        let probes = context.config.changes.has(Change::ZeroPodsNeedRoomForOne);
        let are_plain = pod_sets.iter().zip(totals).all(|(pod_set, totals)| {
            let is_alone = group_name(pod_set).is_none() && !(probes && totals.count == 0);
            is_alone && totals.flavors.is_empty() && !is_placed(context, pod_set)
        });
        if !is_plain || !are_plain {
            return None;
        }
        let mut plans = SmallVec::with_capacity(totals.len());
        for (pod_set, totals) in pod_sets.iter().zip(totals) {
            plans.push(PodSetPlan::new(context, pod_set, totals)?);
        }
        let scans = || plans.iter().flat_map(|plan: &PodSetPlan| &plan.scans);
        Some(Self {
            key,
            rules: Arc::clone(rules),
            n_requests: scans().map(|scan| scan.requests.len()).sum(),
            n_trials: scans().map(|scan| scan.requests.len() * groups[scan.group].flavors.len()).sum(),
            fungible: context.gate(Gate::FlavorFungibility),
            observing: Observing::new(context.config),
            names_every_misfit: context.config.changes.has(Change::EveryMisfitIsNamed),
            preempts_while_borrowing: rules.can_preempt_while_borrowing(context.config.fair_sharing.is_some()),
            pod_sets: plans,
        })
    }

    /// Converts the results to the form of [`super::assign`].
    pub(super) fn unfold(&self, found: &Found) -> Vec<PodSetAssignment> {
        let mut pod_sets: Vec<PodSetAssignment> = Vec::with_capacity(self.pod_sets.len());
        let (mut scans, mut trials) = (found.scans.iter(), found.trials.as_slice());
        let mut usage = Usage::default();
        for (index, plan) in self.pod_sets.iter().enumerate() {
            let (count, requests) = (plan.count, plan.requests.clone());
            let mut pod_set = PodSetAssignment { index, count, requests, ..PodSetAssignment::default() };
            let mut fails = false;
            for scan in &plan.scans {
                let Some(scanned) = scans.next() else { break };
                fails = !self.unfold_scan(scan, *scanned, &usage, &mut trials, &mut pod_set);
                if fails {
                    break;
                }
            }
            if let Some(resource) = plan.unavailable.filter(|_| !fails) {
                pod_set.flavors.clear();
                pod_set.reasons = vec![Reason::ResourceUnavailable(resource)];
            }
            for choice in &pod_set.flavors {
                let units = pod_set.requests.iter().find(|request| request.0 == choice.resource).map_or(0, |it| it.1);
                choice.pair.into_iter().for_each(|pair| usage.add(pair, units));
            }
            let goes_on = pod_set.requests.is_empty() || !pod_set.flavors.is_empty();
            pod_sets.push(pod_set);
            if !goes_on {
                break;
            }
        }
        pod_sets
    }

    /// Takes the trials of a scan, and returns whether it has chosen a flavor.
    fn unfold_scan(
        &self,
        scan: &ScanPlan,
        scanned: Scanned,
        assumed: &Usage,
        trials: &mut &[Trial],
        pod_set: &mut PodSetAssignment,
    ) -> bool {
        let (group, fungibility) = (scan.group(self), &self.rules.fungibility);
        let n_before = pod_set.attempts.len();
        pod_set.attempts.reserve_exact((scanned.end - scanned.start) as usize);
        let mut choices = Choices::new();
        let mut best = PreemptionMode::NoFit;
        for index in scanned.start..scanned.end {
            let at = index as usize;
            let mut attempt = Attempt::of(group.flavors[at]);
            if let Some(refusal) = scan.refusal(at) {
                attempt.refuse(Some(refusal.clone()), self.observing.is_on);
                pod_set.attempts.push(attempt);
                continue;
            }
            let (of_flavor, rest) = trials.split_at(scan.requests.len());
            *trials = rest;
            let mut worst = GranularMode::BEST;
            for (request, &trial) in scan.requests.iter().zip(of_flavor) {
                if worst.preemption != PreemptionMode::NoFit || self.names_every_misfit {
                    attempt.add(trial, request.ask(group, at, assumed));
                }
                worst = worst.or_worse(trial.mode(), fungibility);
            }
            attempt.conclude(worst, self.observing.is_on);
            pod_set.attempts.push(attempt);
            if scanned.chosen.is_some_and(|chosen| chosen.0 == index) {
                let ended = if (scanned.end as usize) < group.flavors.len() { scanned.end as i32 - 1 } else { -1 };
                choices.extend(scan.requests.iter().zip(of_flavor).map(|(request, trial)| FlavorChoice {
                    resource: request.resource,
                    flavor: group.flavors[at],
                    pair: Some(group.pair(at, request.covered())),
                    mode: trial.preemption.mode(),
                    level: trial.level,
                    tried_index: if self.fungible { ended } else { 0 },
                }));
                best = worst.preemption;
            }
        }
        let reasons = pod_set.attempts[n_before..].iter().flat_map(|attempt| attempt.reasons.iter().cloned());
        if scanned.chosen.is_none() {
            pod_set.flavors.clear();
            pod_set.reasons = reasons.collect();
            return false;
        }
        if best != PreemptionMode::Fit {
            pod_set.reasons.extend(reasons);
        }
        pod_set.flavors.extend(choices);
        true
    }

    /// The grants of an assignment that fits.
    pub(super) fn grants(&self, found: &Found) -> SmallVec<[Grant; 1]> {
        let mut scans = found.scans.iter();
        let mut grants = SmallVec::with_capacity(self.pod_sets.len());
        for (index, pod_set) in self.pod_sets.iter().enumerate() {
            let mut grant = Grant { index, count: pod_set.count, choices: SmallVec::new(), place: None, delayed: None };
            for (scan, scanned) in pod_set.scans.iter().zip(&mut scans) {
                let Some((chosen, _)) = scanned.chosen else {
                    grant.choices.clear();
                    break;
                };
                let flavor = scan.group(self).flavors[chosen as usize];
                grant.choices.extend(scan.requests.iter().map(|request| (request.resource, flavor, request.units)));
            }
            let goes_on = pod_set.requests.is_empty() || !grant.choices.is_empty();
            grants.push(grant);
            if !goes_on {
                break;
            }
        }
        grants
    }

    /// Was each evaluated flavor chosen, without borrowing?
    pub(super) fn takes_the_first(&self, found: &Found) -> bool {
        found.scans.iter().all(|scanned| scanned.end - scanned.start <= 1)
            && found.trials.iter().all(|trial| trial.mode() == GranularMode::BEST)
    }
}

impl Found {
    /// The chosen flavors.
    pub fn chosen(&self) -> Chosen {
        self.scans.iter().map(|scanned| scanned.chosen.map(|chosen| chosen.0)).collect()
    }
}

impl PodSetPlan {
    fn new(context: &Context<'_>, pod_set: &PodSet, totals: &Totals) -> Option<Self> {
        let groups = &context.queue.groups;
        let mut requests = Requests::from_slice(&totals.requests);
        count_pods(context, &mut requests, totals.count);
        let mut plan = Self { count: totals.count, scans: SmallVec::new(), unavailable: None, requests };
        for &(resource, quantity) in &plan.requests {
            let Some(group) = groups.iter().position(|group| group.covered.contains(&resource)) else {
                if quantity == 0 || context.ignores_undeclared() {
                    continue;
                }
                plan.unavailable = Some(resource);
                break;
            };
            if plan.scans.iter().any(|scan| scan.group == group) {
                continue;
            }
            let suits = |&flavor| unsuitable(context, [pod_set], flavor, &groups[group]);
            // If one cannot be evaluated, it depends on usage whether that happens.
            let mut refusals: Vec<_> = groups[group].flavors.iter().map(suits).collect::<Result<_, _>>().ok()?;
            if refusals.iter().all(Option::is_none) {
                refusals = Vec::new();
            }
            let requests = requests_of(&groups[group], &plan.requests);
            plan.scans.push(ScanPlan { group, requests, refusals: refusals.into() });
        }
        Some(plan)
    }
}

impl ScanPlan {
    pub fn group<'a>(&self, plan: &'a Plan) -> &'a ResourceGroup {
        &plan.rules.groups[self.group]
    }

    /// The resource that gives the scan its place in the order.
    pub fn lead(&self) -> ResourceId {
        self.requests[0].resource
    }

    pub fn refusal(&self, flavor: usize) -> Option<&Reason> {
        self.refusals.get(flavor).and_then(Option::as_ref)
    }
}

impl Request {
    pub fn ask(&self, group: &ResourceGroup, flavor: usize, assumed: &Usage) -> Ask {
        let fr = group.pair(flavor, self.covered());
        Ask { fr, assumed: assumed.get(fr), requested: self.units }
    }
}
