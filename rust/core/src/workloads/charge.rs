//! The charge of a workload that holds quota, and its sort key among candidates for preemption (rules/04 §3).

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use crate::base::ids::{LocalQueueId, QueueId, WorkloadId};
use crate::base::key::Key;
use crate::objects::Time;
use crate::topology::sites::Stand;
use crate::workloads::assigned::Charged;

/// What a reserving workload charges to its ClusterQueue.
#[derive(Clone, Debug)]
pub struct Charge {
    /// The ClusterQueue.
    pub queue: QueueId,
    /// Usage by flavor-resource.
    pub usage: Charged,
    /// Is the workload Admitted, not only reserving?
    pub admitted: bool,
    /// The LocalQueue that it counts for.
    pub local_queue: LocalQueueId,
    /// Its sort key among the candidates for preemption.
    pub candidate: CandidateKey,
    /// The placement of its pods, if they are placed.
    pub stands: Arc<[Stand]>,
}

/// The sort key of a reserving workload among the candidates of its ClusterQueue; smaller is preempted first.
#[derive(Clone, Debug)]
pub struct CandidateKey {
    /// Evicted ones first: false < true.
    pub not_evicted: bool,
    /// Lower effective priority first.
    pub priority: i64,
    /// Later reservation first.
    pub reserved: Reverse<Time>,
    /// By UID, mostly decided by its first bytes.
    pub uid_prefix: u64,
    /// Then by namespace and name, for objects without a UID.
    pub key: Key,
    /// The workload; the fields above are unique.
    pub id: WorkloadId,
    /// Its queue timestamp.
    pub queue_time: Time,
    /// What it is charged for.
    pub uses: Charged,
}

impl Ord for CandidateKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let first = |key: &Self| (key.not_evicted, key.priority, key.reserved, key.uid_prefix);
        // The texts are in other cache lines, and seldom needed.
        let by_uid = || self.key.cmp_by_uid(&other.key).then(self.id.cmp(&other.id));
        first(self).cmp(&first(other)).then_with(by_uid)
    }
}

impl PartialOrd for CandidateKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for CandidateKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for CandidateKey {}

/// A workload to be preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub workload: WorkloadId,
    /// The ClusterQueue whose quota it holds.
    pub queue: QueueId,
    /// Reason of its condition Preempted.
    pub reason: &'static str,
}
