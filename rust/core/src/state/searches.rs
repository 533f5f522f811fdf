//! What searches for victims did, kept for those who ask why. Where nobody asks there is no recorder, and a search looks
//! at an empty `Option` where it takes or leaves somebody.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::base::ids::{FlavorResourceId, QueueId, WorkloadId};
use crate::workloads::charge::Target;

/// Why a search leaves a workload alone (rules/04 §2, §4, §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spared {
    /// The policy of the preemptor's ClusterQueue takes nobody there.
    Policy,
    /// The policy takes lower priorities only.
    Priority,
    /// Of equal priority, and not newer.
    Older,
    /// Its ClusterQueue is stopped or broken.
    Inactive,
    /// Its ClusterQueue uses no more than its quota of what is contested.
    WithinNominal,
    /// A cohort above it uses no more than its quota, and shields all below it.
    CohortWithinNominal,
    /// The preemptor would borrow, and `borrowWithinCohort` does not allow that.
    WouldBorrow,
    /// As the preemptor would borrow, its priority or the threshold protects it.
    Threshold,
    /// Its ClusterQueue would have a smaller share than that of the preemptor.
    Share,
    /// Others before it have brought its ClusterQueue back to its quota.
    BackWithinNominal,
}

impl Spared {
    /// The word for it.
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

/// What became of a workload that uses what is contested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has to give way.
    Victim,
    /// It might have, but others are enough.
    NotNeeded,
    /// It might have, but with all others it would not be enough.
    NotEnough,
    /// It may not be taken.
    Spared(Spared),
}

impl Fate {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Victim => "Victim",
            Fate::NotNeeded => "NotNeeded",
            Fate::NotEnough => "NotEnough",
            Fate::Spared(spared) => spared.name(),
        }
    }
}

/// One that uses what is contested.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    /// The workload.
    pub workload: WorkloadId,
    /// The ClusterQueue whose quota it holds.
    pub queue: QueueId,
    /// Why it is no candidate; `None`: it is one.
    pub spared: Option<Spared>,
}

/// One search.
#[derive(Clone, Debug)]
pub struct Search {
    /// What there is too little of.
    pub contested: Vec<FlavorResourceId>,
    /// Those that use what is contested.
    pub holders: Vec<Holder>,
    /// Who has to give way; empty: no set of candidates is enough.
    pub targets: Vec<Target>,
    taken: FxHashMap<WorkloadId, Option<Spared>>,
}

impl Search {
    /// One that has found nobody yet.
    pub fn new(contested: Vec<FlavorResourceId>, holders: Vec<Holder>) -> Self {
        Self { contested, holders, targets: Vec::new(), taken: FxHashMap::default() }
    }

    /// What became of a holder.
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

/// The searches since it was made. Copies share them.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Vec<Search>>>);

impl Recorder {
    /// A search begins.
    pub(crate) fn begin(&self, search: Search) {
        self.with(|searches| searches.push(search));
    }

    /// A candidate was taken out.
    pub(crate) fn take(&self, workload: WorkloadId) {
        self.note(workload, None);
    }

    /// A candidate was passed over, unless it was taken before.
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

    /// The search has found these.
    pub(crate) fn end(&self, targets: &[Target]) {
        self.with(|searches| {
            if let Some(search) = searches.last_mut() {
                search.targets = targets.to_vec();
            }
        });
    }

    /// All of them; none are left.
    pub fn take_searches(&self) -> Vec<Search> {
        self.with(std::mem::take)
    }

    fn with<T>(&self, change: impl FnOnce(&mut Vec<Search>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
