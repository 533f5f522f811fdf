//! Decides on one entry, given what earlier entries have taken (rules/05 §6.4).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::assign::{self, Assignment, Mode, Nomination};
use crate::base::amount::Amount;
use crate::base::gates::Gate;
use crate::base::ids::{FlavorResourceId, WorkloadId};
use crate::objects::PreemptionPolicy;
use crate::quota::tree::Cell;
use crate::schedule::entry::Entry;
use crate::schedule::round::{Cycle, Eviction, Fitting, Round};
use crate::schedule::victims::{Victims, leaves_again};
use crate::state::State;
use crate::state::sites::stands_on_unhealthy_node;
use crate::state::verdicts::Verdict;
use crate::status::admissible::has_closed_preemption_gate;
use crate::status::messages;
use crate::workloads::charge::Target;

impl State {
    /// Decides on one entry (rules/05 §6.4). `joined_later`: it is no head, but has joined the cycle since.
    pub(crate) fn process(&mut self, entry: &mut Entry, joined_later: bool, cycle: &mut Cycle) -> Fitting {
        if self.stands_back(entry) {
            return Fitting::Decided;
        }
        if self.ledger.forest.tree(entry.tree).has_saturated() {
            // Kueue checks this for every entry, which has a side effect if sums have saturated.
            self.fits(entry, cycle);
        }
        // Whether assigning it again has just shown that it fits, with targets that are no victims yet.
        let mut fits = false;
        if cycle.victims.overlap_with(entry) && self.gate(Gate::RecomputeAssignmentUponPreemptionTargetsOverlap) {
            let has_new_targets = self.assign_without_victims(entry, cycle);
            fits = has_new_targets && !self.ledger.forest.tree(entry.tree).has_saturated();
        } else if !entry.stands.is_empty()
            && self.gate(Gate::TASRecomputeAssignmentWithinSchedulingCycle)
            && !self.has_room(entry, cycle)
            && self.fits_quota(entry, cycle)
        {
            self.place_again(entry);
        }
        let assignment = entry.assignment.as_ref().expect("nominated entries have an assignment");
        let mode = assignment.mode();
        if mode != Mode::Fit
            && self.gate(Gate::TASFailedNodeReplacementFailFast)
            && stands_on_unhealthy_node(&self.workloads.get(entry.workload).workload)
        {
            entry.evict();
            let (workload, unwritten) = (entry.workload, entry.message.clone());
            let is_victim = cycle.preempts(workload);
            cycle.evictions.push(Eviction { workload, unwritten, is_victim });
            return Fitting::Decided;
        }
        if self.is_decided_by(mode, entry, joined_later, cycle) {
            return Fitting::Decided;
        }
        if !fits && cycle.victims.overlap_with(entry) {
            self.skip(entry, messages::OVERLAPPING_TARGETS, true, cycle);
            return Fitting::Decided;
        }
        if !fits && !self.fits(entry, cycle) {
            self.skip(entry, messages::NO_LONGER_FITS, mode == Mode::Preempt, cycle);
            return Fitting::Decided;
        }
        // Their usage stays in the tree; checks whether later entries fit disregard it (rules/05 §6.4 step 9).
        cycle.victims.add(entry.tree, &entry.targets);
        self.try_usage(entry, entry.usage(), cycle);
        let slice = self.split_off_slice(entry.workload, &mut entry.targets);
        if mode == Mode::Preempt {
            entry.wait_for_targets();
            cycle.preemptions.extend(entry.targets.iter().map(|&t| (t, entry.workload, entry.queue)));
            return Fitting::Decided;
        }
        if !entry.has_reservation && self.is_blocked(cycle) {
            entry.wait_for_pods();
            return Fitting::Waits(slice);
        }
        self.admit_entry(entry, slice, cycle);
        Fitting::Decided
    }

    /// Decides on an entry by its mode alone: it does not fit, or has to wait for others (rules/05 §6.4 steps 3
    /// to 6).
    fn is_decided_by(&mut self, mode: Mode, entry: &mut Entry, joined_later: bool, cycle: &mut Cycle) -> bool {
        match mode {
            Mode::NoFit => {
                let reason = entry.assignment.as_ref().expect("nominated entries have an assignment").no_fit_reason;
                entry.fail_to_fit(reason);
            }
            Mode::Preempt if entry.targets.is_empty() => {
                entry.find_no_targets();
                // Without that, others would take the quota cycle by cycle, and the entry would starve (rules/05 §6.4
                // step 4).
                if !joined_later && !self.can_always_reclaim(entry) {
                    let reserved = self.resources_to_reserve(entry);
                    self.try_usage(entry, &reserved, cycle);
                }
            }
            // What is missing may just have been given away, so nobody is preempted for it (rules/05 §6.4).
            Mode::Preempt | Mode::DeferredFit if joined_later => entry.wait_for_next_cycle(),
            Mode::Preempt if self.is_preemption_gated(entry) => {
                entry.stop_at_gate();
            }
            Mode::DeferredFit => {
                entry.wait_for_victims_of_others();
                self.try_usage(entry, entry.usage(), cycle);
            }
            Mode::Preempt | Mode::Fit => return false,
        }
        true
    }

    /// Reserves quota for the entry that waited for pods.
    pub(crate) fn admit(&mut self, entry: usize, slice: Option<WorkloadId>, round: &mut Round) {
        self.admit_entry(&mut round.entries[entry], slice, &mut round.cycle);
    }

    fn admit_entry(&mut self, entry: &mut Entry, slice: Option<WorkloadId>, cycle: &mut Cycle) {
        if entry.is_gone || entry.is_homeless {
            entry.come_too_late();
            return;
        }
        if self.migrates(entry, cycle) {
            return;
        }
        entry.assume();
        cycle.replaced.extend(slice.map(|slice| (slice, entry.workload)));
        self.note_reservation(entry, cycle);
    }

    fn skip(&self, entry: &mut Entry, message: &'static str, counts: bool, cycle: &mut Cycle) {
        entry.skip(message);
        if counts {
            let queue = self.names.queues[entry.queue].to_string();
            *cycle.decision.skipped_preemptions.entry(queue).or_default() += 1;
        }
    }

    /// Assigns an entry again, with only the flavors of its nomination.
    fn assign_again(&mut self, entry: &mut Entry, victims: &mut Victims) -> (Arc<Assignment>, Vec<Target>) {
        let assignment = entry.assignment.as_ref().expect("nominated entries have an assignment");
        let record = self.workloads.get(entry.workload);
        let mut nomination = Nomination::new();
        for pod_set in assignment.pod_sets().iter() {
            let flavors = pod_set.flavors.iter().map(|choice| (choice.resource, choice.flavor)).collect();
            nomination.insert(record.spec.adjusted[pod_set.index].name.clone(), flavors);
        }
        // A recomputation starts from the first flavor, and so does the next cycle (rules/05 §6.4 step 2).
        self.workloads.get_mut(entry.workload).resume = None;
        self.find_assignment(entry, None, Some(&nomination), victims)
    }

    fn nominate_again(&mut self, entry: &mut Entry, assignment: Arc<Assignment>, targets: Vec<Target>) {
        let record = self.workloads.get(entry.workload);
        let message = assign::messages::assignment(&self.names, &assignment, &record.spec.original);
        let stands = self.net_stands((entry.queue, entry.workload), &assignment);
        entry.nominate(Verdict { assignment, targets, message }, stands);
    }

    /// An earlier entry has taken its place, so it searches for another one; the victims are still there.
    fn place_again(&mut self, entry: &mut Entry) {
        let (assignment, targets) = self.assign_again(entry, &mut Victims::default());
        self.nominate_again(entry, assignment, targets);
    }

    /// Assigns an entry whose targets are already victims again, as if those were gone (rules/04 §7). Returns whether it
    /// fits once other targets are gone.
    fn assign_without_victims(&mut self, entry: &mut Entry, cycle: &mut Cycle) -> bool {
        self.hide_victims(&mut cycle.victims, entry.tree);
        let mark = self.nodes.sites.mark();
        self.leave_nodes(cycle.victims.all());
        let (mut assignment, targets) = self.assign_again(entry, &mut cycle.victims);
        self.nodes.sites.rollback(mark);
        Arc::make_mut(&mut assignment).defer_fit();
        let deferred = assignment.mode() == Mode::DeferredFit;
        self.nominate_again(entry, assignment, targets);
        let fresh = !entry.targets.is_empty() && !cycle.victims.overlap_with(entry) && self.fits(entry, cycle);
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
        fresh && !deferred
    }

    /// Removes workloads from their nodes, until that is rolled back.
    fn leave_nodes(&mut self, workloads: impl Iterator<Item = WorkloadId>) {
        if self.nodes.sites.is_empty() {
            return;
        }
        let pools = self.pools_trials();
        for workload in workloads {
            if let Some(charge) = &self.workloads.get(workload).charge {
                let rules = &self.queues[charge.queue].rules;
                self.nodes.sites.try_without(&charge.stands, pools, |flavor| rules.has_flavor(flavor));
            }
        }
    }

    /// Is there room on its nodes without the victims of the cycle and its own targets?
    fn has_room(&mut self, entry: &Entry, cycle: &Cycle) -> bool {
        if entry.stands.is_empty() {
            return true;
        }
        let mark = self.nodes.sites.mark();
        let mut gone = BTreeSet::new();
        let own = entry.targets.iter().map(|target| target.workload);
        let leave: Vec<WorkloadId> =
            cycle.victims.all().chain(own).filter(|&it| gone.insert(it) || leaves_again(self)).collect();
        self.leave_nodes(leave.into_iter());
        let has_room = self.nodes.sites.have_room_for(&entry.stands);
        self.nodes.sites.rollback(mark);
        has_room
    }

    /// Is preemption gated, and a gate closed (rules/05 §6.4 step 5)?
    fn is_preemption_gated(&self, entry: &Entry) -> bool {
        let enabled = self.gate(Gate::ConcurrentAdmission) || self.gate(Gate::MultiKueueOrchestratedPreemption);
        let workload = &self.workloads.get(entry.workload).workload;
        enabled && has_closed_preemption_gate(&workload.preemption_gates, &workload.status)
    }

    /// Can the ClusterQueue always reclaim its nominal quota, so that nothing needs to be reserved for it?
    fn can_always_reclaim(&self, entry: &Entry) -> bool {
        let any = self.queues[entry.queue]
            .rules
            .preemption
            .as_ref()
            .is_some_and(|p| p.reclaim_within_cohort == PreemptionPolicy::Any);
        // While others are protected it can't (rules/13 §2). A preemptor that goes first holds its quota even then, or it
        // would have gone first for nothing (rules/05 §6.4 step 4).
        any && self.config.experiments.min_run_ns.is_none()
            && !(self.gate(Gate::PrioritizePreemptorWorkloads) && entry.is_preemptor)
    }

    /// What is reserved for an entry that cannot preempt, so that others do not take it (rules/05 §6.4 step 4).
    fn resources_to_reserve(&self, entry: &Entry) -> Vec<(FlavorResourceId, Amount)> {
        let tree = self.ledger.forest.tree(entry.tree);
        let borrows = entry.assignment.as_ref().is_some_and(|a| a.borrowing > 0);
        let mut usage = entry.usage().to_vec();
        for (fr, amount) in &mut usage {
            let Some(column) = tree.column(*fr) else { continue };
            let (&Cell { nominal, borrowing_limit, .. }, used) = tree.cell_and_usage(entry.row, column);
            *amount = if borrows {
                // May be negative, and is added even then (rules/05 §6.4 step 4).
                (*amount).min(nominal.plus(borrowing_limit).minus(used))
            } else {
                (*amount).min(nominal.minus(used)).max(Amount::ZERO)
            };
        }
        usage
    }

    /// Would everything fit without the victims of the cycle and its own targets (rules/05 §6.4 step 2)?
    fn fits(&mut self, entry: &Entry, cycle: &mut Cycle) -> bool {
        self.fits_quota(entry, cycle) && self.has_room(entry, cycle)
    }

    fn fits_quota(&mut self, entry: &Entry, cycle: &mut Cycle) -> bool {
        self.look_without(&mut cycle.victims, entry.tree, &entry.targets, |_, tree| {
            entry.usage().iter().all(|&(fr, amount)| {
                let available = tree.column(fr).map_or(Amount::ZERO, |column| tree.available(entry.row, column));
                amount <= available
            })
        })
    }

    /// Adds usage for the rest of the cycle.
    fn try_usage(&mut self, entry: &Entry, usage: &[(FlavorResourceId, Amount)], cycle: &mut Cycle) {
        cycle.mark(&mut self.ledger.forest, entry.tree);
        let tree = self.ledger.forest.tree_mut(entry.tree);
        tree.add_all(entry.row, usage);
        cycle.victims.note_usage(entry.tree, tree, entry.row, usage);
        if !entry.stands.is_empty() {
            let pools = self.pools_trials();
            self.nodes.sites.try_with(&entry.stands, pools);
        }
    }
}
