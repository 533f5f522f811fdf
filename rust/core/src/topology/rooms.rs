//! Whether one pod set has a place, asked again and again while workloads go and come back (rules/08 §11.6).
//!
//! A search for victims asks that after each of them. What has changed by then is the leaves of one workload: they are
//! counted anew, and what stands above them. Where the pods would go is not asked.

use rustc_hash::FxHashMap;

use crate::base::gates::{Gate, Gates};
use crate::topology::balanced;
use crate::topology::capacity::{Amounts, Row};
use crate::topology::placement::{Ask, Ground, with_pod};
use crate::topology::request::Wish;
use crate::topology::tables::{Kind, Table, Tables};
use crate::topology::tree::Tree;

/// What fits into the domains of a flavor, of one pod set without a leader.
pub struct Rooms<'a> {
    tree: &'a Tree,
    table: Table,
    /// By leaf, what workloads that have gone gave back.
    given_back: FxHashMap<Row, Amounts>,
    /// How many slices there are to place.
    need: i64,
    /// At the level that is asked for, the domains that are enough by themselves.
    n_enough: usize,
    /// Where several domains may be used, what fits into all of them.
    total: i64,
}

impl<'a> Ground<'a> {
    /// What fits in for a pod set; `None`: more has to be known to say whether it has a place.
    pub fn rooms(&self, ask: Ask<'a>, gates: Gates, tables: &mut Tables) -> Option<Rooms<'a>> {
        let facts = ask.facts.ok()?;
        let wish = Wish::new(ask.pod_set.topology_request.as_deref(), ask.is_implied, &self.tree.keys);
        let request = wish.in_tree(self.tree).ok()?;
        let may_balance = gates.enabled(Gate::TASBalancedPlacement) && balanced::is_wanted(&request);
        if may_balance || ask.previous.is_some() {
            return None;
        }
        let need = i64::from(ask.count) / request.slice_size;
        let kind = Kind {
            requests: with_pod(ask.requests),
            leader: None,
            request,
            matches: tables.matches(self.tree, &facts),
            scores: false,
            simulates_empty: false,
        };
        let table = tables.of(self.tree, kind).clone();
        let given_back = FxHashMap::default();
        let mut rooms = Rooms { tree: self.tree, table, given_back, need, n_enough: 0, total: 0 };
        let of_level = |level: usize| rooms.table.levels[level].iter().map(|it| it.slices);
        let n_enough = of_level(rooms.table.kind.request.level).filter(|&slices| slices >= need).count();
        let total = of_level(rooms.widest()).sum();
        (rooms.n_enough, rooms.total) = (n_enough, total);
        Some(rooms)
    }
}

impl Rooms<'_> {
    /// The level at which several domains may be used: where it is looked last.
    fn widest(&self) -> usize {
        let request = &self.table.kind.request;
        if request.unconstrained { request.level } else { 0 }
    }

    /// Is there a place for all pods now (rules/08 §6)?
    pub fn have_place(&self) -> bool {
        let request = &self.table.kind.request;
        let is_enough = if request.required { self.n_enough > 0 } else { self.total >= self.need };
        is_enough && !self.table.levels[request.level].is_empty()
    }

    /// Pods have gone from a leaf, or with fewer than none have come back.
    pub fn give_back(&mut self, leaf_id: &str, per_pod: &Amounts, n_pods: i64) {
        let Some(leaf) = self.tree.find_leaf_by_id(leaf_id) else { return };
        let (of_request, widest) = (self.table.kind.request.level, self.widest());
        let Self { tree, table, given_back, need, n_enough, total } = self;
        let given = given_back.entry(leaf).or_default();
        for resource in table.kind.requests.keys() {
            if let Some(value) = per_pod.get(resource) {
                let sum = given.entry(resource.clone()).or_default();
                *sum = sum.wrapping_add(value.wrapping_mul(n_pods));
            }
        }
        table.recount(tree, std::iter::once((leaf, (None, Some(&*given)))), |level, before, now| {
            if level == of_request {
                *n_enough += usize::from(now.slices >= *need);
                *n_enough -= usize::from(before.slices >= *need);
            }
            if level == widest {
                *total += now.slices - before.slices;
            }
        });
    }
}
