//! The order of entries with fair sharing: a tournament for each decision (rules/05 §6.3).
//!
//! A cohort knows its contenders: the entries of its ClusterQueues, and the winner of each child cohort. A contender's
//! share there depends only on the contender's own branch below the cohort. So a decision changes only the path of its
//! entry.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::base::amount::Amount;
use crate::base::gates::{Gate, Gates};
use crate::base::sorted::Sorted;
use crate::objects::Time;
use crate::quota::forest::{Forest, NodeId, TreeId};
use crate::quota::share::Share;
use crate::quota::tree::{Column, Row, Tree};
use crate::schedule::entry::Entry;

/// The tournaments of a cycle, tree by tree.
#[derive(Clone, Debug, Default)]
pub struct Tournament {
    contests: BTreeMap<TreeId, Contest>,
}

/// The remaining entries of one tree.
#[derive(Clone, Debug, Default)]
struct Contest {
    /// By node.
    left: BTreeMap<NodeId, usize>,
    /// The contenders in a cohort, by row; empty before the first evaluation.
    contenders: BTreeMap<Row, BinaryHeap<Contender>>,
    /// The cohort of the last entry taken, which is still first on its path.
    taken_from: Option<Row>,
}

/// What decides between entries at one cohort: the share of the child on their path, with their usage.
#[derive(Clone, Debug)]
struct Standing {
    share: Share,
    borrows_what_it_asks_for: bool,
}

/// An entry at one cohort, with the criteria that the gates enable.
#[derive(Clone, Debug)]
struct Contender {
    entry: usize,
    is_preemptor: bool,
    borrows: bool,
    share: Share,
    priority: i64,
    time: Time,
}

/// An entry on its way up its path.
#[derive(Debug)]
struct Ascent {
    entry: usize,
    /// Its current node.
    row: Row,
    /// What its usage adds at this node.
    added: SmallVec<[(Column, Amount); 4]>,
    requested: SmallVec<[Column; 4]>,
}

impl Tournament {
    /// Takes the index of the next entry to decide on, from those that are `left`, one per ClusterQueue. Shares are
    /// computed with temporary changes of `forest`, which must include what earlier entries have taken.
    pub fn next(&mut self, forest: &mut Forest, gates: Gates, entries: &[Entry], left: &Sorted<usize>) -> usize {
        let first = *left.first().expect("somebody is left");
        let tree = entries[first].tree;
        if forest.tree(tree).parent(entries[first].row).is_none() {
            return first;
        }
        if self.contests.is_empty() {
            for &index in left {
                let entry = &entries[index];
                self.contests.entry(entry.tree).or_default().left.insert(entry.node, index);
            }
        }
        let contest = self.contests.get_mut(&tree).expect("whoever is left takes part");
        contest.settle(forest, gates, entries, tree);
        contest.take_winner(forest, entries)
    }
}

impl Tournament {
    /// Another entry takes part from now on, whose ClusterQueue has none that is left.
    pub(super) fn join(&mut self, entry: &Entry, index: usize) {
        // Without a contest, whoever is left is found when the first one is needed.
        if let Some(contest) = self.contests.get_mut(&entry.tree) {
            contest.left.insert(entry.node, index);
            contest.contenders.clear();
            contest.taken_from = None;
        }
    }
}

impl Contest {
    /// Computes what is missing.
    fn settle(&mut self, forest: &mut Forest, gates: Gates, entries: &[Entry], tree: TreeId) {
        let taken_from = self.taken_from.take();
        // If sums saturate, each evaluation changes something, and thereby the next one.
        if self.contenders.is_empty() || forest.tree(tree).may_saturate() {
            self.line_up(forest, gates, entries, tree);
        } else if let Some(cohort) = taken_from {
            self.follow(cohort, forest, gates, entries, tree);
        }
    }

    /// Evaluates all remaining entries one by one, and lets them contend from the lowest cohorts upwards. Each
    /// evaluation covers all cohorts above, since later ones may leave traces there.
    fn line_up(&mut self, forest: &mut Forest, gates: Gates, entries: &[Entry], tree: TreeId) {
        self.contenders.clear();
        let mut further_up = FxHashMap::default();
        for &index in self.left.values() {
            let entry = &entries[index];
            let mut standings = Ascent::new(index, entry, forest).standings(forest, tree).into_iter();
            leave_trace(forest, entry);
            let standing = standings.next().expect("an entry stands in the cohort of its ClusterQueue");
            let cohort = forest.tree(tree).parent(entry.row).expect("a ClusterQueue of a cohort");
            let contender = Contender::new(index, entry, standing, gates);
            self.contenders.entry(cohort).or_default().push(contender);
            if standings.len() > 0 {
                further_up.insert(index, standings);
            }
        }
        // Children have later rows than their parents.
        let mut row = Row::MAX;
        while let Some((&cohort, contenders)) = self.contenders.range(..row).next_back() {
            row = cohort;
            let Some(parent) = forest.tree(tree).parent(cohort) else { break };
            let winner = contenders.peek().expect("somebody contends").entry;
            let standing =
                further_up.get_mut(&winner).and_then(Iterator::next).expect("it stands at each cohort above");
            let contender = Contender::new(winner, &entries[winner], standing, gates);
            self.contenders.entry(parent).or_default().push(contender);
        }
    }

    /// Finds new winners for the cohorts from this one up, in which the decided entry was the winner. No changes of
    /// usage are needed: what could be added once without a loss can be added again (see [`Tree::may_saturate`]).
    fn follow(&mut self, from: Row, forest: &Forest, gates: Gates, entries: &[Entry], tree: TreeId) {
        let parent = |cohort| forest.tree(tree).parent(cohort);
        let mut cohort = Some(from);
        while let Some(row) = cohort {
            self.contenders.get_mut(&row).expect("it won here").pop();
            cohort = parent(row);
        }
        // A winner continues from its current node.
        let mut last: Option<Ascent> = None;
        let mut cohort = from;
        while let Some(above) = parent(cohort) {
            if let Some(winner) = self.winner(cohort) {
                let same = last.take().filter(|ascent| ascent.entry == winner);
                let mut ascent = same.unwrap_or_else(|| Ascent::new(winner, &entries[winner], forest));
                ascent.rise_to(cohort, forest.tree(tree));
                let contender = Contender::new(winner, &entries[winner], ascent.standing(forest, tree), gates);
                self.contenders.get_mut(&above).expect("another one has won here").push(contender);
                last = Some(ascent);
            }
            cohort = above;
        }
    }

    fn winner(&self, cohort: Row) -> Option<usize> {
        self.contenders[&cohort].peek().map(|contender| contender.entry)
    }

    fn take_winner(&mut self, forest: &Forest, entries: &[Entry]) -> usize {
        let (_, root) = self.contenders.first_key_value().expect("the tree of an entry has a root");
        let winner = root.peek().expect("whoever is left contends").entry;
        let entry = &entries[winner];
        self.left.remove(&entry.node);
        self.taken_from = forest.tree(entry.tree).parent(entry.row);
        winner
    }
}

/// Adds the usage of an entry and removes it again. If sums saturate, that leaves a trace.
fn leave_trace(forest: &mut Forest, entry: &Entry) {
    let tree = forest.tree_mut(entry.tree);
    let mark = tree.mark();
    tree.add_all(entry.row, entry.usage());
    if !tree.has_saturated() {
        tree.rollback(mark);
        return;
    }
    tree.keep(mark);
    tree.remove_all(entry.row, entry.usage());
}

impl Ascent {
    fn new(index: usize, entry: &Entry, forest: &Forest) -> Self {
        let tree = forest.tree(entry.tree);
        let added = entry.usage().iter().filter_map(|&(fr, amount)| Some((tree.column(fr)?, amount)));
        let added: SmallVec<[(Column, Amount); 4]> = added.collect();
        let requested = added.iter().filter(|(_, amount)| *amount > Amount::ZERO).map(|(column, _)| *column).collect();
        Self { entry: index, row: entry.row, added, requested }
    }

    /// Goes up to a node on the path, as [`Tree::add_usage`] does.
    fn rise_to(&mut self, row: Row, tree: &Tree) {
        while self.row != row {
            for (column, amount) in &mut self.added {
                *amount = tree.past_local(self.row, *column, *amount).unwrap_or(Amount::ZERO);
            }
            self.row = tree.parent(self.row).expect("the node is on the path");
        }
    }

    /// The entry's standing at the parent of its current node.
    fn standing(&self, forest: &Forest, tree: TreeId) -> Standing {
        let weight = forest.weight(forest.nodes_of(tree)[self.row]);
        let share = forest.tree(tree).share(self.row, weight, forest.resources_of(tree), &self.added);
        let borrows_what_it_asks_for = share.borrows_any_of(&self.requested);
        Standing { share, borrows_what_it_asks_for }
    }

    /// Its standing at each cohort above, from below.
    fn standings(mut self, forest: &Forest, tree_id: TreeId) -> Vec<Standing> {
        let tree = forest.tree(tree_id);
        let mut standings = Vec::new();
        while let Some(parent) = tree.parent(self.row) {
            standings.push(self.standing(forest, tree_id));
            self.rise_to(parent, tree);
        }
        standings
    }
}

impl Contender {
    fn new(index: usize, entry: &Entry, standing: Standing, gates: Gates) -> Self {
        let Standing { share, borrows_what_it_asks_for } = standing;
        Self {
            entry: index,
            is_preemptor: entry.is_preemptor && gates.enabled(Gate::PrioritizePreemptorWorkloads),
            // Borrowing of resources that the entry does not request does not count (rules/05 §6.3 step
            // 3b).
            borrows: borrows_what_it_asks_for && gates.enabled(Gate::FairSharingPrioritizeNonBorrowing),
            share,
            priority: if gates.enabled(Gate::PrioritySortingWithinCohort) { entry.priority } else { 0 },
            time: entry.time,
        }
    }
}

impl Ord for Contender {
    /// The greatest goes first; no two are equal.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_borrowing = || other.borrows.cmp(&self.borrows);
        let by_share = || other.share.compare(&self.share);
        let by_priority = || self.priority.cmp(&other.priority);
        // Kueue does not define the order of a full tie; here it is the order of the entries.
        let by_time = || (other.time, other.entry).cmp(&(self.time, self.entry));
        let by_preemption = self.is_preemptor.cmp(&other.is_preemptor);
        by_preemption.then_with(by_borrowing).then_with(by_share).then_with(by_priority).then_with(by_time)
    }
}

impl PartialOrd for Contender {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Contender {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Contender {}

#[cfg(test)]
mod tests;
