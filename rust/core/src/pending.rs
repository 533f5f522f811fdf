//! The pending workloads of one ClusterQueue: what is in the heap, what is parked, what is in flight (rules/05 §2, §3).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::decision::Key;
use crate::ids::{LocalQueueId, ShapeId, WorkloadId};
use crate::objects::{QueueingStrategy, Time};

/// The place of a workload in its queue: smaller goes first (rules/05 §2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderKey {
    /// The workload that waits for its preemptions in a BestEffortFIFO queue sorts first: false < true.
    pub not_sticky: bool,
    /// The higher priority first.
    pub negated_priority: i64,
    /// Queue-order time.
    pub time: Time,
    /// UID.
    pub uid: Arc<str>,
    /// Namespace and name, for objects without UID.
    pub key: Key,
    /// The workload; the fields before are unique.
    pub id: WorkloadId,
}

/// Why a workload goes back to its queue (rules/05 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequeueReason {
    /// Not nominated for another reason.
    #[default]
    Generic,
    /// The namespace selector does not match.
    NamespaceMismatch,
    /// The assignment is NoFit.
    NoFit,
    /// Needs preemption, and nobody may be preempted.
    PreemptionNoCandidates,
    /// Needs preemption, which is gated.
    PreemptionGated,
    /// Waits for its victims.
    PendingPreemption,
    /// Waits for a migration (concurrent admission).
    PendingMigration,
    /// All evictions failed.
    PreemptionFailed,
    /// Was nominated and did not make it.
    FailedAfterNomination,
}

impl RequeueReason {
    /// Does the workload go straight back to the heap?
    fn is_immediate(self, strategy: QueueingStrategy) -> bool {
        match strategy {
            QueueingStrategy::StrictFIFO => self != RequeueReason::NamespaceMismatch,
            QueueingStrategy::BestEffortFIFO => matches!(
                self,
                RequeueReason::FailedAfterNomination
                    | RequeueReason::PendingPreemption
                    | RequeueReason::PendingMigration
                    | RequeueReason::PreemptionFailed
            ),
        }
    }

    /// Does such a failure hold for every workload of the same shape (rules/05 §4)?
    fn holds_for_shape(self) -> bool {
        matches!(self, RequeueReason::NoFit | RequeueReason::PreemptionNoCandidates)
    }

    /// Does the workload now wait as a preemptor (rules/05 §5)?
    fn makes_preemptor(self) -> bool {
        matches!(self, RequeueReason::PendingPreemption | RequeueReason::PendingMigration)
    }
}

/// What the queue has to know of a workload to place it.
#[derive(Clone, Debug)]
pub struct Item {
    /// The workload.
    pub id: WorkloadId,
    /// Its LocalQueue.
    pub local_queue: LocalQueueId,
    /// Its shape; `None`: unknown.
    pub shape: Option<ShapeId>,
    /// Its effective priority.
    pub priority: i64,
    /// Its queue-order time.
    pub time: Time,
    /// Its UID.
    pub uid: Arc<str>,
    /// Namespace and name.
    pub key: Key,
    /// May it be queued now (rules/05 §2.1 rule 3)?
    pub backoff_expired: bool,
}

/// Which workload of the queue waits for its victims (rules/05 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preemptor {
    /// The workload.
    pub id: WorkloadId,
    /// Its generation when it was evaluated.
    pub generation: i64,
    /// Does it stay in front?
    pub sticky: bool,
}

/// What is known of a workload in the heap.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    shape: Option<ShapeId>,
    local_queue: LocalQueueId,
}

/// The pending queue of one ClusterQueue.
#[derive(Clone, Debug)]
pub struct Pending {
    /// `queueingStrategy`.
    pub strategy: QueueingStrategy,
    /// Does the LocalQueue go first that has used least (rules/09 §1.5)? Set before anything is queued.
    pub is_usage_based: bool,
    active: BTreeMap<OrderKey, Waiting>,
    /// The heap by LocalQueue, if it is usage-based: usage changes for all workloads of a LocalQueue at once.
    by_local_queue: BTreeMap<LocalQueueId, BTreeSet<OrderKey>>,
    key_of: FxHashMap<WorkloadId, OrderKey>,
    by_shape: FxHashMap<ShapeId, BTreeSet<OrderKey>>,
    inadmissible: BTreeSet<WorkloadId>,
    inflight: Option<WorkloadId>,
    /// Shapes that failed since the last flush, with the reason to write on those parked with them.
    parked_shapes: FxHashMap<ShapeId, &'static str>,
    pop_cycle: i64,
    flush_cycle: i64,
    preemptor: Option<Preemptor>,
    /// Sum of one number per workload and place, see [`Pending::content`].
    content: u64,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            strategy: QueueingStrategy::default(),
            is_usage_based: false,
            active: BTreeMap::new(),
            by_local_queue: BTreeMap::new(),
            key_of: FxHashMap::default(),
            by_shape: FxHashMap::default(),
            inadmissible: BTreeSet::new(),
            inflight: None,
            parked_shapes: FxHashMap::default(),
            pop_cycle: 0,
            flush_cycle: -1,
            preemptor: None,
            content: 0,
        }
    }
}

/// A number of its own for each workload in each place (the finalizer of SplitMix64, a bijection).
fn mark_of(id: WorkloadId, parked: bool) -> u64 {
    let mut mark = (u64::from(id.0) << 1 | u64::from(parked)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mark = (mark ^ (mark >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mark = (mark ^ (mark >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mark ^ (mark >> 31)
}

impl Pending {
    /// The place that a workload has, or would have, in the heap.
    pub fn key(&self, item: &Item) -> OrderKey {
        let sticky = self.preemptor.is_some_and(|p| p.sticky && p.id == item.id);
        OrderKey {
            not_sticky: !sticky,
            negated_priority: item.priority.saturating_neg(),
            time: item.time,
            uid: Arc::clone(&item.uid),
            key: Arc::clone(&item.key),
            id: item.id,
        }
    }

    fn push_active(&mut self, item: &Item) {
        self.remove_active(item.id);
        let key = self.key(item);
        if let Some(shape) = item.shape {
            self.by_shape.entry(shape).or_default().insert(key.clone());
        }
        self.key_of.insert(item.id, key.clone());
        if self.is_usage_based {
            self.by_local_queue.entry(item.local_queue).or_default().insert(key.clone());
        }
        self.active.insert(key, Waiting { shape: item.shape, local_queue: item.local_queue });
        self.content = self.content.wrapping_add(mark_of(item.id, false));
    }

    fn park(&mut self, id: WorkloadId) -> bool {
        let is_new = self.inadmissible.insert(id);
        if is_new {
            self.content = self.content.wrapping_add(mark_of(id, true));
        }
        is_new
    }

    fn take_parked(&mut self, id: WorkloadId) -> bool {
        let was_parked = self.inadmissible.remove(&id);
        if was_parked {
            self.content = self.content.wrapping_sub(mark_of(id, true));
        }
        was_parked
    }

    /// Changes whenever a workload comes, goes or moves between heap and parked ones, and is back at its old value
    /// when all of them are back in their places (but for a chance of 1 in 2^64).
    pub fn content(&self) -> u64 {
        self.content
    }

    fn remove_active(&mut self, id: WorkloadId) -> bool {
        let Some(key) = self.key_of.remove(&id) else { return false };
        let waiting = self.active.remove(&key).expect("every known key is in the heap");
        self.content = self.content.wrapping_sub(mark_of(id, false));
        self.leave_shape(waiting.shape, &key);
        self.leave_local_queue(waiting.local_queue, &key);
        true
    }

    fn leave_shape(&mut self, shape: Option<ShapeId>, key: &OrderKey) {
        if let Some(shape) = shape
            && let Some(keys) = self.by_shape.get_mut(&shape)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.by_shape.remove(&shape);
            }
        }
    }

    fn leave_local_queue(&mut self, local_queue: LocalQueueId, key: &OrderKey) {
        if let Some(keys) = self.by_local_queue.get_mut(&local_queue) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_local_queue.remove(&local_queue);
            }
        }
    }

    /// Is the workload in the heap?
    pub fn is_active(&self, id: WorkloadId) -> bool {
        self.key_of.contains_key(&id)
    }

    /// Is the workload parked?
    pub fn is_inadmissible(&self, id: WorkloadId) -> bool {
        self.inadmissible.contains(&id)
    }

    /// Is the workload the head that is being decided on?
    pub fn is_inflight(&self, id: WorkloadId) -> bool {
        self.inflight == Some(id)
    }

    /// Is anything in the heap?
    pub fn has_active(&self) -> bool {
        !self.active.is_empty()
    }

    /// The heap in queue order, what LocalQueues have used aside.
    pub fn active(&self) -> impl Iterator<Item = WorkloadId> + '_ {
        self.active.keys().map(|key| key.id)
    }

    /// What is parked, by slot.
    pub fn inadmissible(&self) -> impl Iterator<Item = WorkloadId> + '_ {
        self.inadmissible.iter().copied()
    }

    /// Number of workloads in the heap.
    pub fn n_active(&self) -> usize {
        self.active.len()
    }

    /// Number of parked workloads.
    pub fn n_inadmissible(&self) -> usize {
        self.inadmissible.len()
    }

    /// Number of heads that are being decided on: 0 or 1.
    pub fn n_inflight(&self) -> usize {
        usize::from(self.inflight.is_some())
    }

    /// The reason that was marked for a shape (rules/05 §4).
    pub fn parked_reason(&self, shape: Option<ShapeId>) -> Option<&'static str> {
        shape.and_then(|s| self.parked_shapes.get(&s).copied())
    }

    /// Is this workload, as last evaluated, the one that waits for its victims?
    pub fn is_preemptor(&self, id: WorkloadId, generation: i64) -> bool {
        self.preemptor.is_some_and(|p| p.id == id && p.generation == generation)
    }

    /// A new or changed workload (rules/05 §2.1). `relevant` says whether a parked one changed in a way that may make
    /// it admissible.
    pub fn push_or_update(&mut self, item: &Item, relevant: bool) {
        if self.is_inflight(item.id) {
            return;
        }
        if self.inadmissible.contains(&item.id) {
            if !relevant {
                return;
            }
            self.take_parked(item.id);
        }
        if !self.is_active(item.id) {
            let parked = self.strategy == QueueingStrategy::BestEffortFIFO && self.parked_reason(item.shape).is_some();
            if !item.backoff_expired || parked {
                self.park(item.id);
                return;
            }
        }
        self.push_active(item);
    }

    /// A workload that comes with its LocalQueue: into the heap, unless it is somewhere already.
    pub fn push_if_absent(&mut self, item: &Item) {
        if !self.is_active(item.id) && !self.is_inadmissible(item.id) && !self.is_inflight(item.id) {
            self.push_active(item);
        }
    }

    /// Forgets a workload.
    pub fn delete(&mut self, id: WorkloadId) {
        self.take_parked(id);
        self.remove_active(id);
        if self.inflight == Some(id) {
            self.inflight = None;
        }
        if self.preemptor.is_some_and(|p| p.id == id) {
            self.preemptor = None;
        }
    }

    /// Takes the head out, to be decided on. `usage` says what a LocalQueue has used; it is only asked if that counts.
    pub fn pop(&mut self, usage: impl Fn(LocalQueueId) -> f64) -> Option<WorkloadId> {
        self.pop_cycle += 1;
        let id = self.head(usage)?;
        self.remove_active(id);
        self.inflight = Some(id);
        Some(id)
    }

    fn head(&self, usage: impl Fn(LocalQueueId) -> f64) -> Option<WorkloadId> {
        if !self.is_usage_based {
            return self.active.first_key_value().map(|(key, _)| key.id);
        }
        let heads = self.by_local_queue.iter().filter_map(|(&id, keys)| Some((usage(id), keys.first()?)));
        heads.min_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1))).map(|(_, key)| key.id)
    }

    /// Gives a head back (rules/05 §3). `pending_flavors`: its scan of flavors has not come to an end; `generation`: that
    /// of the object when it was popped. Returns the workloads of its shape that were parked with it.
    pub fn requeue(
        &mut self,
        item: &Item,
        reason: RequeueReason,
        quota_reserved_reason: &'static str,
        pending_flavors: bool,
        generation: i64,
        hashing: bool,
    ) -> Vec<WorkloadId> {
        if reason.makes_preemptor() {
            let sticky = self.strategy == QueueingStrategy::BestEffortFIFO;
            self.preemptor = Some(Preemptor { id: item.id, generation, sticky });
        }
        if self.inflight == Some(item.id) {
            self.inflight = None;
        }
        let flushed_meanwhile = self.flush_cycle >= self.pop_cycle;
        if item.backoff_expired && (reason.is_immediate(self.strategy) || flushed_meanwhile || pending_flavors) {
            if !self.is_active(item.id) {
                self.take_parked(item.id);
                self.push_active(item);
            }
            return Vec::new();
        }
        if self.is_active(item.id) || !self.park(item.id) {
            return Vec::new();
        }
        if let Some(shape) = item.shape
            && hashing
            && reason.holds_for_shape()
            && self.strategy == QueueingStrategy::BestEffortFIFO
        {
            return self.park_shape(shape, quota_reserved_reason);
        }
        Vec::new()
    }

    /// Marks a shape and parks all of it that is in the heap.
    pub fn park_shape(&mut self, shape: ShapeId, reason: &'static str) -> Vec<WorkloadId> {
        let reason = if reason.is_empty() { crate::reasons::PENDING_EVALUATION } else { reason };
        self.parked_shapes.insert(shape, reason);
        let keys = self.by_shape.remove(&shape).unwrap_or_default();
        for key in &keys {
            if let Some(waiting) = self.active.remove(key) {
                self.leave_local_queue(waiting.local_queue, key);
            }
            self.key_of.remove(&key.id);
            self.content = self.content.wrapping_sub(mark_of(key.id, false));
            self.park(key.id);
        }
        keys.into_iter().map(|key| key.id).collect()
    }

    /// Begins a flush: the marks of shapes go, and what was popped before comes back to the heap (rules/05 §3.1).
    pub fn begin_flush(&mut self) {
        self.flush_cycle = self.pop_cycle;
        self.parked_shapes.clear();
    }

    /// Moves a parked workload back to the heap.
    pub fn unpark(&mut self, item: &Item) {
        if self.take_parked(item.id) {
            self.push_active(item);
        }
    }
}
