//! Candidates in the order in which they are looked at (rules/04 §2, §3).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use super::{Demand, Preemptor, World};
use crate::admission_fair_sharing::local_queue_usage;
use crate::config::AdmissionFairSharing;
use crate::decision::Key;
use crate::ids::{LocalQueueId, QueueId, WorkloadId};
use crate::objects::{PreemptionPolicy, Time};
use crate::tree::Tree;

/// The place of a reserving workload among the candidates of its ClusterQueue; smaller is preempted first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CandidateKey {
    /// Evicted ones first: false < true.
    pub not_evicted: bool,
    /// The lower effective priority first.
    pub priority: i64,
    /// The later reservation first.
    pub reserved: Reverse<Time>,
    /// UID.
    pub uid: Arc<str>,
    /// Namespace and name, for objects without UID.
    pub key: Key,
    /// The workload; the fields before are unique.
    pub id: WorkloadId,
}

/// A candidate of a ClusterQueue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    pub key: &'a CandidateKey,
    pub queue: QueueId,
    /// Which of the given sources it comes from.
    pub source: usize,
}

/// The candidates of one ClusterQueue that a policy allows and that use a contested flavor-resource, in order.
pub(super) fn allowed<'a>(
    world: World<'a>,
    tree: &Tree,
    preemptor: &Preemptor,
    demand: &Demand,
    queue: QueueId,
    policy: PreemptionPolicy,
) -> Box<dyn Iterator<Item = &'a CandidateKey> + 'a> {
    let preemptor = *preemptor;
    let contested: Vec<_> = demand.contested.iter().map(|&c| tree.columns()[c]).collect();
    let beyond = move |key: &CandidateKey| match policy {
        PreemptionPolicy::Any => false,
        PreemptionPolicy::LowerPriority => key.priority >= preemptor.priority,
        PreemptionPolicy::LowerOrNewerEqualPriority => key.priority > preemptor.priority,
        PreemptionPolicy::Never | PreemptionPolicy::Unset => true,
    };
    let keys = &world.queues[queue].candidates;
    // Behind the first that is not evicted and beyond the policy, all have at least its priority.
    let allowed = keys.iter().take_while(move |key| !key.not_evicted || !beyond(key)).filter(move |key| {
        let record = world.workloads.get(key.id);
        let newer = || {
            policy != PreemptionPolicy::LowerOrNewerEqualPriority
                || key.priority != preemptor.priority
                || preemptor.time < record.queue_time
        };
        let uses = || {
            record.totals.iter().flat_map(|t| &t.flavors).any(|&(resource, flavor)| {
                world.names.find_flavor_resource(flavor, resource).is_some_and(|fr| contested.contains(&fr))
            })
        };
        !beyond(key) && newer() && uses() && !world.excluded.contains(&key.id)
    });
    let settled = world.queues[queue].settled.as_ref();
    match &world.config.admission_fair_sharing {
        Some(config) if settled.is_some_and(|object| object.usage_based_admission) => {
            Box::new(by_usage(world, config, allowed.collect()).into_iter())
        }
        _ => Box::new(allowed),
    }
}

/// What LocalQueues have used counts more than priority: who has used most is preempted first (rules/04 §3 rule 3).
fn by_usage<'a>(
    world: World<'a>,
    config: &AdmissionFairSharing,
    mut keys: Vec<&'a CandidateKey>,
) -> Vec<&'a CandidateKey> {
    // Kueue compares the names of LocalQueues alone: those of one name in several namespaces count as one.
    let names: BTreeSet<&str> =
        keys.iter().map(|key| world.workloads.get(key.id).workload.queue_name.as_str()).collect();
    if names.len() < 2 {
        return keys;
    }
    let mut usages: BTreeMap<LocalQueueId, f64> = BTreeMap::new();
    for key in &keys {
        let id = world.workloads.get(key.id).local_queue;
        usages.entry(id).or_insert_with(|| local_queue_usage(config, &world.local_queues[id]));
    }
    let usage = |key: &CandidateKey| usages[&world.workloads.get(key.id).local_queue];
    // A stable sort: among equals the order of the keys stays.
    keys.sort_by(|a, b| a.not_evicted.cmp(&b.not_evicted).then_with(|| usage(b).total_cmp(&usage(a))));
    keys
}

/// The candidates of several ClusterQueues in one order; only as many are looked at as are asked for.
pub(super) struct Merged<'a> {
    sources: Vec<(QueueId, Box<dyn Iterator<Item = &'a CandidateKey> + 'a>)>,
    heads: BinaryHeap<Reverse<(&'a CandidateKey, usize)>>,
}

impl<'a> Merged<'a> {
    pub fn new(sources: Vec<(QueueId, Box<dyn Iterator<Item = &'a CandidateKey> + 'a>)>) -> Self {
        let mut merged = Self { sources, heads: BinaryHeap::new() };
        for source in 0..merged.sources.len() {
            merged.advance(source);
        }
        merged
    }

    fn advance(&mut self, source: usize) {
        if let Some(key) = self.sources[source].1.next() {
            self.heads.push(Reverse((key, source)));
        }
    }

    pub fn peek(&self) -> Option<&'a CandidateKey> {
        self.heads.peek().map(|Reverse((key, _))| *key)
    }
}

impl<'a> Iterator for Merged<'a> {
    type Item = Candidate<'a>;

    fn next(&mut self) -> Option<Candidate<'a>> {
        let Reverse((key, source)) = self.heads.pop()?;
        self.advance(source);
        Some(Candidate { key, queue: self.sources[source].0, source })
    }
}
