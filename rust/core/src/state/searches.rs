//! A record of preemption searches, for explanations. Normally there is no recorder, and a search only checks an empty
//! `Option` when it takes or spares a candidate.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::base::ids::{FlavorResourceId, QueueId, WorkloadId};
use crate::workloads::charge::Target;

/// Why a search spares a workload (rules/04 §2, §4, §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spared {
    /// The policy of the preemptor's ClusterQueue allows no preemption there.
    Policy,
    /// The policy allows only lower priorities.
    Priority,
    /// Same priority, and not newer.
    Older,
    /// Its ClusterQueue is stopped or broken.
    Inactive,
    /// Its ClusterQueue is within its nominal quota of the contested resources.
    WithinNominal,
    /// A cohort above it is within its quota, which protects everything below it.
    CohortWithinNominal,
    /// The preemptor would borrow, which `borrowWithinCohort` does not allow.
    WouldBorrow,
    /// The preemptor would borrow, and this workload's priority or the threshold protects it.
    Threshold,
    /// Its ClusterQueue would have a smaller share than the preemptor's.
    Share,
    /// Earlier victims have brought its ClusterQueue back to its quota.
    BackWithinNominal,
}

impl Spared {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Spared::Policy => "Policy",
            Spared::Priority => "Priority",
            Spared::Older => "Older",
            Spared::Inactive => "Inactive",
            Spared::WithinNominal => "WithinNominal",
            Spared::CohortWithinNominal => "CohortWithinNominal",
            Spared::WouldBorrow => "WouldBorrow",
            Spared::Threshold => "Threshold",
            Spared::Share => "Share",
            Spared::BackWithinNominal => "BackWithinNominal",
        }
    }
}

/// The outcome for a workload that uses contested resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is preempted.
    Victim,
    /// It was a candidate, but others are enough.
    NotNeeded,
    /// It was a candidate, but even all candidates are not enough.
    NotEnough,
    /// It may not be preempted.
    Spared(Spared),
}

impl Fate {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Victim => "Victim",
            Fate::NotNeeded => "NotNeeded",
            Fate::NotEnough => "NotEnough",
            Fate::Spared(spared) => spared.name(),
        }
    }
}

/// A workload that uses contested resources.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    /// The workload.
    pub workload: WorkloadId,
    /// The ClusterQueue whose quota it holds.
    pub queue: QueueId,
    /// Why it is not a candidate; `None`: it is one.
    pub spared: Option<Spared>,
}

/// One search.
#[derive(Clone, Debug)]
pub struct Search {
    /// The flavors and resources that are short.
    pub contested: Vec<FlavorResourceId>,
    /// The workloads that use them.
    pub holders: Vec<Holder>,
    /// The victims; empty: no set of candidates is enough.
    pub targets: Vec<Target>,
    taken: FxHashMap<WorkloadId, Option<Spared>>,
}

impl Search {
    /// A search without results so far.
    pub fn new(contested: Vec<FlavorResourceId>, holders: Vec<Holder>) -> Self {
        Self { contested, holders, targets: Vec::new(), taken: FxHashMap::default() }
    }

    /// The outcome for a holder.
    pub fn fate(&self, holder: &Holder) -> Fate {
        if self.targets.iter().any(|target| target.workload == holder.workload) {
            return Fate::Victim;
        }
        if let Some(spared) = holder.spared {
            return Fate::Spared(spared);
        }
        match self.taken.get(&holder.workload) {
            _ if !self.targets.is_empty() => Fate::NotNeeded,
            Some(None) => Fate::NotEnough,
            Some(Some(passed)) => Fate::Spared(*passed),
            None => Fate::Spared(Spared::BackWithinNominal),
        }
    }
}

/// The searches since it was created. Copies share them.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Vec<Search>>>);

impl Recorder {
    /// Starts a search.
    pub(crate) fn begin(&self, search: Search) {
        self.with(|searches| searches.push(search));
    }

    /// Records that a candidate was taken.
    pub(crate) fn take(&self, workload: WorkloadId) {
        self.note(workload, None);
    }

    /// Records that a candidate was spared, unless it was taken before.
    pub(crate) fn pass(&self, workload: WorkloadId, why: Spared) {
        self.note(workload, Some(why));
    }

    fn note(&self, workload: WorkloadId, what: Option<Spared>) {
        self.with(|searches| {
            if let Some(search) = searches.last_mut() {
                let known = search.taken.entry(workload).or_insert(what);
                *known = known.and(what);
            }
        });
    }

    /// Records the result of the search.
    pub(crate) fn end(&self, targets: &[Target]) {
        self.with(|searches| {
            if let Some(search) = searches.last_mut() {
                search.targets = targets.to_vec();
            }
        });
    }

    /// Takes all searches.
    pub fn take_searches(&self) -> Vec<Search> {
        self.with(std::mem::take)
    }

    fn with<T>(&self, change: impl FnOnce(&mut Vec<Search>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
