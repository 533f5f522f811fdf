//! A log of quota that workloads take and release, for callers that follow it.

use crate::base::ids::{QueueId, WorkloadId};
use crate::snapshot::{Damage, Reader, Stored, Writer, stored};
use crate::workloads::assigned::Charged;

/// A workload has taken or released quota.
#[derive(Clone, Debug)]
pub struct ChargeChange {
    pub workload: WorkloadId,
    /// Whose quota.
    pub queue: QueueId,
    /// How much.
    pub usage: Charged,
    /// Was it taken?
    pub adds: bool,
}

/// The changes since the last call; empty unless followed.
#[derive(Clone, Debug, Default)]
pub struct ChargeLog {
    changes: Option<Vec<ChargeChange>>,
}

stored!(struct ChargeLog { changes });

/// The workload may be gone.
impl Stored for ChargeChange {
    fn write_to(&self, out: &mut Writer<'_>) {
        let Self { workload, queue, usage, adds } = self;
        workload.0.write_to(out);
        queue.write_to(out);
        usage.write_to(out);
        adds.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let workload = WorkloadId(Stored::read_from(from)?);
        Ok(Self {
            workload,
            queue: Stored::read_from(from)?,
            usage: Stored::read_from(from)?,
            adds: Stored::read_from(from)?,
        })
    }
}

impl ChargeLog {
    /// Starts recording.
    pub fn follow(&mut self) {
        self.changes.get_or_insert_default();
    }

    /// Takes the changes since the last call.
    pub fn take(&mut self) -> Vec<ChargeChange> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Records a change.
    pub(crate) fn note(&mut self, workload: WorkloadId, queue: QueueId, usage: &Charged, adds: bool) {
        let Some(changes) = &mut self.changes else { return };
        // A new condition removes a workload and adds it again, which changes no usage.
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
