//! How much fits where, counted once per kind of pods and kept while leaves change (rules/08 §5).
//!
//! A table belongs to the tree for which it was counted. On the next use, leaves that have changed since are recounted,
//! and the domains above them; what only one placement sees is counted in, and out again.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::changes::Change;
use crate::topology::capacity::{Amounts, Demand, Row};
use crate::topology::counts::{Counts, Levels, roll_up};
use crate::topology::filter::{PodFacts, Refusal, Refusals};
use crate::topology::matches::{KnownMatches, Matches};
use crate::topology::request::Request;
use crate::topology::tree::Tree;

/// Limit on the leaves of all tables of a flavor, unless there are few.
const MAX_LEAVES: usize = 1 << 16;

/// The least and the most tables that are kept.
const N_TABLES: (usize, usize) = (4, 64);

/// Everything that decides how many pods fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// The requests of a worker, including `pods`.
    pub requests: Amounts,
    /// The same for a leader, if one must be placed, too.
    pub leader: Option<Amounts>,
    pub request: Request,
    /// The leaves that they may use.
    pub matches: Arc<Matches>,
    /// Do preferred terms count?
    pub scores: bool,
    /// Is the usage of workloads ignored?
    pub simulates_empty: bool,
}

/// What only one placement sees of a leaf: amounts taken, and given back.
pub type Besides<'a> = BTreeMap<Row, (Option<&'a Amounts>, Option<&'a Amounts>)>;

/// Which leaves may be used, if not all.
pub type Within<'a> = Option<&'a dyn Fn(Row) -> bool>;

/// What fits into all domains.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub kind: Kind,
    pub levels: Levels,
    /// What limits pods on each leaf.
    limits: Vec<Limit>,
    /// By resource of a pod, how many leaves are short of it.
    n_short: Vec<usize>,
    /// How many leaves are outside the allowed ones.
    n_outside: usize,
    /// The number of leaf changes that it includes.
    n_seen: u64,
}

/// What limits pods on a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Nothing,
    /// The node, or its location.
    Place,
    /// Too little of a resource, by index in a pod's requests.
    Resource(u32),
}

/// Counts leaves for one kind of pods.
struct Counter<'a> {
    tree: &'a Tree,
    kind: &'a Kind,
    demand: Demand<'a>,
    of_leader: Option<Demand<'a>>,
}

impl<'a> Counter<'a> {
    fn new(tree: &'a Tree, kind: &'a Kind) -> Self {
        let of_leader = kind.leader.as_ref().map(|requests| tree.capacity.demand(requests));
        Self { tree, kind, demand: tree.capacity.demand(&kind.requests), of_leader }
    }

    /// What fits into an allowed leaf.
    fn leaf(&self, leaf: Row, besides: (Option<&Amounts>, Option<&Amounts>)) -> (Counts, Limit) {
        let Kind { matches, request, .. } = self.kind;
        if matches.refuse(leaf) {
            return (Counts::default(), Limit::Place);
        }
        let score = if self.kind.scores { matches.score(leaf) } else { 0 };
        let remaining = self.tree.capacity.remaining(leaf, !self.kind.simulates_empty, besides);
        let (pods, limit) = remaining.fits(&self.demand, None);
        let leader = self.of_leader.as_ref().filter(|demand| remaining.fits(demand, None).0 > 0);
        let pods_with_leader = if leader.is_some() { remaining.fits(&self.demand, leader).0 } else { pods };
        let mut counts =
            Counts { pods, pods_with_leader, leaders: i64::from(leader.is_some()), score, ..Counts::default() };
        if request.slice_level == self.tree.lowest() {
            counts.slices = pods / request.slice_size;
            counts.slices_with_leader = pods_with_leader / request.slice_size;
        }
        let limit = limit.filter(|_| pods == 0).map_or(Limit::Nothing, |at| Limit::Resource(at as u32));
        (counts, limit)
    }

    /// What fits into a domain, from what fits into its children.
    fn domain(&self, levels: &[Vec<Counts>], level: usize, row: Row) -> Counts {
        let children = &levels[level + 1][self.tree.children(level, row)];
        let size = self.kind.request.inner_sizes[level + 1];
        let needs_leader = self.of_leader.is_some() && self.tree.changes.has(Change::LeadersNeedDomains);
        roll_up(&self.kind.request, level, children, size, needs_leader)
    }
}

impl Table {
    /// Counts all leaves.
    pub fn new(tree: &Tree, kind: Kind, within: Within<'_>) -> Self {
        let counter = Counter::new(tree, &kind);
        let n_leaves = tree.n_leaves();
        let mut levels: Levels =
            (0..tree.n_levels()).map(|level| vec![Counts::default(); tree.n_domains(level)]).collect();
        let (mut limits, mut n_short, mut n_outside) = (vec![Limit::Nothing; n_leaves], Vec::new(), 0);
        n_short.resize(kind.requests.len(), 0);
        for (leaf, (counts, limit)) in levels[tree.lowest()].iter_mut().zip(&mut limits).enumerate() {
            (*counts, *limit) = counter.leaf(leaf, (None, None));
            if *limit != Limit::Place && within.is_some_and(|is_within| !is_within(leaf)) {
                (*counts, *limit) = (Counts { score: counts.score, ..Counts::default() }, Limit::Place);
                n_outside += 1;
            }
            if let Limit::Resource(at) = *limit {
                n_short[at as usize] += 1;
            }
        }
        for level in (0..tree.lowest()).rev() {
            for row in 0..tree.n_domains(level) {
                levels[level][row] = counter.domain(&levels, level, row);
            }
        }
        Self { kind, levels, limits, n_short, n_outside, n_seen: tree.capacity.n_changes() }
    }

    /// Recounts some leaves, and the domains above them. `note` gets the level of each changed domain, and its old and
    /// new counts.
    pub fn recount<'b>(
        &mut self,
        tree: &Tree,
        leaves: impl Iterator<Item = (Row, (Option<&'b Amounts>, Option<&'b Amounts>))>,
        mut note: impl FnMut(usize, Counts, Counts),
    ) {
        let Self { kind, levels, limits, n_short, .. } = self;
        let counter = Counter::new(tree, kind);
        let lowest = tree.lowest();
        let mut changed = Vec::new();
        for (leaf, besides) in leaves {
            if limits[leaf] == Limit::Place {
                continue;
            }
            let (counts, limit) = counter.leaf(leaf, besides);
            for (limit, sign) in [(std::mem::replace(&mut limits[leaf], limit), -1), (limit, 1)] {
                if let Limit::Resource(at) = limit {
                    n_short[at as usize] = n_short[at as usize].wrapping_add_signed(sign);
                }
            }
            let before = std::mem::replace(&mut levels[lowest][leaf], counts);
            if before != counts {
                note(lowest, before, counts);
                changed.push(leaf);
            }
        }
        for level in (0..lowest).rev() {
            let parents = changed.iter().map(|&row| tree.ancestor(level + 1, row, level));
            let mut rows: Vec<Row> = parents.collect();
            rows.sort_unstable();
            rows.dedup();
            rows.retain(|&row| {
                let counts = counter.domain(levels, level, row);
                let before = std::mem::replace(&mut levels[level][row], counts);
                if before != counts {
                    note(level, before, counts);
                }
                before != counts
            });
            changed = rows;
        }
    }

    /// Counts what has changed since, or everything if that is cheaper.
    fn catch_up(&mut self, tree: &Tree) {
        match tree.capacity.changes_since(self.n_seen) {
            Some(leaves) => {
                let mut leaves: Vec<Row> = leaves.collect();
                leaves.sort_unstable();
                leaves.dedup();
                self.recount(tree, leaves.into_iter().map(|leaf| (leaf, (None, None))), |_, _, _| {});
                self.n_seen = tree.capacity.n_changes();
            }
            None => *self = Self::new(tree, self.kind.clone(), None),
        }
        debug_assert_eq!(*self, Self::new(tree, self.kind.clone(), None), "what is kept is what is counted");
    }

    /// Why leaves cannot be used.
    pub fn refusals(&self) -> Refusals {
        let mut refusals = self.kind.matches.refusals().clone();
        refusals.add_some(Refusal::Domain, self.n_outside);
        for (resource, &n_leaves) in self.kind.requests.keys().zip(&self.n_short) {
            refusals.add_some(Refusal::Resource(resource.clone()), n_leaves);
        }
        refusals
    }
}

/// The tables of a flavor, the last used first.
#[derive(Debug, Default)]
pub struct Tables {
    matches: KnownMatches,
    tables: Vec<Table>,
}

/// A copy recounts when needed: most copies of an engine never do.
impl Clone for Tables {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Tables {
    /// The leaves that pods may use.
    pub fn matches(&mut self, tree: &Tree, facts: &PodFacts<'_>) -> Arc<Matches> {
        self.matches.of(tree, facts, n_kept(tree))
    }

    /// What fits for a kind of pods.
    pub fn of(&mut self, tree: &Tree, kind: Kind) -> &mut Table {
        let at = match self.tables.iter().position(|table| table.kind == kind) {
            Some(at) => {
                self.tables[at].catch_up(tree);
                at
            }
            None => {
                self.tables.truncate(n_kept(tree) - 1);
                self.tables.push(Table::new(tree, kind, None));
                self.tables.len() - 1
            }
        };
        self.tables[..=at].rotate_right(1);
        &mut self.tables[0]
    }

    /// Gives access to what fits for a kind of pods, with changes on leaves that only this call sees.
    pub fn look<R>(
        &mut self,
        tree: &Tree,
        kind: Kind,
        (besides, within): (&Besides<'_>, Within<'_>),
        look: impl FnOnce(&Table) -> R,
    ) -> R {
        if within.is_some() {
            let mut table = Table::new(tree, kind, within);
            table.recount(tree, besides.iter().map(|(leaf, amounts)| (*leaf, *amounts)), |_, _, _| {});
            return look(&table);
        }
        let table = self.of(tree, kind);
        table.recount(tree, besides.iter().map(|(leaf, amounts)| (*leaf, *amounts)), |_, _, _| {});
        let found = look(table);
        table.recount(tree, besides.keys().map(|leaf| (*leaf, (None, None))), |_, _, _| {});
        found
    }
}

fn n_kept(tree: &Tree) -> usize {
    (MAX_LEAVES / tree.n_leaves().max(1)).clamp(N_TABLES.0, N_TABLES.1)
}
