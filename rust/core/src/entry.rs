//! The entries of a cycle and the order in which they are decided on (rules/05 §6.2, §6.3).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::amount::Amount;
use crate::assign::Assignment;
use crate::forest::{Forest, NodeId, TreeId};
use crate::gates::{Gate, Gates};
use crate::ids::{FlavorResourceId, QueueId, ShapeId, WorkloadId};
use crate::objects::Time;
use crate::pending::RequeueReason;
use crate::preempt::{Preemptor, Target};
use crate::share::Share;
use crate::text::Text;
use crate::tree::Row;

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
    pub fn usage(&self) -> Vec<(FlavorResourceId, Amount)> {
        match &self.assignment {
            Some(assignment) if !self.has_reservation => assignment.usage.iter().map(|(f, a)| (*f, *a)).collect(),
            _ => Vec::new(),
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
    entries.sort_by_key(|e| {
        (
            !e.has_reservation,
            preemptors_first && !e.is_preemptor,
            e.borrowing(),
            if by_priority { e.priority.saturating_neg() } else { 0 },
            e.time,
        )
    });
}

/// The fair-sharing tournament over the entries that are left (rules/05 §6.3).
pub struct Tournament<'a> {
    /// Quota and usage; changed for a moment while shares are worked out.
    pub forest: &'a mut Forest,
    /// Feature gates.
    pub gates: Gates,
}

/// What decides between entries at one cohort.
struct Standing {
    share: Share,
    borrows_what_it_asks_for: bool,
}

impl Tournament<'_> {
    /// Index of the entry to decide on next. `left` are the indexes of the entries that are left, one per ClusterQueue.
    pub fn next(&mut self, entries: &[Entry], left: &[usize]) -> usize {
        let first = left[0];
        let Some(parent) = self.forest.parent(entries[first].node) else { return first };
        let root = self.forest.root(parent).expect("entries are not below a cycle");
        let of_tree: BTreeMap<NodeId, usize> =
            left.iter().filter(|&&i| entries[i].tree == entries[first].tree).map(|&i| (entries[i].node, i)).collect();
        let mut standings = BTreeMap::new();
        for &index in of_tree.values() {
            self.stand(&entries[index], index, &mut standings);
        }
        self.winner(root, entries, &of_tree, &standings).expect("the tree of an entry has one")
    }

    /// Shares of the nodes on the path of an entry, with its usage added.
    fn stand(&mut self, entry: &Entry, index: usize, standings: &mut BTreeMap<(NodeId, usize), Standing>) {
        let usage = entry.usage();
        let tree = self.forest.tree_mut(entry.tree);
        let mark = tree.mark();
        let mut requested = Vec::new();
        for (fr, amount) in usage {
            if let Some(column) = tree.column(fr) {
                tree.add_usage(entry.row, column, amount);
                if amount > Amount::ZERO {
                    requested.push(column);
                }
            }
        }
        let mut child = entry.node;
        while let Some(parent) = self.forest.parent(child) {
            let (_, row) = self.forest.locate(child);
            let resources = self.forest.resources_of(entry.tree);
            let share = self.forest.tree(entry.tree).share(row, self.forest.weight(child), resources, &[]);
            let borrows_what_it_asks_for = share.borrows_any_of(&requested);
            standings.insert((parent, index), Standing { share, borrows_what_it_asks_for });
            child = parent;
        }
        let tree = self.forest.tree_mut(entry.tree);
        if !tree.has_saturated() {
            return tree.rollback(mark);
        }
        tree.keep(mark);
        for (fr, amount) in entry.usage() {
            if let Some(column) = tree.column(fr) {
                tree.remove_usage(entry.row, column, amount);
            }
        }
    }

    fn winner(
        &self,
        cohort: NodeId,
        entries: &[Entry],
        of_tree: &BTreeMap<NodeId, usize>,
        standings: &BTreeMap<(NodeId, usize), Standing>,
    ) -> Option<usize> {
        let from_cohorts =
            self.forest.child_cohorts(cohort).filter_map(|c| self.winner(c, entries, of_tree, standings));
        let from_queues = self.forest.child_queues(cohort).filter_map(|q| of_tree.get(&q).copied());
        from_cohorts.chain(from_queues).reduce(|best, current| {
            if self.goes_before(current, best, cohort, entries, standings) { current } else { best }
        })
    }

    fn goes_before(
        &self,
        a: usize,
        b: usize,
        cohort: NodeId,
        entries: &[Entry],
        standings: &BTreeMap<(NodeId, usize), Standing>,
    ) -> bool {
        let (first, second) = (&entries[a], &entries[b]);
        if self.gates.enabled(Gate::PrioritizePreemptorWorkloads) && first.is_preemptor != second.is_preemptor {
            return first.is_preemptor;
        }
        let (x, y) = (&standings[&(cohort, a)], &standings[&(cohort, b)]);
        if self.gates.enabled(Gate::FairSharingPrioritizeNonBorrowing)
            && x.borrows_what_it_asks_for != y.borrows_what_it_asks_for
        {
            return y.borrows_what_it_asks_for;
        }
        let by_share = x.share.compare(&y.share);
        if by_share.is_ne() {
            return by_share.is_lt();
        }
        if self.gates.enabled(Gate::PrioritySortingWithinCohort) && first.priority != second.priority {
            return first.priority > second.priority;
        }
        // Kueue leaves a full tie open; entries stand in the order of their ClusterQueues' names.
        (first.time, a) < (second.time, b)
    }
}
