//! What becomes of an entry: a reservation, preemptions, or back to the queue with a reason (rules/05 §6.4, §6.5).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::assign::{self, Resume};
use crate::base::gates::Gate;
use crate::base::ids::{QueueId, WorkloadId};
use crate::base::key::Key;
use crate::base::shared::Shared;
use crate::objects::conditions::{EVICTED, is_true};
use crate::objects::message::{Message, Path, Preemption};
use crate::objects::priority::{base_priority, effective_priority};
use crate::objects::resource_names::{exact_quantity, quantity_from_value};
use crate::objects::{Admission, PodSet, PodSetAssignment, PodSetRequest, Time, Workload};
use crate::pods::totals::Totals;
use crate::queue::{RequeueReason, Returned};
use crate::schedule::decision::{Admitted, AssignedFlavor, Decision, Event, Evicted, Kept, Preempted, index};
use crate::schedule::entry::{Entry, EntryStatus};
use crate::schedule::round::{Assumed, Cycle, Eviction};
use crate::state::State;
use crate::state::records::Owner;
use crate::status::admissible::{is_admissible, queued_wait};
use crate::status::checks::checks_for_admission;
use crate::status::reservation::{block_on_preemption_gates, keep_pending, reserve_quota};
use crate::status::stage::Stage;
use crate::status::{eviction, messages, reasons};
use crate::workloads::Record;
use crate::workloads::assigned::Assigned;
use crate::workloads::before::Unconfirmed;
use crate::workloads::charge::Target;

/// Where a head went that got no quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// It holds quota, and comes for a second pass again.
    ForSecondPass,
    /// Into its heap.
    InHeap,
    /// It waits for a change.
    Parked,
}

impl State {
    /// What an entry gets, and as its status tells it (rules/05 §6.4 step 12).
    pub(crate) fn admission(&mut self, entry: &Entry) -> (Shared<Admission>, Assigned) {
        let assignment = entry.assignment.as_ref().expect("nominated entries have an assignment");
        let assigned = self.workloads.assigned(&mut self.names, entry.workload, assignment);
        let cluster_queue = self.names.queues[entry.queue].clone();
        (Admission { cluster_queue, pod_set_assignments: assigned.told.clone() }.into(), assigned)
    }

    /// The event of a reservation is worded while the assignment is at hand.
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
        cycle.assumed.push(Assumed { workload, queue, had_quota, is_victim, admission, assigned });
    }

    /// Writes reservations, then takes their workloads out of their queues, then charges them: table by table.
    pub(crate) fn assume(&mut self, all: Vec<Assumed>, now: Time, decision: &mut Decision) {
        for assumed in &all {
            self.write_reservation(assumed, now, decision);
        }
        for assumed in &all {
            self.unqueue(assumed.workload);
        }
        for Assumed { workload: id, queue, assigned, .. } in all {
            self.put_cached_as(id, Some((queue, assigned)));
            self.list_for_second_pass(id, 0);
        }
    }

    fn write_reservation(&mut self, assumed: &Assumed, now: Time, decision: &mut Decision) {
        let &Assumed { workload: id, queue, had_quota, ref admission, ref assigned, .. } = assumed;
        let object = self.queues[queue].settled.as_ref().expect("an active ClusterQueue is settled");
        let required: BTreeSet<String> = checks_for_admission(object, admission);
        let gates = self.config.gates;
        let has_moved = had_quota && !self.as_it_came(id).status.rare.unhealthy_nodes.is_empty();
        let (before, newest) = self.before_write(id);
        if !had_quota {
            self.push_penalty(id, queue, now);
        }
        let reserve = |it: &mut Workload| reserve_quota(it, admission.clone(), &required, now, gates);
        let is_admitted = self.workloads.transition(id, reserve);
        let record = self.workloads.get_mut(id);
        record.resume = None;
        let key = record.key().clone();
        newest.iter().for_each(|newest| self.take_over_status(id, newest));
        self.agenda.touch(id);
        let n_before = index(decision.admissions.len());
        if !had_quota {
            decision.flavors.extend(assigned.totals.iter().enumerate().flat_map(|it| assigned_flavors(n_before, it)));
        }
        if is_admitted && !has_moved {
            let message = Message::AdmittedBy { queue: admission.cluster_queue.shared(), wait_ns: 0 };
            decision.events.push(Event { kind: "Normal", reason: "Admitted".into(), key: key.clone(), message });
        }
        let has_new_place = !had_quota || !has_same_places(before.status.admission.as_deref(), admission);
        self.unconfirmed.insert(id, before);
        self.undelivered.push(id);
        let admission = admission.clone();
        let admitted = Admitted { key, workload: id, queue, admission, is_admitted, at: now };
        if !had_quota {
            decision.admissions.push(admitted);
        } else if has_new_place {
            decision.placed.push(admitted);
        }
    }

    /// What a workload is before a cycle writes to it, so that a refused write can be taken back; and what it is now, if it
    /// came as an older copy, to which the cycle writes.
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
        self.unconfirmed.insert(id, before);
        let record = self.workloads.get(id);
        let nodes = record.workload.status.rare.unhealthy_nodes.join(",");
        let message: Message = messages::no_replacement(&nodes).into();
        let key = record.key().clone();
        let evict = |it: &mut Workload| eviction::evict(it, reasons::NODE_FAILURES, "", message.clone(), now);
        self.workloads.transition(id, evict);
        newest.iter().for_each(|newest| self.take_over_status(id, newest));
        self.rank_candidate(id);
        self.agenda.touch(id);
        self.undelivered.push(id);
        let reason = "EvictedDueToNodeFailures".into();
        decision.events.push(Event { kind: "Normal", reason, key: key.clone(), message: message.clone() });
        let (reason, again) = (reasons::NODE_FAILURES, was_evicted);
        decision.evictions.push(Evicted { key, workload: id, reason, message, again, unwritten });
    }

    /// A second pass has come to nothing; says whether there will be another.
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
    fn comes_again(&mut self, id: WorkloadId, iteration: u32) -> bool {
        let comes_again = self.list_for_second_pass(id, iteration);
        // Its end in this cycle reaches the queue only now.
        if comes_again && self.workloads.row(id).stage == Stage::Finished {
            self.second_passes.call_off(id);
        }
        comes_again
    }

    fn note_failed_pass(&self, id: WorkloadId, message: Message, decision: &mut Decision) {
        let key = self.workloads.get(id).key().clone();
        decision.events.push(Event { kind: "Warning", reason: "SecondPassFailed".into(), key, message });
    }

    /// Takes a reservation back that was not written: the workload is as `before`, and queued again unless it is gone.
    pub(crate) fn forget_reservation(&mut self, id: WorkloadId, before: Unconfirmed, gone: bool, now: Time) {
        self.now = now;
        if self.workloads.row(id).is_evicted && before.had_reservation() {
            return self.forget_eviction(id, before, gone);
        }
        self.restore_slice(id);
        self.request_flush_for(id);
        self.uncache(id);
        if !before.had_reservation() {
            self.drop_penalty(self.workloads.row(id).local_queue, id);
        }
        // One that was released before its write was refused waits already.
        self.unqueue(id);
        let Unconfirmed { status, totals, resume } = before;
        self.workloads.transition(id, |it| it.status = status);
        let record = self.workloads.get_mut(id);
        (record.totals, record.resume) = (totals, resume);
        self.note_uncounted(id);
        self.agenda.touch(id);
        if gone {
            return;
        }
        self.adjust_again(id);
        self.refresh_totals(id);
        if let Some(queue) = self.queue_of(id).filter(|_| !self.is_refused(id)) {
            let item = self.item(id);
            let pending = &mut self.queues[queue].pending;
            let returned = Returned { reason: RequeueReason::FailedAfterNomination, ..Returned::default() };
            pending.requeue(&mut self.places, &item, &returned);
            self.set_queued_in(id, Some(queue));
            self.note_waiting(queue);
        }
    }

    /// Takes an eviction back that was not written: the workload keeps its quota, and is tried again.
    fn forget_eviction(&mut self, id: WorkloadId, before: Unconfirmed, gone: bool) {
        self.workloads.transition(id, |it| it.status = before.status);
        self.rank_candidate(id);
        self.agenda.touch(id);
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
        // A victim that came for a second pass itself is evicted as it is, not as it came; but if that pass has evicted it,
        // it is preempted instead.
        let by_its_pass = decision.evictions.iter().position(|it| it.workload == target.workload);
        let newest = by_its_pass.and_then(|at| {
            decision.evictions.remove(at);
            self.overwrite_with_copy(target.workload)
        });
        self.show_newest(target.workload);
        // One that is on its way out already is only waited for.
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
            decision.events.extend([
                event("EvictedDueToPreempted", key, message.clone()),
                event("Preempted", key, Message::PreemptedWithPriorities(Arc::clone(&preemption))),
                event("PreemptedWorkload", preemptor, Message::PreemptedFor(preemption)),
            ]);
            self.workloads.transition(target.workload, |it| eviction::preempt(it, target.reason, message, now));
            newest.iter().for_each(|newest| self.take_over_status(target.workload, newest));
            self.rank_candidate(target.workload);
            self.agenda.touch(target.workload);
            self.undelivered.push(target.workload);
            decision.preemptions.push(preempted);
        }
    }

    /// Who gives way to whom, and why.
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
        let cohort = |node| match self.owner(node)? {
            Owner::Cohort(id) => Some(id),
            Owner::Queue(_) => None,
        };
        let above = |node| self.forest.path(node).filter_map(cohort).collect();
        Path { queue, cohorts: self.queues[queue].node.map(above) }
    }

    /// Gives a head back to its queue (rules/05 §6.5).
    pub(crate) fn give_back(&mut self, entry: &Entry, decision: &mut Decision) -> Back {
        if let Some(iteration) = entry.second_pass
            && self.comes_again(entry.workload, iteration)
        {
            return Back::ForSecondPass;
        }
        let mut reason = entry.requeue;
        if entry.status != EntryStatus::NotNominated && reason == RequeueReason::Generic {
            reason = RequeueReason::FailedAfterNomination;
        }
        let keeps_progress = !entry.starts_over
            && (entry.status != EntryStatus::Skipped || self.gate(Gate::FlavorFungibilityPreserveScanProgress));
        if let Some(assignment) = &entry.assignment {
            // One that has come to the last flavor starts with the first, as one without progress does.
            let (generation, cycle, shape) = (entry.generation, self.cycle, entry.shape);
            let resume = || Box::new(Resume { tried: assignment.progress(), generation, cycle, shape });
            let resume = (keeps_progress && assignment.has_pending_flavors()).then(resume);
            self.workloads.get_mut(entry.workload).resume = resume;
        }
        let is_parked = self.put_back(entry.workload, reason, entry.reason, decision);
        if is_parked { Back::Parked } else { Back::InHeap }
    }

    /// Writes why a head stays pending (rules/05 §6.5).
    pub(crate) fn write_pending(&mut self, entry: &mut Entry, back: Back, now: Time, decision: &mut Decision) {
        if back == Back::ForSecondPass {
            return self.note_failed_pass(entry.workload, entry.message.clone(), decision);
        }
        let parked = back == Back::Parked;
        let written =
            matches!(entry.status, EntryStatus::NotNominated | EntryStatus::Skipped | EntryStatus::PreemptionGated);
        if !written || entry.silent {
            return;
        }
        let gates = self.config.gates;
        let reason = reasons::unadmitted(entry.reason, reasons::PENDING, gates);
        let requests = (!self.tells_requests(entry.workload)).then(|| self.resource_requests(entry.workload));
        let queue = self.names.queues[entry.queue].clone();
        self.agenda.touch(entry.workload);
        let written = self.workloads.transition(entry.workload, |it| {
            // An API server refuses a condition without a reason, and with it all that is written (rules/08 §11.5).
            let mut written =
                !reason.is_empty() && keep_pending(it, entry.reason, entry.message.clone(), requests, now, gates);
            if entry.status == EntryStatus::PreemptionGated {
                written |= block_on_preemption_gates(it, entry.message.clone(), now);
            }
            written
        });
        let record = self.workloads.get(entry.workload);
        decision.events.push(Event {
            kind: "Warning",
            reason: reason.into(),
            key: record.key().clone(),
            message: entry.message.clone(),
        });
        let key = record.key().clone();
        let (workload, queue_id, message) = (entry.workload, entry.queue, std::mem::take(&mut entry.message));
        decision.pending.push(Kept { key, workload, queue, queue_id, reason, message, parked, written });
    }

    /// The queue's part of a requeue. Returns whether the workload is parked now.
    pub(crate) fn put_back(
        &mut self,
        workload: WorkloadId,
        reason: RequeueReason,
        quota_reserved_reason: &'static str,
        decision: &mut Decision,
    ) -> bool {
        let record = self.workloads.get(workload);
        let admissible = is_admissible(&record.workload, self.config.gates);
        let Some(queue) = self.queue_of(workload).filter(|_| admissible) else {
            self.unqueue(workload);
            return false;
        };
        let record = self.workloads.get(workload);
        let pending_flavors = record.resume.as_ref().is_some_and(|r| r.has_pending_flavors());
        let generation = record.evaluated_generation;
        let item = self.item(workload);
        let hashing = self.gate(Gate::SchedulingEquivalenceHashing);
        let pending = &mut self.queues[queue].pending;
        let returned = Returned { reason, told: quota_reserved_reason, pending_flavors, generation, hashing };
        let parked = pending.requeue(&mut self.places, &item, &returned);
        if let Some((shape, parked)) = item.shape.zip(parked) {
            self.agenda.touch_parked(queue, shape);
            decision.parked.extend(parked);
        }
        self.set_queued_in(workload, Some(queue));
        self.note_waiting(queue);
        self.queues[queue].pending.is_inadmissible(&self.places, workload)
    }

    /// Does `status.resourceRequests` tell the totals already, in whatever spelling?
    fn tells_requests(&self, workload: WorkloadId) -> bool {
        let record = self.workloads.get(workload);
        let told = record.workload.status.resource_requests.as_ref();
        let shared = record.spec.told.get().filter(|_| record.has_totals_of_its_spec());
        if told.zip(shared).is_some_and(|(told, shared)| told.is_same(shared)) {
            return true;
        }
        let told = told.map_or(&[][..], |told| told);
        let same = |((told, pod_set), totals): ((&PodSetRequest, &PodSet), &Totals)| {
            told.name == pod_set.name
                && told.resources.len() == totals.requests.len()
                && totals.requests.iter().all(|&(resource, value)| {
                    let name = self.names.resource_text(resource);
                    told.resources.get(name).is_some_and(|told| told.cmp_value(&exact_quantity(name, value)).is_eq())
                })
        };
        told.len() == record.totals.len() && told.iter().zip(&record.spec.adjusted).zip(record.totals.iter()).all(same)
    }

    /// `status.resourceRequests`: the totals per pod set.
    fn resource_requests(&self, workload: WorkloadId) -> Shared<Vec<PodSetRequest>> {
        let record = self.workloads.get(workload);
        if record.has_totals_of_its_spec() {
            record.spec.told.get_or_init(|| self.requests_of(record).into()).clone()
        } else {
            self.requests_of(record).into()
        }
    }

    fn requests_of(&self, record: &Record) -> Vec<PodSetRequest> {
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

/// What a pod set of an admission got, by ids.
fn assigned_flavors(admission: u32, (pod_set, totals): (usize, &Totals)) -> impl Iterator<Item = AssignedFlavor> {
    totals.flavors.iter().map(move |&(resource, flavor)| {
        let (pod_set, count, amount) = (index(pod_set), totals.count, totals.request(resource));
        AssignedFlavor { admission, pod_set, count, resource, flavor, amount }
    })
}

/// Do pods stand where they stood, or are they to be placed as before?
fn has_same_places(before: Option<&Admission>, now: &Admission) -> bool {
    fn place(it: &PodSetAssignment) -> impl PartialEq + '_ {
        (&it.name, &it.topology_assignment, &it.delayed_topology_request)
    }
    let is_same = |before: &Admission| {
        let before = before.pod_set_assignments.iter().map(place);
        before.eq(now.pod_set_assignments.iter().map(place))
    };
    before.is_some_and(is_same)
}

#[cfg(test)]
mod tests {
    use crate::objects::config::Config;
    use crate::objects::{PodSet, ReclaimablePod};
    use crate::testing::{World, workload};

    #[test]
    fn the_status_tells_what_is_asked_for_now() {
        let mut world = World::new(Config::default());
        let mut large = workload("large", "6");
        large.pod_sets = vec![PodSet { count: 3, ..large.pod_sets[0].clone() }].into();
        world.submit(large);
        let told = |world: &World| {
            let requests = world.get("large").status.resource_requests.clone().expect("it was told why it waits");
            requests[0].resources["cpu"].text().into_owned()
        };
        assert!(world.cycle().pending[0].written);
        assert_eq!(told(&world), "18");
        world.change("large", |it| {
            it.status.rare.reclaimable_pods = vec![ReclaimablePod { name: "main".into(), count: 1 }]
        });
        assert!(world.cycle().pending[0].written);
        assert_eq!(told(&world), "12");
    }
}
