//! Why and how heads return to their queues.

use crate::objects::QueueingStrategy;

/// Why a workload returns to its queue (rules/05 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequeueReason {
    /// Not nominated for another reason.
    #[default]
    Generic,
    /// The namespace selector does not match.
    NamespaceMismatch,
    /// The assignment is NoFit.
    NoFit,
    /// Needs preemption, but no workload may be preempted.
    PreemptionNoCandidates,
    /// Needs preemption, which is gated.
    PreemptionGated,
    /// Waits for its victims.
    PendingPreemption,
    /// Waits for a migration (concurrent admission).
    PendingMigration,
    /// All evictions failed.
    PreemptionFailed,
    /// Was nominated, but not admitted.
    FailedAfterNomination,
}

impl RequeueReason {
    /// Does the workload go straight back to the heap?
    pub(super) fn is_immediate(self, strategy: QueueingStrategy) -> bool {
        match strategy {
            // A head that does not fit blocks its ClusterQueue, but one from an unselected namespace does not
            // (rules/05 §3).
            QueueingStrategy::StrictFIFO => self != RequeueReason::NamespaceMismatch,
            QueueingStrategy::BestEffortFIFO => matches!(
                self,
                RequeueReason::FailedAfterNomination
                    | RequeueReason::PendingPreemption
                    | RequeueReason::PendingMigration
                    | RequeueReason::PreemptionFailed
            ),
        }
    }

    /// Does such a failure apply to every workload of the same shape (rules/05 §4)?
    pub(super) fn holds_for_shape(self) -> bool {
        matches!(self, RequeueReason::NoFit | RequeueReason::PreemptionNoCandidates)
    }

    /// Does the workload now wait as a preemptor (rules/05 §5)?
    pub(super) fn makes_preemptor(self) -> bool {
        matches!(self, RequeueReason::PendingPreemption | RequeueReason::PendingMigration)
    }
}

/// How a head returns to its queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Returned {
    pub reason: RequeueReason,
    /// The reason in its status, and in those of its shape that are parked with it.
    pub status_reason: &'static str,
    /// Has its flavor scan not ended?
    pub pending_flavors: bool,
    /// The generation of the object when it was popped.
    pub generation: i64,
    /// Are others of its shape parked with it?
    pub hashing: bool,
    /// Are they so after every failure, not only if nothing of that shape can be admitted?
    pub any_failure_counts: bool,
    /// Is it noted as the preemptor of a StrictFIFO queue, too?
    pub strict_queues_note: bool,
    /// Is it no longer the preemptor, unless it waits for victims?
    pub ends_stickiness: bool,
}
