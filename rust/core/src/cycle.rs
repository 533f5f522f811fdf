//! One scheduling cycle: heads, nominate, order, process, requeue (rules/05 §6).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::amount::Amount;
use crate::apply::{ALLOWED_FLAVORS, asks_for_topology};
use crate::assign::{self, Assignment, Candidate, Context, Mode, Oracle, Possibility, Resume};
use crate::checks::{checks_for_admission, has_retry_or_rejected_checks};
use crate::conditions::{self, truncate};
use crate::decision::{Admitted, Decision, Event, Kept, Undecided};
use crate::entry::{Entry, EntryStatus, Tournament, sort_classical};
use crate::forest::TreeId;
use crate::gates::Gate;
use crate::ids::{FlavorResourceId, QueueId, WorkloadId};
use crate::messages;
use crate::objects::{Admission, PodSetAssignment, PodSetRequest, PreemptionPolicy, Time, Workload};
use crate::pending::RequeueReason;
use crate::pods::check_resources;
use crate::queue_order::{has_quota_reservation, is_admissible, queued_wait};
use crate::reasons;
use crate::reservation::{block_on_preemption_gates, keep_pending, reserve_quota};
use crate::resource_names::quantity_from_value;
use crate::selectors::selects;
use crate::state::State;
use crate::tree::{Mark, Row, Tree};

/// An oracle that never finds anybody to preempt.
pub struct Nobody;

impl Oracle for Nobody {
    fn simulate(&mut self, tree: &mut Tree, row: Row, fr: FlavorResourceId, amount: Amount) -> (Possibility, u32) {
        let level = tree.column(fr).map_or(0, |column| tree.borrowing_level(row, column, amount).0);
        (Possibility::NoCandidates, level)
    }
}

/// What the entries of a cycle share.
#[derive(Default)]
struct Cycle {
    /// Trees whose usage was tried out, with the state to go back to.
    marks: BTreeMap<TreeId, Mark>,
    decision: Decision,
    /// Quota reservations, to charge once the trial usage is rolled back.
    assumed: Vec<(WorkloadId, Admission)>,
}

impl State {
    /// Runs one cycle at `now`. Without any head nothing happens, and the cycle does not count.
    pub fn run_cycle(&mut self, now: Time) -> Decision {
        self.now = now;
        self.unconfirmed.clear();
        let unparked = self.flush();
        self.forest.flush(&self.names);
        let heads = self.heads();
        if heads.is_empty() {
            return Decision { unparked, ..Decision::default() };
        }
        self.cycle += 1;
        let mut cycle = Cycle::default();
        cycle.decision.cycle = self.cycle;
        cycle.decision.unparked = unparked;
        let (mut entries, not_nominated) = self.nominate(heads, &mut cycle);
        self.process_in_order(&mut entries, &mut cycle);
        for (tree, mark) in std::mem::take(&mut cycle.marks) {
            self.forest.tree_mut(tree).rollback(mark);
        }
        for (workload, admission) in std::mem::take(&mut cycle.assumed) {
            self.assume(workload, admission, now, &mut cycle.decision);
        }
        for entry in entries.into_iter().chain(not_nominated) {
            if entry.status != EntryStatus::Assumed {
                self.requeue(entry, now, &mut cycle.decision);
            }
        }
        cycle.decision
    }

    /// Pops the head of every active ClusterQueue, in the order of their names (rules/05 §3).
    fn heads(&mut self) -> Vec<(QueueId, WorkloadId)> {
        let waiting: Vec<QueueId> = self.waiting.values().copied().collect();
        let mut heads = Vec::with_capacity(waiting.len());
        for queue in waiting {
            if !self.queues[queue].is_active() {
                continue;
            }
            if let Some(workload) = self.queues[queue].pending.pop() {
                let record = self.workloads.get_mut(workload);
                record.evaluated_generation = Some(record.workload.meta.generation);
                heads.push((queue, workload));
            }
            self.note_waiting(queue);
        }
        heads
    }

    /// Each head on its own, on the usage at the start of the cycle (rules/05 §6.1).
    fn nominate(&mut self, heads: Vec<(QueueId, WorkloadId)>, cycle: &mut Cycle) -> (Vec<Entry>, Vec<Entry>) {
        let mut entries = Vec::with_capacity(heads.len());
        let mut not_nominated = Vec::new();
        for (queue, workload) in heads {
            let mut entry = self.entry(queue, workload);
            match self.obstacle(&mut entry) {
                Some((reason, message)) => {
                    entry.reason = reason;
                    entry.message = message;
                    not_nominated.push(entry);
                }
                None => match self.undecided(queue, workload) {
                    Some(undecided) => {
                        entry.silent = true;
                        cycle.decision.undecided.push(undecided);
                        not_nominated.push(entry);
                    }
                    None => {
                        let assignment = self.find_assignment(&entry);
                        let record = self.workloads.get(workload);
                        entry.message = messages::assignment(&self.names, &assignment, &record.spec.adjusted);
                        entry.assignment = Some(assignment);
                        entries.push(entry);
                    }
                },
            }
        }
        (entries, not_nominated)
    }

    fn entry(&self, queue: QueueId, workload: WorkloadId) -> Entry {
        let record = self.workloads.get(workload);
        let item = self.item(workload);
        let node = self.queues[queue].node.expect("only an existing ClusterQueue has heads");
        let (tree, row) = self.forest.locate(node);
        Entry {
            workload,
            queue,
            node,
            tree,
            row,
            assignment: None,
            status: EntryStatus::NotNominated,
            message: String::new(),
            reason: "",
            requeue: RequeueReason::Generic,
            silent: false,
            has_reservation: has_quota_reservation(&record.workload),
            is_preemptor: self.queues[queue].pending.is_preemptor(workload, record.workload.meta.generation),
            priority: item.priority,
            time: item.time,
        }
    }

    /// Why a head is not nominated: reason and message (rules/05 §6.1 rows a to g).
    fn obstacle(&self, entry: &mut Entry) -> Option<(&'static str, String)> {
        let record = self.workloads.get(entry.workload);
        let workload = &record.workload;
        if has_retry_or_rejected_checks(workload) {
            return Some((reasons::PENDING_EVALUATION, messages::FAILED_CHECKS.to_owned()));
        }
        if self.forest.has_cycle(entry.node) {
            return Some((reasons::SUSPENDED, messages::inactive(&self.names.queues[entry.queue])));
        }
        let namespace = &workload.meta.namespace;
        let Some(labels) = self.namespace_labels(namespace) else {
            return Some((reasons::MISCONFIGURED, messages::namespace_missing(namespace)));
        };
        let selector = self.queues[entry.queue].settled.as_ref().and_then(|o| o.namespace_selector.as_ref());
        if !selects(selector, labels) {
            entry.requeue = RequeueReason::NamespaceMismatch;
            return Some((reasons::MISCONFIGURED, messages::NAMESPACE_MISMATCH.to_owned()));
        }
        let limits = self.limit_summary(namespace);
        if let Err(invalid) = check_resources(&record.spec.adjusted, &limits) {
            return Some((reasons::MISCONFIGURED, invalid.to_string()));
        }
        None
    }

    /// Topology is not placed here: a workload whose answer depends on it gets none.
    pub fn undecided(&self, queue: QueueId, workload: WorkloadId) -> Option<Undecided> {
        if !self.gate(Gate::TopologyAwareScheduling) {
            return None;
        }
        let record = self.workloads.get(workload);
        let asks = asks_for_topology(&record.spec);
        let flavors = || self.queues[queue].rules.groups.iter().flat_map(|g| &g.flavors);
        let places =
            |flavor: &crate::ids::FlavorId| self.flavors[*flavor].as_ref().is_some_and(|f| !f.topology_name.is_empty());
        let (field, message) = if asks && flavors().any(places) {
            let index = record.spec.original.iter().position(assign::requests_topology).unwrap_or_default();
            (
                format!("spec.podSets[{index}].topologyRequest"),
                "asks for topology-aware placement, which is not decided here yet".to_owned(),
            )
        } else if flavors().next().is_some() && flavors().all(places) {
            let flavor = flavors().next().expect("there is one");
            let name = &self.names.flavors[*flavor];
            (
                "spec.podSets".to_owned(),
                format!(
                    "could only use flavors with topologyName (ResourceFlavor \"{name}\", spec.topologyName), whose \
                     placement is not decided here yet"
                ),
            )
        } else {
            return None;
        };
        Some(Undecided { key: Arc::clone(&record.key), field, message })
    }

    /// The assignment of a head, at full counts or else at the largest reduced counts that fit (rules/03 §9).
    fn find_assignment(&mut self, entry: &Entry) -> Assignment {
        let generation = self.forest.generation(entry.node);
        let preserve = self.gate(Gate::FlavorFungibilityPreserveScanProgress);
        let cycle = self.cycle;
        let record = self.workloads.get_mut(entry.workload);
        let shape = record.shape;
        if record.resume.as_ref().is_some_and(|r| r.is_outdated(generation, cycle, shape, preserve)) {
            record.resume = None;
        }
        let record = self.workloads.get(entry.workload);
        let allowed = allowed_flavors(&record.workload);
        let candidate = Candidate {
            pod_sets: &record.spec.adjusted,
            totals: &record.totals,
            shape,
            resume: record.resume.as_deref(),
            allowed_flavors: allowed.as_deref(),
            replaced_slice: None,
            nomination: None,
        };
        let context = Context {
            names: &self.names,
            flavors: &self.flavors,
            config: &self.config,
            queue: &self.queues[entry.queue].rules,
            row: entry.row,
            generation,
            cycle,
        };
        let tree = self.forest.tree_mut(entry.tree);
        let full = assign::assign(&context, tree, &candidate, None, &mut Nobody);
        let reducible = candidate.pod_sets.iter().any(|ps| ps.min_count.is_some_and(|min| ps.count > min));
        if full.mode() == Mode::Fit || !context.config.gates.enabled(Gate::PartialAdmission) || !reducible {
            return full;
        }
        let reduced = assign::search_counts(candidate.pod_sets, |counts| {
            let assignment = assign::assign(&context, tree, &candidate, Some(counts), &mut Nobody);
            (assignment.mode() == Mode::Fit).then_some(assignment)
        });
        reduced.unwrap_or(full)
    }

    /// Decides on the entries one by one, in the order of the configured algorithm.
    fn process_in_order(&mut self, entries: &mut [Entry], cycle: &mut Cycle) {
        let gates = self.config.gates;
        if self.config.fair_sharing.is_none() {
            sort_classical(entries, gates);
            for entry in entries {
                self.process(entry, cycle);
            }
            return;
        }
        let mut left: Vec<usize> = (0..entries.len()).collect();
        while !left.is_empty() {
            let next = Tournament { forest: &mut self.forest, gates }.next(entries, &left);
            left.retain(|&i| i != next);
            self.process(&mut entries[next], cycle);
        }
    }

    /// Decides on one entry (rules/05 §6.4).
    fn process(&mut self, entry: &mut Entry, cycle: &mut Cycle) {
        let assignment = entry.assignment.as_ref().expect("nominated entries have an assignment");
        let usage = entry.usage();
        match assignment.mode() {
            Mode::NoFit => {
                entry.requeue = RequeueReason::NoFit;
                entry.reason = assignment.no_fit_reason.as_str();
                return;
            }
            Mode::Preempt => {
                entry.requeue = RequeueReason::PreemptionNoCandidates;
                entry.reason = reasons::WAITING_FOR_QUOTA;
                if !self.can_always_reclaim(entry) {
                    let reserved = self.resources_to_reserve(entry);
                    self.try_usage(entry, &reserved, cycle);
                }
                return;
            }
            Mode::DeferredFit | Mode::Fit => {}
        }
        if !self.fits(entry, &usage) {
            entry.status = EntryStatus::Skipped;
            entry.message = messages::NO_LONGER_FITS.to_owned();
            entry.reason = reasons::WAITING_FOR_QUOTA;
            return;
        }
        self.try_usage(entry, &usage, cycle);
        let admission = self.admission(entry);
        entry.status = EntryStatus::Assumed;
        self.note_reservation(entry, &admission, cycle);
    }

    /// Can the ClusterQueue always get its nominal quota back, so that nothing needs to be held for it?
    fn can_always_reclaim(&self, entry: &Entry) -> bool {
        let any = self.queues[entry.queue]
            .rules
            .preemption
            .as_ref()
            .is_some_and(|p| p.reclaim_within_cohort == PreemptionPolicy::Any);
        any && !(self.gate(Gate::PrioritizePreemptorWorkloads) && entry.is_preemptor)
    }

    /// What is held for an entry that cannot preempt anybody, so that others do not take it (rules/05 §6.4 step 4).
    fn resources_to_reserve(&self, entry: &Entry) -> Vec<(FlavorResourceId, Amount)> {
        let tree = self.forest.tree(entry.tree);
        let borrows = entry.assignment.as_ref().is_some_and(|a| a.borrowing > 0);
        let mut usage = entry.usage();
        for (fr, amount) in &mut usage {
            let Some(column) = tree.column(*fr) else { continue };
            let quota = tree.cell(entry.row, column).quota;
            let used = tree.usage(entry.row, column);
            *amount = match (borrows, quota.borrowing_limit) {
                (true, None) => *amount,
                (true, Some(limit)) => (*amount).min(quota.nominal.plus(limit).minus(used)),
                (false, _) => (*amount).min(quota.nominal.minus(used)).max(Amount::ZERO),
            };
        }
        usage
    }

    fn fits(&self, entry: &Entry, usage: &[(FlavorResourceId, Amount)]) -> bool {
        let tree = self.forest.tree(entry.tree);
        usage.iter().all(|&(fr, amount)| {
            let available = tree.column(fr).map_or(Amount::ZERO, |column| tree.available(entry.row, column));
            amount <= available
        })
    }

    /// Adds usage for the rest of the cycle.
    fn try_usage(&mut self, entry: &Entry, usage: &[(FlavorResourceId, Amount)], cycle: &mut Cycle) {
        let tree = self.forest.tree_mut(entry.tree);
        cycle.marks.entry(entry.tree).or_insert_with(|| tree.mark());
        for &(fr, amount) in usage {
            if let Some(column) = tree.column(fr) {
                tree.add_usage(entry.row, column, amount);
            }
        }
    }

    /// `status.admission` for an assignment (rules/05 §6.4 step 12).
    fn admission(&self, entry: &Entry) -> Admission {
        let assignment = entry.assignment.as_ref().expect("nominated entries have an assignment");
        let record = self.workloads.get(entry.workload);
        let pod_set_assignments = assignment
            .pod_sets
            .iter()
            .map(|pod_set| {
                let mut result = PodSetAssignment {
                    name: record.spec.adjusted[pod_set.index].name.clone(),
                    count: Some(pod_set.count),
                    ..PodSetAssignment::default()
                };
                for choice in &pod_set.flavors {
                    let resource = self.names.resource_text(choice.resource).to_owned();
                    let value = pod_set.requests.iter().find(|r| r.0 == choice.resource).map_or(0, |r| r.1);
                    result.resource_usage.insert(resource.clone(), quantity_from_value(&resource, value, false));
                    result.flavors.insert(resource, self.names.flavors[choice.flavor].clone());
                }
                result
            })
            .collect();
        Admission { cluster_queue: self.names.queues[entry.queue].clone(), pod_set_assignments }
    }

    /// The event of a reservation is worded while the assignment is at hand.
    fn note_reservation(&self, entry: &Entry, admission: &Admission, cycle: &mut Cycle) {
        let record = self.workloads.get(entry.workload);
        if !entry.has_reservation {
            let assignment = entry.assignment.as_ref().expect("nominated entries have an assignment");
            let considered = messages::considered_flavors(&self.names, assignment, &record.spec.adjusted);
            let wait = queued_wait(&record.workload, self.now);
            cycle.decision.events.push(Event {
                kind: "Normal",
                reason: "QuotaReserved".into(),
                key: Arc::clone(&record.key),
                message: truncate(
                    &messages::quota_reserved_event(&admission.cluster_queue, wait, &considered),
                    conditions::MAX_EVENT_MESSAGE,
                ),
            });
        }
        cycle.assumed.push((entry.workload, admission.clone()));
    }

    /// Writes a reservation and charges it.
    fn assume(&mut self, id: WorkloadId, admission: Admission, now: Time, decision: &mut Decision) {
        let queue = self.find_queue(&admission.cluster_queue).expect("the ClusterQueue of a head");
        let object = self.queues[queue].settled.clone().expect("an active ClusterQueue is settled");
        let required: BTreeSet<String> = checks_for_admission(&object, &admission);
        let gates = self.config.gates;
        let before = self.workloads.get(id).clone();
        let record = self.workloads.get_mut(id);
        let is_admitted = reserve_quota(&mut record.workload, admission.clone(), &required, now, gates);
        record.resume = None;
        let key = Arc::clone(&record.key);
        self.agenda.touch(id);
        self.queues[queue].named_by.insert(id);
        self.unqueue(id);
        self.put_cached(id);
        if is_admitted {
            let message = messages::admitted_event(&admission.cluster_queue, 0);
            decision.events.push(Event { kind: "Normal", reason: "Admitted".into(), key: Arc::clone(&key), message });
        }
        self.unconfirmed.insert(id, before);
        decision.admissions.push(Admitted { key, admission: Arc::new(admission), is_admitted });
    }

    /// Gives a head back to its queue and writes why (rules/05 §6.5).
    fn requeue(&mut self, entry: Entry, now: Time, decision: &mut Decision) {
        let mut reason = entry.requeue;
        if entry.status != EntryStatus::NotNominated && reason == RequeueReason::Generic {
            reason = RequeueReason::FailedAfterNomination;
        }
        let keeps_progress =
            entry.status != EntryStatus::Skipped || self.gate(Gate::FlavorFungibilityPreserveScanProgress);
        if let Some(assignment) = entry.assignment {
            let resume: Option<Box<Resume>> = keeps_progress.then(|| Box::new(assignment.resume));
            self.workloads.get_mut(entry.workload).resume = resume;
        }
        let parked = self.put_back(entry.workload, entry.queue, reason, entry.reason, decision);
        let written =
            matches!(entry.status, EntryStatus::NotNominated | EntryStatus::Skipped | EntryStatus::PreemptionGated);
        if !written || entry.silent {
            return;
        }
        let gates = self.config.gates;
        let requests = self.resource_requests(entry.workload);
        let queue = self.names.queues[entry.queue].clone();
        self.agenda.touch(entry.workload);
        let record = self.workloads.get_mut(entry.workload);
        keep_pending(&mut record.workload, entry.reason, &entry.message, requests, now, gates);
        if entry.status == EntryStatus::PreemptionGated {
            block_on_preemption_gates(&mut record.workload, &entry.message, now);
        }
        let reason = reasons::unadmitted(entry.reason, reasons::PENDING, gates);
        decision.events.push(Event {
            kind: "Warning",
            reason: reason.into(),
            key: Arc::clone(&record.key),
            message: truncate(&entry.message, conditions::MAX_EVENT_MESSAGE),
        });
        let key = Arc::clone(&record.key);
        decision.pending.push(Kept { key, queue, reason, message: entry.message, parked });
    }

    /// The queue's part of a requeue. Returns whether the workload is parked now.
    fn put_back(
        &mut self,
        workload: WorkloadId,
        from: QueueId,
        reason: RequeueReason,
        quota_reserved_reason: &'static str,
        decision: &mut Decision,
    ) -> bool {
        let record = self.workloads.get(workload);
        let admissible = is_admissible(&record.workload, self.config.gates);
        let Some(queue) = self.queue_of(workload).filter(|_| admissible) else {
            self.queues[from].pending.delete(workload);
            self.workloads.get_mut(workload).queued_in = None;
            return false;
        };
        self.refresh_totals(workload);
        let record = self.workloads.get(workload);
        let pending_flavors = record.resume.as_ref().is_some_and(|r| r.has_pending_flavors());
        let generation = record.evaluated_generation.unwrap_or_default();
        let item = self.item(workload);
        let hashing = self.gate(Gate::SchedulingEquivalenceHashing);
        let pending = &mut self.queues[queue].pending;
        let parked = pending.requeue(&item, reason, quota_reserved_reason, pending_flavors, generation, hashing);
        for id in parked {
            self.agenda.touch(id);
            decision.parked.push(Arc::clone(&self.workloads.get(id).key));
        }
        self.workloads.get_mut(workload).queued_in = Some(queue);
        self.note_waiting(queue);
        self.queues[queue].pending.is_inadmissible(workload)
    }

    /// `status.resourceRequests`: the totals per pod set.
    pub fn resource_requests(&self, workload: WorkloadId) -> Vec<PodSetRequest> {
        let record = self.workloads.get(workload);
        let totals = record.spec.adjusted.iter().zip(record.totals.iter());
        totals
            .map(|(pod_set, totals)| PodSetRequest {
                name: pod_set.name.clone(),
                resources: totals
                    .requests
                    .iter()
                    .map(|&(resource, value)| {
                        let name = self.names.resource_text(resource);
                        (name.to_owned(), quantity_from_value(name, value, false))
                    })
                    .collect(),
            })
            .collect()
    }
}

/// The flavors to which a variant is limited, if it is one (concurrent admission).
pub fn allowed_flavors(workload: &Workload) -> Option<Vec<String>> {
    let text = workload.meta.annotations.get(ALLOWED_FLAVORS)?;
    Some(text.split(',').map(|name| name.trim().to_owned()).collect())
}
