//! Records of ClusterQueues, Cohorts and LocalQueues.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::assign::rules::RulesId;
use crate::assign::{QueueRules, Usage};
use crate::base::ids::{CohortId, IdSet, LocalQueueId, QueueId, WorkloadId};
use crate::base::key::Key;
use crate::base::shared::Shared;
use crate::base::sorted::Sorted;
use crate::objects::{ClusterQueue, Cohort, LocalQueue, StopPolicy, WorkloadStatus};
use crate::queue::Pending;
use crate::quota::forest::NodeId;
use crate::state::admission_fair_sharing::Account;
use crate::state::queue_counts::{LocalUsage, count};
use crate::state::verdicts::Verdicts;
use crate::status::activeness::{Activeness, QueueStatus};
use crate::workloads::candidates::Candidates;
use crate::workloads::charge::Charge;

/// A ClusterQueue, or a name that others refer to.
#[derive(Clone, Debug, Default)]
pub struct QueueRecord {
    /// The object as applied; `None`: it does not exist.
    pub object: Option<Arc<ClusterQueue>>,
    /// Its node in the forest, while it has an object.
    pub node: Option<NodeId>,
    /// What assignment reads of it. Older than `object` while its cohort has a cycle (rules/02 §4 rule 5).
    pub rules: Arc<QueueRules>,
    pub rules_id: RulesId,
    /// The object that `rules` was taken from.
    pub settled: Option<Arc<ClusterQueue>>,
    /// May it admit, and why not?
    pub activeness: Option<Activeness>,
    /// Has its deletion begun?
    pub terminating: bool,
    /// Its pending workloads.
    pub pending: Pending,
    /// Is it listed in `State::waiting`?
    pub is_waiting: bool,
    /// The workloads that hold its quota.
    pub candidates: Shared<Candidates>,
    pub n_reserving: usize,
    /// The number of those that are Admitted.
    pub n_admitted: usize,
    /// Usage of the Admitted workloads.
    pub admitted_usage: Usage,
    /// Usage of each LocalQueue whose workloads ever held quota here.
    pub(crate) usage_of: Sorted<(LocalQueueId, LocalUsage)>,
    /// Workloads whose reservation names this queue but is not charged: the queue does not exist, or they leave
    /// scheduling to their variants. May contain workloads that no longer do.
    pub uncounted: IdSet<WorkloadId>,
    /// The LocalQueues that point to it.
    pub local_queues: BTreeSet<LocalQueueId>,
    /// Remembered verdicts on its heads.
    pub verdicts: Verdicts,
}

impl QueueRecord {
    /// Is its status `active`?
    pub fn is_active(&self) -> bool {
        self.activeness.as_ref().is_some_and(Activeness::is_active)
    }

    /// Its status as a word; empty before it was first computed.
    pub fn status_name(&self) -> &'static str {
        if self.terminating {
            return QueueStatus::Terminating.name();
        }
        self.activeness.as_ref().map_or("", |a| a.status.name())
    }

    /// What a LocalQueue holds, if a workload of it ever held quota here.
    pub fn usage_of(&self, id: LocalQueueId) -> Option<&LocalUsage> {
        self.usage_of.find(|it| it.0.cmp(&id)).map(|(_, usage)| usage)
    }

    /// Adds a charge to the counts of its LocalQueue and, if Admitted, to the totals; or subtracts it.
    pub(crate) fn count_charge(&mut self, charge: &Charge, add: bool) {
        self.n_reserving = if add { self.n_reserving + 1 } else { self.n_reserving - 1 };
        let id = charge.local_queue;
        if self.usage_of(id).is_none() {
            self.usage_of.insert_by((id, LocalUsage::default()), |a, b| a.0.cmp(&b.0));
        }
        self.usage_of.find_mut(|it| it.0.cmp(&id)).expect("it is there now").1.count(charge, add);
        if charge.admitted {
            count(&mut self.admitted_usage, &mut self.n_admitted, charge, add);
        }
    }

    /// The workloads that hold its quota.
    pub fn reserving(&self) -> BTreeSet<WorkloadId> {
        self.candidates.workloads()
    }
}

/// A Cohort, declared or only referenced.
#[derive(Clone, Debug, Default)]
pub struct CohortRecord {
    /// The object; `None`: only referenced.
    pub object: Option<Arc<Cohort>>,
    /// Its node, while it has an object or children.
    pub node: Option<NodeId>,
}

/// A LocalQueue, or a name that workloads use for one.
#[derive(Clone, Debug, Default)]
pub struct LocalQueueRecord {
    /// The object; `None`: it does not exist.
    pub object: Option<Arc<LocalQueue>>,
    /// The ClusterQueue that it names, existing or not.
    pub queue: Option<QueueId>,
    /// The workloads that name it.
    pub workloads: IdSet<WorkloadId>,
    /// How many of them wait in the queue of a ClusterQueue.
    pub n_queued: usize,
    /// The usage of its workloads over time (rules/09 §1.3).
    pub account: Option<Account>,
}

impl LocalQueueRecord {
    /// The object, unless it is stopped: Kueue's queue manager does not know stopped ones (rules/05 §2).
    pub fn running(&self) -> Option<&LocalQueue> {
        self.object.as_deref().filter(|o| o.stop_policy == StopPolicy::None)
    }
}

/// Namespaces in which the defaults of pods may have changed with LimitRanges or RuntimeClasses.
#[derive(Clone, Debug, Default)]
pub struct StaleDefaults {
    /// All namespaces.
    pub everywhere: bool,
    /// Only these namespaces.
    pub namespaces: BTreeSet<String>,
}

/// Whose parked workloads are to be retried (rules/05 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlushRequest {
    /// A ClusterQueue without a cohort.
    Queue(QueueId),
    /// The whole tree of a root cohort.
    Tree(CohortId),
}

/// A replaced slice, as it was before it ended.
#[derive(Clone, Debug)]
pub struct ReplacedSlice {
    pub key: Key,
    pub status: Shared<WorkloadStatus>,
}

/// The owner of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A ClusterQueue.
    Queue(QueueId),
    /// A Cohort.
    Cohort(CohortId),
}
