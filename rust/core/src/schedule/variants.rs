//! Concurrent admission: variants of one workload compete, one for each flavor (rules/09 §4.4).
//!
//! A controller creates the variants of a parent, and keeps both in step.

use crate::base::gates::Gate;
use crate::base::ids::WorkloadId;
use crate::objects::message::Message;
use crate::objects::variants::{ALLOWED_FLAVORS, is_variant, parent};
use crate::objects::{Time, Workload};
use crate::schedule::decision::{Decision, Event, Preempted};
use crate::schedule::entry::Entry;
use crate::schedule::round::Cycle;
use crate::state::State;
use crate::status::stage::is_admitted;
use crate::status::{eviction, messages, reasons};

impl State {
    /// The index of a variant's flavor in its ClusterQueue, the preferred flavor first.
    fn flavor_index(&self, entry: &Entry, workload: &Workload) -> Option<usize> {
        let flavors = &self.queues[entry.queue].rules.groups.first()?.flavors;
        let text = workload.meta.details.annotations.get(ALLOWED_FLAVORS)?;
        let first = text.split(',').map(str::trim).find(|name| !name.is_empty())?;
        flavors.iter().position(|&flavor| self.names.flavors[flavor] == first)
    }

    /// The Admitted variants of the same parent in the same ClusterQueue, with the indexes of their flavors, by name
    /// (Kueue's order is undefined).
    fn admitted_siblings(&self, entry: &Entry) -> Vec<(WorkloadId, usize)> {
        let own = &self.workloads.get(entry.workload).workload;
        let Some(uid) = parent(own).map(|owner| &owner.uid).filter(|uid| !uid.is_empty()) else { return Vec::new() };
        let mut siblings: Vec<_> = self.queues[entry.queue]
            .reserving()
            .into_iter()
            .map(|id| (id, self.workloads.get(id)))
            .filter(|(_, r)| r.workload.meta.key.uid() != own.meta.key.uid() && is_admitted(&r.workload))
            .filter(|(_, r)| parent(&r.workload).is_some_and(|owner| owner.uid == *uid))
            .filter_map(|(id, r)| Some((r.key(), id, self.flavor_index(entry, &r.workload)?)))
            .collect();
        siblings.sort_unstable();
        siblings.into_iter().map(|(_, id, index)| (id, index)).collect()
    }

    fn variant_index(&self, entry: &Entry) -> Option<usize> {
        let workload = &self.workloads.get(entry.workload).workload;
        let enabled = self.gate(Gate::ConcurrentAdmission) && is_variant(workload);
        if enabled { self.flavor_index(entry, workload) } else { None }
    }

    /// Does a variant stand back because one for a preferred flavor is admitted?
    pub(crate) fn stands_back(&self, entry: &mut Entry) -> bool {
        let Some(own) = self.variant_index(entry) else { return false };
        if !self.admitted_siblings(entry).iter().any(|&(_, index)| index < own) {
            return false;
        }
        entry.stand_back();
        true
    }

    /// A variant that fits while one for a less preferred flavor is admitted gets no quota yet: that one is evicted
    /// first, if the ClusterQueue allows moving to this flavor. Returns whether there is such a variant.
    pub(crate) fn migrates(&self, entry: &mut Entry, cycle: &mut Cycle) -> bool {
        let Some(own) = self.variant_index(entry) else { return false };
        let Some(&(sibling, _)) = self.admitted_siblings(entry).iter().find(|&&(_, index)| index > own) else {
            return false;
        };
        let last = self.queues[entry.queue].settled.as_ref().and_then(|object| object.last_acceptable_flavor.clone());
        if let Some(last) = last {
            let flavors = self.queues[entry.queue].rules.groups.first().map_or(&[][..], |group| &group.flavors);
            if flavors.iter().position(|&flavor| self.names.flavors[flavor] == last).is_none_or(|last| own > last) {
                entry.leave_sibling_running();
                return true;
            }
        }
        entry.wait_for_migration();
        cycle.migrations.push((sibling, entry.workload));
        true
    }

    /// Evicts a variant in favor of one for a preferred flavor; Kueue repeats this in each cycle until it has stopped.
    pub(crate) fn write_migration(&mut self, from: WorkloadId, to: WorkloadId, now: Time, decision: &mut Decision) {
        let successor = self.workloads.get(to);
        let message = Message::from(messages::migrated(successor.workload.meta.key.uid()));
        let preemptor = successor.key().clone();
        self.show_newest(from);
        let is_new = !self.workloads.row(from).is_evicted;
        let evict = |it: &mut Workload| eviction::evict(it, reasons::FLAVOR_MIGRATION, "", message.clone(), now);
        self.workloads.transition(from, evict);
        let record = self.workloads.get(from);
        let key = record.key().clone();
        let queue_id = record.cached_in();
        self.rank_candidate(from);
        self.feeds.agenda.touch(from);
        decision.events.push(Event {
            kind: "Normal",
            reason: eviction::event_reason(reasons::FLAVOR_MIGRATION, "").into(),
            key: key.clone(),
            message: message.clone(),
        });
        if is_new {
            decision.preemptions.push(Preempted {
                key,
                workload: from,
                queue: queue_id.map(|queue| self.names.queues[queue].clone()).unwrap_or_default(),
                queue_id,
                preemptor,
                preemptor_id: to,
                reason: reasons::FLAVOR_MIGRATION,
                message,
            });
        }
    }
}

#[cfg(test)]
mod tests;
