//! Whether one pod set has a place, asked again and again while workloads go and come back (rules/08 §11.6).
//!
//! A search for victims asks that after each of them. What has changed by then is the leaves of one workload: they are
//! counted anew, and what stands above them. Where the pods would go is not asked.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::base::gates::{Gate, Gates};
use crate::topology::balanced;
use crate::topology::capacity::{Amounts, Row};
use crate::topology::counts::{Counts, Levels, Pods, count, roll_up};
use crate::topology::filter::PodFacts;
use crate::topology::placement::{Ask, Ground, with_pod};
use crate::topology::request::{Request, Wish};
use crate::topology::tree::Tree;

/// What fits into the domains of a flavor, of one pod set without a leader.
pub struct Rooms<'a> {
    tree: &'a Tree,
    facts: PodFacts<'a>,
    request: Request,
    /// What a pod asks for, itself included.
    one: Amounts,
    levels: Levels,
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
    pub fn rooms(&self, ask: Ask<'a>, gates: Gates) -> Option<Rooms<'a>> {
        let facts = ask.facts.ok()?;
        let wish = Wish::new(ask.pod_set.topology_request.as_deref(), ask.is_implied, &self.tree.keys);
        let request = wish.in_tree(self.tree).ok()?;
        let may_balance = gates.enabled(Gate::TASBalancedPlacement) && balanced::is_wanted(&request);
        if may_balance || ask.previous.is_some() {
            return None;
        }
        let one = with_pod(ask.requests);
        let nothing = |_| (None, None);
        let pods = Pods {
            requests: &one,
            leader: None,
            facts: &facts,
            scores: false,
            simulates_empty: false,
            taken: &nothing,
            within: None,
        };
        let (levels, _) = count(self.tree, &request, &pods);
        let need = i64::from(ask.count) / request.slice_size;
        let given_back = FxHashMap::default();
        let mut rooms = Rooms { tree: self.tree, facts, request, one, levels, given_back, need, n_enough: 0, total: 0 };
        rooms.n_enough = rooms.levels[rooms.request.level].iter().filter(|it| it.slices >= need).count();
        rooms.total = rooms.levels[rooms.widest()].iter().map(|it| it.slices).sum();
        Some(rooms)
    }
}

impl Rooms<'_> {
    /// The level at which several domains may be used: where it is looked last.
    fn widest(&self) -> usize {
        if self.request.unconstrained { self.request.level } else { 0 }
    }

    /// Is there a place for all pods now (rules/08 §6)?
    pub fn have_place(&self) -> bool {
        let is_enough = if self.request.required { self.n_enough > 0 } else { self.total >= self.need };
        is_enough && !self.levels[self.request.level].is_empty()
    }

    /// Pods have gone from a leaf, or with fewer than none have come back.
    pub fn give_back(&mut self, leaf_id: &str, per_pod: &Amounts, n_pods: i64) {
        let Some(leaf) = self.tree.find_leaf_by_id(leaf_id) else { return };
        let given = self.given_back.entry(leaf).or_default();
        for resource in self.one.keys() {
            if let Some(value) = per_pod.get(resource) {
                let sum = given.entry(resource.clone()).or_default();
                *sum = sum.wrapping_add(value.wrapping_mul(n_pods));
            }
        }
        if self.tree.is_by_hostname() && self.facts.refusal(self.tree.node(leaf)).is_some() {
            return;
        }
        let demand = self.tree.capacity.demand(&self.one);
        let n_pods = self.tree.capacity.remaining(leaf, true, (None, Some(given))).fits(&demand, None).0;
        let mut counts = Counts { pods: n_pods, pods_with_leader: n_pods, ..Counts::default() };
        if self.request.slice_level == self.tree.lowest() {
            counts.slices = n_pods / self.request.slice_size;
            counts.slices_with_leader = counts.slices;
        }
        self.put(leaf, counts);
    }

    /// A leaf has changed, and with it what stands above it.
    fn put(&mut self, leaf: Row, counts: Counts) {
        let (mut level, mut row, mut counts) = (self.tree.lowest(), leaf, counts);
        loop {
            let before = std::mem::replace(&mut self.levels[level][row], counts);
            if before == counts {
                return;
            }
            if level == self.request.level {
                self.n_enough += usize::from(counts.slices >= self.need);
                self.n_enough -= usize::from(before.slices >= self.need);
            }
            if level == self.widest() {
                self.total += counts.slices - before.slices;
            }
            if level == 0 {
                return;
            }
            row = self.tree.ancestor(level, row, level - 1);
            level -= 1;
            let children = &self.levels[level + 1][self.tree.children(level, row)];
            counts = roll_up(&self.request, level, children, self.request.inner_sizes[level + 1], false);
        }
    }
}

/// Elements that one list has and another has not, each way: what leaves and what enters.
pub(crate) fn difference<T: Copy + PartialEq>(old: &[T], new: &[T]) -> [SmallVec<[T; 4]>; 2] {
    let n_both = old.len().min(new.len());
    let (mut leaves, mut enters): (SmallVec<[T; 4]>, SmallVec<[T; 4]>) =
        (old[n_both..].iter().copied().collect(), new[n_both..].iter().copied().collect());
    for (&one, &other) in old.iter().zip(new).filter(|(one, other)| one != other) {
        leaves.push(one);
        enters.push(other);
    }
    // Some have only moved.
    let stays: SmallVec<[T; 4]> = leaves.iter().copied().filter(|it| enters.contains(it)).collect();
    leaves.retain(|it| !stays.contains(it));
    enters.retain(|it| !stays.contains(it));
    [leaves, enters]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_moved_neither_leaves_nor_enters() {
        let of = |old: &[i32], new: &[i32]| difference(old, new).map(|it| it.to_vec());
        assert_eq!(of(&[1, 2], &[1, 2, 3]), [vec![], vec![3]]);
        assert_eq!(of(&[1, 2, 3, 4], &[1, 4, 3]), [vec![2], vec![]]);
        assert_eq!(of(&[1, 4, 3], &[1, 2, 3, 4]), [vec![], vec![2]]);
        assert_eq!(of(&[1, 2, 3], &[]), [vec![1, 2, 3], vec![]]);
    }
}
