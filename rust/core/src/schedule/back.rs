//! Returns heads to their queues, with a reason in the status (rules/05 §6.5).

use crate::assign::Resume;
use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::base::ids::WorkloadId;
use crate::base::shared::Shared;
use crate::objects::resource_names::{exact_quantity, quantity_from_value};
use crate::objects::{PodSet, PodSetRequest, Time, Workload};
use crate::pods::totals::Totals;
use crate::queue::{RequeueReason, Returned};
use crate::schedule::decision::{Decision, Event, Kept};
use crate::schedule::entry::{Entry, EntryStatus};
use crate::state::State;
use crate::status::admissible::is_admissible;
use crate::status::reasons;
use crate::status::reservation::{block_on_preemption_gates, keep_pending};
use crate::topology::capacity::PODS;
use crate::workloads::Record;
/// Where a head without quota went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// It holds quota, and is listed for another second pass.
    ForSecondPass,
    /// Into its heap.
    InHeap,
    /// It waits for a change.
    Parked,
}

impl State {
    /// Returns a head to its queue (rules/05 §6.5).
    pub(crate) fn give_back(&mut self, entry: &Entry, decision: &mut Decision) -> Back {
        if let Some(iteration) = entry.second_pass
            && self.comes_again(entry.workload, iteration)
        {
            return Back::ForSecondPass;
        }
        let mut reason = entry.requeue;
        // It lost only to others of this cycle, and may be the next head at once (rules/05 §6.5).
        if entry.status != EntryStatus::NotNominated && reason == RequeueReason::Generic {
            reason = RequeueReason::FailedAfterNomination;
        }
        // A skipped entry continues after the flavor where its scan ended, although that flavor fit (rules/03 §6).
        let keeps_progress = !entry.starts_over
            && (entry.status != EntryStatus::Skipped || self.gate(Gate::FlavorFungibilityPreserveScanProgress));
        if let Some(assignment) = &entry.assignment {
            // After the last flavor the scan starts with the first, as it does without progress.
            let (generation, cycle, shape) = (entry.generation, self.cycle, entry.shape);
            let by_pod_set = self.config.changes.has(Change::GroupMembersMayBeApart);
            let tried = || assignment.progress(by_pod_set);
            let resume = || Box::new(Resume { tried: tried(), generation, cycle, shape });
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
        let requests = {
            // Its pods are counted from its first assignment on.
            let with_pods = entry.assignment.is_some() && self.counts_pods(entry.workload);
            let is_recorded = self.has_recorded_requests(entry.workload, with_pods);
            (!is_recorded).then(|| self.resource_requests(entry.workload, with_pods))
        };
        let queue = self.names.queues[entry.queue].clone();
        self.feeds.agenda.touch(entry.workload);
        let write = |it: &mut Workload| {
            // An API server refuses a condition without a reason, and with it the whole write (rules/08 §11.5).
            let mut written =
                !reason.is_empty() && keep_pending(it, entry.reason, entry.message.clone(), requests, now, gates);
            if entry.status == EntryStatus::PreemptionGated {
                written |= block_on_preemption_gates(it, entry.message.clone(), now);
            }
            written
        };
        // A second pass has failed while the workload is listed for another: it loses its quota (rules/08 §11.10).
        let written = if entry.second_pass.is_some() {
            self.show_newest(entry.workload);
            self.change(entry.workload, write)
        } else {
            self.workloads.transition(entry.workload, write)
        };
        if written && !self.gate(Gate::FlavorFungibilityPreserveScanProgress) {
            self.ledger.undelivered.push(entry.workload);
        }
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
        let returned = Returned {
            reason,
            status_reason: quota_reserved_reason,
            pending_flavors,
            generation,
            hashing,
            any_failure_counts: !self.config.changes.has(Change::ShapesFailByFit),
            ends_stickiness: self.config.changes.has(Change::OtherResultsEndStickiness),
            strict_queues_note: self.config.changes.has(Change::StrictQueuesNotePreemptors),
        };
        let parked = pending.requeue(&mut self.pending.places, &item, &returned);
        if let Some((shape, parked)) = item.shape.zip(parked) {
            self.feeds.agenda.touch_parked(queue, shape);
            decision.parked.extend(parked);
        }
        self.set_queued_in(workload, Some(queue));
        self.note_waiting(queue);
        self.queues[queue].pending.is_inadmissible(&self.pending.places, workload)
    }

    /// Does `status.resourceRequests` already hold the totals, in whatever spelling?
    fn has_recorded_requests(&self, workload: WorkloadId, with_pods: bool) -> bool {
        let record = self.workloads.get(workload);
        let recorded = record.workload.status.resource_requests.as_ref();
        let shared = record.spec.resource_requests.get().filter(|_| record.has_totals_of_its_spec() && !with_pods);
        if recorded.zip(shared).is_some_and(|(own, shared)| own.is_same(shared)) {
            return true;
        }
        let recorded = recorded.map_or(&[][..], |requests| requests);
        let same = |((requests, pod_set), totals): ((&PodSetRequest, &PodSet), &Totals)| {
            requests.name == pod_set.name
                && requests.resources.len() == totals.requests.len() + usize::from(with_pods)
                && (!with_pods || requests.resources.get(PODS).is_some_and(|it| it.ceil_units() == totals.count.into()))
                && totals.requests.iter().all(|&(resource, value)| {
                    let name = self.names.resource_text(resource);
                    requests.resources.get(name).is_some_and(|it| it.cmp_value(&exact_quantity(name, value)).is_eq())
                })
        };
        recorded.len() == record.totals.len()
            && recorded.iter().zip(&record.spec.adjusted).zip(record.totals.iter()).all(same)
    }

    /// `status.resourceRequests`: the totals per pod set.
    fn resource_requests(&self, workload: WorkloadId, with_pods: bool) -> Shared<Vec<PodSetRequest>> {
        let record = self.workloads.get(workload);
        if record.has_totals_of_its_spec() && !with_pods {
            record.spec.resource_requests.get_or_init(|| self.requests_of(record, false).into()).clone()
        } else {
            self.requests_of(record, with_pods).into()
        }
    }

    fn requests_of(&self, record: &Record, with_pods: bool) -> Vec<PodSetRequest> {
        let totals = record.spec.adjusted.iter().zip(record.totals.iter());
        totals
            .map(|(pod_set, totals)| {
                let requests = totals.requests.iter().map(|&(it, value)| (self.names.resource_text(it), value));
                let pods = with_pods.then(|| (PODS, i64::from(totals.count)));
                let quantity = |(name, value): (&str, _)| (name.to_owned(), quantity_from_value(name, value, false));
                PodSetRequest { name: pod_set.name.clone(), resources: requests.chain(pods).map(quantity).collect() }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::objects::config::Config;
    use crate::objects::{PodSet, ReclaimablePod};
    use crate::testing::{World, workload};

    #[test]
    fn resource_requests_follow_reclaimed_pods() {
        let mut world = World::new(Config::default());
        let mut large = workload("large", "6");
        large.pod_sets = vec![PodSet { count: 3, ..large.pod_sets[0].clone() }].into();
        world.submit(large);
        let cpu = |world: &World| {
            let requests = world.get("large").status.resource_requests.clone().expect("it waits");
            requests[0].resources["cpu"].text().into_owned()
        };
        assert!(world.cycle().pending[0].written);
        assert_eq!(cpu(&world), "18");
        world.change("large", |it| {
            it.status.rare.reclaimable_pods = vec![ReclaimablePod { name: "main".into(), count: 1 }]
        });
        assert!(world.cycle().pending[0].written);
        assert_eq!(cpu(&world), "12");
    }
}
