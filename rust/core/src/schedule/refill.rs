//! Refill with fair sharing: once the head of a ClusterQueue has got quota, the next of its workloads joins the same
//! cycle (rules/05 §6.3).

use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::objects::variants::is_variant;
use crate::schedule::entry::EntryStatus;
use crate::schedule::round::Round;
use crate::state::admission_fair_sharing::local_queue_usage;
use crate::state::{PendingWork, State};

/// How many workloads may join a cycle, in all ClusterQueues together, whatever becomes of them.
const BUDGET: usize = 8;

/// The refills of a cycle. Those that joined are the entries behind its heads.
pub(super) struct Refills {
    n_left: usize,
    n_heads: usize,
}

impl Refills {
    /// Did an entry join later? It is only admitted, and neither preempts nor reserves.
    pub fn has(&self, entry: usize) -> bool {
        entry >= self.n_heads
    }
}

impl State {
    /// The refills of a cycle that begins. A cycle that may wait for pods admits one workload at a time, and has none.
    pub(super) fn refills(&self, round: &Round) -> Refills {
        let may_wait = self.config.wait_for_pods_ready.as_ref().is_some_and(|config| config.block_admission);
        let is_on = self.gate(Gate::FairSharingRefill) && self.config.fair_sharing.is_some() && !may_wait;
        Refills { n_left: if is_on { BUDGET } else { 0 }, n_heads: round.entries.len() }
    }

    /// Lets the next workload of an entry's ClusterQueue join, if the entry has just got quota.
    pub(super) fn refill(&mut self, after: usize, refills: &mut Refills, round: &mut Round) {
        if refills.n_left == 0 {
            return;
        }
        let entry = &round.entries[after];
        let (queue, workload) = (entry.queue, entry.workload);
        let is_new = entry.status == EntryStatus::Assumed && !entry.has_reservation;
        // A sibling would not see in the snapshot that this variant is admitted.
        let has_siblings = self.gate(Gate::ConcurrentAdmission) && is_variant(&self.workloads.get(workload).workload);
        if !is_new || has_siblings {
            return;
        }
        if self.config.changes.has(Change::PenaltiesAreKeptByWorkload) {
            // Already the next one is chosen by it; writing the reservation sets the same penalty again.
            self.push_penalty(workload, queue, self.now);
        }
        let State { queues, local_queues, pending: PendingWork { places, .. }, config, .. } = self;
        let usage = |id| {
            let sharing = config.admission_fair_sharing.as_ref();
            sharing.map_or(0.0, |sharing| local_queue_usage(sharing, &local_queues[id], config.changes))
        };
        let Some(next) = queues[queue].pending.pop_more(places, usage) else { return };
        refills.n_left -= 1;
        let record = self.workloads.get_mut(next);
        record.evaluated_generation = record.row.generation;
        let n_before = round.entries.len();
        self.nominate_one((queue, next, None), false, round);
        if round.entries.len() > n_before {
            round.left.insert(n_before);
            round.tournament.join(&round.entries[n_before], n_before);
        }
    }
}
