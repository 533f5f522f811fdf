//! What becomes of an entry: a reservation, an eviction or preemptions (rules/05 §6.4).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::assign;
use crate::base::changes::Change;
use crate::base::ids::{QueueId, WorkloadId};
use crate::base::key::Key;
use crate::base::shared::Shared;
use crate::objects::conditions::{EVICTED, QUOTA_RESERVED, find_true, is_true};
use crate::objects::message::{Message, Path, Preemption};
use crate::objects::priority::{base_priority, effective_priority};
use crate::objects::{Admission, PodSetAssignment, Time, Workload};
use crate::pods::totals::Totals;
use crate::queue::{RequeueReason, Returned};
use crate::schedule::decision::{Admitted, AssignedFlavor, Decision, Event, Evicted, Preempted, index};
use crate::schedule::entry::Entry;
use crate::schedule::round::{Assumed, Cycle, Eviction};
use crate::state::State;
use crate::state::records::Owner;
use crate::status::admissible::queued_wait;
use crate::status::checks::checks_for_admission;
use crate::status::reservation::reserve_quota;
use crate::status::stage::Stage;
use crate::status::{eviction, messages, reasons};
use crate::workloads::Record;
use crate::workloads::assigned::Assigned;
use crate::workloads::before::Unconfirmed;
use crate::workloads::charge::Target;

impl State {
    /// The admission of an entry, and the assignment behind it (rules/05 §6.4 step 12).
    pub(crate) fn admission(&mut self, entry: &Entry) -> (Shared<Admission>, Assigned) {
        let assignment = entry.assignment.as_ref().expect("nominated entries have an assignment");
        let assigned = self.workloads.assigned(&mut self.names, entry.workload, assignment);
        let cluster_queue = self.names.queues[entry.queue].clone();
        (Admission { cluster_queue, pod_set_assignments: assigned.pod_set_assignments.clone() }.into(), assigned)
    }

    /// Notes a reservation, with its event.
    pub(crate) fn note_reservation(&mut self, entry: &Entry, cycle: &mut Cycle) {
        let (admission, assigned) = self.admission(entry);
        let record = self.workloads.get(entry.workload);
        if !entry.has_reservation {
            let assignment = entry.assignment.as_ref().expect("nominated entries have an assignment");
            let (queue, wait_ns) = (admission.cluster_queue.shared(), queued_wait(&record.workload, self.now));
            let pod_sets = &record.spec.original;
            let message = assign::messages::quota_reserved(&self.names, assignment, pod_sets, queue, wait_ns);
            cycle.decision.events.push(Event {
                kind: "Normal",
                reason: "QuotaReserved".into(),
                key: record.key().clone(),
                message,
            });
        }
        let (workload, queue, had_quota) = (entry.workload, entry.queue, entry.has_reservation);
        let is_victim = had_quota && cycle.preempts(workload);
        let is_overwritten = false;
        cycle.assumed.push(Assumed { workload, queue, had_quota, is_victim, is_overwritten, admission, assigned });
    }

    /// Writes reservations, then takes their workloads out of their queues, then charges them: table by table.
    pub(crate) fn assume(&mut self, all: Vec<Assumed>, now: Time, decision: &mut Decision) {
        for assumed in &all {
            self.write_reservation(assumed, now, decision);
        }
        for assumed in &all {
            self.unqueue(assumed.workload);
        }
        for Assumed { workload: id, queue, assigned, is_overwritten, .. } in all {
            if is_overwritten {
                let before = self.ledger.unconfirmed[&id].status.clone();
                self.workloads.transition(id, |it| it.status = before);
                continue;
            }
            self.put_cached_as(id, Some((queue, assigned)));
            self.list_for_second_pass(id, 0);
        }
    }

    fn write_reservation(&mut self, assumed: &Assumed, now: Time, decision: &mut Decision) {
        let &Assumed { workload: id, queue, had_quota, ref admission, ref assigned, .. } = assumed;
        let object = self.queues[queue].settled.as_ref().expect("an active ClusterQueue is settled");
        let required: BTreeSet<String> = checks_for_admission(object, admission, self.config.changes);
        let gates = self.config.gates;
        let has_moved = had_quota && !self.as_it_came(id).status.rare.unhealthy_nodes.is_empty();
        let (before, newest) = self.before_write(id);
        if !had_quota || !self.config.changes.has(Change::PenaltiesAreSettled) {
            self.push_penalty(id, queue, now);
        }
        let reserve = |it: &mut Workload| reserve_quota(it, admission.clone(), &required, now, gates);
        let is_admitted = self.workloads.transition(id, reserve);
        let record = self.workloads.get_mut(id);
        record.resume = None;
        let key = record.key().clone();
        newest.iter().for_each(|newest| self.take_over_status(id, newest));
        self.feeds.agenda.touch(id);
        let n_before = index(decision.admissions.len());
        if !had_quota {
            decision.flavors.extend(assigned.totals.iter().enumerate().flat_map(|it| assigned_flavors(n_before, it)));
        }
        if is_admitted && !has_moved {
            let reserved = find_true(&before.status.conditions, QUOTA_RESERVED).filter(|_| had_quota);
            let reserved = reserved.filter(|_| self.config.changes.has(Change::AdmittedWaitIsMeasured));
            let wait_ns = reserved.map_or(0, |condition| now.since(condition.last_transition));
            let message = Message::AdmittedBy { queue: admission.cluster_queue.shared(), wait_ns };
            decision.events.push(Event { kind: "Normal", reason: "Admitted".into(), key: key.clone(), message });
        }
        let is_changed = !is_same(before.status.admission.as_deref(), admission);
        self.ledger.unconfirmed.insert(id, before);
        self.ledger.undelivered.push(id);
        let admission = admission.clone();
        let admitted = Admitted { key, workload: id, queue, admission, is_admitted, at: now };
        if !had_quota {
            decision.admissions.push(admitted);
        } else if is_changed {
            decision.placed.push(admitted);
        }
    }

    /// The state of a workload before a cycle writes to it, so that a refused write can be undone; and its newest
    /// state, if the cycle has an older copy and writes to that.
    fn before_write(&mut self, id: WorkloadId) -> (Unconfirmed, Option<Workload>) {
        let Record { workload, totals, resume, .. } = self.workloads.get(id);
        let (status, totals, resume) = (workload.status.clone(), Arc::clone(totals), resume.clone());
        let newest = self.overwrite_with_copy(id);
        let status = newest.as_ref().map_or(status, |newest| newest.status.clone());
        (Unconfirmed { status, totals, resume }, newest)
    }

    /// Evicts a workload for whose failed hosts there is no replacement (rules/08 §11.7).
    pub(crate) fn evict_from_failed_nodes(
        &mut self,
        Eviction { workload: id, unwritten, .. }: Eviction,
        now: Time,
        decision: &mut Decision,
    ) {
        let (before, newest) = self.before_write(id);
        let was_evicted = is_true(&before.status.conditions, EVICTED);
        self.ledger.unconfirmed.insert(id, before);
        let record = self.workloads.get(id);
        let nodes = record.workload.status.rare.unhealthy_nodes.join(",");
        let message: Message = messages::no_replacement(&nodes).into();
        let key = record.key().clone();
        let evict = |it: &mut Workload| eviction::evict(it, reasons::NODE_FAILURES, "", message.clone(), now);
        self.workloads.transition(id, evict);
        newest.iter().for_each(|newest| self.take_over_status(id, newest));
        self.rank_candidate(id);
        self.feeds.agenda.touch(id);
        self.ledger.undelivered.push(id);
        let reason = "EvictedDueToNodeFailures".into();
        decision.events.push(Event { kind: "Normal", reason, key: key.clone(), message: message.clone() });
        let (reason, again) = (reasons::NODE_FAILURES, was_evicted);
        decision.evictions.push(Evicted { key, workload: id, reason, message, again, unwritten });
    }

    /// A second pass has failed; returns whether there will be another.
    pub(crate) fn fail_second_pass(
        &mut self,
        id: WorkloadId,
        iteration: u32,
        message: Message,
        decision: &mut Decision,
    ) -> bool {
        let comes_again = self.comes_again(id, iteration);
        if comes_again {
            self.note_failed_pass(id, message, decision);
        }
        comes_again
    }

    /// Does a workload need another second pass? Then it is listed for it.
    pub(crate) fn comes_again(&mut self, id: WorkloadId, iteration: u32) -> bool {
        let comes_again = self.list_for_second_pass(id, iteration);
        // Its end in this cycle reaches the queue only now.
        if comes_again && self.workloads.row(id).stage == Stage::Finished {
            self.pending.second_passes.call_off(id);
        }
        comes_again
    }

    pub(crate) fn note_failed_pass(&self, id: WorkloadId, message: Message, decision: &mut Decision) {
        let key = self.workloads.get(id).key().clone();
        decision.events.push(Event { kind: "Warning", reason: "SecondPassFailed".into(), key, message });
    }

    /// Did the last cycle place pods of a workload anew?
    pub(crate) fn has_moved(&self, id: WorkloadId) -> bool {
        let before = self.ledger.unconfirmed.get(&id).and_then(|before| before.status.admission.as_deref());
        let now = self.workloads.get(id).workload.status.admission.as_deref();
        let differs = |(before, now): (&Admission, &Admission)| {
            !before.pod_set_assignments.iter().map(place).eq(now.pod_set_assignments.iter().map(place))
        };
        before.zip(now).is_some_and(differs)
    }

    /// Undoes a reservation that was not written: the workload is as `before`, and queued again unless it is gone.
    pub(crate) fn forget_reservation(&mut self, id: WorkloadId, before: Unconfirmed, gone: bool, now: Time) {
        self.now = now;
        if self.workloads.row(id).is_evicted && before.had_reservation() {
            return self.forget_eviction(id, before, gone);
        }
        self.restore_slice(id);
        self.request_flush_for(id);
        self.uncache(id);
        if !before.had_reservation() {
            self.take_back_penalty(self.workloads.row(id).local_queue, id);
        }
        // If it was released before its write was refused, it is already queued.
        self.unqueue(id);
        let Unconfirmed { status, totals, resume } = before;
        self.workloads.transition(id, |it| it.status = status);
        let record = self.workloads.get_mut(id);
        (record.totals, record.resume) = (totals, resume);
        self.note_uncounted(id);
        self.feeds.agenda.touch(id);
        if gone {
            return;
        }
        self.adjust_again(id);
        self.refresh_totals(id);
        if let Some(queue) = self.queue_of(id).filter(|_| !self.is_refused(id)) {
            let item = self.item(id);
            let ends_stickiness = self.config.changes.has(Change::OtherResultsEndStickiness);
            let pending = &mut self.queues[queue].pending;
            let reason = RequeueReason::FailedAfterNomination;
            let returned = Returned { reason, ends_stickiness, ..Returned::default() };
            pending.requeue(&mut self.pending.places, &item, &returned);
            self.set_queued_in(id, Some(queue));
            self.note_waiting(queue);
        }
    }

    /// Undoes an eviction that was not written: the workload keeps its quota, and is tried again.
    fn forget_eviction(&mut self, id: WorkloadId, before: Unconfirmed, gone: bool) {
        self.workloads.transition(id, |it| it.status = before.status);
        self.rank_candidate(id);
        self.feeds.agenda.touch(id);
        if !gone {
            self.list_for_second_pass(id, 0);
        }
    }

    /// Marks a victim; it holds its quota until its job has stopped (rules/04 §8).
    pub fn write_preemption(
        &mut self,
        target: Target,
        preemptor: WorkloadId,
        queue: QueueId,
        now: Time,
        decision: &mut Decision,
    ) {
        // The preemptor waits for a victim that the snapshot has as evicted, even if the victim's own pass has written
        // its older copy since (rules/04 §8).
        if self.pending.came_evicted(target.workload) {
            return;
        }
        // A victim that is itself in a second pass is preempted in its newest state, not in that of its copy; an
        // eviction by that pass is replaced by the preemption.
        let by_its_pass = decision.evictions.iter().position(|it| it.workload == target.workload);
        let newest = by_its_pass.and_then(|at| {
            decision.evictions.remove(at);
            self.overwrite_with_copy(target.workload)
        });
        self.show_newest(target.workload);
        // If it is already evicted, the preemptor just waits for it.
        if !self.workloads.row(target.workload).is_evicted {
            let (preempted, preemption) = self.preempted(target, preemptor, queue);
            let message = preempted.message.clone();
            let event = |reason: &'static str, key: &Key, message| Event {
                kind: "Normal",
                reason: reason.into(),
                key: key.clone(),
                message,
            };
            let Preempted { key, preemptor, .. } = &preempted;
            decision.events.push(event("EvictedDueToPreempted", key, message.clone()));
            if self.config.changes.has(Change::PreemptionPrioritiesAreNamed) {
                decision.events.extend([
                    event("Preempted", key, Message::PreemptedWithPriorities(Arc::clone(&preemption))),
                    event("PreemptedWorkload", preemptor, Message::PreemptedFor(preemption)),
                ]);
            } else {
                decision.events.push(event("Preempted", key, message.clone()));
            }
            self.workloads.transition(target.workload, |it| eviction::preempt(it, target.reason, message, now));
            newest.iter().for_each(|newest| self.take_over_status(target.workload, newest));
            self.note_reclaim(&target, now);
            self.rank_candidate(target.workload);
            self.feeds.agenda.touch(target.workload);
            self.ledger.undelivered.push(target.workload);
            decision.preemptions.push(preempted);
        }
    }

    /// The preemption of a target: preemptor, reason, message.
    pub(crate) fn preempted(
        &self,
        target: Target,
        preemptor: WorkloadId,
        queue: QueueId,
    ) -> (Preempted, Arc<Preemption>) {
        let workload = |id| &self.workloads.get(id).workload;
        let (to, from) = (workload(preemptor), workload(target.workload));
        let priorities = |it| (effective_priority(it, self.config.gates), base_priority(it));
        let preemption = Arc::new(Preemption {
            preemptor: to.meta.key.clone(),
            preemptor_details: to.meta.details.clone(),
            preemptee: from.meta.key.clone(),
            reason: target.reason,
            preemptor_path: self.path_of(queue),
            preemptee_path: self.path_of(target.queue),
            preemptor_priorities: priorities(to),
            preemptee_priorities: priorities(from),
            lexicon: self.names.lexicon(),
        });
        let preempted = Preempted {
            key: from.meta.key.clone(),
            workload: target.workload,
            queue: self.names.queues[target.queue].clone(),
            queue_id: Some(target.queue),
            preemptor: to.meta.key.clone(),
            preemptor_id: preemptor,
            reason: target.reason,
            message: Message::Preempted(Arc::clone(&preemption)),
        };
        (preempted, preemption)
    }

    /// The path of a ClusterQueue to the root of its tree.
    fn path_of(&self, queue: QueueId) -> Path {
        let cohort = |node| match self.ledger.owner(node)? {
            Owner::Cohort(id) => Some(id),
            Owner::Queue(_) => None,
        };
        let above = |node| self.ledger.forest.path(node).filter_map(cohort).collect();
        Path { queue, cohorts: self.queues[queue].node.map(above) }
    }
}

/// What a pod set of an admission got, by ids.
fn assigned_flavors(admission: u32, (pod_set, totals): (usize, &Totals)) -> impl Iterator<Item = AssignedFlavor> {
    totals.flavors.iter().map(move |&(resource, flavor)| {
        let (pod_set, count, amount) = (index(pod_set), totals.count, totals.request(resource));
        AssignedFlavor { admission, pod_set, count, resource, flavor, amount }
    })
}

/// Does an admission say the same of each pod set, in whatever encoding? A pass may change nothing but the count of a pod
/// set whose pods are done (rules/08 §11.10).
fn is_same(before: Option<&Admission>, now: &Admission) -> bool {
    fn said(it: &PodSetAssignment) -> impl PartialEq + '_ {
        (place(it), it.count)
    }
    before
        .is_some_and(|before| before.pod_set_assignments.iter().map(said).eq(now.pod_set_assignments.iter().map(said)))
}

/// Where the pods of a pod set are, or that they are still to be placed.
fn place(it: &PodSetAssignment) -> impl PartialEq + '_ {
    (&it.name, &it.topology_assignment, &it.delayed_topology_request)
}
