//! A record of preemption searches, for explanations. Normally there is no recorder, and a search only checks an empty
//! `Option` when it takes or spares a candidate.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::base::ids::{FlavorResourceId, QueueId, WorkloadId};
use crate::objects::config::PreemptionStrategy;
use crate::quota::forest::NodeId;
use crate::quota::share::Share;
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
    /// The comparison of shares does not let the preemptor take it.
    Share,
    /// Earlier victims have brought its ClusterQueue back to its quota.
    BackWithinNominal,
    /// It has not run for as long as an experiment grants it (rules/13).
    JustStarted,
}

impl Spared {
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
            Spared::JustStarted => "JustStarted",
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
    pub workload: WorkloadId,
    /// The ClusterQueue whose quota it holds.
    pub queue: QueueId,
    /// Why it is not a candidate; `None`: it is one.
    pub spared: Option<Spared>,
}

/// One of the two nodes whose shares are compared for a candidate: children of the lowest cohort above both the
/// preemptor and the candidate (rules/04 §5.4).
#[derive(Clone, Debug)]
pub struct Contender {
    pub node: NodeId,
    /// Its share now, after earlier victims.
    pub now: Share,
    /// Its share with the preemptor, or without the candidate.
    pub then: Share,
}

/// A comparison of shares for a candidate.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The strategy that compared them.
    pub strategy: PreemptionStrategy,
    /// On the preemptor's side.
    pub ours: Contender,
    /// On the candidate's side.
    pub theirs: Contender,
    /// May the preemptor take the candidate?
    pub passes: bool,
}

impl Comparison {
    /// How the preemptor's share compares with the one that its strategy looks at.
    pub fn order(&self) -> Ordering {
        let theirs = match self.strategy {
            PreemptionStrategy::LessThanInitialShare => &self.theirs.now,
            PreemptionStrategy::LessThanOrEqualToFinalShare => &self.theirs.then,
        };
        self.ours.then.compare(theirs)
    }
}

/// A cohort was searched first although a sibling had the same share (rules/04 §5.3).
#[derive(Clone, Debug)]
pub struct Tie {
    /// The cohort that was searched.
    pub node: NodeId,
    /// Siblings with the same share, each with the next candidate of each ClusterQueue below it.
    pub equals: Vec<(NodeId, Vec<WorkloadId>)>,
}

/// What a search did with a candidate.
#[derive(Clone, Debug, Default)]
struct Note {
    is_taken: bool,
    spared: Option<Spared>,
    comparisons: Vec<Comparison>,
    ties: Vec<Tie>,
}

#[derive(Clone, Debug)]
pub struct Search {
    /// The flavors and resources that are short.
    pub contested: Vec<FlavorResourceId>,
    /// The workloads that use them.
    pub holders: Vec<Holder>,
    /// Did it also look for a place on nodes?
    pub asks_for_place: bool,
    /// The victims; empty: no set of candidates is enough.
    pub targets: Vec<Target>,
    notes: FxHashMap<WorkloadId, Note>,
}

impl Search {
    /// A search without results so far.
    pub fn new(contested: Vec<FlavorResourceId>, holders: Vec<Holder>, asks_for_place: bool) -> Self {
        Self { contested, holders, asks_for_place, targets: Vec::new(), notes: FxHashMap::default() }
    }

    fn is_target(&self, workload: WorkloadId) -> bool {
        self.targets.iter().any(|target| target.workload == workload)
    }

    /// The outcome for a holder.
    pub fn fate(&self, holder: &Holder) -> Fate {
        if self.is_target(holder.workload) {
            return Fate::Victim;
        }
        if let Some(spared) = holder.spared {
            return Fate::Spared(spared);
        }
        let note = self.notes.get(&holder.workload);
        let passed = note.filter(|note| !note.is_taken).and_then(|note| note.spared);
        match passed {
            Some(passed @ (Spared::Share | Spared::CohortWithinNominal)) => Fate::Spared(passed),
            _ if !self.targets.is_empty() => Fate::NotNeeded,
            Some(passed) => Fate::Spared(passed),
            None if note.is_some_and(|note| note.is_taken) => Fate::NotEnough,
            None => Fate::Spared(Spared::BackWithinNominal),
        }
    }

    /// The comparisons of shares for a holder, in the order in which they were made; the last one decided.
    pub fn comparisons(&self, holder: &Holder) -> &[Comparison] {
        self.notes.get(&holder.workload).map_or(&[], |note| &note.comparisons)
    }

    /// The choices between equal cohorts that made a holder the victim: with others, other workloads might have been
    /// preempted instead.
    pub fn ties(&self, holder: &Holder) -> Vec<Tie> {
        let note = self.notes.get(&holder.workload).filter(|_| self.is_target(holder.workload));
        let is_open = |(_, firsts): &(NodeId, Vec<WorkloadId>)| firsts.iter().any(|&it| !self.is_target(it));
        let open =
            |tie: &Tie| Tie { node: tie.node, equals: tie.equals.iter().filter(|it| is_open(it)).cloned().collect() };
        note.into_iter().flat_map(|note| &note.ties).map(open).filter(|tie| !tie.equals.is_empty()).collect()
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
        self.note(workload, |note| note.is_taken = true);
    }

    /// Records that a candidate was spared, unless it was taken before.
    pub(crate) fn pass(&self, workload: WorkloadId, why: Spared) {
        self.note(workload, |note| _ = note.spared.get_or_insert(why));
    }

    /// Records a comparison of shares for a candidate.
    pub(crate) fn compare(&self, workload: WorkloadId, comparison: Comparison) {
        self.note(workload, |note| note.comparisons.push(comparison));
    }

    /// Records the choices between equal cohorts that led to a candidate.
    pub(crate) fn choose(&self, workload: WorkloadId, ties: &[Tie]) {
        self.note(workload, |note| note.ties = ties.to_vec());
    }

    fn note(&self, workload: WorkloadId, change: impl FnOnce(&mut Note)) {
        self.with(|searches| {
            if let Some(search) = searches.last_mut() {
                change(search.notes.entry(workload).or_default());
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
