//! How many workloads wait in each LocalQueue, and how much of a ClusterQueue's quota each uses: updated on each
//! change, so that reading a status does not iterate over the workloads (rules/02 §7).

use crate::assign::Usage;
use crate::base::ids::{LocalQueueId, QueueId, WorkloadId};
use crate::objects::variants::is_parent;
use crate::state::State;
use crate::status::admissible::is_admissible;
use crate::workloads::charge::Charge;

/// What the workloads of one LocalQueue hold in one ClusterQueue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalUsage {
    /// Usage of those that hold quota.
    pub reserved: Usage,
    /// Usage of those of them that are Admitted.
    pub admitted: Usage,
    /// How many hold quota.
    pub n_reserving: usize,
    /// How many of them are Admitted.
    pub n_admitted: usize,
}

impl LocalUsage {
    /// Adds a charge, or subtracts it. A saturated sum stays saturated (rules/02 §7).
    pub(super) fn count(&mut self, charge: &Charge, add: bool) {
        let Self { reserved, admitted, n_reserving, n_admitted } = self;
        count(reserved, n_reserving, charge, add);
        if charge.admitted {
            count(admitted, n_admitted, charge, add);
        }
    }
}

/// Adds a charge to a sum and a count, or subtracts it.
pub(super) fn count(usage: &mut Usage, n_workloads: &mut usize, charge: &Charge, add: bool) {
    *n_workloads = if add { *n_workloads + 1 } else { *n_workloads - 1 };
    for &(fr, amount) in &*charge.usage {
        let units = amount.get();
        usage.change(fr, |total| if add { total.plus_units(units) } else { total.minus_units(units) });
    }
}

impl State {
    /// Moves a workload to the queue of this ClusterQueue, or to none.
    pub(crate) fn set_queued_in(&mut self, id: WorkloadId, queue: Option<QueueId>) {
        let record = self.workloads.get_mut(id);
        let before = std::mem::replace(&mut record.row.queued_in, queue);
        if before == queue {
            return;
        }
        let local_queue = record.row.local_queue;
        let n_queued = &mut self.local_queues[local_queue].n_queued;
        *n_queued = *n_queued + usize::from(queue.is_some()) - usize::from(before.is_some());
        self.feeds.changed_queues.touch_local_queue(local_queue);
        for queue in before.into_iter().chain(queue) {
            self.feeds.changed_queues.touch_queue(queue);
        }
    }

    /// How many workloads wait in a LocalQueue, as in its status. Without a ClusterQueue it counts those that would
    /// enter one, as Kueue's queue manager does.
    #[must_use]
    pub fn n_pending_in(&self, id: LocalQueueId) -> usize {
        let record = &self.local_queues[id];
        if record.running().is_none() || record.queue.is_some_and(|queue| self.queues[queue].object.is_some()) {
            return record.n_queued;
        }
        let gates = self.config.gates;
        let would_wait = |id: &WorkloadId| {
            let workload = &self.workloads.get(*id).workload;
            is_admissible(workload, gates) && !is_parent(workload, gates) && !self.is_refused(*id)
        };
        record.workloads.iter().filter(would_wait).count()
    }
}
