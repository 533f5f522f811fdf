//! The entries of a cycle, and their outcomes (rules/05 §6.4).

use std::sync::Arc;

use crate::assign::{Assignment, NoFitReason};
use crate::base::amount::Amount;
use crate::base::ids::{FlavorResourceId, QueueId, ShapeId, WorkloadId};
use crate::objects::Time;
use crate::objects::message::Message;
use crate::preempt::Preemptor;
use crate::queue::RequeueReason;
use crate::quota::forest::{NodeId, TreeId};
use crate::quota::tree::Row;
use crate::state::verdicts::Verdict;
use crate::status::{messages, reasons};
use crate::topology::sites::Stand;
use crate::workloads::charge::Target;

/// The outcome of an entry so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntryStatus {
    #[default]
    NotNominated,
    /// About to be admitted.
    Nominated,
    /// Blocked by other entries.
    Skipped,
    /// Preemption is gated.
    PreemptionGated,
    /// Quota is reserved.
    Assumed,
    /// It loses its quota: there is no replacement for a failed host.
    Evicted,
}

/// A head of a cycle.
#[derive(Clone, Debug)]
pub struct Entry {
    pub workload: WorkloadId,
    /// Its ClusterQueue.
    pub queue: QueueId,
    /// The node of the ClusterQueue.
    pub node: NodeId,
    /// The tree with its quota.
    pub tree: TreeId,
    /// Row of the ClusterQueue.
    pub row: Row,
    /// The assignment; `None` if it was not nominated.
    pub assignment: Option<Arc<Assignment>>,
    /// The workloads that it would preempt.
    pub targets: Vec<Target>,
    /// What its assignment takes from nodes beyond what it already has.
    pub stands: Vec<Stand>,
    /// Its shape when it was nominated.
    pub shape: Option<ShapeId>,
    /// `AllocatableResourceGeneration` of its ClusterQueue when it was nominated.
    pub generation: i64,
    /// Does its next flavor scan start at the first flavor?
    pub starts_over: bool,
    pub status: EntryStatus,
    /// The message of its condition.
    pub message: Message,
    /// The granular reason of its condition.
    pub reason: &'static str,
    /// Where it goes back to.
    pub requeue: RequeueReason,
    /// Is its status left alone?
    pub silent: bool,
    /// Was it deleted while the cycle waited?
    pub is_gone: bool,
    /// Was its ClusterQueue deleted?
    pub is_homeless: bool,
    /// Does it hold quota already (second pass)?
    pub has_reservation: bool,
    /// How many second passes it has had; `None`: it is the head of its queue.
    pub second_pass: Option<u32>,
    /// Does it wait for its own preemptions?
    pub is_preemptor: bool,
    /// Effective priority.
    pub priority: i64,
    /// Queue timestamp.
    pub time: Time,
}

impl Entry {
    /// What it would take: nothing if it already holds quota.
    pub fn usage(&self) -> &[(FlavorResourceId, Amount)] {
        match &self.assignment {
            Some(assignment) if !self.has_reservation => &assignment.usage,
            _ => &[],
        }
    }

    /// The entry as a preemptor.
    pub fn preemptor(&self) -> Preemptor {
        let Self { queue, node, tree, row, priority, time, has_reservation, .. } = *self;
        Preemptor { queue, node, tree, row, priority, time, has_reservation }
    }

    /// The borrowing level of its assignment.
    pub(crate) fn borrowing(&self) -> u32 {
        self.assignment.as_ref().map_or(0, |a| a.borrowing)
    }
}

/// Why a head is not nominated.
#[derive(Clone, Debug)]
pub(crate) struct Obstacle {
    /// The granular reason of its condition.
    pub reason: &'static str,
    /// The message of its condition.
    pub message: Message,
    /// Where it goes back to.
    pub requeue: RequeueReason,
}

/// The outcomes of an entry. Steps refer to rules/05 §6.4.
impl Entry {
    /// It is not nominated (rules/05 §6.1).
    pub(crate) fn refuse(&mut self, obstacle: Obstacle) {
        self.reason = obstacle.reason;
        self.message = obstacle.message;
        self.requeue = obstacle.requeue;
    }

    /// The decision depends on something unknown here, so nothing is written.
    pub(crate) fn leave_undecided(&mut self) {
        self.silent = true;
    }

    /// It takes part, with these flavors, targets and node usage.
    pub(crate) fn nominate(&mut self, verdict: Verdict, stands: Vec<Stand>) {
        let Verdict { assignment, targets, message } = verdict;
        self.stands = stands;
        self.assignment = Some(assignment);
        self.targets = targets;
        self.message = message;
    }

    /// Step 1: a variant for a preferred flavor is admitted.
    pub(crate) fn stand_back(&mut self) {
        self.status = EntryStatus::Skipped;
        self.reason = reasons::PENDING_EVALUATION;
        self.message = messages::PREFERRED_VARIANT_ADMITTED.into();
    }

    /// Step 3: it fits nowhere, even with preemptions.
    pub(crate) fn fail_to_fit(&mut self, reason: NoFitReason) {
        self.requeue = RequeueReason::NoFit;
        self.reason = reason.as_str();
    }

    /// Step 4: no workload may be preempted for it.
    pub(crate) fn find_no_targets(&mut self) {
        self.requeue = RequeueReason::PreemptionNoCandidates;
        self.reason = reasons::WAITING_FOR_QUOTA;
    }

    /// Step 5: it would preempt, but a gate is closed.
    pub(crate) fn stop_at_gate(&mut self) {
        self.status = EntryStatus::PreemptionGated;
        self.message = messages::PREEMPTION_GATED.into();
        self.reason = reasons::ADMISSION_GATED;
        self.requeue = RequeueReason::PreemptionGated;
        self.starts_over = true;
    }

    /// Step 6: it fits once the victims of other entries are gone.
    pub(crate) fn wait_for_victims_of_others(&mut self) {
        self.message = messages::FITS_AFTER_PREEMPTIONS.into();
        self.wait_for_preemptions(RequeueReason::PendingPreemption);
    }

    /// It has joined the cycle as it ran, and does not fit by itself.
    pub(crate) fn wait_for_next_cycle(&mut self) {
        self.requeue = RequeueReason::FailedAfterNomination;
        self.reason = reasons::WAITING_FOR_QUOTA;
    }

    /// Steps 7 and 8: other entries block it.
    pub(crate) fn skip(&mut self, message: &'static str) {
        self.status = EntryStatus::Skipped;
        self.message = message.into();
        self.reason = reasons::WAITING_FOR_QUOTA;
    }

    /// Step 10: it fits once its targets are gone.
    pub(crate) fn wait_for_targets(&mut self) {
        self.message = Message::PendingPreemptions(Arc::new(std::mem::take(&mut self.message)), self.targets.len());
        self.wait_for_preemptions(RequeueReason::PendingPreemption);
    }

    /// Step 11: it fits, and the pods of others are not ready yet.
    pub(crate) fn wait_for_pods(&mut self) {
        self.reason = reasons::WAITING_FOR_PODS_READY;
        self.message = messages::WAITING_FOR_PODS_READY.into();
    }

    /// Step 12: it has quota.
    pub(crate) fn assume(&mut self) {
        self.status = EntryStatus::Assumed;
    }

    /// There is no replacement for a failed host (rules/08 §11.7).
    pub(crate) fn evict(&mut self) {
        self.status = EntryStatus::Evicted;
    }

    /// It would get quota, but it or its ClusterQueue was deleted while the cycle waited.
    pub(crate) fn come_too_late(&mut self) {
        self.status = EntryStatus::Nominated;
    }

    /// It fits, but a variant for a less preferred flavor runs, and the ClusterQueue lets that stay.
    pub(crate) fn leave_sibling_running(&mut self) {
        self.reason = reasons::PENDING_EVALUATION;
        self.message = messages::BELOW_LAST_ACCEPTABLE_FLAVOR.into();
    }

    /// It fits, and replaces a variant for a less preferred flavor once that has stopped.
    pub(crate) fn wait_for_migration(&mut self) {
        self.message = Message::PendingMigration(Arc::new(std::mem::take(&mut self.message)));
        self.wait_for_preemptions(RequeueReason::PendingMigration);
    }

    fn wait_for_preemptions(&mut self, requeue: RequeueReason) {
        self.reason = reasons::WAITING_FOR_PREEMPTED_WORKLOADS;
        self.requeue = requeue;
        self.starts_over = true;
    }
}
