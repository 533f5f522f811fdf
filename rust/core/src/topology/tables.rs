//! How much fits where, counted once per kind of pods and kept while leaves change (rules/08 §5).
//!
//! A table belongs to the tree for which it was counted. On the next use, leaves that have changed since are recounted,
//! and the domains above them; what only one placement sees is counted in, and out again.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::changes::Change;
use crate::topology::capacity::{Amounts, Capacity, Demand, Remaining, Row};
use crate::topology::counts::{Bound, Counts, Levels, roll_up};
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
    /// The leaves that the leader may use, if that is not decided by `matches`.
    pub of_leader: Option<Arc<Matches>>,
    /// Do preferred terms count?
    pub scores: bool,
    /// Is the usage of workloads ignored?
    pub simulates_empty: bool,
}

/// Amounts taken, and given back.
pub type Moved<'a> = (Option<&'a Amounts>, Option<&'a Amounts>);

/// What only one placement sees.
#[derive(Debug, Default)]
pub struct Besides<'a> {
    /// Of leaves.
    pub leaves: BTreeMap<Row, Moved<'a>>,
    /// Of the domains that assignments name, if their leaves are nodes that nothing names.
    pub named: Vec<(Row, Moved<'a>)>,
}

impl<'a> Besides<'a> {
    fn moved(&self) -> (impl Iterator<Item = (Row, Moved<'a>)> + '_, &[(Row, Moved<'a>)]) {
        (self.leaves.iter().map(|(leaf, amounts)| (*leaf, *amounts)), &self.named)
    }
}

/// Which leaves may be used, if not all.
pub type Within<'a> = Option<&'a dyn Fn(Row) -> bool>;

/// What fits into all domains.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub kind: Kind,
    pub levels: Levels,
    /// What the room of the domains allows that assignments name; empty if these are leaves.
    pub bounds: Vec<Bound>,
    /// What limits pods on each leaf.
    limits: Vec<Limit>,
    /// By resource of a pod, how many leaves are short of it.
    n_short: Vec<usize>,
    /// How many leaves are outside the allowed ones.
    n_outside: usize,
    /// The number of changes of leaves, and of bounds, that it includes.
    n_seen: (u64, u64),
}

/// What limits pods on a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Nothing,
    /// The node, or its location.
    Place,
    /// The node, on which a leader may be nevertheless.
    PlaceOfWorkers,
    /// Too little of a resource, by index in a pod's requests.
    Resource(u32),
}

/// Counts leaves for one kind of pods.
struct Counter<'a> {
    tree: &'a Tree,
    kind: &'a Kind,
    demand: Demand<'a>,
    of_leader: Option<Demand<'a>>,
    /// The requests of both once more, by the columns of bounds.
    of_named: Option<(Demand<'a>, Option<Demand<'a>>)>,
}

impl<'a> Counter<'a> {
    fn new(tree: &'a Tree, kind: &'a Kind) -> Self {
        let of_leader = kind.leader.as_ref().map(|requests| tree.capacity.demand(requests));
        let of_named = tree.bounds().map(|bounds| {
            (bounds.demand(&kind.requests), kind.leader.as_ref().map(|requests| bounds.demand(requests)))
        });
        Self { tree, kind, demand: tree.capacity.demand(&kind.requests), of_leader, of_named }
    }

    /// What fits into an allowed leaf.
    fn leaf(&self, leaf: Row, besides: Moved<'_>) -> (Counts, Limit) {
        let Kind { matches, request, .. } = self.kind;
        if matches.refuse(leaf) {
            return self.leaf_of_leader(leaf, besides);
        }
        let score = if self.kind.scores { matches.score(leaf) } else { 0 };
        let remaining = self.tree.capacity.remaining(leaf, !self.kind.simulates_empty, besides);
        let (pods, limit) = remaining.fits(&self.demand, None);
        let of_leader = self.of_leader.as_ref().filter(|_| !self.refuses_leader(leaf));
        let leader = of_leader.filter(|demand| remaining.fits(demand, None).0 > 0);
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

    fn refuses_leader(&self, leaf: Row) -> bool {
        self.kind.of_leader.as_ref().is_some_and(|matches| matches.refuse(leaf))
    }

    /// Where no worker may be, the leader may be (rules/08 §5.3).
    fn leaf_of_leader(&self, leaf: Row, besides: Moved<'_>) -> (Counts, Limit) {
        let demand = self.of_leader.as_ref().filter(|_| self.kind.of_leader.is_some() && !self.refuses_leader(leaf));
        let Some(demand) = demand else { return (Counts::default(), Limit::Place) };
        let remaining = self.tree.capacity.remaining(leaf, !self.kind.simulates_empty, besides);
        let leaders = i64::from(remaining.fits(demand, None).0 > 0);
        (Counts { leaders, ..Counts::default() }, Limit::PlaceOfWorkers)
    }

    /// What the room of a domain allows that assignments name (rules/08 §5.6).
    fn bound(&self, named: Row, besides: Moved<'_>) -> Bound {
        let (Some(bounds), Some((workers, leader))) = (self.tree.bounds(), &self.of_named) else {
            return Bound::default();
        };
        let remaining: Remaining<'_> = bounds.remaining(named, !self.kind.simulates_empty, besides);
        let pods = remaining.fits(workers, None).0;
        let leader = leader.as_ref().filter(|demand| remaining.fits(demand, None).0 > 0);
        let pods_with_leader = if leader.is_some() { remaining.fits(workers, leader).0 } else { pods };
        Bound { pods, pods_with_leader, leaders: i64::from(leader.is_some()) }
    }

    /// What fits into a domain, from what fits into its children.
    fn domain(&self, levels: &[Vec<Counts>], bounds: &[Bound], level: usize, row: Row) -> Counts {
        let children = &levels[level + 1][self.tree.children(level, row)];
        let size = self.kind.request.inner_sizes[level + 1];
        let needs_leader = self.of_leader.is_some() && self.tree.changes.has(Change::LeadersNeedDomains);
        let bound = if level == self.tree.named_level() { bounds.get(row).copied() } else { None };
        roll_up(&self.kind.request, level, children, (size, bound), needs_leader)
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
        let n_bounds = tree.bounds().map_or(0, |_| tree.n_domains(tree.named_level()));
        let bounds: Vec<Bound> = (0..n_bounds).map(|row| counter.bound(row, (None, None))).collect();
        for level in (0..tree.lowest()).rev() {
            for row in 0..tree.n_domains(level) {
                levels[level][row] = counter.domain(&levels, &bounds, level, row);
            }
        }
        Self { kind, levels, bounds, limits, n_short, n_outside, n_seen: n_changes(tree) }
    }

    /// Recounts some leaves and bounds, and the domains above them. `note` gets the level of each changed domain, and its
    /// old and new counts.
    pub fn recount<'b>(
        &mut self,
        tree: &Tree,
        (leaves, named): (impl Iterator<Item = (Row, Moved<'b>)>, &[(Row, Moved<'b>)]),
        mut note: impl FnMut(usize, Counts, Counts),
    ) {
        let Self { kind, levels, bounds, limits, n_short, .. } = self;
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
            if level == tree.named_level() {
                for &(row, besides) in named {
                    bounds[row] = counter.bound(row, besides);
                    rows.push(row);
                }
            }
            rows.sort_unstable();
            rows.dedup();
            rows.retain(|&row| {
                let counts = counter.domain(levels, bounds, level, row);
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
        let named = match tree.bounds() {
            Some(bounds) => bounds.changes_since(self.n_seen.1).map(sorted),
            None => Some(Vec::new()),
        };
        match tree.capacity.changes_since(self.n_seen.0).map(sorted).zip(named) {
            Some((leaves, named)) => {
                let named: Vec<_> = named.into_iter().map(|row| (row, (None, None))).collect();
                self.recount(tree, (leaves.into_iter().map(|leaf| (leaf, (None, None))), &named), |_, _, _| {});
                self.n_seen = n_changes(tree);
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

/// How often leaves, and the domains that assignments name above them, have changed.
fn n_changes(tree: &Tree) -> (u64, u64) {
    (tree.capacity.n_changes(), tree.bounds().map_or(0, Capacity::n_changes))
}

/// Each of these once, in order.
fn sorted(rows: impl Iterator<Item = Row>) -> Vec<Row> {
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_unstable();
    rows.dedup();
    rows
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
            table.recount(tree, besides.moved(), |_, _, _| {});
            return look(&table);
        }
        let table = self.of(tree, kind);
        table.recount(tree, besides.moved(), |_, _, _| {});
        let found = look(table);
        let named: Vec<_> = besides.named.iter().map(|it| (it.0, (None, None))).collect();
        table.recount(tree, (besides.leaves.keys().map(|leaf| (*leaf, (None, None))), &named), |_, _, _| {});
        found
    }
}

fn n_kept(tree: &Tree) -> usize {
    (MAX_LEAVES / tree.n_leaves().max(1)).clamp(N_TABLES.0, N_TABLES.1)
}
