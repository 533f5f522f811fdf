//! Where workloads wait.

use super::OrderKey;
use super::bucket::BucketId;
use crate::base::ids::{IdTable, WorkloadId};
use crate::base::key::Key;
use crate::objects::Time;

/// The place of each waiting workload; one table for all ClusterQueues, since a workload waits in only one.
#[derive(Clone, Debug, Default)]
pub struct Places {
    table: IdTable<WorkloadId, Option<Place>>,
    /// Sum of one number per workload and place, see [`Places::content`].
    content: u64,
}

/// The bucket of a workload, which says whether it is in the heap or parked, unless it is held; and its sort key.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub bucket: BucketId,
    not_sticky: bool,
    negated_priority: i64,
    time: Time,
    key: Key,
}

impl Place {
    pub fn new(bucket: BucketId, key: &OrderKey) -> Self {
        let &OrderKey { not_sticky, negated_priority, time, ref key, .. } = key;
        Self { bucket, not_sticky, negated_priority, time, key: key.clone() }
    }

    /// The sort key of this workload.
    pub fn key(&self, id: WorkloadId) -> OrderKey {
        let &Self { not_sticky, negated_priority, time, ref key, .. } = self;
        OrderKey { not_sticky, negated_priority, time, uid_prefix: key.uid_prefix(), key: key.clone(), id }
    }
}

impl Places {
    /// Lets the next copies share the table.
    pub(crate) fn share_pieces(&mut self) {
        self.table.share();
    }

    pub(super) fn get(&self, id: WorkloadId) -> Option<&Place> {
        self.table.get(id).and_then(Option::as_ref)
    }

    /// Changes whenever a workload enters, leaves or moves between heap and parked, and has its old value again when
    /// all of them are back in their places (except with a chance of 1 in 2^64).
    pub(crate) fn content(&self) -> u64 {
        self.content
    }

    /// Workloads with these marks have entered a place.
    pub(super) fn count(&mut self, marks: u64) {
        self.content = self.content.wrapping_add(marks);
    }

    /// Workloads with these marks have left a place.
    pub(super) fn discount(&mut self, marks: u64) {
        self.content = self.content.wrapping_sub(marks);
    }

    pub(super) fn put(&mut self, id: WorkloadId, place: Place) {
        *self.table.ensure(id) = Some(place);
    }

    /// The workload no longer waits anywhere.
    pub(crate) fn clear(&mut self, id: WorkloadId) {
        if self.get(id).is_some() {
            *self.table.ensure(id) = None;
        }
    }
}
