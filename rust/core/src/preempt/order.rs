//! Which ClusterQueue a search with fair sharing takes from next (rules/04 §5.3).
//!
//! A victim changes the shares of its ClusterQueue and of the cohorts above it, each of which was first among its
//! siblings: so only the first child of a cohort must be updated.

use std::cmp::{Ordering, Reverse};
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeSet, BinaryHeap};

use super::candidates::Allowed;
use super::removals::Removed;
use super::{Preemptor, World};
use crate::base::changes::Change;
use crate::base::ids::WorkloadId;
use crate::quota::forest::NodeId;
use crate::quota::share::Share;
use crate::quota::tree::Tree;
use crate::state::records::Owner;
use crate::state::searches::{Spared, Tie};
use crate::workloads::charge::CandidateKey;

/// The order of candidates: workloads of other ClusterQueues before those of the preemptor's (rules/04 §3).
type Rank<'a> = (bool, bool, &'a CandidateKey);

/// A candidate with the ClusterQueue that it is in.
#[derive(Clone, Copy)]
pub(super) struct Victim<'a> {
    pub node: NodeId,
    pub key: &'a CandidateKey,
}

impl<'a> Victim<'a> {
    /// Removes it from the tree.
    pub(crate) fn take_out(&self, world: &World<'_>, tree: &mut Tree, reason: &'static str) -> Removed<'a> {
        let queue = world.queue_at(self.node).expect("victims are in ClusterQueues");
        Removed::take_out(tree, self.key, queue, world.row(self.node), reason)
    }
}

/// The victims of one ClusterQueue in order, evaluated lazily.
pub(super) struct Victims<'a> {
    node: NodeId,
    first: &'a CandidateKey,
    rest: Rest<'a>,
}

enum Rest<'a> {
    /// From the ClusterQueue's lists.
    Kept(Allowed<'a>),
    /// Skipped before.
    PassedOver(std::vec::IntoIter<&'a CandidateKey>),
}

impl<'a> Victims<'a> {
    /// `None` if there are none.
    pub fn kept(node: NodeId, mut all: Allowed<'a>) -> Option<Self> {
        Some(Self { node, first: all.next()?, rest: Rest::Kept(all) })
    }

    /// `None` if there are none.
    pub(crate) fn passed_over(node: NodeId, all: Vec<&'a CandidateKey>) -> Option<Self> {
        let mut all = all.into_iter();
        Some(Self { node, first: all.next()?, rest: Rest::PassedOver(all) })
    }

    fn next_of_rest(&mut self) -> Option<&'a CandidateKey> {
        match &mut self.rest {
            Rest::Kept(keys) => keys.next(),
            Rest::PassedOver(keys) => keys.next(),
        }
    }
}

/// A child of a cohort with possible victims. The greatest goes first: by share, then by place.
struct Entry<Place> {
    share: Share,
    place: Place,
    node: NodeId,
}

impl<Place: Ord> Ord for Entry<Place> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.share.compare(&other.share).then_with(|| self.place.cmp(&other.place))
    }
}

impl<Place: Ord> PartialOrd for Entry<Place> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<Place: Ord> PartialEq for Entry<Place> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<Place: Ord> Eq for Entry<Place> {}

/// The children of a cohort, without excluded ones.
struct Children<'a> {
    /// Among equals, the one with the earlier victim first.
    queues: BinaryHeap<Entry<Reverse<Rank<'a>>>>,
    /// Kueue takes the last of equals in undefined order; here it is the order of names.
    cohorts: BinaryHeap<Entry<usize>>,
}

/// The ClusterQueues with possible victims. Data of a node is at the index of its row.
pub(super) struct Order<'a> {
    world: &'a World<'a>,
    preemptor: &'a Preemptor,
    ancestors: BTreeSet<NodeId>,
    victims: Vec<Option<Victims<'a>>>,
    is_left_out: Vec<bool>,
    /// Is its entry among the children of its cohort out of date?
    is_stale: Vec<bool>,
    /// Only for visited cohorts.
    children: Vec<Option<Children<'a>>>,
    /// The choices between equal cohorts on the way to the last ClusterQueue; only with a recorder.
    ties: Vec<Tie>,
}

impl<'a> Order<'a> {
    pub fn new(world: &'a World<'a>, preemptor: &'a Preemptor, victims: Vec<Victims<'a>>) -> Self {
        let ancestors = world.forest.path(preemptor.node).skip(1).collect();
        let n_rows = world.forest.nodes_of(preemptor.tree).len();
        let mut by_row: Vec<Option<Victims<'a>>> = (0..n_rows).map(|_| None).collect();
        for of_queue in victims {
            let row = world.row(of_queue.node);
            by_row[row] = Some(of_queue);
        }
        let mut order = Order {
            world,
            preemptor,
            ancestors,
            victims: by_row,
            is_left_out: vec![false; n_rows],
            is_stale: vec![false; n_rows],
            children: Vec::new(),
            ties: Vec::new(),
        };
        order.forget_shares();
        order
    }

    fn forget_shares(&mut self) {
        self.children.clear();
        self.children.resize_with(self.victims.len(), || None);
    }

    fn first(&self, queue: NodeId) -> Option<&'a CandidateKey> {
        self.victims[self.world.row(queue)].as_ref().map(|victims| victims.first)
    }

    /// Takes the next victim of a ClusterQueue; the shares above it are about to change.
    pub fn pop(&mut self, queue: NodeId) -> Option<Victim<'a>> {
        let mut node = Some(queue);
        while let Some(above) = node {
            self.is_stale[self.world.row(above)] = true;
            node = self.world.forest.parent(above);
        }
        let slot = &mut self.victims[self.world.row(queue)];
        let victims = slot.as_mut()?;
        let key = victims.first;
        match victims.next_of_rest() {
            Some(next) => victims.first = next,
            None => *slot = None,
        }
        Some(Victim { node: queue, key })
    }

    /// Excludes a node.
    pub(crate) fn leave_out(&mut self, node: NodeId) {
        let row = self.world.row(node);
        self.is_left_out[row] = true;
        self.is_stale[row] = true;
    }

    fn is_left_out(&self, node: NodeId) -> bool {
        self.is_left_out[self.world.row(node)]
    }

    /// Records the choices between equal cohorts that led to a victim of the last ClusterQueue.
    pub(crate) fn record_ties(&self, victim: &Victim<'_>) {
        if let Some(recorder) = self.world.recorder.filter(|_| !self.ties.is_empty()) {
            recorder.choose(victim.key.id, &self.ties);
        }
    }

    /// The ClusterQueue to take from; between two calls the caller has taken a victim from it or excluded it.
    pub fn next(&mut self, tree: &Tree) -> Option<NodeId> {
        let own = self.preemptor.node;
        let Some(parent) = self.world.forest.parent(own) else {
            return (!self.is_left_out(own) && self.first(own).is_some()).then_some(own);
        };
        // If sums saturate, evaluating others may have changed any share.
        if tree.may_saturate() {
            self.forget_shares();
        }
        let root = self.world.forest.root(parent).expect("a preemptor is not below a cycle");
        while !self.is_left_out(root) {
            self.ties.clear();
            if let Some(queue) = self.descend(tree, root) {
                return Some(queue);
            }
        }
        None
    }

    /// Descends to the child with the greatest share, down to a ClusterQueue; `None` if it only excluded something.
    fn descend(&mut self, tree: &Tree, cohort: NodeId) -> Option<NodeId> {
        let row = self.world.row(cohort);
        let mut children = self.children[row].take().unwrap_or_else(|| self.children_of(tree, cohort));
        self.settle_front(&mut children.queues, |order, entry| order.queue_entry(tree, entry.node));
        self.settle_front(&mut children.cohorts, |order, entry| order.cohort_entry(tree, entry.node, entry.place));
        let (queue, below) = (children.queues.peek(), children.cohorts.peek());
        let is_queue = match (queue, below) {
            (Some(queue), Some(child)) => child.share.compare(&queue.share).is_lt(),
            (queue, _) => queue.is_some(),
        };
        if self.world.recorder.is_some() && !is_queue {
            let tie = below.and_then(|first| self.tie(tree, first, &children.cohorts));
            self.ties.extend(tie);
        }
        let (queue, below) = (queue.map(|entry| entry.node), below.map(|entry| entry.node));
        self.children[row] = Some(children);
        match below {
            _ if is_queue => queue,
            Some(child) => self.descend(tree, child),
            None => {
                self.leave_out(cohort);
                None
            }
        }
    }

    /// The other children with the share of the first one, if they have victims.
    fn tie(&self, tree: &Tree, first: &Entry<usize>, cohorts: &BinaryHeap<Entry<usize>>) -> Option<Tie> {
        let is_equal = |other: &&Entry<usize>| other.node != first.node && other.share.compare(&first.share).is_eq();
        let firsts =
            |cohort: NodeId| self.world.forest.queues_below(cohort).into_iter().filter_map(|it| self.next_of(tree, it));
        let mut equals: Vec<(usize, NodeId, Vec<_>)> = cohorts
            .iter()
            .filter(is_equal)
            .map(|other| (other.place, other.node, firsts(other.node).collect()))
            .filter(|(.., firsts): &(_, _, Vec<_>)| !firsts.is_empty())
            .collect();
        equals.sort_by_key(|&(place, ..)| place);
        let equals: Vec<_> = equals.into_iter().map(|(_, node, firsts)| (node, firsts)).collect();
        (!equals.is_empty()).then_some(Tie { node: first.node, equals })
    }

    /// The next victim of a ClusterQueue that may still be searched.
    fn next_of(&self, tree: &Tree, queue: NodeId) -> Option<WorkloadId> {
        let is_open = !self.is_left_out(queue) && self.world.forest.is_active(queue);
        let key = self.first(queue).filter(|_| is_open)?;
        let borrows = || self.borrows(&self.world.share(self.preemptor, tree, queue));
        (queue == self.preemptor.node || borrows()).then_some(key.id)
    }

    /// May a node be a source of victims, because it borrows?
    fn borrows(&self, share: &Share) -> bool {
        if self.world.config.changes.has(Change::BorrowingIsUsageAboveQuota) {
            share.is_borrowing()
        } else {
            // With nothing to lend the share is 0, whatever is borrowed.
            share.ratio != 0.0
        }
    }

    fn children_of(&mut self, tree: &Tree, cohort: NodeId) -> Children<'a> {
        let world = self.world;
        let queues = world.forest.child_queues(cohort).filter_map(|queue| self.queue_entry(tree, queue)).collect();
        let mut by_name: Vec<NodeId> = world.forest.child_cohorts(cohort).collect();
        by_name.sort_by_key(|child| match world.owners[*child] {
            Some(Owner::Cohort(id)) => world.names.cohorts[id].as_str(),
            _ => "",
        });
        let cohorts = by_name.into_iter().enumerate();
        let cohorts = cohorts.filter_map(|(place, child)| self.cohort_entry(tree, child, place)).collect();
        Children { queues, cohorts }
    }

    /// Updates the first entry.
    fn settle_front<Place: Ord>(
        &mut self,
        heap: &mut BinaryHeap<Entry<Place>>,
        entry_now: impl Fn(&mut Self, &Entry<Place>) -> Option<Entry<Place>>,
    ) {
        while let Some(mut front) = heap.peek_mut() {
            let row = self.world.row(front.node);
            if !std::mem::take(&mut self.is_stale[row]) {
                return;
            }
            match entry_now(self, &front) {
                Some(entry) => *front = entry,
                None => drop(PeekMut::pop(front)),
            }
        }
    }

    /// `None`: it is excluded, or not part of scheduling.
    fn queue_entry(&mut self, tree: &Tree, queue: NodeId) -> Option<Entry<Reverse<Rank<'a>>>> {
        if self.is_left_out(queue) || !self.world.forest.is_active(queue) {
            return None;
        }
        let is_own = queue == self.preemptor.node;
        if let Some(key) = self.first(queue) {
            let share = self.world.share(self.preemptor, tree, queue);
            if is_own || self.borrows(&share) {
                return Some(Entry { share, place: Reverse((key.not_evicted, is_own, key)), node: queue });
            }
        }
        self.leave_out(queue);
        None
    }

    /// `None`: it is excluded.
    fn cohort_entry(&mut self, tree: &Tree, cohort: NodeId, place: usize) -> Option<Entry<usize>> {
        if self.is_left_out(cohort) {
            return None;
        }
        let share = self.world.share(self.preemptor, tree, cohort);
        if self.borrows(&share) || self.ancestors.contains(&cohort) {
            return Some(Entry { share, place, node: cohort });
        }
        self.leave_out(cohort);
        self.record_shield(cohort);
        None
    }

    /// Records that a cohort within its quota protects the workloads below it.
    fn record_shield(&mut self, cohort: NodeId) {
        let Some(recorder) = self.world.recorder else { return };
        for queue in self.world.forest.queues_below(cohort) {
            while let Some(victim) = self.pop(queue) {
                recorder.pass(victim.key.id, Spared::CohortWithinNominal);
            }
        }
    }
}
