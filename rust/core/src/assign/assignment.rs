//! What an assignment says: the flavor of each resource of each pod set, or why there is none (rules/03 §3).

use smallvec::SmallVec;

use super::{AttemptList, Candidate, Mode, NoFitReason, Reason, ScanProgress, Usage};
use crate::base::ids::{FlavorId, FlavorResourceId, ResourceId};

/// What is asked for of each resource.
pub type Requests = SmallVec<[(ResourceId, i64); 4]>;

/// The flavors of resources.
pub type Choices = SmallVec<[FlavorChoice; 4]>;

/// The flavor of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlavorChoice {
    /// The resource.
    pub resource: ResourceId,
    /// Its flavor.
    pub flavor: FlavorId,
    /// Both; `None`: no quota was ever declared for the pair.
    pub pair: Option<FlavorResourceId>,
    /// How it can be had.
    pub mode: Mode,
    /// Borrowing level.
    pub level: u32,
    /// Where the scan ended; -1: at the last flavor.
    pub tried_index: i32,
}

/// What became of one pod set.
#[derive(Clone, Debug, Default)]
pub struct PodSetAssignment {
    /// Index of the pod set.
    pub index: usize,
    /// Effective or reduced count.
    pub count: i32,
    /// Totals for that count, with `pods` where the ClusterQueue covers it.
    pub requests: Requests,
    /// The chosen flavors; empty: none.
    pub flavors: Choices,
    /// Why it does not fit (now); empty: it fits.
    pub reasons: Vec<Reason>,
    /// Why it could not be evaluated.
    pub error: Option<String>,
    /// The flavors tried, in the order in which they were.
    pub attempts: AttemptList,
}

impl PodSetAssignment {
    /// The worst mode of its flavors (rules/03 §3).
    pub fn mode(&self) -> Mode {
        if self.error.is_some() {
            Mode::NoFit
        } else if self.reasons.is_empty() {
            Mode::Fit
        } else {
            self.flavors.iter().map(|f| f.mode).min().unwrap_or(Mode::NoFit)
        }
    }

    /// Nothing to say against it?
    pub(crate) fn is_fit(&self) -> bool {
        self.error.is_none() && self.reasons.is_empty()
    }
}

/// The result of an assignment.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The pod sets that were evaluated, by group in order of first appearance.
    pub pod_sets: SmallVec<[PodSetAssignment; 1]>,
    /// The highest borrowing level.
    pub borrowing: u32,
    /// What it takes, per flavor-resource.
    pub usage: Usage,
    /// Why nothing fits; only of mode NoFit.
    pub no_fit_reason: NoFitReason,
    /// A mode that takes the place of the pod sets' (deferred fits).
    pub override_mode: Option<Mode>,
}

impl Assignment {
    /// The worst mode of its pod sets; NoFit if none was evaluated.
    pub fn mode(&self) -> Mode {
        self.override_mode.unwrap_or_else(|| self.pod_sets.iter().map(|ps| ps.mode()).min().unwrap_or(Mode::NoFit))
    }

    /// Where the scans of flavors ended.
    pub fn progress(&self) -> ScanProgress {
        let ended = |choice: &FlavorChoice| (choice.resource, choice.tried_index);
        self.pod_sets.iter().map(|pod_set| pod_set.flavors.iter().map(ended).collect()).collect()
    }

    /// Are there flavors that were not tried yet?
    pub fn has_pending_flavors(&self) -> bool {
        self.pod_sets.iter().flat_map(|pod_set| &pod_set.flavors).any(|choice| choice.tried_index != -1)
    }

    /// The totals by flavor-resource that a preemption has to make room for: without `pods` and without zero
    /// quantities (rules/03 §8).
    pub fn requests_to_preempt_for(&self, candidate: &Candidate<'_>) -> Usage {
        let mut sum = Usage::default();
        for (i, totals) in candidate.totals.iter().enumerate() {
            let Some(assigned) = self.pod_sets.iter().find(|ps| ps.index == i) else { continue };
            let count = match candidate.replaced_slice {
                Some(replaced) => totals.count - replaced.get(i).map_or(0, |r| r.totals.count),
                None => assigned.count,
            };
            for &(resource, value) in totals.scaled_to(count).requests.iter().filter(|r| r.1 != 0) {
                let Some(choice) = assigned.flavors.iter().find(|f| f.resource == resource) else { continue };
                if let Some(pair) = choice.pair {
                    sum.add(pair, value);
                }
            }
        }
        sum
    }
}
