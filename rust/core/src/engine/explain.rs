//! Why a workload waits, or where it would go: evaluates it on a fork and records everything.

use std::collections::BTreeSet;

use crate::assign::{Assignment, Attempt, Reason};
use crate::base::amount::Amount;
use crate::base::ids::{FlavorId, FlavorResourceId, ResourceId, WorkloadId};
use crate::engine::Engine;
use crate::engine::ahead::Ahead;
use crate::engine::what_if::WhatIf;
use crate::objects::{Kind, Object, Time, WorkloadStatus};
use crate::preempt::search_not_made;
use crate::quota::forest::TreeId;
use crate::quota::levels::Level;
use crate::quota::tree::{Row, Tree};
use crate::schedule::victims::Victims;
use crate::state::State;
use crate::state::records::Owner;
use crate::state::searches::{Recorder, Search};
use crate::workloads::charge::Target;

/// The details of a decision on one workload.
#[derive(Debug)]
pub struct Explanation {
    /// The outcome now.
    pub what_if: WhatIf,
    /// The trials for each pod set, in order of evaluation.
    pub pod_sets: Vec<PodSetTrials>,
    /// The preemption searches, in order.
    pub searches: Vec<Search>,
    /// The slice that it replaces: its quota goes over to the workload, so it counts neither as used nor as a holder.
    pub replaces: Option<WorkloadId>,
    /// While it is pending: who is ahead of it in its ClusterQueue, in no particular order.
    pub ahead: Vec<Ahead>,
    /// The fork on which it was evaluated; the ids refer to it.
    pub engine: Engine,
}

/// The trials for a pod set.
#[derive(Debug)]
pub struct PodSetTrials {
    pub index: usize,
    /// The flavors that were tried, in order.
    pub trials: Vec<FlavorTrial>,
    /// The flavors that were not tried, because an earlier one was good enough.
    pub not_tried: Vec<FlavorId>,
    /// Resources for which no flavor has quota.
    pub unavailable: Vec<ResourceId>,
    /// Reasons against all of it, such as that there is no place on nodes.
    pub reasons: Vec<Reason>,
    /// Why it could not be evaluated.
    pub error: Option<String>,
}

/// The trial of a flavor for a pod set.
#[derive(Debug)]
pub struct FlavorTrial {
    pub attempt: Attempt,
    /// Was it chosen?
    pub is_chosen: bool,
    /// The requests, resource by resource.
    pub asked: Vec<Asked>,
}

/// The request for a flavor-resource.
#[derive(Debug)]
pub struct Asked {
    pub fr: FlavorResourceId,
    /// The amount, including what earlier pod sets take.
    pub amount: Amount,
    /// What the replaced slice hands over of it.
    pub handed_over: Amount,
    /// What the ClusterQueue could use if everything were idle.
    pub potential: Amount,
    /// Each node that the amount reaches, from the ClusterQueue up.
    pub levels: Vec<(Owner, Level)>,
    /// Unused quota that others do not lend.
    pub kept: Vec<(Owner, Amount)>,
}

impl Asked {
    /// Does it exceed the maximum that could ever be available?
    pub fn exceeds_maximum(&self) -> bool {
        // As in Kueue, only the difference to a replaced slice counts (rules/09 §2.3).
        self.amount.minus(self.handed_over) > self.potential
    }

    /// Do others use the missing quota?
    pub fn is_contested(&self) -> bool {
        let available = self.levels.first().map_or(Amount::ZERO, |(_, level)| level.available);
        self.amount > available && !self.exceeds_maximum()
    }
}

impl Engine {
    /// Why a workload waits or where it would go: as the only head of a cycle now, with its flavor scan starting at the
    /// first. A workload with quota is evaluated without it. Changes nothing. `None`: there is no such workload.
    pub fn explain(&mut self, namespace: &str, name: &str, now: Time) -> Option<Explanation> {
        let id = self.state.workloads.find(namespace, name)?;
        // Before the copy: the next question finds it done.
        self.state.settle_before_look();
        let ahead = self.state.ahead_of(id);
        let mut engine = self.fork();
        if engine.state.workloads.get(id).workload.status.admission.is_some() {
            let mut workload = engine.state.workload_object(id);
            workload.status = WorkloadStatus::default().into();
            engine.delete(Kind::Workload, namespace, name, now);
            engine.apply(vec![Object::Workload(Box::new(workload))], now);
        }
        let state = &mut engine.state;
        let id = state.workloads.find(namespace, name)?;
        state.now = now;
        state.settle_before_look();
        state.evaluates_always = true;
        state.feeds.recorder = Some(Recorder::default());
        state.workloads.get_mut(id).resume = None;
        let (what_if, assignment) = state.consider(id);
        let mut searches = state.feeds.recorder.take().map(|recorder| recorder.take_searches()).unwrap_or_default();
        let place = state.queue_of(id).and_then(|queue| Some((queue, state.queues[queue].node?)));
        let replaces = place.and_then(|(queue, _)| state.replaced_slice(queue, id, &BTreeSet::new()));
        let mut pod_sets = Vec::new();
        if let Some((queue, node)) = place {
            let (tree, row) = state.ledger.forest.locate(node);
            if let Some(assignment) = assignment {
                let slice = replaces.map(|workload| Target { workload, queue, reason: "" });
                pod_sets = state.look_without(&mut Victims::default(), tree, slice.as_slice(), |state, quota| {
                    state.trials(id, &assignment, (quota, tree, row), replaces)
                });
            }
            let preemptor = state.preemptor(queue, id);
            for asked in
                pod_sets.iter().flat_map(|it| &it.trials).flat_map(|it| &it.asked).filter(|it| it.is_contested())
            {
                if !searches.iter().any(|search| search.contested.contains(&asked.fr)) {
                    searches.push(search_not_made(
                        &state.world(),
                        state.ledger.forest.tree(tree),
                        &preemptor,
                        asked.fr,
                        asked.amount,
                    ));
                }
            }
        }
        for search in &mut searches {
            // A slice that is a candidate like any other is preempted all the same (rules/09 §2.3 rule 8).
            let targets = &search.targets;
            let is_victim = |id| targets.iter().any(|target| target.workload == id);
            search.holders.retain(|holder| Some(holder.workload) != replaces || is_victim(holder.workload));
        }
        Some(Explanation { what_if, pod_sets, searches, replaces, ahead, engine })
    }
}

impl State {
    /// What was tried, with the quota of `tree`, from which the slice that it replaces has been taken.
    fn trials(
        &self,
        id: WorkloadId,
        assignment: &Assignment,
        (tree, tree_id, row): (&Tree, TreeId, Row),
        replaces: Option<WorkloadId>,
    ) -> Vec<PodSetTrials> {
        let Some(queue) = self.queue_of(id) else { return Vec::new() };
        let handed_over = |fr: FlavorResourceId| {
            let charge = replaces.and_then(|slice| self.workloads.get(slice).charge.as_deref());
            let of_pair = charge.and_then(|charge| charge.usage.iter().find(|(pair, _)| *pair == fr));
            of_pair.map_or(Amount::ZERO, |(_, amount)| *amount)
        };
        let nodes = self.ledger.forest.nodes_of(tree_id);
        let owner = |row: usize| self.ledger.owner(nodes[row]);
        let groups = &self.queues[queue].rules.groups;
        let mut assumed = crate::assign::Usage::default();
        let mut found = Vec::new();
        for pod_set in &*assignment.pod_sets() {
            let ask = |flavor: FlavorId| -> Vec<Asked> {
                let covers =
                    |resource| groups.iter().any(|it| it.flavors.contains(&flavor) && it.covered.contains(resource));
                let of_flavor = pod_set.requests.iter().filter(|(resource, _)| covers(resource));
                let asked = of_flavor.filter_map(|&(resource, units)| {
                    let fr = self.names.find_flavor_resource(flavor, resource)?;
                    let column = tree.column(fr)?;
                    let amount = assumed.get(fr).plus_units(units);
                    let levels = tree.levels(row, column, amount).into_iter();
                    let kept = tree.kept(row, column).into_iter();
                    Some(Asked {
                        fr,
                        amount,
                        handed_over: handed_over(fr),
                        potential: tree.potential_available(row, column),
                        levels: levels.filter_map(|level| Some((owner(level.row)?, level))).collect(),
                        kept: kept.filter_map(|(row, free)| Some((owner(row)?, free))).collect(),
                    })
                });
                asked.collect()
            };
            let trials: Vec<FlavorTrial> = pod_set
                .attempts
                .iter()
                .map(|attempt| FlavorTrial {
                    attempt: attempt.clone(),
                    is_chosen: pod_set.flavors.iter().any(|choice| choice.flavor == attempt.flavor),
                    asked: ask(attempt.flavor),
                })
                .collect();
            let is_tried = |flavor: &FlavorId| trials.iter().any(|trial| trial.attempt.flavor == *flavor);
            let is_asked = |group: &&crate::assign::ResourceGroup| {
                pod_set.requests.iter().any(|(resource, _)| group.covered.contains(resource))
            };
            let flavors = groups.iter().filter(is_asked).flat_map(|group| &group.flavors);
            let not_tried = flavors.filter(|flavor| !is_tried(flavor)).copied().collect();
            let of_reason = |reason: &Reason| match reason {
                Reason::ResourceUnavailable(resource) => Some(*resource),
                _ => None,
            };
            let unavailable = pod_set.reasons.iter().filter_map(of_reason).collect();
            for choice in &pod_set.flavors {
                let units = pod_set.requests.iter().find(|request| request.0 == choice.resource).map_or(0, |it| it.1);
                choice.pair.into_iter().for_each(|pair| assumed.add(pair, units));
            }
            let (reasons, error) = (pod_set.reasons.clone(), pod_set.error.clone());
            found.push(PodSetTrials { index: pod_set.index, trials, not_tried, unavailable, reasons, error });
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::what_if::Outcome;
    use crate::objects::config::Config;
    use crate::objects::{ClusterQueue, Preemption, PreemptionPolicy, Workload};
    use crate::quota::levels::Bound;
    use crate::state::searches::Fate;
    use crate::testing::{World, at, cluster_queue, local_queue, workload};

    /// `cq` with 10 CPUs and `other` with 4 in a cohort; `a`, of priority 1, uses 6 of `cq`, `b` all of `other`.
    fn world() -> World {
        let mut world = World::new(Config::default());
        world.change_cluster_queue(|queue| {
            queue.cohort_name = "x".to_owned();
            queue.preemption =
                Some(Preemption { within_cluster_queue: PreemptionPolicy::LowerPriority, ..Preemption::default() });
        });
        let other = ClusterQueue { cohort_name: "x".to_owned(), ..cluster_queue("other", "4") };
        world.apply([Object::ClusterQueue(other), Object::LocalQueue(local_queue("other", "other"))]);
        world.submit(Workload { priority: Some(1), ..workload("a", "6") });
        world.submit(Workload { queue_name: "other".into(), ..workload("b", "4") });
        world.cycle();
        world
    }

    fn explain(world: &mut World, name: &str) -> Explanation {
        let before = format!("{:?}", world.engine.state.workloads.iter().collect::<Vec<_>>());
        let found = world.engine.explain("ns", name, at(20)).expect("it is there");
        assert_eq!(format!("{:?}", world.engine.state.workloads.iter().collect::<Vec<_>>()), before);
        found
    }

    fn fates(found: &Explanation) -> Vec<(String, &'static str)> {
        let search = found.searches.last().expect("there was one");
        let name = |id| found.engine.state.workloads.get(id).key().name().to_owned();
        search.holders.iter().map(|it| (name(it.workload), search.fate(it).name())).collect()
    }

    #[test]
    fn a_waiting_workload_gets_the_binding_limit_and_the_spared_candidates() {
        let mut world = world();
        world.submit(workload("w", "6"));
        world.cycle();
        let found = explain(&mut world, "w");
        assert_eq!(found.what_if.outcome, Outcome::Waits);
        let asked = &found.pod_sets[0].trials[0].asked[0];
        let bounds: Vec<_> = asked.levels.iter().map(|(_, level)| (level.needed.get(), level.binds)).collect();
        assert_eq!(bounds, [(6000, None), (6000, Some(Bound::Quota))]);
        assert_eq!(fates(&found), [("a".to_owned(), "Priority"), ("b".to_owned(), "Policy")]);
    }

    #[test]
    fn a_preempting_workload_gets_its_victims() {
        let mut world = world();
        world.submit(Workload { priority: Some(2), ..workload("w", "6") });
        let found = explain(&mut world, "w");
        assert_eq!(found.what_if.outcome, Outcome::Preempts);
        assert_eq!(fates(&found), [("a".to_owned(), Fate::Victim.name()), ("b".to_owned(), "Policy")]);
    }

    #[test]
    fn a_workload_with_quota_is_explained_without_it() {
        let mut world = world();
        let found = explain(&mut world, "a");
        assert_eq!(found.what_if.outcome, Outcome::Fits);
        assert!(found.pod_sets[0].trials[0].is_chosen && found.searches.is_empty());
        assert!(world.engine.explain("ns", "nobody", at(20)).is_none());
    }
}
