//! The entries of a cycle and the classical order in which they are decided on (rules/05 §6.2).

use std::sync::Arc;

use crate::assign::Assignment;
use crate::base::amount::Amount;
use crate::base::gates::{Gate, Gates};
use crate::base::ids::{FlavorResourceId, QueueId, ShapeId, WorkloadId};
use crate::base::text::Text;
use crate::objects::Time;
use crate::preempt::Preemptor;
use crate::queue::RequeueReason;
use crate::quota::forest::{NodeId, TreeId};
use crate::quota::tree::Row;
use crate::workloads::charge::Target;

/// What became of an entry so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntryStatus {
    /// Nothing.
    #[default]
    NotNominated,
    /// About to be admitted.
    Nominated,
    /// Other entries were in the way.
    Skipped,
    /// Preemption is gated.
    PreemptionGated,
    /// Quota is reserved.
    Assumed,
}

/// A head of a cycle.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The workload.
    pub workload: WorkloadId,
    /// Its ClusterQueue.
    pub queue: QueueId,
    /// The node of the ClusterQueue.
    pub node: NodeId,
    /// Where its quota stands.
    pub tree: TreeId,
    /// Row of the ClusterQueue.
    pub row: Row,
    /// The assignment; `None` if it was not nominated.
    pub assignment: Option<Arc<Assignment>>,
    /// The workloads that it would preempt.
    pub targets: Vec<Target>,
    /// Its shape when it was nominated.
    pub shape: Option<ShapeId>,
    /// `AllocatableResourceGeneration` of its ClusterQueue when it was nominated.
    pub generation: i64,
    /// Does the next scan of flavors begin at the first again?
    pub starts_over: bool,
    /// Status.
    pub status: EntryStatus,
    /// The message of its condition.
    pub message: Text,
    /// The granular reason of its condition.
    pub reason: &'static str,
    /// Where it goes back to.
    pub requeue: RequeueReason,
    /// Is its status left alone?
    pub silent: bool,
    /// Has it gone while the cycle waited?
    pub is_gone: bool,
    /// Has its ClusterQueue?
    pub is_homeless: bool,
    /// Does it hold quota already (second pass)?
    pub has_reservation: bool,
    /// Does it wait for its own preemptions?
    pub is_preemptor: bool,
    /// Effective priority.
    pub priority: i64,
    /// Queue-order time.
    pub time: Time,
}

impl Entry {
    /// What it would take: nothing if it holds quota already.
    pub fn usage(&self) -> &[(FlavorResourceId, Amount)] {
        match &self.assignment {
            Some(assignment) if !self.has_reservation => &assignment.usage,
            _ => &[],
        }
    }

    /// The entry as the one that needs room.
    pub fn preemptor(&self) -> Preemptor {
        let Self { queue, node, tree, row, priority, time, .. } = *self;
        Preemptor { queue, node, tree, row, priority, time }
    }

    fn borrowing(&self) -> u32 {
        self.assignment.as_ref().map_or(0, |a| a.borrowing)
    }
}

/// Sorts entries for the classical order; ties stay in the order of the ClusterQueues' names (rules/05 §6.2).
pub fn sort_classical(entries: &mut [Entry], gates: Gates) {
    let preemptors_first = gates.enabled(Gate::PrioritizePreemptorWorkloads);
    let by_priority = gates.enabled(Gate::PrioritySortingWithinCohort);
    entries.sort_by_cached_key(|e| {
        (
            !e.has_reservation,
            preemptors_first && !e.is_preemptor,
            e.borrowing(),
            if by_priority { e.priority.saturating_neg() } else { 0 },
            e.time,
        )
    });
}
