//! What a cycle has in hand: its entries, and what these share until the cycle writes.

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

/// The entries of a cycle, decided on and not.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// Nominated heads.
    pub entries: Vec<Entry>,
    /// Heads with something in their way.
    pub not_nominated: Vec<Entry>,
    /// The entries that are not decided on yet, once they are in order.
    pub left: Sorted<usize>,
    /// Who of them goes first with fair sharing.
    pub tournament: Tournament,
    /// What they share.
    pub cycle: Cycle,
}

/// How far a round has come.
pub(crate) enum Progress {
    /// To its end.
    Done,
    /// To an entry that fits but has to wait until pods are ready, with the slice that it replaces.
    Waits { entry: usize, slice: Option<WorkloadId> },
}

/// What became of an entry.
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
    pub admission: Shared<Admission>,
    pub assigned: Assigned,
}

/// What the entries of a cycle share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cycle {
    /// Trees whose usage was tried out, with the state to go back to.
    pub marks: BTreeMap<TreeId, Mark>,
    pub decision: Decision,
    /// Quota reservations, to charge once the trial usage is rolled back.
    pub assumed: Vec<Assumed>,
    /// Slices that their replacements end: old and new.
    pub replaced: Vec<(WorkloadId, WorkloadId)>,
    /// Preemptions, to write at the end: target and preemptor.
    pub preemptions: Vec<(Target, WorkloadId, QueueId)>,
    /// Workloads to evict at the end, as their hosts have failed.
    pub evictions: Vec<Eviction>,
    /// Variants to evict at the end: the one that runs, and the one for a preferred flavor.
    pub migrations: Vec<(WorkloadId, WorkloadId)>,
    /// The victims of the entries so far.
    pub victims: Victims,
}

/// A workload that is evicted, as its hosts have failed.
#[derive(Clone, Debug)]
pub(crate) struct Eviction {
    pub workload: WorkloadId,
    /// Why nothing else will do.
    pub unwritten: Message,
    /// Was it preempted earlier in the cycle?
    pub is_victim: bool,
}

impl Cycle {
    /// Is a workload a victim of an entry so far?
    pub(crate) fn preempts(&self, workload: WorkloadId) -> bool {
        self.preemptions.iter().any(|(target, ..)| target.workload == workload)
    }

    /// What happens to a tree from now on is undone at the end of the cycle.
    pub(crate) fn mark(&mut self, forest: &mut Forest, tree: TreeId) {
        self.marks.entry(tree).or_insert_with(|| forest.tree_mut(tree).mark());
    }
}
