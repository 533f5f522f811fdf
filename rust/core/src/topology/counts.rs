//! How many pods and slices fit into each domain (rules/08 §5).

use std::collections::BTreeMap;

use crate::topology::capacity::{Amounts, Row};
use crate::topology::filter::{PodFacts, Refusal, Refusals};
use crate::topology::request::Request;
use crate::topology::tree::Tree;

/// What fits into a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pods.
    pub pods: i64,
    /// Slices, from the level of slices up.
    pub slices: i64,
    /// Pods, and slices, beside a leader.
    pub pods_with_leader: i64,
    pub slices_with_leader: i64,
    /// Leaders: one or none.
    pub leaders: i64,
    /// How much the pods would rather stand here.
    pub score: i64,
}

impl Counts {
    /// Pods in slice mode are counted in slices.
    pub fn of(&self, unit: Unit, with_leader: bool) -> i64 {
        match (unit, with_leader) {
            (Unit::Slices, false) => self.slices,
            (Unit::Slices, true) => self.slices_with_leader,
            (Unit::Pods, false) => self.pods,
            (Unit::Pods, true) => self.pods_with_leader,
        }
    }
}

/// In what domains are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// In slices.
    Slices,
    /// Pod by pod.
    Pods,
}

/// What one placement is about: the pods, and what is taken already.
pub struct Pods<'a> {
    /// What a worker asks for, `pods` included.
    pub requests: &'a Amounts,
    /// The same of a leader that is to be placed, too.
    pub leader: Option<&'a Amounts>,
    pub facts: &'a PodFacts<'a>,
    /// Are preferred terms looked at?
    pub scores: bool,
    /// Is what workloads use left out?
    pub simulates_empty: bool,
    /// What earlier groups took of a leaf, and what workloads that count as gone give back.
    pub taken: &'a dyn Fn(Row) -> (Option<&'a Amounts>, Option<&'a Amounts>),
    /// The leaves in which it must stay, if not all.
    pub within: Option<&'a dyn Fn(Row) -> bool>,
}

/// What fits into the domains of each level.
pub type Levels = Vec<Vec<Counts>>;

/// Counts what fits, from the leaves up.
pub fn count(tree: &Tree, request: &Request, pods: &Pods<'_>) -> (Levels, Refusals) {
    let mut refusals = Refusals::default();
    let mut levels: Levels = (0..tree.n_levels()).map(|level| vec![Counts::default(); tree.n_domains(level)]).collect();
    let demand = tree.capacity.demand(pods.requests);
    let of_leader = pods.leader.map(|requests| tree.capacity.demand(requests));
    let lowest = tree.lowest();
    let (by_hostname, takes_plain) = (tree.is_by_hostname(), pods.facts.are_plain());
    let mut short_of: BTreeMap<&str, usize> = BTreeMap::new();
    for (leaf, counts) in levels[lowest].iter_mut().enumerate() {
        let is_sure = !by_hostname || (takes_plain && tree.is_plain(leaf));
        let mut refusal = if is_sure { None } else { pods.facts.refusal(tree.node(leaf)) };
        if refusal.is_none() && by_hostname && pods.scores {
            counts.score = pods.facts.score(tree.node(leaf));
        }
        if refusal.is_none() && pods.within.is_some_and(|is_within| !is_within(leaf)) {
            refusal = Some(Refusal::Domain);
        }
        if let Some(refusal) = refusal {
            refusals.add(refusal);
            continue;
        }
        let remaining = tree.capacity.remaining(leaf, !pods.simulates_empty, (pods.taken)(leaf));
        let (n_pods, limit) = remaining.fits(&demand, None);
        counts.pods = n_pods;
        let has_leader = of_leader.as_ref().is_some_and(|demand| remaining.fits(demand, None).0 > 0);
        counts.leaders = i64::from(has_leader);
        let besides = of_leader.as_ref().filter(|_| has_leader);
        counts.pods_with_leader = if besides.is_some() { remaining.fits(&demand, besides).0 } else { n_pods };
        if let Some(resource) = limit.filter(|_| n_pods == 0) {
            *short_of.entry(resource).or_default() += 1;
        }
        if request.slice_level == lowest {
            counts.slices = counts.pods / request.slice_size;
            counts.slices_with_leader = counts.pods_with_leader / request.slice_size;
        }
    }
    for (resource, n_leaves) in short_of {
        refusals.add_some(Refusal::Resource(resource.to_owned()), n_leaves);
    }
    for level in (0..lowest).rev() {
        let (upper, lower) = levels.split_at_mut(level + 1);
        for (row, counts) in upper[level].iter_mut().enumerate() {
            let children = &lower[0][tree.children(level, row)];
            *counts = roll_up(request, level, children, request.inner_sizes[level + 1], pods.leader.is_some());
        }
    }
    (levels, refusals)
}

/// What fits into a domain with these children, which are filled in steps of `inner_size`.
pub fn roll_up(request: &Request, level: usize, children: &[Counts], inner_size: i64, needs_leader: bool) -> Counts {
    let whole = |pods: i64| pods / inner_size * inner_size;
    let mut counts = Counts::default();
    let mut least_loss: Option<(i64, i64)> = None;
    let mut slices = 0;
    for child in children {
        let (pods, with_leader) = (whole(child.pods), whole(child.pods_with_leader));
        counts.pods += pods;
        counts.leaders = counts.leaders.max(child.leaders);
        counts.score += child.score;
        slices += child.slices;
        if !needs_leader || child.leaders > 0 {
            let loss = (pods - with_leader, child.slices - child.slices_with_leader);
            let least = least_loss.get_or_insert(loss);
            *least = (least.0.min(loss.0), least.1.min(loss.1));
        }
    }
    counts.pods_with_leader = least_loss.map_or(0, |loss| counts.pods - loss.0);
    match level.cmp(&request.slice_level) {
        std::cmp::Ordering::Equal => {
            counts.slices = counts.pods / request.slice_size;
            counts.slices_with_leader = counts.pods_with_leader / request.slice_size;
        }
        std::cmp::Ordering::Less => {
            counts.slices = slices;
            counts.slices_with_leader = least_loss.map_or(0, |loss| slices - loss.1);
        }
        std::cmp::Ordering::Greater => {}
    }
    counts
}
