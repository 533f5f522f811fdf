//! Where workloads wait.

use super::OrderKey;
use super::bucket::BucketId;
use crate::base::ids::{IdTable, WorkloadId};

/// The place of each workload that waits, of all ClusterQueues in one table, as a workload waits in one of them.
#[derive(Clone, Debug, Default)]
pub struct Places(IdTable<WorkloadId, Option<Place>>);

/// The bucket of a workload, which says whether that is heap or parked, unless it is held; and its place there.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub bucket: BucketId,
    pub key: OrderKey,
}

impl Places {
    pub(super) fn get(&self, id: WorkloadId) -> Option<&Place> {
        self.0.get(id).and_then(Option::as_ref)
    }

    pub(super) fn put(&mut self, place: Place) {
        let id = place.key.id;
        *self.0.ensure(id) = Some(place);
    }

    /// The workload waits nowhere any more.
    pub(crate) fn clear(&mut self, id: WorkloadId) {
        if self.get(id).is_some() {
            *self.0.ensure(id) = None;
        }
    }
}
