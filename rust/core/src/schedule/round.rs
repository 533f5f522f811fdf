//! The data of a cycle: its entries, and what they share until the cycle writes.

use std::collections::BTreeMap;

use crate::base::ids::{QueueId, WorkloadId};
use crate::base::shared::Shared;
use crate::base::sorted::Sorted;
use crate::objects::Admission;
use crate::objects::message::Message;
use crate::quota::forest::{Forest, TreeId};
use crate::quota::tree::Mark;
use crate::schedule::decision::Decision;
use crate::schedule::entry::Entry;
use crate::schedule::tournament::Tournament;
use crate::schedule::victims::Victims;
use crate::workloads::assigned::Assigned;
use crate::workloads::charge::Target;

/// The entries of a cycle, decided or not.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// Nominated heads.
    pub entries: Vec<Entry>,
    /// Heads that are blocked.
    pub not_nominated: Vec<Entry>,
    /// The undecided entries, in order.
    pub left: Sorted<usize>,
    /// Finds the next one with fair sharing.
    pub tournament: Tournament,
    /// Data shared by entries.
    pub cycle: Cycle,
}

/// How far a round has come.
pub(crate) enum Progress {
    /// It is finished.
    Done,
    /// To an entry that fits but has to wait until pods are ready, with the slice that it replaces.
    Waits { entry: usize, slice: Option<WorkloadId> },
}

/// The outcome of an entry.
pub(crate) enum Fitting {
    /// It is decided.
    Decided,
    /// It fits, and waits until pods are ready; with the slice that it replaces.
    Waits(Option<WorkloadId>),
}

/// A quota reservation that is not written yet.
#[derive(Clone, Debug)]
pub(crate) struct Assumed {
    pub workload: WorkloadId,
    pub queue: QueueId,
    /// Did it hold quota before?
    pub had_quota: bool,
    /// Was it preempted earlier in the cycle, when it came for a second pass?
    pub is_victim: bool,
    /// Is it preempted later in the cycle? That write starts from its state before the cycle.
    pub is_overwritten: bool,
    pub admission: Shared<Admission>,
    pub assigned: Assigned,
}

/// Data shared by the entries of a cycle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cycle {
    /// Trees with trial usage, and the state to roll back to.
    pub marks: BTreeMap<TreeId, Mark>,
    pub decision: Decision,
    /// Quota reservations, to charge once the trial usage is rolled back.
    pub assumed: Vec<Assumed>,
    /// Slices that end with their replacement: old and new.
    pub replaced: Vec<(WorkloadId, WorkloadId)>,
    /// Preemptions, to write at the end: target and preemptor.
    pub preemptions: Vec<(Target, WorkloadId, QueueId)>,
    /// Workloads to evict at the end because their hosts have failed.
    pub evictions: Vec<Eviction>,
    /// Variants to evict at the end: the running one, and the one for a preferred flavor.
    pub migrations: Vec<(WorkloadId, WorkloadId)>,
    /// The victims so far.
    pub victims: Victims,
}

/// A workload evicted because its hosts have failed.
#[derive(Clone, Debug)]
pub(crate) struct Eviction {
    pub workload: WorkloadId,
    /// Why there is no alternative.
    pub unwritten: Message,
    /// Was it preempted earlier in the cycle?
    pub is_victim: bool,
}

impl Cycle {
    /// Is a workload a victim so far?
    pub(crate) fn preempts(&self, workload: WorkloadId) -> bool {
        self.preemptions.iter().any(|(target, ..)| target.workload == workload)
    }

    /// Changes of a tree from now on are undone at the end of the cycle.
    pub(crate) fn mark(&mut self, forest: &mut Forest, tree: TreeId) {
        self.marks.entry(tree).or_insert_with(|| forest.tree_mut(tree).mark());
    }
}
