//! The numbers of a workload that cycles and sort orders read, in one cache line.

use crate::base::gates::{Gate, Gates};
use crate::base::ids::{LocalQueueId, QueueId, ShapeId};
use crate::objects::conditions::{self, find_false, find_true};
use crate::objects::config::{Config, RequeuingTimestamp};
use crate::objects::priority::effective_priority;
use crate::objects::{Time, Workload};
use crate::status::admissible::requeue_at;
use crate::status::queue_time::queue_order_timestamp;
use crate::status::stage::{Stage, has_quota_reservation, is_evicted};

/// The numbers of a workload: 64 bytes, copied as a whole. All but the last three fields follow from the object, and
/// change with it in [`Workloads::transition`](super::Workloads::transition).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadRow {
    /// Queue timestamp (rules/05 §1).
    pub time: Time,
    /// Since when it holds quota; the end of time if it holds none.
    pub reserved: Time,
    /// The first bytes of its UID, which decide most ties.
    pub uid_prefix: u64,
    /// Effective priority (rules/04 §2).
    pub priority: i64,
    /// `metadata.generation`.
    pub generation: i64,
    /// Its stage, from its conditions.
    pub stage: Stage,
    /// Is condition QuotaReserved True?
    pub has_reservation: bool,
    /// Is condition Evicted True?
    pub is_evicted: bool,
    /// Does a condition or a backoff keep it out of its heap? The status has the details.
    pub is_held: bool,
    /// Its shape while pending (rules/05 §4); `None`: unknown.
    pub shape: Option<ShapeId>,
    /// The ClusterQueue in whose pending queue it is.
    pub queued_in: Option<QueueId>,
    /// Its LocalQueue, by name; it need not exist.
    pub local_queue: LocalQueueId,
}

const _: () = assert!(size_of::<WorkloadRow>() == 64, "a row is a cache line");

/// The settings that a row depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowRules {
    gates: Gates,
    requeuing: RequeuingTimestamp,
    takes_turns: bool,
}

impl From<&Config> for RowRules {
    fn from(config: &Config) -> Self {
        let takes_turns = config.experiments.time_share_ns.is_some();
        Self { gates: config.gates, requeuing: config.requeuing_timestamp, takes_turns }
    }
}

impl RowRules {
    /// Do the names of pod sets belong to a shape (rules/05 §4)?
    pub(super) fn pod_set_names_count(self) -> bool {
        !self.gates.enabled(Gate::SchedulingEquivalenceHashingIgnorePodSetName)
    }
}

impl WorkloadRow {
    /// The row of a new workload in this LocalQueue.
    pub(crate) fn new(workload: &Workload, local_queue: LocalQueueId, rules: RowRules) -> Self {
        let all = &workload.status.conditions;
        Self {
            time: queue_order_timestamp(workload, rules.requeuing, rules.gates, rules.takes_turns),
            reserved: find_true(all, conditions::QUOTA_RESERVED).map_or(Time(i64::MAX), |c| c.last_transition),
            uid_prefix: workload.meta.key.uid_prefix(),
            priority: effective_priority(workload, rules.gates),
            generation: workload.meta.generation,
            stage: Stage::of(workload),
            has_reservation: has_quota_reservation(workload),
            is_evicted: is_evicted(workload),
            is_held: find_false(all, conditions::REQUEUED).is_some() || requeue_at(workload).is_some(),
            shape: None,
            queued_in: None,
            local_queue,
        }
    }

    /// The row of the same workload after its object has changed.
    pub(crate) fn after(self, workload: &Workload, rules: RowRules) -> Self {
        let Self { shape, queued_in, local_queue, .. } = self;
        Self { shape, queued_in, ..Self::new(workload, local_queue, rules) }
    }
}
