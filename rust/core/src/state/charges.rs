//! What workloads take and give back of the quota of ClusterQueues, for whoever follows it.

use crate::base::ids::{QueueId, WorkloadId};
use crate::workloads::assigned::Charged;

/// A workload has taken quota, or given it back.
#[derive(Clone, Debug)]
pub struct ChargeChange {
    /// The workload.
    pub workload: WorkloadId,
    /// Whose quota.
    pub queue: QueueId,
    /// How much.
    pub usage: Charged,
    /// Was it taken?
    pub adds: bool,
}

/// The changes since the last look; empty as long as nobody follows them.
#[derive(Clone, Debug, Default)]
pub struct ChargeLog {
    changes: Option<Vec<ChargeChange>>,
}

impl ChargeLog {
    /// Has somebody follow the changes from now on.
    pub fn follow(&mut self) {
        self.changes.get_or_insert_default();
    }

    /// Takes out the changes since the last call.
    pub fn take(&mut self) -> Vec<ChargeChange> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes a change.
    pub(crate) fn note(&mut self, workload: WorkloadId, queue: QueueId, usage: &Charged, adds: bool) {
        let Some(changes) = &mut self.changes else { return };
        // A new condition takes a workload out and puts it in again, which changes no usage.
        let undoes = |last: &ChargeChange| {
            adds && !last.adds && last.workload == workload && last.queue == queue && last.usage == *usage
        };
        if changes.last().is_some_and(undoes) {
            changes.pop();
        } else {
            changes.push(ChargeChange { workload, queue, usage: usage.clone(), adds });
        }
    }
}
