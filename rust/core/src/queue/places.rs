//! Where workloads wait.

use super::OrderKey;
use super::bucket::BucketId;
use crate::base::ids::{IdTable, WorkloadId};
use crate::base::key::Key;
use crate::objects::Time;

/// The place of each workload that waits, of all ClusterQueues in one table, as a workload waits in one of them.
#[derive(Clone, Debug, Default)]
pub struct Places(IdTable<WorkloadId, Option<Place>>);

/// The bucket of a workload, which says whether that is heap or parked, unless it is held; and its place there.
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

    /// The place of this workload in its order.
    pub fn key(&self, id: WorkloadId) -> OrderKey {
        let &Self { not_sticky, negated_priority, time, ref key, .. } = self;
        OrderKey { not_sticky, negated_priority, time, uid_prefix: key.uid_prefix(), key: key.clone(), id }
    }
}

impl Places {
    /// Has the next copies share the table.
    pub(crate) fn share_pieces(&mut self) {
        self.0.share();
    }

    pub(super) fn get(&self, id: WorkloadId) -> Option<&Place> {
        self.0.get(id).and_then(Option::as_ref)
    }

    pub(super) fn put(&mut self, id: WorkloadId, place: Place) {
        *self.0.ensure(id) = Some(place);
    }

    /// The workload waits nowhere any more.
    pub(crate) fn clear(&mut self, id: WorkloadId) {
        if self.get(id).is_some() {
            *self.0.ensure(id) = None;
        }
    }
}
