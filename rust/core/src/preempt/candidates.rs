//! Candidates in the order in which they are looked at (rules/04 §2, §3).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::{Demand, Preemptor, World};
use crate::decision::Key;
use crate::ids::{QueueId, WorkloadId};
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
) -> impl Iterator<Item = &'a CandidateKey> + use<'a> {
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
    keys.iter().take_while(move |key| !key.not_evicted || !beyond(key)).filter(move |key| {
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
    })
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
