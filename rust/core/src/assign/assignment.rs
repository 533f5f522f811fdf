//! The result of an assignment, in compact or full form (rules/03 §3).

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use super::plan::{Chosen, Found, Plan, PlanKey};
use super::pod_set::{Delay, FlavorChoice, Grant, PodSetAssignment};
use super::{
    Attempt, Candidate, FlavorId, Mode, NoFitReason, Observing, QueueRules, Reason, ScanProgress, Usage, no_fit_reason,
};
use crate::base::changes::{Change, Changes};
use crate::base::names::Names;
use crate::base::shared::Shared;
use crate::objects::TopologyAssignment;

/// The result of an assignment.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The highest borrowing level.
    pub borrowing: u32,
    /// The usage per flavor-resource.
    pub usage: Usage,
    /// Why nothing fits; only for mode NoFit.
    pub no_fit_reason: NoFitReason,
    mode: Mode,
    /// Were all pod sets evaluated?
    is_whole: bool,
    found: Outcome,
}

/// The results of the pod sets.
#[derive(Clone, Debug)]
enum Outcome {
    /// All fit, as found with a plan.
    Planned(Arc<Plan>, Found),
    /// The full form.
    Full(Vec<PodSetAssignment>),
}

impl Assignment {
    /// An assignment of these pod sets.
    pub fn new(pod_sets: Vec<PodSetAssignment>, usage: Usage, borrowing: u32) -> Self {
        let mode = mode_of(&pod_sets);
        Self {
            borrowing,
            usage,
            no_fit_reason: NoFitReason::None,
            mode,
            is_whole: true,
            found: Outcome::Full(pod_sets),
        }
    }

    /// An assignment that fits, found with a plan.
    pub(super) fn by_plan(plan: Arc<Plan>, found: Found, usage: Usage, borrowing: u32) -> Self {
        let found = Outcome::Planned(plan, found);
        Self { borrowing, usage, no_fit_reason: NoFitReason::None, mode: Mode::Fit, is_whole: true, found }
    }

    /// Adds the reason why nothing fits, if reasons are recorded.
    pub(super) fn with_reason(mut self, rules: &QueueRules, observing: Observing) -> Self {
        self.settle_reason(rules, observing);
        self
    }

    /// Sets whether all pod sets were evaluated.
    pub(super) fn of_whole(self, is_whole: bool) -> Self {
        Self { is_whole, ..self }
    }

    /// Sets the mode, which may differ from that of its pod sets.
    pub(super) fn of_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Were all pod sets evaluated?
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The worst mode of its pod sets, NoFit if none was evaluated; or DeferredFit.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// It fits only once preemptions in progress in this cycle are complete.
    pub(crate) fn defer_fit(&mut self) {
        if self.mode == Mode::Fit {
            self.mode = Mode::DeferredFit;
        }
    }

    /// The pod sets that were evaluated, by group in order of first appearance.
    pub fn pod_sets(&self) -> Cow<'_, [PodSetAssignment]> {
        match &self.found {
            Outcome::Planned(plan, found) => plan.unfold(found).into(),
            Outcome::Full(pod_sets) => pod_sets.into(),
        }
    }

    /// The pod sets for changes, converted to the full form.
    pub(crate) fn pod_sets_mut(&mut self) -> &mut Vec<PodSetAssignment> {
        if let Outcome::Planned(plan, found) = &self.found {
            self.found = Outcome::Full(plan.unfold(found));
        }
        match &mut self.found {
            Outcome::Full(pod_sets) => pod_sets,
            Outcome::Planned(..) => unreachable!("it was unfolded"),
        }
    }

    fn pod_set_mut(&mut self, index: usize) -> Option<&mut PodSetAssignment> {
        self.pod_sets_mut().iter_mut().find(|pod_set| pod_set.index == index)
    }

    /// Marks a pod set, by index in the list, as impossible to place, which may change the mode.
    pub(crate) fn fail(&mut self, at: usize, error: String, changes_mode: bool) {
        self.pod_sets_mut()[at].error = Some(error);
        if changes_mode {
            self.mode = mode_of(&self.pod_sets());
        }
    }

    /// Marks a pod set as having no place now.
    pub(crate) fn object(&mut self, index: usize, reason: &str) {
        if let Some(pod_set) = self.pod_set_mut(index) {
            pod_set.reasons.push(Reason::NoPlace(Box::new(reason.to_owned())));
        }
    }

    /// Lowers the mode of all flavors of a pod set, and of the whole assignment.
    pub(crate) fn lower(&mut self, index: usize, mode: Mode) {
        if let Some(pod_set) = self.pod_set_mut(index) {
            pod_set.flavors.iter_mut().for_each(|choice| choice.mode = mode);
            self.mode = mode;
        }
    }

    /// Records that a flavor was tried without success, for this reason.
    pub(crate) fn mark_attempt(&mut self, index: usize, flavor: FlavorId, reason: NoFitReason) {
        let pod_set = self.pod_set_mut(index);
        let attempts = pod_set.into_iter().flat_map(|pod_set| &mut pod_set.attempts);
        for attempt in attempts.filter(|attempt| attempt.flavor == flavor) {
            (attempt.mode, attempt.no_fit_reason) = (Mode::NoFit, reason);
        }
    }

    /// Does any pod set have a place?
    pub(crate) fn has_places(&self) -> bool {
        matches!(&self.found, Outcome::Full(pod_sets) if pod_sets.iter().any(|pod_set| pod_set.place.is_some()))
    }

    /// Gives pod sets places, or removes them.
    pub(crate) fn put_places(&mut self, places: Vec<(usize, Option<TopologyAssignment>)>) {
        for (index, place) in places {
            if let Some(pod_set) = self.pod_set_mut(index) {
                pod_set.delayed = pod_set.delayed.map(|it| if place.is_some() { Delay::Ready } else { it });
                pod_set.place = place.map(Shared::from);
            }
        }
    }

    /// Recomputes why nothing fits.
    pub(crate) fn settle_reason(&mut self, rules: &QueueRules, observing: Observing) {
        let is_wanted = self.mode == Mode::NoFit && observing.is_on;
        self.no_fit_reason =
            if is_wanted { no_fit_reason(&self.pod_sets(), rules, observing) } else { NoFitReason::None };
    }

    /// The grants of the pod sets.
    pub(crate) fn grants(&self) -> SmallVec<[Grant; 1]> {
        match &self.found {
            Outcome::Planned(plan, found) => plan.grants(found),
            Outcome::Full(pod_sets) => pod_sets.iter().map(PodSetAssignment::grant).collect(),
        }
    }

    /// The plan by which everything fits, and the flavors chosen with it.
    pub(crate) fn by_which_plan(&self) -> Option<(PlanKey, Chosen)> {
        match &self.found {
            Outcome::Planned(plan, found) => Some((plan.key, found.chosen())),
            Outcome::Full(_) => None,
        }
    }

    /// Does it fit with the first flavors that were tried, without borrowing?
    pub(crate) fn takes_the_first(&self) -> bool {
        let takes_the_first = match &self.found {
            Outcome::Planned(plan, found) => plan.takes_the_first(found),
            Outcome::Full(pod_sets) => !pod_sets.iter().flat_map(|it| &it.attempts).any(Attempt::is_notable),
        };
        takes_the_first && self.mode == Mode::Fit
    }

    /// Where the flavor scans ended: by pod set, or in the order in which groups were evaluated.
    pub fn progress(&self, by_pod_set: bool) -> ScanProgress {
        let ended = |choice: &FlavorChoice| (choice.resource, choice.tried_index);
        let mut progress = ScanProgress::new();
        for (at, pod_set) in self.pod_sets().iter().enumerate() {
            let index = if by_pod_set { pod_set.index } else { at };
            progress.resize(progress.len().max(index + 1), Default::default());
            progress[index] = pod_set.flavors.iter().map(ended).collect();
        }
        progress
    }

    /// Are there untried flavors?
    pub fn has_pending_flavors(&self) -> bool {
        self.pod_sets().iter().flat_map(|pod_set| &pod_set.flavors).any(|choice| choice.tried_index != -1)
    }

    /// The totals by flavor-resource that preemption must make room for, without zero quantities (rules/03 §8).
    pub fn requests_to_preempt_for(&self, candidate: &Candidate<'_>, names: &Names, changes: Changes) -> Usage {
        let (mut sum, pod_sets) = (Usage::default(), self.pod_sets());
        let is_sized_by_assignment = changes.has(Change::PreemptionIsSizedByAssignment);
        let counts_pods = is_sized_by_assignment || !changes.has(Change::PodsAreNotInTotals);
        let pods = names.pods().filter(|_| counts_pods);
        for (i, totals) in candidate.totals.iter().enumerate() {
            let Some(assigned) = pod_sets.iter().find(|ps| ps.index == i) else { continue };
            let count = match candidate.replaced_slice {
                Some(replaced) if is_sized_by_assignment => {
                    let name = &candidate.pod_sets[i].name;
                    assigned.count - replaced.iter().find(|it| it.name == *name).map_or(0, |it| it.totals.count)
                }
                Some(replaced) => totals.count - replaced.get(i).map_or(0, |it| it.totals.count),
                None => assigned.count,
            };
            if let Some(choice) = assigned.flavors.iter().find(|choice| Some(choice.resource) == pods)
                && let Some(pair) = choice.pair
                && count != 0
            {
                sum.add(pair, i64::from(count));
            }
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

impl PartialEq for Assignment {
    fn eq(&self, other: &Self) -> bool {
        (self.mode, self.borrowing, self.no_fit_reason) == (other.mode, other.borrowing, other.no_fit_reason)
            && self.usage == other.usage
            && self.pod_sets() == other.pod_sets()
    }
}

/// The worst mode of pod sets; NoFit without any.
pub(super) fn mode_of(pod_sets: &[PodSetAssignment]) -> Mode {
    pod_sets.iter().map(PodSetAssignment::mode).min().unwrap_or(Mode::NoFit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::FlavorResourceId;

    #[test]
    fn equal_assignments_say_the_same_throughout() {
        let changes: [fn(&mut Assignment); 6] = [
            |_| (),
            |it| it.borrowing = 1,
            |it| it.no_fit_reason = NoFitReason::WaitingForQuota,
            |it| it.mode = Mode::DeferredFit,
            |it| it.usage.add(FlavorResourceId(0), 1),
            |it| it.found = Outcome::Full(vec![PodSetAssignment { count: 1, ..PodSetAssignment::default() }]),
        ];
        let changed = |change: fn(&mut Assignment)| {
            let mut assignment = Assignment::new(vec![PodSetAssignment::default()], Usage::default(), 0);
            change(&mut assignment);
            assignment
        };
        for (n, a) in changes.iter().enumerate() {
            for (m, b) in changes.iter().enumerate() {
                assert_eq!(changed(*a) == changed(*b), n == m, "{n} and {m}");
            }
        }
    }
}
