//! Free capacity of leaves and usage of workloads, one column per resource (rules/08 §4).

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::base::changes::{Change, Changes};

/// A domain by its index in its level.
pub type Row = usize;

/// Amounts by resource: milli-units of `cpu`, whole units of the rest.
pub type Amounts = BTreeMap<String, i64>;

/// The resource that counts pods.
pub const PODS: &str = "pods";

/// The maximum number of pods.
const NO_LIMIT: i64 = i32::MAX as i64;

/// One column per resource that any leaf has.
#[derive(Clone, Debug, Default)]
pub struct Capacity {
    slots: BTreeMap<String, usize>,
    /// Capacity without the pods outside Kueue.
    free: Vec<Vec<i64>>,
    /// What workloads use.
    used: Vec<Vec<i64>>,
    n_leaves: usize,
    /// How few pods fit into a leaf that is filled beyond its capacity.
    least: i64,
    /// By column, the leaves that have the resource, if those that lack it are told apart.
    offered: Vec<Vec<bool>>,
    /// The leaves changed last, and how many changes there were before those.
    changed: Vec<u32>,
    n_forgotten: u64,
}

/// The requests of one pod: the columns of its resources, by name, and the amounts.
#[derive(Clone, Debug, Default)]
pub struct Demand<'a> {
    parts: Vec<Part<'a>>,
}

/// The request of one pod for one resource.
#[derive(Clone, Debug)]
struct Part<'a> {
    resource: &'a str,
    slot: Option<usize>,
    value: i64,
    least: i64,
    /// The last free amount, and how many pods fit there: most leaves are alike, and division is slow.
    last: Cell<(i64, i64)>,
}

impl Part<'_> {
    /// How many pods fit into a free amount.
    fn fit(&self, left: i64) -> i64 {
        let (same, n_pods) = self.last.get();
        if left == same {
            return n_pods;
        }
        let n_pods = left.wrapping_div(self.value).clamp(self.least, NO_LIMIT);
        self.last.set((left, n_pods));
        n_pods
    }
}

/// Free capacity of a leaf.
#[derive(Clone, Copy)]
pub struct Remaining<'a> {
    capacity: &'a Capacity,
    leaf: Row,
    /// Is the usage of workloads subtracted?
    with_usage: bool,
    /// Amounts taken and given back in addition.
    besides: (Option<&'a Amounts>, Option<&'a Amounts>),
}

impl Capacity {
    /// The capacity that leaves offer, in their order.
    pub fn new<'a>(offers: impl ExactSizeIterator<Item = &'a Amounts> + Clone, changes: Changes) -> Self {
        let n_leaves = offers.len();
        let least = if changes.has(Change::FullNodesHaveNoRoom) { 0 } else { -NO_LIMIT };
        let mut capacity = Self { n_leaves, least, ..Self::default() };
        for resource in offers.clone().flat_map(BTreeMap::keys) {
            let n_slots = capacity.slots.len();
            capacity.slots.entry(resource.clone()).or_insert(n_slots);
        }
        capacity.free = vec![vec![0; n_leaves]; capacity.slots.len()];
        capacity.used = capacity.free.clone();
        if !changes.has(Change::MissingResourcesAreFull) {
            capacity.offered = vec![vec![false; n_leaves]; capacity.slots.len()];
        }
        for (leaf, offer) in offers.enumerate() {
            for (resource, value) in offer {
                let slot = capacity.slots[resource];
                capacity.free[slot][leaf] = *value;
                if let Some(offered) = capacity.offered.get_mut(slot) {
                    offered[leaf] = true;
                }
            }
        }
        capacity
    }

    /// The requests of a pod.
    pub fn demand<'a>(&self, requests: &'a Amounts) -> Demand<'a> {
        let part = |(name, &value): (&'a String, &i64)| Part {
            resource: name.as_str(),
            slot: self.slots.get(name).copied(),
            value,
            least: self.least,
            last: Cell::new((0, 0)),
        };
        Demand { parts: requests.iter().map(part).collect() }
    }

    /// Adds the usage of some pods to a leaf; a negative number subtracts it.
    pub fn take(&mut self, leaf: Row, requests: &Amounts, n_pods: i64) {
        for (resource, value) in requests {
            // No pod fits if the resource is missing, whatever its usage.
            if let Some(&slot) = self.slots.get(resource) {
                let used = &mut self.used[slot][leaf];
                *used = used.wrapping_add(value.wrapping_mul(n_pods));
            }
        }
        self.note_change(leaf);
    }

    /// Subtracts what pods outside Kueue take of a leaf, or with a negative number adds it back. Returns whether all
    /// these resources are known; otherwise nothing changes.
    #[must_use]
    pub fn take_outside(&mut self, leaf: Row, amounts: &Amounts, n_pods: i64) -> bool {
        if !amounts.keys().all(|resource| self.slots.contains_key(resource)) {
            return false;
        }
        for (resource, value) in amounts {
            let free = &mut self.free[self.slots[resource]][leaf];
            *free = free.wrapping_sub(value.wrapping_mul(n_pods));
        }
        self.note_change(leaf);
        true
    }

    fn note_change(&mut self, leaf: Row) {
        if self.changed.len() >= self.n_leaves {
            // A reader that has missed these counts all leaves faster.
            self.n_forgotten += self.changed.len() as u64;
            self.changed.clear();
        }
        self.changed.push(u32::try_from(leaf).expect("not 4 billion nodes"));
    }

    /// Number of changes of leaves so far.
    pub fn n_changes(&self) -> u64 {
        self.n_forgotten + self.changed.len() as u64
    }

    /// The leaves changed since there were `n_seen` changes; `None`: no longer known.
    pub fn changes_since(&self, n_seen: u64) -> Option<impl Iterator<Item = Row>> {
        let at = n_seen.checked_sub(self.n_forgotten)?;
        let changed = self.changed.get(usize::try_from(at).ok()?..)?;
        Some(changed.iter().map(|&leaf| leaf as Row))
    }

    /// For each resource by name, the capacity without pods outside Kueue, and the usage of workloads.
    pub fn amounts(&self, leaf: Row) -> impl Iterator<Item = (&str, i64, i64)> {
        self.slots
            .iter()
            .map(move |(resource, &slot)| (resource.as_str(), self.free[slot][leaf], self.used[slot][leaf]))
    }

    /// Does a leaf lack a resource, which then limits its pods whatever else does?
    fn lacks(&self, slot: Option<usize>, leaf: Row) -> bool {
        let offered = slot.and_then(|slot| self.offered.get(slot));
        !self.offered.is_empty() && offered.is_none_or(|offered| !offered[leaf])
    }

    /// The free capacity of a leaf.
    pub fn remaining<'a>(
        &'a self,
        leaf: Row,
        with_usage: bool,
        besides: (Option<&'a Amounts>, Option<&'a Amounts>),
    ) -> Remaining<'a> {
        Remaining { capacity: self, leaf, with_usage, besides }
    }
}

impl Remaining<'_> {
    fn of(&self, resource: &str, slot: Option<usize>) -> i64 {
        let Some(slot) = slot else { return 0 };
        let free = self.capacity.free[slot][self.leaf];
        let used = if self.with_usage { self.capacity.used[slot][self.leaf] } else { 0 };
        let of = |amounts: Option<&Amounts>| amounts.and_then(|amounts| amounts.get(resource)).copied().unwrap_or(0);
        free.wrapping_sub(used).wrapping_sub(of(self.besides.0)).wrapping_add(of(self.besides.1))
    }

    /// How many pods fit, and which of their resources limits them; `besides` is already there.
    pub fn fits(&self, demand: &Demand<'_>, besides: Option<&Demand<'_>>) -> (i64, Option<usize>) {
        let mut least = (i64::MAX, None);
        for (at, part) in demand.parts.iter().enumerate() {
            let n_pods = if part.value == 0 {
                NO_LIMIT
            } else if self.capacity.lacks(part.slot, self.leaf) {
                return (0, Some(at));
            } else {
                let other = besides.and_then(|demand| demand.parts.iter().find(|it| it.resource == part.resource));
                part.fit(self.of(part.resource, part.slot).wrapping_sub(other.map_or(0, |it| it.value)))
            };
            // They are sorted by name, and the first of equal ones counts.
            if n_pods < least.0 {
                least = (n_pods, Some(at));
            }
        }
        if least.1.is_none() { (0, None) } else { least }
    }
}
