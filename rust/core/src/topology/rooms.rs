//! Whether one pod set has a place, re-evaluated as workloads are removed and added back (rules/08 §11.6).
//!
//! A search for victims does that after each of them. Between two evaluations the leaves of one workload have changed:
//! only they and the domains above them are recounted. It does not find out where the pods would go.

use rustc_hash::FxHashMap;

use crate::base::changes::Change;
use crate::base::gates::{Gate, Gates};
use crate::topology::balanced;
use crate::topology::capacity::{Amounts, Row};
use crate::topology::placement::{Ask, Ground, with_pod};
use crate::topology::request::Wish;
use crate::topology::tables::{Kind, Table, Tables};
use crate::topology::tree::Tree;

/// What fits into the domains of a flavor, for one pod set without a leader.
pub struct Rooms<'a> {
    tree: &'a Tree,
    table: Table,
    /// What removed workloads have given back, by the domain that their assignments name.
    given_back: FxHashMap<Row, Amounts>,
    /// Number of slices to place.
    need: i64,
    /// Number of domains at the requested level that are large enough on their own.
    n_enough: usize,
    /// If several domains may be used, what fits into all of them.
    total: i64,
}

impl<'a> Ground<'a> {
    /// What fits for a pod set; `None`: more must be known to decide whether it has a place.
    pub fn rooms(&self, ask: Ask<'a>, gates: Gates, tables: &mut Tables) -> Option<Rooms<'a>> {
        let facts = ask.facts.ok()?;
        let wish = Wish::new(ask.pod_set.topology_request.as_deref(), ask.is_implied, &self.tree.keys);
        let wish = wish.within(gates, self.tree.changes);
        let request = wish.in_tree(self.tree).ok()?.with_tail(i64::from(ask.count), gates);
        let may_balance = gates.enabled(Gate::TASBalancedPlacement) && balanced::is_wanted(&request);
        // Until then, domains may have room for a negative number of pods, which the sums here leave out.
        let may_be_negative = !self.tree.changes.has(Change::FullNodesHaveNoRoom);
        if may_balance || may_be_negative || ask.previous.is_some() || request.tail > 0 {
            return None;
        }
        let need = i64::from(ask.count) / request.slice_size;
        let kind = Kind {
            requests: with_pod(ask.requests),
            leader: None,
            request,
            matches: tables.matches(self.tree, &facts),
            of_leader: None,
            scores: false,
            simulates_empty: false,
        };
        let table = tables.of(self.tree, kind).clone();
        let given_back = FxHashMap::default();
        let mut rooms = Rooms { tree: self.tree, table, given_back, need, n_enough: 0, total: 0 };
        let of_level = |level: usize| rooms.table.levels[level].iter().map(|it| it.slices.max(0));
        let n_enough = of_level(rooms.table.kind.request.level).filter(|&slices| slices >= need).count();
        let total = of_level(rooms.widest()).sum();
        (rooms.n_enough, rooms.total) = (n_enough, total);
        Some(rooms)
    }
}

impl Rooms<'_> {
    /// The level at which several domains may be used: the last one searched.
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

    /// Pods were removed from a domain, or with a negative number added back.
    pub fn give_back(&mut self, id: &str, per_pod: &Amounts, n_pods: i64) {
        let Some(named) = self.tree.find_by_id(id) else { return };
        let (of_request, widest) = (self.table.kind.request.level, self.widest());
        let Self { tree, table, given_back, need, n_enough, total } = self;
        let given = given_back.entry(named).or_default();
        for resource in table.kind.requests.keys() {
            if let Some(value) = per_pod.get(resource) {
                let sum = given.entry(resource.clone()).or_default();
                *sum = sum.wrapping_add(value.wrapping_mul(n_pods));
            }
        }
        let moved = (named, (None, Some(&*given)));
        let (leaf, bound) = if tree.bounds().is_none() { (Some(moved), None) } else { (None, Some(moved)) };
        table.recount(tree, (leaf.into_iter(), bound.as_slice()), |level, before, now| {
            if level == of_request {
                *n_enough += usize::from(now.slices >= *need);
                *n_enough -= usize::from(before.slices >= *need);
            }
            if level == widest {
                *total += now.slices.max(0) - before.slices.max(0);
            }
        });
    }
}
