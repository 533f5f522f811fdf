//! The order of a queue.

use std::cmp::Ordering;

use crate::base::ids::WorkloadId;
use crate::base::key::Key;
use crate::objects::Time;

/// The sort key of a workload in its queue: smaller goes first (rules/05 §2).
#[derive(Clone, Debug)]
pub struct OrderKey {
    /// The workload that waits for its preemptions in a BestEffortFIFO queue sorts first: false < true.
    pub not_sticky: bool,
    /// Higher priority first.
    pub negated_priority: i64,
    /// Queue timestamp.
    pub time: Time,
    /// By UID, mostly decided by its first bytes.
    pub uid_prefix: u64,
    /// Then by namespace and name, for objects without a UID.
    pub key: Key,
    /// The workload; the fields above are unique.
    pub id: WorkloadId,
}

impl Ord for OrderKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let first = |key: &Self| (key.not_sticky, key.negated_priority, key.time, key.uid_prefix);
        // The texts are in other cache lines, and seldom needed.
        let by_uid = || self.key.cmp_by_uid(&other.key).then(self.id.cmp(&other.id));
        first(self).cmp(&first(other)).then_with(by_uid)
    }
}

impl PartialOrd for OrderKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OrderKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for OrderKey {}
