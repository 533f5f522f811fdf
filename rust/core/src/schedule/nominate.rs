//! Heads become entries: what blocks them, and which flavors they would use (rules/05 §6.1).

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use crate::assign::plan::Plan;
use crate::assign::{self, Assignment, Candidate, Context, Mode, Nomination};
use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::base::ids::{QueueId, WorkloadId};
use crate::base::sorted::Sorted;
use crate::objects::message::{Blocker, Message, Queue};
use crate::objects::selectors::selects;
use crate::objects::slices::REPLACEMENT_FOR;
use crate::objects::variants::{ALLOWED_FLAVORS, allowed_flavors};
use crate::objects::{PodSet, Workload};
use crate::pods::devices::Devices;
use crate::preempt::{Demand, Preemptor, Simulation, World};
use crate::queue::RequeueReason;
use crate::quota::tree::Tree;
use crate::schedule::decision::Undecided;
use crate::schedule::entry::{Entry, EntryStatus, Obstacle};
use crate::schedule::placing::{Placer, SeenByFlavor};
use crate::schedule::round::{Cycle, Round};
use crate::schedule::tournament::Tournament;
use crate::schedule::victims::Victims;
use crate::state::records::QueueRecord;
use crate::state::{Feeds, Ledger, Nodes, Objects, PendingWork, State};
use crate::status::checks::has_retry_or_rejected_checks;
use crate::status::{messages, reasons};
use crate::workloads::Record;
use crate::workloads::charge::Target;

/// The annotation of a ClusterQueue that names a PreemptionConfig.
const PREEMPTION_CONFIG: &str = "kueue.x-k8s.io/preemption-config-name";

/// The annotation of pods that limits how many workloads of a kind a domain has.
const SPREADING: &str = "kueue.x-k8s.io/podset-topology-spreading";

impl State {
    /// Each head on its own, on the usage at the start of the cycle (rules/05 §6.1).
    pub(crate) fn nominate(&mut self, heads: Vec<(QueueId, WorkloadId, Option<u32>)>) -> Round {
        let mut round = Round {
            entries: Vec::with_capacity(heads.len()),
            not_nominated: Vec::new(),
            left: Sorted::default(),
            tournament: Tournament::default(),
            cycle: Cycle::default(),
        };
        // Nearly every head has an event.
        round.cycle.decision.events.reserve(heads.len());
        for head in heads {
            self.nominate_one(head, true, &mut round);
        }
        round
    }

    /// One head, or a workload that joins the cycle as it runs: the usage at its start then differs from that now.
    pub(super) fn nominate_one(
        &mut self,
        (queue, workload, second_pass): (QueueId, WorkloadId, Option<u32>),
        is_head: bool,
        round: &mut Round,
    ) {
        let Round { entries, not_nominated, cycle, .. } = round;
        let mut entry = Entry { second_pass, ..self.entry(queue, workload) };
        if let Some(obstacle) = self.obstacle(&entry) {
            entry.refuse(obstacle);
            return not_nominated.push(entry);
        }
        let mut undecided = self.undecided(workload);
        if undecided.is_none() {
            cycle.mark(&mut self.ledger.forest, entry.tree);
            let verdict = if is_head { self.verdict(&entry, cycle) } else { self.verdict_now(&entry) };
            undecided = self.undecided_by(&entry, &verdict.assignment);
            let stands = self.net_stands((queue, workload), &verdict.assignment);
            entry.nominate(verdict, stands);
        }
        match undecided {
            Some(undecided) => {
                entry.assignment = None;
                entry.leave_undecided();
                cycle.decision.undecided.push(undecided);
                not_nominated.push(entry);
            }
            None => entries.push(entry),
        }
    }

    pub(crate) fn entry(&self, queue: QueueId, workload: WorkloadId) -> Entry {
        let stands = self.workloads.row(workload);
        let node = self.queues[queue].node.expect("only an existing ClusterQueue has heads");
        let (tree, row) = self.ledger.forest.locate(node);
        Entry {
            workload,
            queue,
            node,
            tree,
            row,
            assignment: None,
            targets: Vec::new(),
            stands: Vec::new(),
            shape: stands.shape,
            generation: self.ledger.forest.generation(node),
            starts_over: false,
            status: EntryStatus::NotNominated,
            message: Message::default(),
            reason: "",
            requeue: RequeueReason::Generic,
            silent: false,
            is_gone: false,
            is_homeless: false,
            has_reservation: stands.has_reservation,
            second_pass: None,
            is_preemptor: self.queues[queue].pending.is_preemptor(workload, stands.generation),
            priority: stands.priority,
            time: stands.time,
        }
    }

    /// A workload as the preemptor in an existing ClusterQueue.
    pub fn preemptor(&self, queue: QueueId, workload: WorkloadId) -> Preemptor {
        self.entry(queue, workload).preemptor()
    }

    /// The inputs of a search for victims.
    pub fn world(&self) -> World<'_> {
        let Self {
            ledger: Ledger { forest, owners, .. },
            queues,
            local_queues,
            workloads,
            names,
            config,
            pending: PendingWork { experiments, .. },
            feeds: Feeds { recorder, .. },
            now,
            ..
        } = self;
        World {
            forest,
            owners,
            queues,
            local_queues,
            workloads,
            names,
            config,
            now: *now,
            experiments,
            placing: None,
            recorder: recorder.as_ref(),
        }
    }

    /// Why a head is not nominated (rules/05 §6.1 rows a to g).
    pub(crate) fn obstacle(&self, entry: &Entry) -> Option<Obstacle> {
        let obstacle = |reason, message: Message| Some(Obstacle { reason, message, requeue: RequeueReason::Generic });
        let record = self.workloads.get(entry.workload);
        let workload = &record.workload;
        if has_retry_or_rejected_checks(workload) {
            return obstacle(reasons::PENDING_EVALUATION, messages::FAILED_CHECKS.into());
        }
        // Others were not popped from a ClusterQueue that is inactive (rules/05 §3).
        let is_inactive = entry.second_pass.is_some() && !self.queues[entry.queue].is_active();
        if is_inactive || self.ledger.forest.has_cycle(entry.node) {
            return obstacle(
                reasons::SUSPENDED,
                Message::Blocked(Queue::Cluster(self.names.queues[entry.queue].shared()), Blocker::Inactive),
            );
        }
        let namespace = workload.meta.key.namespace();
        let Some(labels) = self.namespace_labels(namespace) else {
            let message = match self.config.changes.has(Change::NamespaceTextIsLowerCase) {
                true => Message::NamespaceMissing(namespace.into()),
                false => messages::could_not_obtain_namespace(namespace).into(),
            };
            return obstacle(reasons::MISCONFIGURED, message);
        };
        let selector = self.queues[entry.queue].settled.as_ref().and_then(|o| o.namespace_selector.as_ref());
        if !selects(selector, labels) {
            let message = match self.config.changes.has(Change::NamespaceTextIsLowerCase) {
                true => messages::NAMESPACE_MISMATCH.into(),
                false => messages::NAMESPACE_MISMATCH_WITH_CAPITAL.into(),
            };
            let reason = reasons::MISCONFIGURED;
            return Some(Obstacle { reason, message, requeue: RequeueReason::NamespaceMismatch });
        }
        obstacle(reasons::MISCONFIGURED, record.spec.misfit.clone()?.into())
    }

    /// Published devices are unknown here, and so are some ways to place pods: a workload that depends on one gets no
    /// decision.
    pub fn undecided(&self, workload: WorkloadId) -> Option<Undecided> {
        let record = self.workloads.get(workload);
        if let Some((field, message)) = self.undecided_place(record) {
            return Some(Undecided { key: record.key().clone(), field, message });
        }
        let Some(Devices::Undecided { field, message }) = record.devices.as_deref() else { return None };
        Some(Undecided { key: record.key().clone(), field: field.clone(), message: message.clone() })
    }

    /// Candidates that a PreemptionConfig adds are unknown here: a workload gets no decision if they may matter, as they
    /// do where any flavor has been passed over.
    fn undecided_by(&self, entry: &Entry, assignment: &Assignment) -> Option<Undecided> {
        if !self.gate(Gate::ConfigurablePreemptions) {
            return None;
        }
        let object = self.queues[entry.queue].settled.as_ref()?;
        let named = object.meta.annotations.get(PREEMPTION_CONFIG).filter(|_| !assignment.takes_the_first())?;
        let field = format!("metadata.annotations[{PREEMPTION_CONFIG}]");
        let queue = &object.meta.name;
        let message = format!(
            "ClusterQueue {queue} refers to PreemptionConfig {named}, whose candidates for preemption are not known here"
        );
        Some(Undecided { key: self.workloads.get(entry.workload).key().clone(), field, message })
    }

    /// Why pods get no place here, although Kueue gives them one (rules/08 §17).
    fn undecided_place(&self, record: &Record) -> Option<(String, String)> {
        if self.gate(Gate::TASTopologySpreading) {
            let spreads = |pod_set: &PodSet| pod_set.template.metadata.annotations.contains_key(SPREADING);
            if let Some(at) = record.spec.original.iter().position(spreads) {
                let field = format!("spec.podSets[{at}].template.metadata.annotations[{SPREADING}]");
                return Some((field, "kueuecore does not spread pods over domains yet".to_owned()));
            }
        }
        let n_failed = record.workload.status.rare.unhealthy_nodes.len();
        (n_failed > 1 && self.gate(Gate::TASReplaceMultipleFailedNodes)).then(|| {
            let message = "kueuecore does not replace several failed nodes of a workload yet".to_owned();
            ("status.unhealthyNodes".to_owned(), message)
        })
    }

    /// Drops outdated progress, so that the flavor scan starts over (rules/03 §6).
    pub(crate) fn drop_outdated_progress(&mut self, entry: &Entry) {
        let preserve = self.gate(Gate::FlavorFungibilityPreserveScanProgress);
        let number = self.cycle;
        let record = self.workloads.get_mut(entry.workload);
        let shape = record.row.shape;
        record.resume.take_if(|resume| resume.is_outdated(entry.generation, number, shape, preserve));
    }

    /// The assignment of a head with the workloads that it would preempt: at full counts, or else at the largest
    /// reduced counts that work (rules/03 §9). `plan` is its own, if it has one. `nomination` is given when an earlier
    /// assignment is recomputed without the victims of earlier entries.
    pub(crate) fn find_assignment(
        &mut self,
        entry: &Entry,
        plan: Option<&Arc<Plan>>,
        nomination: Option<&Nomination>,
        victims: &mut Victims,
    ) -> (Arc<Assignment>, Vec<Target>) {
        let slice = self.replaced_slice(entry.queue, entry.workload, victims.in_tree(entry.tree));
        let seen = RefCell::new(std::mem::take(&mut self.nodes.sites.seen));
        let found = self.look_without(victims, entry.tree, &[], |state, tree| {
            state.search_assignment(entry, (nomination, slice), (plan, &seen), tree)
        });
        self.nodes.sites.seen = seen.into_inner();
        found
    }

    /// The plan for a workload's flavors in a ClusterQueue; `None`: it already has quota, may use only some flavors,
    /// replaces a slice, requests less than its pod sets say, or must be evaluated each time.
    pub fn plan(&mut self, queue: QueueId, workload: WorkloadId) -> Option<Arc<Plan>> {
        let Workload { meta, status, .. } = &self.workloads.get(workload).workload;
        let annotations = &meta.details.annotations;
        let says = |gate, annotation| self.gate(gate) && annotations.contains_key(annotation);
        if status.admission.is_some()
            || says(Gate::ConcurrentAdmission, ALLOWED_FLAVORS)
            || says(Gate::ElasticJobsViaWorkloadSlices, REPLACEMENT_FOR)
        {
            return None;
        }
        let Self {
            workloads, queues, names, objects: Objects { flavors, .. }, config, nodes: Nodes { sites, .. }, ..
        } = self;
        let QueueRecord { rules, rules_id, .. } = &queues[queue];
        workloads.plan(workload, *rules_id, |key, spec| {
            let context = Context { names, flavors, config, queue: rules, row: 0, sites };
            Plan::new(key, &context, rules, &spec.adjusted, &spec.totals)
        })
    }

    /// Searches on a tree without the usage that counts as gone.
    ///
    /// In one piece: its closures share the candidate, the placer and the oracle, and every head comes through here.
    fn search_assignment(
        &self,
        entry: &Entry,
        (nomination, slice): (Option<&Nomination>, Option<WorkloadId>),
        (plan, seen): (Option<&Arc<Plan>>, &RefCell<SeenByFlavor>),
        tree: &mut Tree,
    ) -> (Arc<Assignment>, Vec<Target>) {
        // A workload with a plan is not placed.
        let of_entry = || Placer::new(self, (entry.queue, entry.workload), slice, seen);
        let placer = if plan.is_none() { of_entry() } else { None };
        let placed = |mut assignment: Assignment| {
            placer.iter().for_each(|placer| placer.place(&mut assignment));
            assignment
        };
        let replaced = slice.map(|slice| self.pod_sets_of_slice(slice));
        let slice = slice.map(|workload| Target { workload, queue: entry.queue, reason: "" });
        let record = self.workloads.get(entry.workload);
        let allowed = allowed_flavors(&record.workload);
        let (mut places, mut totals) = (self.places_now(entry.workload), Cow::Borrowed(&record.totals[..]));
        if let Some(order) = self.spec_order(entry.workload) {
            totals = order.iter().map(|&at| record.totals[at].clone()).collect();
            places = order.iter().filter_map(|&at| places.get(at).cloned()).collect();
        }
        let of_one_pod = if plan.is_some() { Vec::new() } else { self.of_one_pod(entry.workload) };
        let candidate = Candidate {
            pod_sets: &record.spec.adjusted,
            places: &places,
            totals: &totals,
            of_one_pod: &of_one_pod,
            resume: record.resume.as_deref(),
            allowed_flavors: allowed.as_deref(),
            replaced_slice: replaced.as_deref(),
            nomination,
        };
        let context = Context {
            names: &self.names,
            flavors: &self.objects.flavors,
            config: &self.config,
            queue: &self.queues[entry.queue].rules,
            row: entry.row,
            sites: &self.nodes.sites,
        };
        let mut oracle = Simulation::new(self.world(), entry.preemptor());
        let full = match plan {
            Some(plan) => {
                let full = plan.assign(tree, entry.row, candidate.resume, &mut oracle);
                debug_assert!(
                    tree.has_saturated() || full == assign::assign(&context, tree, &candidate, None, &mut oracle),
                    "by the plan as without it"
                );
                full
            }
            None => placed(assign::assign(&context, tree, &candidate, None, &mut oracle)),
        };
        let targets_of = |tree: &mut _, assignment: &Assignment, oracle: &mut Simulation<'_>| {
            let requests = context.requests_to_preempt_for(assignment, &candidate);
            let demand = Demand::of_assignment(assignment, &requests, tree);
            match &placer {
                Some(placer) => oracle.targets_with_place(tree, &demand, &placer.asks_for_place(assignment)),
                None => oracle.targets(tree, demand),
            }
        };
        let works = |tree: &mut _, assignment: &Assignment, oracle: &mut Simulation<'_>| match assignment.mode() {
            Mode::Fit => Some(Vec::new()),
            Mode::Preempt => Some(targets_of(tree, assignment, oracle)).filter(|targets| !targets.is_empty()),
            Mode::NoFit | Mode::DeferredFit => None,
        };
        let reducible = candidate.pod_sets.iter().any(|ps| ps.min_count.is_some_and(|min| ps.count > min));
        // The old slice leaves with the victims: only what the new one takes beyond it counts (rules/09 §2.3).
        let with_slice = |targets: Vec<Target>| slice.into_iter().chain(targets).collect::<Vec<_>>();
        let (mut assignment, targets) = match works(tree, &full, &mut oracle) {
            Some(targets) => (full, with_slice(targets)),
            None if reducible && context.config.gates.enabled(Gate::PartialAdmission) => {
                let reduced = assign::search_counts(candidate.pod_sets, |counts| {
                    let assignment = placed(assign::assign(&context, tree, &candidate, Some(counts), &mut oracle));
                    works(tree, &assignment, &mut oracle).map(|targets| (assignment, targets))
                });
                match reduced {
                    Some((assignment, targets)) => (assignment, with_slice(targets)),
                    None => (full, Vec::new()),
                }
            }
            None => (full, Vec::new()),
        };
        placer.iter().for_each(|placer| placer.place_after_search(&mut assignment, &targets));
        (Arc::new(assignment), targets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::config::Config;
    use crate::testing::{World, workload};

    /// Whether the heads of a queue with a PreemptionConfig are decided on, the first of which fits at once.
    fn decided(gate: bool, is_named: bool) -> Vec<bool> {
        let config = Config::default();
        let gates = config.gates.with(Gate::ConfigurablePreemptions, gate);
        let mut world = World::new(Config { gates, ..config });
        world.change_cluster_queue(|queue| {
            let named = is_named.then(|| (PREEMPTION_CONFIG.to_owned(), "larger-first".to_owned()));
            queue.meta.annotations.extend(named);
        });
        ["6", "6"]
            .iter()
            .enumerate()
            .map(|(n, cpu)| {
                world.submit(workload(&format!("w{n}"), cpu));
                let decision = world.cycle();
                if let Some(undecided) = decision.undecided.first() {
                    assert!(undecided.message.contains("larger-first"), "{}", undecided.message);
                    assert!(decision.pending.is_empty() && decision.admissions.is_empty());
                }
                decision.undecided.is_empty()
            })
            .collect()
    }

    #[test]
    fn what_a_preemption_config_may_change_is_left_undecided() {
        assert_eq!(decided(true, true), [true, false]);
        assert_eq!(decided(true, false), [true, true]);
        assert_eq!(decided(false, true), [true, true]);
    }
}
