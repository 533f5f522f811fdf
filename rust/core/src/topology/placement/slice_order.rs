//! The order of an assignment in whole slices: pods get their ranks in it, so the shorter slice comes last (rules/08 §8).

use rustc_hash::FxHashMap;

use crate::objects::{TopologyAssignment, TopologyDomain};
use crate::topology::capacity::Row;
use crate::topology::placement::Ground;

/// A level, and how many pods of a slice must stay together in one of its domains.
pub type Slices = (usize, i64);

impl Ground<'_> {
    /// The domain of a higher level that contains one of an assignment.
    fn domain_above(&self, domain: &TopologyDomain, level: usize) -> Option<Row> {
        let row = self.tree.find(&domain.values)?;
        Some(self.tree.ancestor(self.tree.named_level(), row, level))
    }

    /// The pods in each domain of a level, in the order of an assignment.
    pub fn pods_above(&self, place: &TopologyAssignment, level: usize) -> Vec<(Row, i64)> {
        let mut places: FxHashMap<Row, usize> = FxHashMap::default();
        let mut pods: Vec<(Row, i64)> = Vec::new();
        for domain in &place.domains {
            let Some(row) = self.domain_above(domain, level) else { continue };
            let at = *places.entry(row).or_insert(pods.len());
            if at == pods.len() {
                pods.push((row, 0));
            }
            pods[at].1 += i64::from(domain.count);
        }
        pods
    }

    /// Moves the domains of the shorter slice to the end.
    pub fn put_tail_last(&self, place: &mut TopologyAssignment, (level, size): Slices) {
        let tail = n_pods(place) % size;
        if tail == 0 {
            return;
        }
        let pods = self.pods_above(place, level);
        let Some(&(row, _)) = pods.iter().find(|it| it.1 % size == tail) else { return };
        let domains = std::mem::take(&mut place.domains);
        let (last, mut first): (Vec<_>, Vec<_>) =
            domains.into_iter().partition(|domain| self.domain_above(domain, level) == Some(row));
        first.extend(last);
        place.domains = first;
    }

    /// Does each domain have whole slices, apart from the last?
    pub fn has_whole_slices(&self, place: &TopologyAssignment, (level, size): Slices) -> bool {
        let pods = self.pods_above(place, level);
        let all = n_pods(place);
        let expected = |at: usize| if at + 1 == pods.len() { all % size } else { 0 };
        pods.iter().map(|it| it.1).sum::<i64>() == all
            && pods.iter().enumerate().all(|(at, it)| it.1 % size == expected(at))
    }
}

/// All pods of an assignment.
pub fn n_pods(place: &TopologyAssignment) -> i64 {
    place.domains.iter().map(|domain| i64::from(domain.count)).sum()
}
