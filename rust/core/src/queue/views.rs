//! Queries on a queue.

use super::bucket::Bucket;
use super::{OrderKey, Pending, Places, Stands};
use crate::base::ids::{ShapeId, WorkloadId};
use crate::base::sorted::Sorted;

impl Pending {
    /// Is the workload in the heap?
    pub fn is_active(&self, places: &Places, id: WorkloadId) -> bool {
        self.find(places, id).is_some_and(|(.., stands)| stands == Stands::InHeap)
    }

    /// Is the workload parked?
    pub fn is_inadmissible(&self, places: &Places, id: WorkloadId) -> bool {
        self.find(places, id).is_some_and(|(.., stands)| stands != Stands::InHeap)
    }

    /// Is the workload the head that is being decided on?
    pub fn is_inflight(&self, id: WorkloadId) -> bool {
        self.inflight == Some(id)
    }

    /// Is anything in the heap?
    pub fn has_active(&self) -> bool {
        !self.firsts.is_empty()
    }

    /// The heap in queue order, ignoring the usage of LocalQueues.
    pub fn active(&self) -> impl Iterator<Item = WorkloadId> + '_ {
        let mut keys: Vec<&OrderKey> = self.buckets.iter().flat_map(|bucket| bucket.active.keys()).collect();
        keys.sort_unstable();
        keys.into_iter().map(|key| key.id)
    }

    /// The parked workloads in queue order.
    pub fn inadmissible(&self) -> impl Iterator<Item = WorkloadId> + '_ {
        let parked = self.buckets.iter().flat_map(|bucket| bucket.parked.keys());
        let mut keys: Vec<&OrderKey> = parked.chain(&self.held).collect();
        keys.sort_unstable();
        keys.into_iter().map(|key| key.id)
    }

    /// The buckets of a shape, one per LocalQueue.
    pub(super) fn of_shape(&self, shape: ShapeId) -> impl Iterator<Item = &Bucket> {
        let from = self.buckets.iter_from(move |bucket| bucket.id.0 < Some(shape));
        from.take_while(move |bucket| bucket.id.0 == Some(shape))
    }

    /// The parked workloads of a shape.
    pub(crate) fn parked_of_shape(&self, shape: ShapeId) -> impl Iterator<Item = WorkloadId> + '_ {
        self.of_shape(shape).flat_map(|bucket| bucket.parked.keys().iter().map(|key| key.id))
    }

    /// Number of workloads before a place, including parked ones.
    pub(crate) fn n_before(&self, key: &OrderKey) -> usize {
        let before = |keys: &Sorted<OrderKey>| keys.count_before(|it| it < key);
        let in_bucket = |bucket: &Bucket| before(bucket.active.keys()) + before(bucket.parked.keys());
        self.buckets.iter().map(in_bucket).sum::<usize>() + before(&self.held)
    }

    /// Number of workloads in the heap.
    pub fn n_active(&self) -> usize {
        self.n_waiting - self.n_parked
    }

    /// Number of parked workloads.
    pub fn n_inadmissible(&self) -> usize {
        self.n_parked
    }

    /// The head that is being decided on.
    pub fn inflight(&self) -> Option<WorkloadId> {
        self.inflight
    }

    /// The reason that a shape is marked with (rules/05 §4).
    pub(crate) fn parked_reason(&self, shape: Option<ShapeId>) -> Option<&'static str> {
        shape.and_then(|s| self.parked_shapes.get(&s).copied())
    }

    /// The marked shapes, and those of the workloads.
    pub fn shapes(&self) -> impl Iterator<Item = ShapeId> + '_ {
        let of_workloads = self.buckets.iter().filter(|bucket| !bucket.is_empty()).filter_map(|bucket| bucket.id.0);
        self.parked_shapes.keys().copied().chain(of_workloads)
    }

    /// Is this workload, as last evaluated, the one that waits for its victims?
    pub fn is_preemptor(&self, id: WorkloadId, generation: i64) -> bool {
        self.preemptor.is_some_and(|p| p.id == id && p.generation == generation)
    }
}
