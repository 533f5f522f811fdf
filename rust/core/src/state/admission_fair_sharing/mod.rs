//! Admission fair sharing: within a ClusterQueue, the LocalQueue with the least usage goes first (rules/09 §1).
//!
//! Every LocalQueue has an account: the usage of its workloads, decaying over time, plus the penalties of those that
//! reserved quota and are not admitted yet. Accounts only affect the order; they keep nobody out.

mod account;
mod arithmetic;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use account::Account;
use arithmetic::entry_penalty;
pub use arithmetic::{decayed, usage, weight};

use crate::base::changes::{Change, Changes};
use crate::base::gates::Gate;
use crate::base::ids::{LocalQueueId, QueueId, WorkloadId};
use crate::objects::config::AdmissionFairSharing;
use crate::objects::resource_names::quantity_from_value;
use crate::objects::{ResourceList, Time};
use crate::state::State;
use crate::state::records::LocalQueueRecord;
use crate::status::stage::{Stage, has_quota_reservation, is_active};
use crate::workloads::before::Before;

/// The usage of a LocalQueue divided by its weight; a missing LocalQueue has weight 1.
#[must_use]
pub fn local_queue_usage(config: &AdmissionFairSharing, local_queue: &LocalQueueRecord, changes: Changes) -> f64 {
    let weight = weight(local_queue.object.as_ref().and_then(|object| object.fair_weight.as_ref()));
    let (consumed, penalty) = match &local_queue.account {
        Some(account) => (account.consumed.clone(), account.penalty()),
        None => Default::default(),
    };
    usage(&consumed, &penalty, weight, &config.resource_weights, changes)
}

impl State {
    /// The configuration of admission fair sharing, if it is on.
    pub fn admission_fair_sharing(&self) -> Option<&AdmissionFairSharing> {
        self.config.admission_fair_sharing.as_ref().filter(|_| self.gate(Gate::AdmissionFairSharing))
    }

    /// The usage of a LocalQueue; 0 while admission fair sharing is off.
    pub fn local_queue_usage(&self, id: LocalQueueId) -> f64 {
        self.admission_fair_sharing()
            .map_or(0.0, |config| local_queue_usage(config, &self.local_queues[id], self.config.changes))
    }

    /// Does the ClusterQueue order its workloads by the usage of their LocalQueues?
    fn is_usage_based(&self, queue: QueueId) -> bool {
        let settled = self.queues[queue].settled.as_ref();
        self.admission_fair_sharing().is_some() && settled.is_some_and(|object| object.usage_based_admission)
    }

    /// Charges the entry penalty of a workload that is about to reserve quota in `queue`, unless it already holds
    /// quota.
    pub(crate) fn push_penalty(&mut self, id: WorkloadId, queue: QueueId, now: Time) {
        let record = self.workloads.get(id);
        let is_charged = self.is_usage_based(queue) && !has_quota_reservation(&record.workload);
        if !is_charged && self.config.changes.has(Change::PenaltiesAreSettled) {
            return;
        }
        let Some(penalty) = self.penalty_of(id, queue, self.counts_pods(id)) else { return };
        let local_queue = &mut self.local_queues[record.row.local_queue];
        let account = local_queue.account.get_or_insert_with(|| Account { last_update: now, ..Account::default() });
        if !self.config.changes.has(Change::PenaltiesAreKeptByWorkload) {
            account.orphan(id);
        }
        account.penalties.insert(id, penalty);
    }

    /// The entry penalty for the requests of a workload, with its pods or without.
    fn penalty_of(&self, id: WorkloadId, queue: QueueId, with_pods: bool) -> Option<ResourceList> {
        let config = self.admission_fair_sharing()?;
        let record = self.workloads.get(id);
        let mut requests: BTreeMap<&str, i64> = BTreeMap::new();
        let pods =
            record.totals.iter().filter_map(|it| Some((self.names.pods().filter(|_| with_pods)?, it.count.into())));
        let totals = record.totals.iter().flat_map(|totals| totals.requests.iter().copied());
        for (resource, value) in totals.chain(pods) {
            let is_covered = || self.queues[queue].rules.groups.iter().any(|group| group.covered.contains(&resource));
            if !self.config.resources.ignore_undeclared || is_covered() {
                let sum = requests.entry(self.names.resource_text(resource)).or_default();
                *sum = sum.saturating_add(value);
            }
        }
        let (interval, half_life) = (config.usage_sampling_interval_ns, config.usage_half_life_ns);
        Some(entry_penalty(&as_list(requests), interval, half_life, self.config.changes))
    }

    /// Takes back the entry penalty of a workload whose reservation was not written.
    pub(crate) fn take_back_penalty(&mut self, local_queue: LocalQueueId, id: WorkloadId) {
        if let Some(account) = &mut self.local_queues[local_queue].account {
            account.penalties.remove(&id);
        }
    }

    /// Drops the entry penalty of a workload that will not be admitted from that LocalQueue.
    pub(crate) fn drop_penalty(&mut self, local_queue: LocalQueueId, id: WorkloadId) {
        if let Some(account) = &mut self.local_queues[local_queue].account {
            if self.config.changes.has(Change::PenaltiesAreKeptByWorkload) {
                account.penalties.remove(&id);
            } else {
                account.orphan(id);
            }
        }
    }

    /// Does a workload in this stage count in usage, so that its penalty does, too: once it holds quota, or only once it
    /// is Admitted (rules/09 §1.3)?
    fn counts_in(&self, stage: Stage) -> bool {
        let at_reservation = self.gate(Gate::AdmissionFairSharingAnchorAtQuotaReservation);
        stage == Stage::Admitted || (at_reservation && stage == Stage::QuotaReserved)
    }

    /// Moves the penalty of a workload into the history once its usage counts, either just now or by an earlier cycle.
    pub(crate) fn settle_penalty_of_admitted(&mut self, id: WorkloadId) {
        let record = self.workloads.get(id);
        let account = self.local_queues[record.row.local_queue].account.as_ref();
        if account.is_some_and(|account| account.penalties.contains_key(&id))
            && is_active(&record.workload)
            && self.counts_in(record.row.stage)
        {
            self.settle_penalty(id);
        }
    }

    /// The same for all that the last cycle admitted, before any of its victims gives quota back (rules/09 §1.3).
    pub(crate) fn settle_penalties_of_cycle(&mut self) {
        for at in 0..self.ledger.undelivered.len() {
            self.settle_penalty_of_admitted(self.ledger.undelivered[at]);
        }
    }

    /// Updates the penalty of a workload that changed from `old` (rules/09 §1.3).
    pub(crate) fn advance_penalty(&mut self, id: WorkloadId, old: &Before) {
        let record = self.workloads.get(id);
        let local_queue = record.row.local_queue;
        let (before, now) = (old.row.stage, record.row.stage);
        let was_active = is_active(old.object.as_ref().map_or(&record.workload, |it| &it.0));
        let is_out = !is_active(&record.workload) && !record.row.has_reservation;
        let was_in = was_active || old.row.has_reservation;
        let became_admitted = is_active(&record.workload) && self.counts_in(now) && !self.counts_in(before);
        if became_admitted && before != Stage::Pending && !self.config.changes.has(Change::PenaltiesAreSettled) {
            // Whoever waited for checks was not charged in the end, and the penalty stayed.
            let account = self.local_queues[local_queue].account.as_mut();
            account.into_iter().for_each(|account| account.orphan(id));
        } else if became_admitted {
            self.settle_penalty(id);
        } else {
            self.settle_penalty_of_admitted(id);
        }
        if old.row.local_queue != local_queue {
            self.drop_penalty(old.row.local_queue, id);
        }
        if (is_out && was_in) || now == Stage::Finished {
            self.drop_penalty(local_queue, id);
        }
    }

    /// Decays the account and moves the penalty of an admitted workload into it, in one step.
    fn settle_penalty(&mut self, id: WorkloadId) {
        let record = self.workloads.get(id);
        let local_queue = record.row.local_queue;
        if !self.config.changes.has(Change::AdmissionsAreSettled) {
            let account = self.local_queues[local_queue].account.as_mut();
            account.into_iter().for_each(|account| account.orphan(id));
            return;
        }
        let Some(name) = record.workload.status.admission.as_ref().map(|a| a.cluster_queue.as_str()) else { return };
        let Some(queue) = self.find_queue(name).filter(|&queue| self.is_usage_based(queue)) else { return };
        if self.local_queues[local_queue].object.as_ref().is_none_or(|object| object.cluster_queue != name) {
            return;
        }
        let Some(half_life_ns) = self.admission_fair_sharing().map(|config| config.usage_half_life_ns) else { return };
        let admitted = self.admitted_usage(local_queue, queue);
        let of_admission = match self.config.changes.has(Change::PenaltiesAreKeptByWorkload) {
            true => None,
            false => self.penalty_of(id, queue, false),
        };
        let now = self.now;
        self.feeds.changed_queues.touch_local_queue(local_queue);
        let local_queue = &mut self.local_queues[local_queue];
        let account = local_queue.account.get_or_insert_with(|| Account { last_update: now, ..Account::default() });
        account.decay(&admitted, half_life_ns, now, self.config.changes);
        if let Some(settled) = of_admission {
            // What it was charged may differ from what it got, and the rest stayed.
            account.orphan(id);
            arithmetic::add(&mut account.consumed, &settled);
            arithmetic::subtract(&mut account.orphaned, &settled);
            if self.config.changes.has(Change::PenaltiesAreSettled) {
                account.raise_to_zero();
            }
        } else if let Some(penalty) = account.penalties.remove(&id) {
            arithmetic::add(&mut account.consumed, &penalty);
        }
    }

    /// The usage of a LocalQueue's Admitted workloads, by resource; or of all that hold quota.
    fn admitted_usage(&self, local_queue: LocalQueueId, queue: QueueId) -> ResourceList {
        let at_reservation =
            self.gate(Gate::AdmissionFairSharingAnchorAtQuotaReservation) && self.is_usage_based(queue);
        let queue = &self.queues[queue];
        let covered = queue.rules.groups.iter().flat_map(|group| &group.covered);
        let mut sums: BTreeMap<&str, i64> = covered.map(|&r| (self.names.resource_text(r), 0)).collect();
        let used = queue.usage_of(local_queue).map(|it| if at_reservation { &it.reserved } else { &it.admitted });
        for &(fr, amount) in used.into_iter().flat_map(|usage| usage.iter()) {
            let sum = sums.entry(self.names.resource_text(self.names.parts(fr).1)).or_default();
            *sum = sum.saturating_add(amount.get());
        }
        as_list(sums)
    }

    /// Reads the history in a LocalQueue's status into its account, once. Returns whether there was an account before.
    pub(crate) fn open_account(&mut self, id: LocalQueueId, now: Time) -> bool {
        let record = &mut self.local_queues[id];
        let kept = record.object.as_ref().and_then(|object| object.consumed_resources.clone()).unwrap_or_default();
        match &mut record.account {
            Some(account) => {
                if !account.status_accounted {
                    arithmetic::add(&mut account.consumed, &kept);
                    account.status_accounted = true;
                }
                true
            }
            None => {
                // The time since the status was written does not decay (rules/09 §1.4 step 1).
                let fresh = Account { consumed: kept, last_update: now, status_accounted: true, ..Account::default() };
                record.account = Some(fresh);
                false
            }
        }
    }

    /// Samples the account of a LocalQueue: due when the LocalQueue is created and then at each returned time (rules/09
    /// §1.4). If called too early, it only opens the account. `None`: nothing to sample until something changes.
    pub(crate) fn sample_local_queue(&mut self, id: LocalQueueId, now: Time) -> Option<Time> {
        let config = self.admission_fair_sharing()?;
        let (interval_ns, half_life_ns) = (config.usage_sampling_interval_ns, config.usage_half_life_ns);
        let queue = self.target_of(id).filter(|&queue| self.queues[queue].is_active())?;
        let had_account = self.open_account(id, now);
        let after = |time: Time| Time(time.0.saturating_add(interval_ns));
        let account = self.local_queues[id].account.as_ref()?;
        if had_account && now.since(account.last_update) < interval_ns && !account.has_penalty() {
            return Some(after(account.last_update));
        }
        let admitted = self.admitted_usage(id, queue);
        self.feeds.changed_queues.touch_local_queue(id);
        let account = self.local_queues[id].account.as_mut()?;
        if half_life_ns == 0 {
            account.consumed.clear();
            account.last_update = now;
        } else {
            account.decay(&admitted, half_life_ns, now, self.config.changes);
        }
        Some(after(now))
    }

    /// [`State::sample_local_queue`] for all LocalQueues.
    pub(crate) fn sample_local_queues(&mut self, now: Time) {
        if self.admission_fair_sharing().is_some() {
            for id in self.local_queues.ids() {
                self.sample_local_queue(id, now);
            }
        }
    }
}

fn as_list(values: BTreeMap<&str, i64>) -> ResourceList {
    values.into_iter().map(|(name, value)| (name.to_owned(), quantity_from_value(name, value, false))).collect()
}
