//! What the tables have about each ClusterQueue, Cohort and LocalQueue.

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

/// A ClusterQueue, or a name that others use for one.
#[derive(Clone, Debug, Default)]
pub struct QueueRecord {
    /// The object as applied; `None`: there is none.
    pub object: Option<Arc<ClusterQueue>>,
    /// Its node in the forest, while it has an object.
    pub node: Option<NodeId>,
    /// What assignment reads of it. Behind `object` while its cohort has a cycle (rules/02 §4 rule 5).
    pub rules: Arc<QueueRules>,
    /// Which they are.
    pub rules_id: RulesId,
    /// The object that `rules` was taken from.
    pub settled: Option<Arc<ClusterQueue>>,
    /// May it admit, and why not?
    pub activeness: Option<Activeness>,
    /// Has its deletion begun?
    pub terminating: bool,
    /// Its pending workloads.
    pub pending: Pending,
    /// Does it stand among those that wait?
    pub is_waiting: bool,
    /// The workloads that hold its quota.
    pub candidates: Shared<Candidates>,
    /// How many these are.
    pub n_reserving: usize,
    /// How many of them are Admitted.
    pub n_admitted: usize,
    /// Usage of those that are Admitted.
    pub admitted_usage: Usage,
    /// What each LocalQueue holds whose workloads ever held quota here.
    pub(crate) usage_of: Sorted<(LocalQueueId, LocalUsage)>,
    /// Who has a reservation that names it and is not counted: there is no such object, or they stand for their
    /// variants. Others may have been here.
    pub uncounted: IdSet<WorkloadId>,
    /// The LocalQueues that point to it.
    pub local_queues: BTreeSet<LocalQueueId>,
    /// Verdicts on its heads that still hold.
    pub verdicts: Verdicts,
}

impl QueueRecord {
    /// Is its status `active`?
    pub fn is_active(&self) -> bool {
        self.activeness.as_ref().is_some_and(Activeness::is_active)
    }

    /// The word for its status; empty before it was ever settled.
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

    /// Counts what a workload charges for its LocalQueue and, if it is Admitted, in all; or does so no more.
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

/// A Cohort, declared or only named.
#[derive(Clone, Debug, Default)]
pub struct CohortRecord {
    /// The object; `None`: only named.
    pub object: Option<Arc<Cohort>>,
    /// Its node, while it has an object or children.
    pub node: Option<NodeId>,
}

/// A LocalQueue, or a name that workloads use for one.
#[derive(Clone, Debug, Default)]
pub struct LocalQueueRecord {
    /// The object; `None`: there is none.
    pub object: Option<Arc<LocalQueue>>,
    /// The ClusterQueue that it names, whether there is one or not.
    pub queue: Option<QueueId>,
    /// The workloads that name it.
    pub workloads: IdSet<WorkloadId>,
    /// How many of them wait in the queue of a ClusterQueue.
    pub n_queued: usize,
    /// What its workloads have used (rules/09 §1.3).
    pub account: Option<Account>,
}

impl LocalQueueRecord {
    /// The object, unless it is stopped: the queue manager does not know stopped ones (rules/05 §2).
    pub fn running(&self) -> Option<&LocalQueue> {
        self.object.as_deref().filter(|o| o.stop_policy == StopPolicy::None)
    }
}

/// Whose pods may get other defaults than they have: LimitRanges or RuntimeClasses have changed.
#[derive(Clone, Debug, Default)]
pub struct StaleDefaults {
    /// All.
    pub everywhere: bool,
    /// Those in these namespaces.
    pub namespaces: BTreeSet<String>,
}

/// Whose parked workloads are to be tried again (rules/05 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlushRequest {
    /// A ClusterQueue without a cohort.
    Queue(QueueId),
    /// The whole tree of a root cohort.
    Tree(CohortId),
}

/// A slice that ended as another took its place, before it did.
#[derive(Clone, Debug)]
pub struct ReplacedSlice {
    /// Which it was.
    pub key: Key,
    /// Its status.
    pub status: Shared<WorkloadStatus>,
}

/// Whose node it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A ClusterQueue.
    Queue(QueueId),
    /// A Cohort.
    Cohort(CohortId),
}
