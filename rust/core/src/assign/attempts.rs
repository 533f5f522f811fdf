//! The record of tried flavors and the results (rules/03 §7).

use smallvec::SmallVec;

use super::modes::{GranularMode, Mode, Possibility};
use super::reasons::NoFitReason;
use super::trial::{Ask, Trial};
use super::{FlavorId, Reason, ResourceGroup, ResourceId};

/// One flavor that was tried for a pod set (group).
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub flavor: FlavorId,
    /// The worst mode over the resources.
    pub mode: Mode,
    /// The highest borrowing level over the resources.
    pub level: u32,
    /// What a simulated preemption found.
    pub possibility: Option<Possibility>,
    /// The reasons; duplicates are shown once.
    pub reasons: SmallVec<[Reason; 2]>,
    /// The most severe reason for no fit.
    pub no_fit_reason: NoFitReason,
}

/// The attempts of one pod set (group), one per flavor.
pub type AttemptList = SmallVec<[Attempt; 1]>;

impl Attempt {
    /// An attempt without objections so far.
    pub(super) fn of(flavor: FlavorId) -> Self {
        Attempt {
            flavor,
            mode: Mode::Fit,
            level: 0,
            possibility: None,
            reasons: SmallVec::new(),
            no_fit_reason: NoFitReason::None,
        }
    }

    /// The flavor cannot be used. `observes`: the reasons why nothing fits are recorded.
    pub(super) fn refuse(&mut self, reason: Option<Reason>, observes: bool) {
        self.mode = Mode::NoFit;
        self.reasons.extend(reason);
        if observes {
            self.no_fit_reason = NoFitReason::NoMatchingFlavor;
        }
    }

    /// The flavor could not even hold one pod of each pod set.
    pub(super) fn exceed(&mut self, reasons: SmallVec<[Reason; 2]>, observes: bool) {
        self.mode = Mode::NoFit;
        self.reasons = reasons;
        if observes {
            self.no_fit_reason = NoFitReason::ExceedsMaxQuota;
        }
    }

    /// Adds the quota check of one more resource.
    pub(super) fn add(&mut self, trial: Trial, ask: Ask) {
        self.level = self.level.max(trial.level);
        if let Some(reason) = trial.reason(ask) {
            self.object(reason, trial.no_fit_reason());
        }
    }

    /// All resources were checked; this is the worst mode.
    pub(super) fn conclude(&mut self, worst: GranularMode, observes: bool) {
        self.mode = worst.preemption.mode();
        self.possibility = worst.preemption.possibility();
        if !observes {
            self.no_fit_reason = NoFitReason::None;
        }
    }

    /// Was the flavor passed over, or does it borrow?
    pub(crate) fn is_notable(&self) -> bool {
        self.mode != Mode::Fit || self.level > 0
    }

    /// Adds a reason.
    pub(super) fn object(&mut self, reason: Reason, no_fit_reason: NoFitReason) {
        self.reasons.push(reason);
        self.no_fit_reason = self.no_fit_reason.max(no_fit_reason);
    }
}

/// Merges the attempts of one resource group's scan, from `start` on, into the earlier ones. There is something to
/// merge only if flavors are repeated.
pub(super) fn merge(
    attempts: &mut AttemptList,
    start: usize,
    resource: ResourceId,
    group: &ResourceGroup,
    observability: bool,
) {
    let scanned: AttemptList = attempts.drain(start..).collect();
    if scanned.is_empty() {
        return;
    }
    let present: Vec<FlavorId> = scanned.iter().map(|attempt| attempt.flavor).collect();
    for attempt in scanned {
        match attempts.iter_mut().find(|known| known.flavor == attempt.flavor) {
            Some(known) => {
                known.mode = known.mode.min(attempt.mode);
                known.level = known.level.max(attempt.level);
                known.possibility = match (known.possibility, attempt.possibility) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
                known.no_fit_reason = known.no_fit_reason.max(attempt.no_fit_reason);
                known.reasons.extend(attempt.reasons);
            }
            None => attempts.push(attempt),
        }
    }
    for attempt in &mut attempts[..start] {
        if group.flavors.contains(&attempt.flavor) && !present.contains(&attempt.flavor) {
            attempt.mode = Mode::NoFit;
            attempt.reasons.push(Reason::ResourceNotProvided(attempt.flavor, resource));
            if observability {
                attempt.no_fit_reason = NoFitReason::NoMatchingFlavor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::names::Names;
    use crate::status::messages::attempt_reasons;

    const CPU: ResourceId = ResourceId(0);
    const GPU: ResourceId = ResourceId(1);
    const MISSING: [Reason; 2] = [Reason::ResourceUnavailable(CPU), Reason::ResourceUnavailable(GPU)];

    fn attempt(flavor: u32, mode: Mode, reasons: &[Reason]) -> Attempt {
        Attempt { mode, reasons: reasons.into(), ..Attempt::of(FlavorId(flavor)) }
    }

    fn group(flavors: &[u32]) -> ResourceGroup {
        ResourceGroup { flavors: flavors.iter().map(|id| FlavorId(*id)).collect(), ..ResourceGroup::default() }
    }

    /// Merges the attempts of another group's scan.
    fn merge_scanned<const N: usize>(
        attempts: &mut AttemptList,
        scanned: [Attempt; N],
        resource: ResourceId,
        group: &ResourceGroup,
        observability: bool,
    ) {
        let start = attempts.len();
        attempts.extend(scanned);
        merge(attempts, start, resource, group, observability);
    }

    #[test]
    fn a_repeated_reason_is_shown_once() {
        let mut names = Names::default();
        names.resource("cpu");
        names.resource("gpu");
        let [cpu, gpu] = MISSING;
        let texts = attempt_reasons(&names.lexicon(), &[gpu.clone(), cpu, gpu]);
        assert_eq!(texts, ["cpu", "gpu"].map(|name| format!("resource {name} unavailable in ClusterQueue")));
    }

    #[test]
    fn reasons_for_no_fit_are_recorded_only_on_request() {
        let [cpu, _] = MISSING;
        for (observes, recorded) in [(true, NoFitReason::ExceedsMaxQuota), (false, NoFitReason::None)] {
            let mut tried = Attempt::of(FlavorId(0));
            tried.object(cpu.clone(), NoFitReason::ExceedsMaxQuota);
            tried.conclude(GranularMode::WORST, observes);
            assert_eq!(tried.no_fit_reason, recorded);
        }
    }

    #[test]
    fn a_flavor_tried_for_two_groups_gets_the_worse_mode() {
        let [cpu, gpu] = MISSING;
        let mut attempts = AttemptList::new();
        let first = Attempt {
            level: 2,
            possibility: Some(Possibility::Reclaim),
            no_fit_reason: NoFitReason::WaitingForQuota,
            ..attempt(0, Mode::Fit, std::slice::from_ref(&cpu))
        };
        let second = Attempt {
            level: 1,
            possibility: Some(Possibility::Preempt),
            ..attempt(0, Mode::Preempt, std::slice::from_ref(&gpu))
        };
        merge_scanned(&mut attempts, [first], CPU, &group(&[0]), true);
        merge_scanned(&mut attempts, [second, attempt(1, Mode::Fit, &[])], GPU, &group(&[0, 1]), true);
        let worse = Attempt {
            level: 2,
            possibility: Some(Possibility::Preempt),
            no_fit_reason: NoFitReason::WaitingForQuota,
            ..attempt(0, Mode::Preempt, &[cpu, gpu])
        };
        assert_eq!(attempts.to_vec(), [worse, attempt(1, Mode::Fit, &[])]);
    }

    #[test]
    fn a_flavor_that_the_next_group_did_not_try_does_not_fit() {
        for (observability, reason) in [(true, NoFitReason::NoMatchingFlavor), (false, NoFitReason::None)] {
            let mut attempts = AttemptList::new();
            merge_scanned(&mut attempts, [attempt(0, Mode::Fit, &[])], CPU, &group(&[0]), observability);
            merge_scanned(&mut attempts, [attempt(1, Mode::Fit, &[])], GPU, &group(&[0, 1]), observability);
            let lacking = Reason::ResourceNotProvided(FlavorId(0), GPU);
            let lacking = Attempt { no_fit_reason: reason, ..attempt(0, Mode::NoFit, &[lacking]) };
            assert_eq!(attempts.to_vec(), [lacking, attempt(1, Mode::Fit, &[])]);
            // Nothing was tried for these, so nothing is recorded.
            merge_scanned(&mut attempts, [], GPU, &group(&[0, 1]), observability);
            assert_eq!(attempts[1], attempt(1, Mode::Fit, &[]));
        }
    }
}
