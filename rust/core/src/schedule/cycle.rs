//! One scheduling cycle: heads, nominate, order, process, requeue (rules/05 §6).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::assign::{self, Mode, Nomination};
use crate::base::amount::Amount;
use crate::base::gates::Gate;
use crate::base::ids::{FlavorResourceId, QueueId, WorkloadId};
use crate::base::shared::Shared;
use crate::objects::{Admission, PreemptionPolicy, Time};
use crate::preempt::{remove_from_tree, restore};
use crate::queue::RequeueReason;
use crate::quota::forest::{Forest, TreeId};
use crate::quota::tree::Mark;
use crate::schedule::decision::Decision;
use crate::schedule::entry::{Entry, EntryStatus, sort_classical};
use crate::schedule::tournament::Tournament;
use crate::schedule::waiting::Waiting;
use crate::state::State;
use crate::state::admission_fair_sharing::local_queue_usage;
use crate::status::admissible::has_closed_preemption_gate;
use crate::status::messages;
use crate::status::reasons;
use crate::workloads::assigned::Assigned;
use crate::workloads::charge::Target;

/// The entries of a cycle, decided on and not.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// Nominated heads.
    pub entries: Vec<Entry>,
    /// Heads with something in their way.
    pub not_nominated: Vec<Entry>,
    /// The entries that are not decided on yet, in order.
    pub left: BTreeSet<usize>,
    /// Who of them goes first with fair sharing.
    pub tournament: Tournament,
    pub cycle: Cycle,
}

/// How far a round has come.
pub(crate) enum Progress {
    /// To its end.
    Done,
    /// To an entry that fits but has to wait until pods are ready, with the slice that it replaces.
    Waits { entry: usize, slice: Option<WorkloadId> },
}

/// What became of an entry.
pub(crate) enum Fitting {
    /// It is decided.
    Decided,
    /// It fits, and waits until pods are ready; with the slice that it replaces.
    Waits(Option<WorkloadId>),
}

/// A quota reservation that is not written yet.
#[derive(Clone, Debug)]
pub(crate) struct Assumed {
    pub workload: WorkloadId,
    pub queue: QueueId,
    pub admission: Shared<Admission>,
    pub assigned: Assigned,
}

/// What the entries of a cycle share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cycle {
    /// Trees whose usage was tried out, with the state to go back to.
    marks: BTreeMap<TreeId, Mark>,
    pub decision: Decision,
    /// Quota reservations, to charge once the trial usage is rolled back.
    pub assumed: Vec<Assumed>,
    /// Slices that their replacements end: old and new.
    pub replaced: Vec<(WorkloadId, WorkloadId)>,
    /// Preemptions, to write at the end: target and preemptor.
    pub preemptions: Vec<(Target, WorkloadId, QueueId)>,
    /// Variants to evict at the end: the one that runs, and the one for a preferred flavor.
    pub migrations: Vec<(WorkloadId, WorkloadId)>,
    /// The victims of the entries so far, by the tree in which they are.
    victims: BTreeMap<TreeId, BTreeSet<WorkloadId>>,
    /// Always empty: nobody counts as gone.
    pub nobody: BTreeSet<WorkloadId>,
}

impl Cycle {
    /// What happens to a tree from now on is undone at the end of the cycle.
    pub fn mark(&mut self, forest: &mut Forest, tree: TreeId) {
        self.marks.entry(tree).or_insert_with(|| forest.tree_mut(tree).mark());
    }

    /// The victims so far in a tree.
    pub fn victims(&self, tree: TreeId) -> &BTreeSet<WorkloadId> {
        self.victims.get(&tree).unwrap_or(&self.nobody)
    }

    fn takes_from_victims(&self, entry: &Entry) -> bool {
        let victims = self.victims(entry.tree);
        entry.targets.iter().any(|target| victims.contains(&target.workload))
    }
}

impl State {
    /// Runs one cycle at `now`. Without any head nothing happens, and the cycle does not count.
    ///
    /// A cycle that waits for pods is not over: it is left in `waiting`, and the next call goes on with it
    /// ([`Decision::waits_for_pods`]).
    pub fn run_cycle(&mut self, waiting: &mut Option<Box<Waiting>>, now: Time) -> Decision {
        self.now = now;
        if let Some(cycle) = waiting.take() {
            return self.go_on(cycle, waiting, now);
        }
        self.unconfirmed.clear();
        self.replaced_slices.clear();
        self.deliver_writes();
        let unparked = self.flush();
        self.forest.flush(&self.names);
        let heads = self.heads();
        if heads.is_empty() {
            return Decision { unparked, ..Decision::default() };
        }
        self.cycle += 1;
        let mut cycle = Cycle::default();
        cycle.decision.unparked = unparked;
        let (mut entries, not_nominated) = self.nominate(heads, &mut cycle);
        if self.config.fair_sharing.is_none() {
            sort_classical(&mut entries, self.config.gates);
        }
        let left = (0..entries.len()).collect();
        self.play(Round { entries, not_nominated, left, tournament: Tournament::default(), cycle }, waiting, now)
    }

    /// Writes what was decided, with all trial usage taken back.
    pub(crate) fn write(&mut self, cycle: &mut Cycle, now: Time) {
        for assumed in std::mem::take(&mut cycle.assumed) {
            self.assume(assumed, now, &mut cycle.decision);
        }
        for (old, new) in std::mem::take(&mut cycle.replaced) {
            self.replace_slice(old, new, now, &mut cycle.decision);
        }
        for (target, preemptor, queue) in std::mem::take(&mut cycle.preemptions) {
            self.write_preemption(target, preemptor, queue, now, &mut cycle.decision);
        }
        for (from, to) in std::mem::take(&mut cycle.migrations) {
            self.write_migration(from, to, now, &mut cycle.decision);
        }
    }

    /// Writes what was decided, and gives the heads that stay pending back to their queues.
    pub(crate) fn end_round(&mut self, round: Round, now: Time) -> Decision {
        let Round { entries, not_nominated, mut cycle, .. } = round;
        self.write(&mut cycle, now);
        for entry in entries.into_iter().chain(not_nominated) {
            if entry.status != EntryStatus::Assumed && !entry.is_gone {
                self.requeue(entry, now, &mut cycle.decision);
            }
        }
        cycle.decision.cycle = self.cycle;
        cycle.decision
    }

    /// Takes back the usage that the entries were tried out with.
    pub(crate) fn take_back(&mut self, cycle: &mut Cycle) {
        for (tree, mark) in std::mem::take(&mut cycle.marks) {
            self.forest.tree_mut(tree).rollback(mark);
        }
    }

    /// Pops the head of every active ClusterQueue, in the order of their names (rules/05 §3).
    fn heads(&mut self) -> Vec<(QueueId, WorkloadId)> {
        let waiting = self.waiting_by_name();
        let mut heads = Vec::with_capacity(waiting.len());
        for queue in waiting {
            if !self.queues[queue].is_active() {
                continue;
            }
            let State { queues, local_queues, places, config, .. } = self;
            let usage = |id| {
                let config = config.admission_fair_sharing.as_ref();
                config.map_or(0.0, |config| local_queue_usage(config, &local_queues[id]))
            };
            if let Some(workload) = queues[queue].pending.pop(places, usage) {
                let record = self.workloads.get_mut(workload);
                record.evaluated_generation = record.workload.meta.generation;
                heads.push((queue, workload));
            }
            self.note_waiting(queue);
        }
        heads
    }

    /// Decides on the entries that are left, one by one, in the order of the configured algorithm.
    pub(crate) fn process_entries(&mut self, round: &mut Round) -> Progress {
        let gates = self.config.gates;
        while !round.left.is_empty() {
            let next = if self.config.fair_sharing.is_none() {
                *round.left.first().expect("not empty")
            } else {
                round.tournament.next(&mut self.forest, gates, &round.entries, &round.left)
            };
            round.left.remove(&next);
            let fitting = self.process(&mut round.entries[next], &mut round.cycle);
            round.tournament.decided(&self.forest, &round.entries, next);
            if let Fitting::Waits(slice) = fitting {
                return Progress::Waits { entry: next, slice };
            }
        }
        Progress::Done
    }

    /// Decides on one entry (rules/05 §6.4).
    pub(crate) fn process(&mut self, entry: &mut Entry, cycle: &mut Cycle) -> Fitting {
        if self.stands_back(entry) {
            return Fitting::Decided;
        }
        if self.forest.tree(entry.tree).has_saturated() {
            // Kueue asks this of every entry, and where sums have saturated asking has an effect of its own.
            self.fits(entry, entry.usage(), cycle);
        }
        if cycle.takes_from_victims(entry) && self.gate(Gate::RecomputeAssignmentUponPreemptionTargetsOverlap) {
            self.assign_again(entry, cycle);
        }
        let assignment = entry.assignment.as_ref().expect("nominated entries have an assignment");
        let mode = assignment.mode();
        match mode {
            Mode::NoFit => {
                entry.requeue = RequeueReason::NoFit;
                entry.reason = assignment.no_fit_reason.as_str();
                return Fitting::Decided;
            }
            Mode::Preempt if entry.targets.is_empty() => {
                entry.requeue = RequeueReason::PreemptionNoCandidates;
                entry.reason = reasons::WAITING_FOR_QUOTA;
                if !self.can_always_reclaim(entry) {
                    let reserved = self.resources_to_reserve(entry);
                    self.try_usage(entry, &reserved, cycle);
                }
                return Fitting::Decided;
            }
            Mode::Preempt if self.is_preemption_gated(entry) => {
                entry.status = EntryStatus::PreemptionGated;
                entry.message = messages::PREEMPTION_GATED.into();
                entry.reason = reasons::ADMISSION_GATED;
                entry.requeue = RequeueReason::PreemptionGated;
                entry.starts_over = true;
                return Fitting::Decided;
            }
            Mode::DeferredFit => {
                entry.message = messages::FITS_AFTER_PREEMPTIONS.into();
                entry.reason = reasons::WAITING_FOR_PREEMPTED_WORKLOADS;
                entry.requeue = RequeueReason::PendingPreemption;
                entry.starts_over = true;
                self.try_usage(entry, entry.usage(), cycle);
                return Fitting::Decided;
            }
            Mode::Preempt | Mode::Fit => {}
        }
        if cycle.takes_from_victims(entry) {
            self.skip(entry, messages::OVERLAPPING_TARGETS, true, cycle);
            return Fitting::Decided;
        }
        if !self.fits(entry, entry.usage(), cycle) {
            self.skip(entry, messages::NO_LONGER_FITS, mode == Mode::Preempt, cycle);
            return Fitting::Decided;
        }
        if !entry.targets.is_empty() {
            cycle.victims.entry(entry.tree).or_default().extend(entry.targets.iter().map(|t| t.workload));
        }
        self.try_usage(entry, entry.usage(), cycle);
        let slice = self.split_off_slice(entry.workload, &mut entry.targets);
        if mode == Mode::Preempt {
            let n = entry.targets.len();
            entry.reason = reasons::WAITING_FOR_PREEMPTED_WORKLOADS;
            entry.requeue = RequeueReason::PendingPreemption;
            entry.starts_over = true;
            entry.message = format!("{}{}", entry.message, messages::pending_preemption(n)).into();
            cycle.preemptions.extend(entry.targets.iter().map(|&t| (t, entry.workload, entry.queue)));
            return Fitting::Decided;
        }
        if !entry.has_reservation && self.is_blocked(cycle) {
            entry.reason = reasons::WAITING_FOR_PODS_READY;
            entry.message = messages::WAITING_FOR_PODS_READY.into();
            return Fitting::Waits(slice);
        }
        self.admit_entry(entry, slice, cycle);
        Fitting::Decided
    }

    /// The entry that waited for pods gets its quota.
    pub(crate) fn admit(&mut self, entry: usize, slice: Option<WorkloadId>, round: &mut Round) {
        self.admit_entry(&mut round.entries[entry], slice, &mut round.cycle);
    }

    fn admit_entry(&mut self, entry: &mut Entry, slice: Option<WorkloadId>, cycle: &mut Cycle) {
        if entry.is_gone || entry.is_homeless {
            entry.status = EntryStatus::Nominated;
            return;
        }
        if self.migrates(entry, cycle) {
            return;
        }
        entry.status = EntryStatus::Assumed;
        cycle.replaced.extend(slice.map(|slice| (slice, entry.workload)));
        self.note_reservation(entry, cycle);
    }

    fn skip(&self, entry: &mut Entry, message: &'static str, counts: bool, cycle: &mut Cycle) {
        entry.status = EntryStatus::Skipped;
        entry.message = message.into();
        entry.reason = reasons::WAITING_FOR_QUOTA;
        if counts {
            let queue = self.names.queues[entry.queue].to_string();
            *cycle.decision.skipped_preemptions.entry(queue).or_default() += 1;
        }
    }

    /// An entry whose targets are victims already is assigned again as if those were gone, among the flavors that it was
    /// nominated with (rules/04 §7).
    fn assign_again(&mut self, entry: &mut Entry, cycle: &mut Cycle) {
        let assignment = entry.assignment.as_ref().expect("nominated entries have an assignment");
        let record = self.workloads.get(entry.workload);
        let mut nomination = Nomination::new();
        for pod_set in &assignment.pod_sets {
            let flavors = pod_set.flavors.iter().map(|choice| (choice.resource, choice.flavor)).collect();
            nomination.insert(record.spec.adjusted[pod_set.index].name.clone(), flavors);
        }
        self.workloads.get_mut(entry.workload).resume = None;
        let (mut assignment, targets) = self.find_assignment(entry, Some(&nomination), cycle);
        if assignment.mode() == Mode::Fit {
            assignment.override_mode = Some(Mode::DeferredFit);
        }
        let record = self.workloads.get(entry.workload);
        entry.message = assign::messages::assignment(&self.names, &assignment, &record.spec.adjusted).into();
        let deferred = assignment.mode() == Mode::DeferredFit;
        entry.assignment = Some(Arc::new(assignment));
        entry.targets = targets;
        let fresh =
            !entry.targets.is_empty() && !cycle.takes_from_victims(entry) && self.fits(entry, entry.usage(), cycle);
        let result = if deferred {
            "deferred_fit"
        } else if fresh {
            "new_targets"
        } else {
            "skipped"
        };
        let of_queue =
            cycle.decision.target_recomputations.entry(self.names.queues[entry.queue].to_string()).or_default();
        *of_queue.entry(result).or_default() += 1;
    }

    /// Is preemption gated and a gate closed (rules/05 §6.4 step 5)?
    fn is_preemption_gated(&self, entry: &Entry) -> bool {
        let enabled = self.gate(Gate::ConcurrentAdmission) || self.gate(Gate::MultiKueueOrchestratedPreemption);
        enabled && has_closed_preemption_gate(&self.workloads.get(entry.workload).workload)
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
        let mut usage = entry.usage().to_vec();
        for (fr, amount) in &mut usage {
            let Some(column) = tree.column(*fr) else { continue };
            let quota = tree.quota(entry.row, column);
            let used = tree.usage(entry.row, column);
            *amount = match (borrows, quota.borrowing_limit) {
                (true, None) => *amount,
                (true, Some(limit)) => (*amount).min(quota.nominal.plus(limit).minus(used)),
                (false, _) => (*amount).min(quota.nominal.minus(used)).max(Amount::ZERO),
            };
        }
        usage
    }

    /// Would the usage fit with the victims of the cycle and the own targets gone (rules/05 §6.4 step 2)?
    fn fits(&mut self, entry: &Entry, usage: &[(FlavorResourceId, Amount)], cycle: &Cycle) -> bool {
        let victims = cycle.victims(entry.tree);
        let gone = if entry.targets.is_empty() {
            Cow::Borrowed(victims)
        } else {
            Cow::Owned(victims.iter().copied().chain(entry.targets.iter().map(|t| t.workload)).collect())
        };
        let mut tree = self.forest.lend_tree(entry.tree);
        let world = self.world(&cycle.nobody);
        let mark = tree.mark();
        let removed = remove_from_tree(&world, &mut tree, entry.tree, &gone);
        let fits = usage.iter().all(|&(fr, amount)| {
            let available = tree.column(fr).map_or(Amount::ZERO, |column| tree.available(entry.row, column));
            amount <= available
        });
        restore(&world, &mut tree, mark, &removed);
        self.forest.return_tree(entry.tree, tree);
        fits
    }

    /// Adds usage for the rest of the cycle.
    fn try_usage(&mut self, entry: &Entry, usage: &[(FlavorResourceId, Amount)], cycle: &mut Cycle) {
        cycle.mark(&mut self.forest, entry.tree);
        let tree = self.forest.tree_mut(entry.tree);
        for &(fr, amount) in usage {
            if let Some(column) = tree.column(fr) {
                tree.add_usage(entry.row, column, amount);
            }
        }
    }
}
