//! The pending workloads of one ClusterQueue: what is in the heap, what is parked, what is in flight (rules/05 §2, §3).

mod bucket;
mod order;
mod places;
mod requeue;
mod stored;
mod views;

pub use bucket::Parked;
pub use order::OrderKey;
pub use places::Places;
pub use requeue::{RequeueReason, Returned};

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use self::bucket::{Bucket, BucketId, First, Group, mark_of};
use self::places::Place;
use crate::base::ids::{LocalQueueId, ShapeId, WorkloadId};
use crate::base::key::Key;
use crate::base::sorted::Sorted;
use crate::objects::{QueueingStrategy, Time};

/// The state of a workload in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    InHeap,
    Parked,
    /// Parked alone.
    Held,
}

/// What the queue needs of a workload to place it.
#[derive(Clone, Debug)]
pub struct Item {
    pub id: WorkloadId,
    /// Its LocalQueue.
    pub local_queue: LocalQueueId,
    /// Its shape; `None`: unknown.
    pub shape: Option<ShapeId>,
    /// Its effective priority.
    pub priority: i64,
    /// Its queue-order time.
    pub time: Time,
    /// Namespace, name and UID.
    pub key: Key,
    /// May it be queued now (rules/05 §2.1 rule 3)?
    pub backoff_expired: bool,
}

/// Which workload of the queue waits for its victims (rules/05 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preemptor {
    pub id: WorkloadId,
    /// Its generation when it was evaluated.
    pub generation: i64,
    /// Does it stay in front?
    pub sticky: bool,
}

/// The pending queue of one ClusterQueue. [`Places`], shared by all queues, says where a workload is in it.
#[derive(Clone, Debug)]
pub struct Pending {
    /// `queueingStrategy`.
    pub strategy: QueueingStrategy,
    /// Does the LocalQueue go first that has used least (rules/09 §1.5)? Set before anything is queued.
    pub is_usage_based: bool,
    /// By their ids. An empty one stays if there is no other: its memory serves whoever comes next.
    buckets: Sorted<Bucket>,
    /// The first of each bucket in the heap.
    firsts: Sorted<First>,
    /// In the heap or parked.
    n_waiting: usize,
    n_parked: usize,
    /// Parked alone: a backoff or a condition held them back when they were.
    held: Sorted<OrderKey>,
    inflight: Option<WorkloadId>,
    /// Shapes that failed since the last flush, with the reason to write on those parked with them.
    parked_shapes: FxHashMap<ShapeId, &'static str>,
    pop_cycle: i64,
    flush_cycle: i64,
    preemptor: Option<Preemptor>,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            strategy: QueueingStrategy::default(),
            is_usage_based: false,
            buckets: Sorted::default(),
            firsts: Sorted::default(),
            n_waiting: 0,
            n_parked: 0,
            held: Sorted::default(),
            inflight: None,
            parked_shapes: FxHashMap::default(),
            pop_cycle: 0,
            flush_cycle: -1,
            preemptor: None,
        }
    }
}

/// What the mark of a workload is multiplied by while it is parked.
const PARKED: u64 = 0xd6e8_feb8_6659_fd93;

impl Pending {
    /// The place that a workload has, or would have, in the heap.
    pub fn key(&self, item: &Item) -> OrderKey {
        let sticky = self.preemptor.is_some_and(|p| p.sticky && p.id == item.id);
        OrderKey {
            not_sticky: !sticky,
            negated_priority: item.priority.saturating_neg(),
            time: item.time,
            uid_prefix: item.key.uid_prefix(),
            key: item.key.clone(),
            id: item.id,
        }
    }

    /// Puts a workload into the heap; it is nowhere in the queue yet.
    fn push_active(&mut self, places: &mut Places, item: &Item) {
        let (bucket, key) = self.give_place(places, item);
        self.change(bucket, |bucket| bucket.active.insert(key));
    }

    /// The bucket and the place in the heap that a workload has from now on; it is up to the caller to put it there.
    fn give_place(&mut self, places: &mut Places, item: &Item) -> (BucketId, OrderKey) {
        let (bucket, key) = ((item.shape, item.local_queue), self.key(item));
        self.n_waiting += 1;
        places.put(item.id, Place::new(bucket, &key));
        places.count(mark_of(item.id));
        (bucket, key)
    }

    /// Parks a workload; it is nowhere in the queue yet.
    fn park(&mut self, places: &mut Places, item: &Item) {
        let (bucket, key) = ((item.shape, item.local_queue), self.key(item));
        places.put(item.id, Place::new(bucket, &key));
        if item.backoff_expired {
            self.change(bucket, |bucket| bucket.parked.insert(key));
        } else {
            self.held.insert(key);
        }
        self.n_waiting += 1;
        self.n_parked += 1;
        places.count(mark_of(item.id).wrapping_mul(PARKED));
    }

    /// The place of a workload in this queue, if it is in it.
    fn find(&self, places: &Places, id: WorkloadId) -> Option<(BucketId, OrderKey, Stands)> {
        let place = places.get(id)?;
        let (home, key) = (place.bucket, place.key(id));
        let is_in = |group: &Group| group.keys().contains(&key);
        let stands = if self.held.contains(&key) {
            Stands::Held
        } else {
            let bucket = self.buckets.find(|it| it.id.cmp(&home))?;
            if is_in(&bucket.active) { Stands::InHeap } else { is_in(&bucket.parked).then_some(Stands::Parked)? }
        };
        Some((home, key, stands))
    }

    /// Removes a workload from the heap or the parked ones; returns where it was.
    fn take(&mut self, places: &mut Places, id: WorkloadId) -> Option<Stands> {
        let (bucket, key, stood) = self.find(places, id)?;
        let mark = mark_of(id);
        if stood == Stands::InHeap {
            places.discount(mark);
        } else {
            places.discount(mark.wrapping_mul(PARKED));
            self.n_parked -= 1;
        }
        match stood {
            Stands::InHeap => self.change(bucket, |bucket| bucket.active.remove(&key)),
            Stands::Parked => self.change(bucket, |bucket| bucket.parked.remove(&key)),
            Stands::Held => _ = self.held.remove(&key),
        }
        self.n_waiting -= 1;
        places.clear(id);
        Some(stood)
    }

    /// Changes the bucket with this id, which is created if needed. Then updates the first of its heap, and drops the
    /// bucket if it is empty and not the only one.
    fn change<T>(&mut self, id: BucketId, change: impl FnOnce(&mut Bucket) -> T) -> T {
        if self.buckets.find(|it| it.id.cmp(&id)).is_none() {
            let is_alone_and_empty = self.buckets.len() == 1 && self.buckets.first().is_some_and(Bucket::is_empty);
            let vacant = if is_alone_and_empty { self.buckets.take(|_| Ordering::Equal) } else { None };
            let (active, parked) = vacant.map(|it| (it.active, it.parked)).unwrap_or_default();
            let bucket = Bucket { id, active, parked };
            self.buckets.insert_by(bucket, |a, b| a.id.cmp(&b.id));
        }
        let bucket = self.buckets.find_mut(|it| it.id.cmp(&id)).expect("it is there now");
        let before = bucket.active.keys().first().cloned();
        let result = change(bucket);
        let (after, is_empty) = (bucket.active.keys().first(), bucket.is_empty());
        if before.as_ref() != after {
            let lane = if self.is_usage_based { id.1 } else { LocalQueueId(0) };
            let first = |key| First { lane, key, bucket: id };
            let after = after.cloned();
            before.into_iter().for_each(|key| _ = self.firsts.remove(&first(key)));
            after.into_iter().for_each(|key| _ = self.firsts.insert(first(key)));
        }
        if is_empty && self.buckets.len() > 1 {
            self.buckets.take(|it| it.id.cmp(&id));
        }
        result
    }

    /// A new or changed workload (rules/05 §2.1). `relevant` says whether a parked one changed in a way that may make
    /// it admissible.
    pub fn push_or_update(&mut self, places: &mut Places, item: &Item, relevant: bool) {
        // The cycle returns it itself, and then reads the newest object (rules/05 §2.1 rule 1).
        if self.is_inflight(item.id) {
            return;
        }
        let stood = self.take(places, item.id);
        if stood == Some(Stands::InHeap) {
            self.push_active(places, item);
            return;
        }
        // A write of its own status must not bring a parked workload back, or it would be tried in every cycle
        // (rules/05 §2.1 rule 2).
        if (stood.is_some() && !relevant) || self.is_held_back(item) {
            self.park(places, item);
        } else {
            self.push_active(places, item);
        }
    }

    /// Must it wait for a backoff, or for the change that its shape waits for?
    fn is_held_back(&self, item: &Item) -> bool {
        // In StrictFIFO nothing overtakes the head, so shapes are not marked (rules/05 §4).
        let marked = self.strategy == QueueingStrategy::BestEffortFIFO && self.parked_reason(item.shape).is_some();
        !item.backoff_expired || marked
    }

    /// Adds many new workloads, none of which is in the queue.
    pub(crate) fn push_new(&mut self, places: &mut Places, items: &[Item]) {
        let mut arrivals: BTreeMap<BucketId, Vec<OrderKey>> = BTreeMap::new();
        for item in items {
            if self.is_held_back(item) {
                self.park(places, item);
                continue;
            }
            let (bucket, key) = self.give_place(places, item);
            arrivals.entry(bucket).or_default().push(key);
        }
        for (bucket, keys) in arrivals {
            self.change(bucket, |bucket| bucket.active.insert_all(keys));
        }
    }

    /// Adds a workload that comes with its LocalQueue to the heap, unless it is in the queue or in flight.
    pub(crate) fn push_if_absent(&mut self, places: &mut Places, item: &Item) {
        if self.find(places, item.id).is_none() && !self.is_inflight(item.id) {
            self.push_active(places, item);
        }
    }

    /// Forgets a workload; returns whether that left the heap empty.
    pub fn delete(&mut self, places: &mut Places, id: WorkloadId) -> bool {
        let stood = self.take(places, id);
        if self.inflight == Some(id) {
            self.inflight = None;
        }
        // Before 0.20 only here: a preemptor that no longer fits anywhere stayed the preemptor (rules/05 §5).
        if self.preemptor.is_some_and(|p| p.id == id) {
            self.preemptor = None;
        }
        stood == Some(Stands::InHeap) && !self.has_active()
    }

    /// Takes the head out for a decision. `usage` is that of a LocalQueue, called only if usage affects the order.
    pub fn pop(&mut self, places: &mut Places, usage: impl Fn(LocalQueueId) -> f64) -> Option<WorkloadId> {
        // Even without a head: this number decides whether a flush is recent (rules/05 §2.2).
        self.pop_cycle += 1;
        self.inflight = None;
        self.pop_more(places, usage)
    }

    /// Takes one more out for the same decision: what flushed the queue meanwhile stays recent. The one before is about
    /// to leave the queue, so it needs no protection from updates.
    pub(crate) fn pop_more(&mut self, places: &mut Places, usage: impl Fn(LocalQueueId) -> f64) -> Option<WorkloadId> {
        let &First { ref key, bucket, .. } = self.head(usage)?;
        let id = key.id;
        self.change(bucket, |bucket| bucket.active.pop());
        places.discount(mark_of(id));
        self.n_waiting -= 1;
        places.clear(id);
        self.inflight = Some(id);
        self.inflight
    }

    fn head(&self, usage: impl Fn(LocalQueueId) -> f64) -> Option<&First> {
        let first = self.firsts.first()?;
        if !self.is_usage_based {
            return Some(first);
        }
        let next = |last: &&First| self.firsts.iter_from(|it| it.lane <= last.lane).next();
        let heads = std::iter::successors(Some(first), next).map(|first| (usage(first.lane), first));
        heads.min_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.key.cmp(&b.1.key))).map(|(_, first)| first)
    }

    /// Returns a head to the queue (rules/05 §3). The result lists the workloads of its shape that were parked with it;
    /// `None` if nothing changes for others of its shape.
    pub fn requeue(&mut self, places: &mut Places, item: &Item, returned: &Returned) -> Option<Vec<Parked>> {
        let &Returned { reason, status_reason, pending_flavors, generation, hashing, .. } = returned;
        // In StrictFIFO the head comes back to the front without that (rules/05 §5).
        let sticky = self.strategy == QueueingStrategy::BestEffortFIFO;
        if reason.makes_preemptor() && (sticky || returned.strict_queues_note) {
            let old = self.preemptor.replace(Preemptor { id: item.id, generation, sticky });
            self.lose_stickiness(places, old.filter(|old| old.id != item.id));
        } else if returned.ends_stickiness && self.preemptor.is_some_and(|it| it.id == item.id) {
            // It no longer waits for victims, so nothing is owed to it (rules/05 §5).
            let old = self.preemptor.take();
            self.lose_stickiness(places, old);
        }
        if self.inflight == Some(item.id) {
            self.inflight = None;
        }
        // What freed quota while the head was decided on is not in the snapshot that it failed on (rules/05 §3).
        let flushed_meanwhile = self.flush_cycle >= self.pop_cycle;
        if item.backoff_expired && (reason.is_immediate(self.strategy) || flushed_meanwhile || pending_flavors) {
            if !self.is_active(places, item.id) {
                self.take(places, item.id);
                self.push_active(places, item);
            }
            return None;
        }
        if self.find(places, item.id).is_some() {
            return None;
        }
        self.park(places, item);
        if let Some(shape) = item.shape
            && hashing
            && (reason.holds_for_shape() || (returned.any_failure_counts && !reason.is_immediate(self.strategy)))
            && self.strategy == QueueingStrategy::BestEffortFIFO
        {
            return self.park_shape(places, shape, status_reason);
        }
        None
    }

    /// The previous preemptor loses its place in front.
    fn lose_stickiness(&mut self, places: &mut Places, old: Option<Preemptor>) {
        let Some((bucket, stale, stands)) = old.and_then(|old| self.find(places, old.id)) else { return };
        let key = OrderKey { not_sticky: true, ..stale.clone() };
        places.put(key.id, Place::new(bucket, &key));
        let replace = |group: &mut Group| {
            group.remove(&stale);
            group.insert(key.clone());
        };
        match stands {
            Stands::InHeap => self.change(bucket, |bucket| replace(&mut bucket.active)),
            Stands::Parked => self.change(bucket, |bucket| replace(&mut bucket.parked)),
            Stands::Held => {
                self.held.remove(&stale);
                self.held.insert(key);
            }
        }
    }

    /// Marks a shape and parks its workloads that are in the heap, one step per LocalQueue. Returns these; `None` if
    /// the mark is new to no other workload of the shape.
    pub fn park_shape(&mut self, places: &mut Places, shape: ShapeId, reason: &'static str) -> Option<Vec<Parked>> {
        let reason = if reason.is_empty() { crate::status::reasons::PENDING_EVALUATION } else { reason };
        let is_known = self.parked_shapes.insert(shape, reason) == Some(reason);
        let waiting = self.of_shape(shape).filter(|bucket| !bucket.active.keys().is_empty());
        let waiting: Vec<BucketId> = waiting.map(|bucket| bucket.id).collect();
        let mut moved = Vec::with_capacity(waiting.len());
        for id in waiting {
            let (n_moved, marks) = self.change(id, |Bucket { active, parked, .. }| {
                moved.push(active.all());
                parked.take_all(active)
            });
            places.discount(marks);
            places.count(marks.wrapping_mul(PARKED));
            self.n_parked += n_moved;
        }
        // One of them was parked just before this.
        let has_others = |queue: &Self| queue.parked_of_shape(shape).nth(1).is_some();
        (!moved.is_empty() || (!is_known && has_others(self))).then_some(moved)
    }

    /// Begins a flush: clears the marks of shapes, and lets heads popped earlier return to the heap (rules/05 §3.1).
    pub(crate) fn begin_flush(&mut self) {
        self.flush_cycle = self.pop_cycle;
        self.parked_shapes.clear();
    }

    /// Moves the parked workloads of the LocalQueues that are `selected` back to the heap, those aside that are held.
    /// Returns how many moved.
    pub(crate) fn unpark_buckets(
        &mut self,
        places: &mut Places,
        mut selected: impl FnMut(LocalQueueId) -> bool,
    ) -> usize {
        if self.n_parked == self.held.len() {
            return 0;
        }
        let parked = self.buckets.iter().filter(|bucket| !bucket.parked.keys().is_empty()).map(|bucket| bucket.id);
        let parked: Vec<BucketId> = parked.collect();
        let mut n_moved = 0;
        for id in parked {
            if !selected(id.1) {
                continue;
            }
            let (n_of_bucket, marks) = self.change(id, |Bucket { active, parked, .. }| active.take_all(parked));
            n_moved += n_of_bucket;
            places.discount(marks.wrapping_mul(PARKED));
            places.count(marks);
        }
        self.n_parked -= n_moved;
        n_moved
    }

    /// The parked workloads that a backoff or a condition held back when they were parked.
    pub fn held(&self) -> impl Iterator<Item = WorkloadId> + '_ {
        self.held.iter().map(|key| key.id)
    }

    /// Moves a parked workload back to the heap.
    pub(crate) fn unpark(&mut self, places: &mut Places, item: &Item) {
        if self.is_inadmissible(places, item.id) {
            self.take(places, item.id);
            self.push_active(places, item);
        }
    }
}

#[cfg(test)]
mod tests;
