//! Workloads that are parked together when one of them fails, and that return together, in one step (rules/05 §3.1,
//! §4).

use super::OrderKey;
use crate::base::ids::{LocalQueueId, ShapeId, WorkloadId};
use crate::base::key::Key;
use crate::base::sorted::Sorted;

/// The workloads of a bucket have one LocalQueue, so one namespace, and one shape, if known.
pub(super) type BucketId = (Option<ShapeId>, LocalQueueId);

/// Workloads in queue order.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    keys: Sorted<OrderKey>,
    marks: u64,
}

/// The workloads in the heap, and those parked.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    pub id: BucketId,
    pub active: Group,
    pub parked: Group,
}

impl Bucket {
    pub fn is_empty(&self) -> bool {
        self.active.keys.is_empty() && self.parked.keys.is_empty()
    }
}

/// The first workload of each bucket in the heap. Usage changes for all workloads of a LocalQueue at once, so in a
/// usage-based queue they are grouped by LocalQueue; otherwise all are in one group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct First {
    pub lane: LocalQueueId,
    pub key: OrderKey,
    pub bucket: BucketId,
}

/// Workloads moved in one step, as they were then.
#[derive(Clone, Debug, Default)]
pub struct Parked(Sorted<OrderKey>);

impl Parked {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their namespaces and names, in queue order.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.iter().map(|member| &member.key)
    }
}

/// A unique number for each workload (the finalizer of SplitMix64, a bijection).
pub(super) fn mark_of(id: WorkloadId) -> u64 {
    let mut mark = u64::from(id.0).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mark = (mark ^ (mark >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mark = (mark ^ (mark >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mark ^ (mark >> 31)
}

impl Group {
    pub fn keys(&self) -> &Sorted<OrderKey> {
        &self.keys
    }

    pub fn insert(&mut self, key: OrderKey) {
        self.marks = self.marks.wrapping_add(mark_of(key.id));
        self.keys.insert(key);
    }

    pub fn insert_all(&mut self, keys: Vec<OrderKey>) {
        self.marks = keys.iter().fold(self.marks, |sum, key| sum.wrapping_add(mark_of(key.id)));
        self.keys.extend(keys);
    }

    pub fn remove(&mut self, key: &OrderKey) {
        self.marks = self.marks.wrapping_sub(mark_of(key.id));
        self.keys.remove(key);
    }

    /// Removes the first.
    pub fn pop(&mut self) {
        if let Some(key) = self.keys.pop_first() {
            self.marks = self.marks.wrapping_sub(mark_of(key.id));
        }
    }

    /// All of the group, for reports.
    pub fn all(&self) -> Parked {
        Parked(self.keys.clone())
    }

    /// Moves all workloads of another group here. Returns how many moved, and the sum of their marks.
    pub fn take_all(&mut self, other: &mut Group) -> (usize, u64) {
        let (n_moved, marks) = (other.keys.len(), std::mem::take(&mut other.marks));
        self.marks = self.marks.wrapping_add(marks);
        self.keys.append(&mut other.keys);
        (n_moved, marks)
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
                uid_prefix: 0,
                key: Key::new("ns", &format!("w{id}"), ""),
                id: WorkloadId(id),
            });
        }
        group
    }

    #[test]
    fn all_move_whichever_side_is_larger() {
        for (here, there) in [(0..0, 0..3), (3..4, 0..3), (3..9, 0..3), (3..4, 0..0)] {
            let (mut to, mut from) = (group(here.clone()), group(there.clone()));
            let (n_moved, marks) = to.take_all(&mut from);
            assert_eq!((n_moved, marks), (there.len(), group(there.clone()).marks));
            assert!(from.keys().is_empty() && from.marks == 0);
            assert_eq!(to.keys().len(), here.len() + there.len());
            assert_eq!(to.marks, group(here).marks.wrapping_add(marks));
        }
    }

    #[test]
    fn reported_workloads_stay_when_the_group_changes() {
        let (mut to, mut from) = (group(3..4), group(0..3));
        let reported = from.all();
        to.take_all(&mut from);
        assert_eq!([reported.is_empty(), from.all().is_empty()], [false, true]);
        let first = to.keys().first().cloned().expect("four of them");
        to.remove(&first);
        let names: Vec<&str> = reported.keys().map(|key| key.name()).collect();
        assert_eq!((names, reported.len(), to.keys().len()), (vec!["w0", "w1", "w2"], 3, 3));
    }
}
