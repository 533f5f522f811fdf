//! The order of entries with fair sharing: a tournament for each decision (rules/05 §6.3).
//!
//! Shares are worked out again only of those that the last decision may have changed.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use crate::base::amount::Amount;
use crate::base::gates::{Gate, Gates};
use crate::quota::forest::{Forest, NodeId, TreeId};
use crate::quota::share::Share;
use crate::schedule::entry::Entry;

/// The tournaments of a cycle, tree by tree.
#[derive(Clone, Debug, Default)]
pub struct Tournament {
    contests: BTreeMap<TreeId, Contest>,
}

/// What decides between entries at one cohort.
#[derive(Clone, Debug)]
struct Standing {
    cohort: NodeId,
    share: Share,
    borrows_what_it_asks_for: bool,
}

/// The entries of one tree that are left.
#[derive(Clone, Debug, Default)]
struct Contest {
    /// By node.
    left: BTreeMap<NodeId, usize>,
    /// Of each entry at each cohort above it, from below; none where they are to be worked out.
    standings: FxHashMap<usize, Vec<Standing>>,
    /// The entries directly in a cohort, the best last. As a ClusterQueue's own share does not depend on what others use,
    /// their order stays.
    of_cohort: BTreeMap<NodeId, Vec<usize>>,
}

impl Tournament {
    /// Index of the entry to decide on next, of those that are `left`, one per ClusterQueue. `forest` is changed for a
    /// moment while shares are worked out. Whoever takes it says so with [`Tournament::decided`].
    pub fn next(&mut self, forest: &mut Forest, gates: Gates, entries: &[Entry], left: &BTreeSet<usize>) -> usize {
        let first = *left.first().expect("somebody is left");
        let Some(parent) = forest.parent(entries[first].node) else { return first };
        let root = forest.root(parent).expect("entries are not below a cycle");
        if self.contests.is_empty() {
            for &index in left {
                let entry = &entries[index];
                self.contests.entry(entry.tree).or_default().left.insert(entry.node, index);
            }
        }
        let tree = entries[first].tree;
        let contest = self.contests.get_mut(&tree).expect("whoever is left takes part");
        contest.settle(forest, gates, entries, tree);
        contest.winner(root, forest, gates, entries).expect("the tree of an entry has one")
    }

    /// An entry was decided on, and its usage may be in the tree now.
    pub fn decided(&mut self, forest: &Forest, entries: &[Entry], index: usize) {
        let entry = &entries[index];
        let Some(contest) = self.contests.get_mut(&entry.tree) else { return };
        contest.left.remove(&entry.node);
        contest.standings.remove(&index);
        let Some(parent) = forest.parent(entry.node) else { return };
        if let Some(siblings) = contest.of_cohort.get_mut(&parent)
            && let Some(place) = siblings.iter().rposition(|sibling| *sibling == index)
        {
            siblings.remove(place);
        }
        // The shares of the cohorts above it have changed, those of the root aside, which has none.
        let cohorts: Vec<NodeId> = forest.path(parent).filter(|&cohort| forest.parent(cohort).is_some()).collect();
        if !cohorts.is_empty() {
            let is_concerned = |standings: &[Standing]| standings.iter().any(|at| cohorts.contains(&at.cohort));
            contest.standings.retain(|_, standings| !is_concerned(standings));
        }
    }
}

impl Contest {
    /// Works out what is not known.
    fn settle(&mut self, forest: &mut Forest, gates: Gates, entries: &[Entry], tree: TreeId) {
        if self.standings.len() == self.left.len() && !forest.tree(tree).may_saturate() {
            return;
        }
        let mut is_new = self.of_cohort.is_empty();
        for &index in self.left.values() {
            // Where sums saturate, each look leaves something, and changes what the next one sees.
            let looks_again = forest.tree(tree).may_saturate();
            if looks_again || !self.standings.contains_key(&index) {
                self.standings.insert(index, stand(forest, &entries[index]));
                is_new |= looks_again;
            }
        }
        if is_new {
            self.of_cohort.clear();
            for (&node, &index) in &self.left {
                let parent = forest.parent(node).expect("a ClusterQueue of a cohort");
                self.of_cohort.entry(parent).or_default().push(index);
            }
            let standings = &self.standings;
            for (&cohort, siblings) in &mut self.of_cohort {
                siblings.sort_by(|&a, &b| order(a, b, cohort, entries, standings, gates).reverse());
            }
        }
    }

    fn winner(&self, cohort: NodeId, forest: &Forest, gates: Gates, entries: &[Entry]) -> Option<usize> {
        let from_cohorts = forest.child_cohorts(cohort).filter_map(|child| self.winner(child, forest, gates, entries));
        let from_queues = self.of_cohort.get(&cohort).and_then(|siblings| siblings.last().copied());
        from_cohorts.chain(from_queues).min_by(|&a, &b| order(a, b, cohort, entries, &self.standings, gates))
    }
}

/// Shares of the nodes on the path of an entry, with its usage added.
fn stand(forest: &mut Forest, entry: &Entry) -> Vec<Standing> {
    let usage = entry.usage();
    let tree = forest.tree_mut(entry.tree);
    let mark = tree.mark();
    let mut requested = Vec::new();
    for &(fr, amount) in usage {
        if let Some(column) = tree.column(fr) {
            tree.add_usage(entry.row, column, amount);
            if amount > Amount::ZERO {
                requested.push(column);
            }
        }
    }
    let mut standings = Vec::new();
    let mut child = entry.node;
    while let Some(cohort) = forest.parent(child) {
        let (_, row) = forest.locate(child);
        let resources = forest.resources_of(entry.tree);
        let share = forest.tree(entry.tree).share(row, forest.weight(child), resources, &[]);
        let borrows_what_it_asks_for = share.borrows_any_of(&requested);
        standings.push(Standing { cohort, share, borrows_what_it_asks_for });
        child = cohort;
    }
    let tree = forest.tree_mut(entry.tree);
    if tree.has_saturated() {
        tree.keep(mark);
        for &(fr, amount) in usage {
            if let Some(column) = tree.column(fr) {
                tree.remove_usage(entry.row, column, amount);
            }
        }
    } else {
        tree.rollback(mark);
    }
    standings
}

/// Who goes first at a cohort; no two are equal.
fn order(
    a: usize,
    b: usize,
    cohort: NodeId,
    entries: &[Entry],
    standings: &FxHashMap<usize, Vec<Standing>>,
    gates: Gates,
) -> Ordering {
    let at = |index: usize| {
        let above = &standings[&index];
        above.iter().find(|standing| standing.cohort == cohort).expect("an entry stands at each cohort above it")
    };
    let (first, second) = (&entries[a], &entries[b]);
    if gates.enabled(Gate::PrioritizePreemptorWorkloads) && first.is_preemptor != second.is_preemptor {
        return second.is_preemptor.cmp(&first.is_preemptor);
    }
    let (x, y) = (at(a), at(b));
    if gates.enabled(Gate::FairSharingPrioritizeNonBorrowing)
        && x.borrows_what_it_asks_for != y.borrows_what_it_asks_for
    {
        return x.borrows_what_it_asks_for.cmp(&y.borrows_what_it_asks_for);
    }
    let by_priority = || match gates.enabled(Gate::PrioritySortingWithinCohort) {
        true => second.priority.cmp(&first.priority),
        false => Ordering::Equal,
    };
    // Kueue leaves a full tie open; entries stand in the order of their ClusterQueues' names.
    x.share.compare(&y.share).then_with(by_priority).then_with(|| (first.time, a).cmp(&(second.time, b)))
}
