//! Workloads that a failure of one parks together and that come back together, in one step (rules/05 §3.1, §4).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::OrderKey;
use crate::base::ids::{LocalQueueId, ShapeId, WorkloadId};
use crate::base::key::Key;

/// Whose bucket it is: of one LocalQueue, so of one namespace, and of one shape, if that is known.
pub(super) type BucketId = (Option<ShapeId>, LocalQueueId);

/// Workloads in queue order.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// Shared with whoever was told of them, and copied if it changes meanwhile.
    keys: Arc<BTreeSet<OrderKey>>,
    marks: u64,
}

/// What stands in the heap and what is parked.
#[derive(Clone, Debug, Default)]
pub(super) struct Bucket {
    pub active: Group,
    pub parked: Group,
    /// Its entry among the first of all buckets.
    pub first: Option<OrderKey>,
}

/// Workloads that were moved in one step.
#[derive(Clone, Debug, Default)]
pub struct Parked {
    members: Arc<BTreeSet<OrderKey>>,
    /// Those of `members` that were there before.
    before: BTreeSet<WorkloadId>,
}

impl Parked {
    /// How many.
    pub fn len(&self) -> usize {
        self.members.len() - self.before.len()
    }

    /// Nobody?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their namespaces and names, in queue order.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.members.iter().filter(|member| !self.before.contains(&member.id)).map(|member| &member.key)
    }
}

/// A number of its own for each workload (the finalizer of SplitMix64, a bijection).
pub(super) fn mark_of(id: WorkloadId) -> u64 {
    let mut mark = u64::from(id.0).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mark = (mark ^ (mark >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mark = (mark ^ (mark >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mark ^ (mark >> 31)
}

impl Group {
    pub fn keys(&self) -> &BTreeSet<OrderKey> {
        &self.keys
    }

    pub fn insert(&mut self, key: OrderKey) {
        self.marks = self.marks.wrapping_add(mark_of(key.id));
        Arc::make_mut(&mut self.keys).insert(key);
    }

    /// Many at once, for which there is a shorter way into an empty group.
    pub(crate) fn insert_all(&mut self, keys: Vec<OrderKey>) {
        self.marks = keys.iter().fold(self.marks, |sum, key| sum.wrapping_add(mark_of(key.id)));
        if self.keys.is_empty() {
            self.keys = Arc::new(keys.into_iter().collect());
        } else {
            Arc::make_mut(&mut self.keys).extend(keys);
        }
    }

    pub fn remove(&mut self, key: &OrderKey) {
        self.marks = self.marks.wrapping_sub(mark_of(key.id));
        Arc::make_mut(&mut self.keys).remove(key);
    }

    /// Moves all of another group here, the fewer to the more. Returns who moved, and the sum of their marks.
    pub fn take_all(&mut self, other: &mut Group) -> (Parked, u64) {
        let Group { keys: moved, marks } = std::mem::take(other);
        self.marks = self.marks.wrapping_add(marks);
        if self.keys.len() < moved.len() {
            let few = std::mem::replace(&mut self.keys, moved);
            if !few.is_empty() {
                Arc::make_mut(&mut self.keys).extend(few.iter().cloned());
            }
            let before = few.iter().map(|key| key.id).collect();
            return (Parked { members: Arc::clone(&self.keys), before }, marks);
        }
        if !moved.is_empty() {
            Arc::make_mut(&mut self.keys).extend(moved.iter().cloned());
        }
        (Parked { members: moved, before: BTreeSet::new() }, marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Time;

    fn group(ids: std::ops::Range<u32>) -> Group {
        let mut group = Group::default();
        for id in ids {
            group.insert(OrderKey {
                not_sticky: true,
                negated_priority: 0,
                time: Time(i64::from(id)),
                key: Key::new("ns", &format!("w{id}"), ""),
                id: WorkloadId(id),
            });
        }
        group
    }

    fn names(moved: &Parked) -> Vec<&str> {
        moved.keys().map(|key| key.name()).collect()
    }

    #[test]
    fn who_moves_is_told_whichever_side_is_larger() {
        for (here, there) in [(0..0, 0..3), (3..4, 0..3), (3..9, 0..3), (3..4, 0..0)] {
            let (mut to, mut from) = (group(here.clone()), group(there.clone()));
            let (moved, marks) = to.take_all(&mut from);
            assert_eq!(names(&moved), names(&Parked { members: group(there.clone()).keys, ..Parked::default() }));
            assert_eq!(moved.len(), there.len());
            assert_eq!(marks, group(there.clone()).marks);
            assert!(from.keys().is_empty() && from.marks == 0);
            assert_eq!(to.keys().len(), here.len() + there.len());
            assert_eq!(to.marks, group(here).marks.wrapping_add(marks));
        }
    }

    #[test]
    fn what_was_told_stays_when_the_group_changes() {
        let (mut to, mut from) = (group(3..4), group(0..3));
        let (moved, _) = to.take_all(&mut from);
        let first = to.keys().first().cloned().expect("four of them");
        to.remove(&first);
        assert_eq!((names(&moved), to.keys().len()), (vec!["w0", "w1", "w2"], 3));
    }
}
