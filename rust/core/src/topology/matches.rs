//! Which leaves one kind of pods may use, regardless of free capacity (rules/08 §4.7, §4.8).

use std::sync::Arc;

use crate::objects::{NodeSelectorTerm, StringMap, Toleration};
use crate::topology::capacity::Row;
use crate::topology::filter::{PodFacts, Refusals};
use crate::topology::tree::Tree;

/// How nodes match pods of one kind. Valid as long as their tree.
#[derive(Debug)]
pub struct Matches {
    node_selector: StringMap,
    tolerations: Vec<Toleration>,
    required: Option<Vec<NodeSelectorTerm>>,
    preferred: Vec<(i64, NodeSelectorTerm)>,
    by_library: bool,
    /// One bit per leaf that may not be used; empty: all may.
    refused: Vec<u64>,
    /// Why they may not be used.
    refusals: Refusals,
    /// How strongly the pods prefer each leaf; empty: no preferences.
    scores: Vec<i64>,
}

/// There is only one per kind.
impl PartialEq for Matches {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Matches {
    /// Matches all nodes that are leaves on their own.
    fn new(tree: &Tree, facts: &PodFacts<'_>) -> Self {
        let mut matches = Self {
            node_selector: facts.node_selector.clone(),
            tolerations: facts.tolerations.iter().map(|&it| it.clone()).collect(),
            required: facts.required.map(<[_]>::to_vec),
            preferred: facts.preferred.iter().map(|&(weight, term)| (weight, term.clone())).collect(),
            by_library: facts.by_library,
            refused: Vec::new(),
            refusals: Refusals::default(),
            scores: Vec::new(),
        };
        if !tree.has_nodes() {
            return matches;
        }
        if !facts.preferred.is_empty() {
            matches.scores = (0..tree.n_leaves()).map(|leaf| facts.score(tree.node(leaf))).collect();
        }
        for leaf in 0..tree.n_leaves() {
            if let Some(refusal) = facts.refusal(tree.node(leaf)) {
                matches.refused.resize(tree.n_leaves().div_ceil(64), 0);
                matches.refused[leaf / 64] |= 1 << (leaf % 64);
                matches.refusals.add(refusal);
            }
        }
        matches
    }

    fn is_for(&self, facts: &PodFacts<'_>) -> bool {
        self.by_library == facts.by_library
            && self.node_selector == facts.node_selector
            && self.tolerations.iter().eq(facts.tolerations.iter().copied())
            && self.required.as_deref() == facts.required
            && self.preferred.iter().map(|(weight, term)| (*weight, term)).eq(facts.preferred.iter().copied())
    }

    /// Is a leaf excluded?
    pub fn refuse(&self, leaf: Row) -> bool {
        self.refused.get(leaf / 64).is_some_and(|bits| bits >> (leaf % 64) & 1 == 1)
    }

    /// Why leaves are excluded.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// How strongly the pods prefer a leaf.
    pub fn score(&self, leaf: Row) -> i64 {
        self.scores.get(leaf).copied().unwrap_or(0)
    }
}

/// The kinds of pods that have been matched, the last one first.
#[derive(Debug, Default)]
pub struct KnownMatches(Vec<Arc<Matches>>);

impl KnownMatches {
    /// The match of a kind of pods; at most `n_kept` are kept.
    pub fn of(&mut self, tree: &Tree, facts: &PodFacts<'_>, n_kept: usize) -> Arc<Matches> {
        let at = self.0.iter().position(|it| it.is_for(facts)).unwrap_or_else(|| {
            self.0.truncate(n_kept.saturating_sub(1));
            self.0.push(Arc::new(Matches::new(tree, facts)));
            self.0.len() - 1
        });
        self.0[..=at].rotate_right(1);
        Arc::clone(&self.0[0])
    }
}
