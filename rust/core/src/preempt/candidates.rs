//! Candidates in the order in which a search considers them (rules/04 §2, §3).

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::iter::Peekable;

use smallvec::SmallVec;

use super::{Preemptor, World};
use crate::base::amount::Amount;
use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::base::ids::{FlavorId, FlavorResourceId, LocalQueueId, QueueId};
use crate::base::sorted;
use crate::objects::config::{AdmissionFairSharing, Experiments};
use crate::objects::{PreemptionPolicy, Time};
use crate::state::admission_fair_sharing::local_queue_usage;
use crate::state::experiments::ExperimentWaits;
use crate::state::searches::{Holder, Spared};
use crate::workloads::charge::CandidateKey;

/// A candidate of a ClusterQueue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    pub key: &'a CandidateKey,
    pub queue: QueueId,
    /// The index of its source.
    pub source: usize,
}

/// The candidates of one ClusterQueue that a policy allows and that use a contested flavor-resource, in order.
pub(super) fn allowed<'a>(
    world: &World<'a>,
    wanted: &'a Wanted<'a>,
    queue: QueueId,
    policy: PreemptionPolicy,
) -> Allowed<'a> {
    let record = &world.queues[queue];
    let keys = match wanted.flavors[..] {
        [flavor] => Keys::Kept(record.candidates.of_flavor(flavor)),
        ref flavors => Keys::OfSeveral(flavors.iter().map(|&it| record.candidates.of_flavor(it).peekable()).collect()),
    };
    let allowed = Allowed { wanted, queue, policy, keys };
    let by_usage_of = world.config.admission_fair_sharing.as_ref();
    let by_usage_of =
        by_usage_of.filter(|_| record.settled.as_ref().is_some_and(|object| object.usage_based_admission));
    let takes_turns = wanted.turns_in(queue).is_some();
    if by_usage_of.is_none() && !takes_turns {
        return allowed;
    }
    let mut keys: Vec<&CandidateKey> = allowed.collect();
    if takes_turns {
        // Of its own priority, the one that has run for longest gives way first (rules/13 §4).
        let reserved = |key: &CandidateKey| (key.priority == wanted.priority).then_some(key.reserved.0);
        keys.sort_by_key(|key| (key.not_evicted, key.priority, reserved(key)));
    }
    if let Some(config) = by_usage_of {
        keys = by_usage(world, config, keys);
    }
    Allowed { wanted, queue, policy, keys: Keys::Sorted(keys.into_iter()) }
}

/// Which candidates a search may take.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'a> {
    /// Effective priority of the preemptor.
    priority: i64,
    /// Queue-order time of the preemptor.
    time: Time,
    /// Candidates use one of these.
    contested: &'a [FlavorResourceId],
    /// The flavors of these.
    flavors: SmallVec<[FlavorId; 2]>,
    /// Who is spared because it has just started, if an experiment is on.
    turns: Option<Turns<'a>>,
}

/// Which workloads have run for long enough (rules/13 §2, §4).
#[derive(Clone, Debug)]
struct Turns<'a> {
    waits: &'a ExperimentWaits,
    now: Time,
    /// The ClusterQueue of the preemptor.
    own: QueueId,
    experiments: Experiments,
}

impl Turns<'_> {
    /// Has it run for this long? `None`: it does not run.
    fn has_run(&self, key: &CandidateKey, ns: i64) -> Option<bool> {
        self.waits.since(key.id).map(|since| self.now.0 >= since.0.saturating_add(ns))
    }
}

/// By how much others of its priority must be newer (gate SchedulerTimestampPreemptionBuffer).
const BUFFER_NS: i64 = 5 * 60 * 1_000_000_000;

impl<'a> Wanted<'a> {
    pub fn new(world: &World<'a>, preemptor: &Preemptor, contested: &'a [FlavorResourceId]) -> Self {
        let mut flavors: SmallVec<_> = contested.iter().map(|&fr| world.names.parts(fr).0).collect();
        flavors.sort_unstable();
        flavors.dedup();
        let buffer_ns = match world.config.gates.enabled(Gate::SchedulerTimestampPreemptionBuffer) {
            true => BUFFER_NS,
            false => 0,
        };
        let time = Time(preemptor.time.0.saturating_add(buffer_ns));
        let experiments = world.config.experiments;
        let turns = Turns { waits: world.experiments, now: world.now, own: preemptor.queue, experiments };
        let turns = experiments.are_on().then_some(turns);
        Self { priority: preemptor.priority, time, contested, flavors, turns }
    }

    /// The turns of a ClusterQueue, and how long one lasts, if workloads of the preemptor's priority take turns there.
    fn turns_in(&self, queue: QueueId) -> Option<(&Turns<'a>, i64)> {
        let turns = self.turns.as_ref().filter(|turns| turns.own == queue)?;
        turns.experiments.time_share_ns.map(|ns| (turns, ns))
    }

    /// Is it protected because it has just started (rules/13 §2)?
    fn has_just_started(&self, key: &CandidateKey, queue: QueueId) -> bool {
        let Some(turns) = self.turns.as_ref().filter(|turns| turns.own != queue) else { return false };
        let Some(ns) = turns.experiments.min_run_ns else { return false };
        turns.has_run(key, ns) == Some(false)
    }

    /// Does the policy exclude this priority?
    fn is_beyond(&self, priority: i64, policy: PreemptionPolicy) -> bool {
        match policy {
            PreemptionPolicy::Any => false,
            PreemptionPolicy::LowerPriority => priority >= self.priority,
            PreemptionPolicy::LowerOrNewerEqualPriority => priority > self.priority,
            PreemptionPolicy::Never | PreemptionPolicy::Unset => true,
        }
    }

    /// The usage of a contested flavor-resource by all candidates of a ClusterQueue, including those that are too old.
    pub fn most(&self, world: &World<'_>, queue: QueueId, policy: PreemptionPolicy, fr: FlavorResourceId) -> Amount {
        world.queues[queue].candidates.sum(world.names, fr, |priority| !self.is_beyond(priority, policy))
    }

    fn takes(&self, key: &CandidateKey, queue: QueueId, policy: PreemptionPolicy) -> bool {
        !self.is_beyond(key.priority, policy)
            && self.older(key, queue, policy).is_none()
            && self.is_about(key)
            && !self.has_just_started(key, queue)
    }

    /// Why a policy spares it.
    fn spares(&self, key: &CandidateKey, queue: QueueId, policy: PreemptionPolicy) -> Option<Spared> {
        if self.is_beyond(key.priority, policy) {
            let takes_none = matches!(policy, PreemptionPolicy::Never | PreemptionPolicy::Unset);
            return Some(if takes_none { Spared::Policy } else { Spared::Priority });
        }
        let started = || self.has_just_started(key, queue).then_some(Spared::JustStarted);
        self.older(key, queue, policy).or_else(started)
    }

    /// Does the policy take only newer ones of this priority, and is it older than the preemptor? Where workloads take
    /// turns, those count that have had theirs instead (rules/13 §4).
    fn older(&self, key: &CandidateKey, queue: QueueId, policy: PreemptionPolicy) -> Option<Spared> {
        if policy != PreemptionPolicy::LowerOrNewerEqualPriority || key.priority != self.priority {
            return None;
        }
        if let Some((turns, ns)) = self.turns_in(queue) {
            if !key.not_evicted {
                return None;
            }
            if let Some(is_over) = turns.has_run(key, ns) {
                return (!is_over).then_some(Spared::JustStarted);
            }
        }
        (self.time >= key.queue_time).then_some(Spared::Older)
    }

    /// Does it use anything contested?
    fn is_about(&self, key: &CandidateKey) -> bool {
        key.uses.iter().any(|(fr, _)| self.contested.contains(fr))
    }

    /// Users of contested resources in a ClusterQueue, and why each is not a candidate; `shield` applies to all of
    /// them.
    pub fn holders(
        &self,
        world: &World<'_>,
        queue: QueueId,
        policy: PreemptionPolicy,
        shield: Option<Spared>,
    ) -> Vec<Holder> {
        let candidates = &world.queues[queue].candidates;
        let keys: BTreeSet<&CandidateKey> = self
            .flavors
            .iter()
            .flat_map(|&flavor| candidates.of_flavor(flavor))
            .filter(|key| self.is_about(key))
            .collect();
        let holder = |key: &CandidateKey| Holder {
            workload: key.id,
            queue,
            spared: shield.or_else(|| self.spares(key, queue, policy)),
        };
        keys.into_iter().map(holder).collect()
    }
}

/// See [`allowed`].
pub(super) struct Allowed<'a> {
    wanted: &'a Wanted<'a>,
    queue: QueueId,
    policy: PreemptionPolicy,
    keys: Keys<'a>,
}

enum Keys<'a> {
    /// From the ClusterQueue's list for the only contested flavor.
    Kept(sorted::Iter<'a, CandidateKey>),
    /// From its lists for each flavor; users of several flavors are in each list.
    OfSeveral(Vec<Peekable<sorted::Iter<'a, CandidateKey>>>),
    /// Sorted for this search.
    Sorted(std::vec::IntoIter<&'a CandidateKey>),
}

impl<'a> Iterator for Allowed<'a> {
    type Item = &'a CandidateKey;

    fn next(&mut self) -> Option<&'a CandidateKey> {
        loop {
            let key = match &mut self.keys {
                Keys::Kept(keys) => keys.next()?,
                Keys::OfSeveral(keys) => next_of_several(keys)?,
                Keys::Sorted(keys) => return keys.next(),
            };
            // After the first one that is not evicted and excluded by its priority, none has a lower priority.
            if key.not_evicted && self.wanted.is_beyond(key.priority, self.policy) {
                return None;
            }
            if self.wanted.takes(key, self.queue, self.policy) {
                return Some(key);
            }
        }
    }
}

/// Takes the next candidate of several flavors out of all lists. A separate function, as it is seldom needed.
#[inline(never)]
fn next_of_several<'a>(several: &mut [Peekable<sorted::Iter<'a, CandidateKey>>]) -> Option<&'a CandidateKey> {
    let first = several.iter_mut().filter_map(Peekable::peek).min().copied()?;
    for keys in several {
        keys.next_if(|key| key.id == first.id);
    }
    Some(first)
}

/// Usage of LocalQueues comes before priority: the one with the most usage is preempted first (rules/04 §3 rule 3).
fn by_usage<'a>(
    world: &World<'a>,
    config: &AdmissionFairSharing,
    mut keys: Vec<&'a CandidateKey>,
) -> Vec<&'a CandidateKey> {
    // Before 0.20 Kueue compared only the names of LocalQueues: equal names in different namespaces counted as one.
    let names: BTreeSet<&str> =
        keys.iter().map(|key| world.workloads.get(key.id).workload.queue_name.as_str()).collect();
    if names.len() < 2 && !world.config.changes.has(Change::SameNamedLocalQueuesDiffer) {
        return keys;
    }
    let mut usages: BTreeMap<LocalQueueId, f64> = BTreeMap::new();
    for key in &keys {
        let id = world.workloads.row(key.id).local_queue;
        usages.entry(id).or_insert_with(|| local_queue_usage(config, &world.local_queues[id], world.config.changes));
    }
    let usage = |key: &CandidateKey| usages[&world.workloads.row(key.id).local_queue];
    // A stable sort keeps the order of the keys among equals.
    keys.sort_by(|a, b| a.not_evicted.cmp(&b.not_evicted).then_with(|| usage(b).total_cmp(&usage(a))));
    keys
}

/// The candidates of several ClusterQueues merged into one order, evaluated lazily.
pub(super) struct Merged<'a> {
    sources: Vec<(QueueId, Allowed<'a>)>,
    heads: BinaryHeap<Reverse<(&'a CandidateKey, usize)>>,
}

impl<'a> Merged<'a> {
    pub fn new(mut sources: Vec<(QueueId, Allowed<'a>)>) -> Self {
        let heads = sources.iter_mut().enumerate();
        let heads = heads.filter_map(|(source, (_, keys))| Some(Reverse((keys.next()?, source)))).collect();
        Self { sources, heads }
    }

    /// Takes the next candidate; with `only_evicted`, only an evicted one. A source that is exhausted when its turn
    /// comes gives no more.
    pub fn next(&mut self, only_evicted: bool, is_exhausted: impl Fn(usize) -> bool) -> Option<Candidate<'a>> {
        let Self { sources, heads } = self;
        while let Some(mut head) = heads.peek_mut() {
            let Reverse((key, source)) = *head;
            if only_evicted && key.not_evicted {
                return None;
            }
            if is_exhausted(source) {
                PeekMut::pop(head);
                continue;
            }
            let (queue, rest) = &mut sources[source];
            match rest.next() {
                Some(next) => *head = Reverse((next, source)),
                None => drop(PeekMut::pop(head)),
            }
            return Some(Candidate { key, queue: *queue, source });
        }
        None
    }
}
