//! The record of which flavors were tried and what came of it (rules/03 §7).

use smallvec::SmallVec;

use super::modes::{Mode, Possibility};
use super::reasons::{NoFitReason, Reason};
use super::{FlavorId, ResourceGroup, ResourceId};

/// One flavor that was tried for a pod set (group).
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// The flavor.
    pub flavor: FlavorId,
    /// The worst mode over the resources.
    pub mode: Mode,
    /// The highest borrowing level over the resources.
    pub level: u32,
    /// What a simulated preemption found.
    pub possibility: Option<Possibility>,
    /// Every reason, once.
    pub reasons: Vec<Reason>,
    /// The most severe reason for no fit.
    pub no_fit_reason: NoFitReason,
}

/// The attempts of one pod set (group), one a flavor.
pub type AttemptList = SmallVec<[Attempt; 1]>;

/// Adds what the scan of one resource group tried.
pub(super) fn merge(
    attempts: &mut AttemptList,
    scanned: AttemptList,
    resource: ResourceId,
    group: &ResourceGroup,
    observability: bool,
) {
    if scanned.is_empty() {
        return;
    }
    let n_before = attempts.len();
    let mut present: SmallVec<[FlavorId; 8]> = SmallVec::new();
    attempts.reserve(scanned.len());
    for mut attempt in scanned {
        if n_before > 0 {
            present.push(attempt.flavor);
        }
        match attempts.iter_mut().find(|known| known.flavor == attempt.flavor) {
            Some(known) => {
                known.mode = known.mode.min(attempt.mode);
                known.level = known.level.max(attempt.level);
                known.possibility = match (known.possibility, attempt.possibility) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
                known.no_fit_reason = known.no_fit_reason.max(attempt.no_fit_reason);
                known.reasons.append(&mut attempt.reasons);
            }
            None => attempts.push(attempt),
        }
    }
    for attempt in &mut attempts[..n_before] {
        if group.flavors.contains(&attempt.flavor) && !present.contains(&attempt.flavor) {
            attempt.mode = Mode::NoFit;
            attempt.reasons.push(Reason::ResourceNotProvided(attempt.flavor, resource));
            if observability {
                attempt.no_fit_reason = NoFitReason::NoMatchingFlavor;
            }
        }
    }
    attempts.iter_mut().for_each(|attempt| keep_first(&mut attempt.reasons));
}

/// Every reason once, where it came first.
fn keep_first(reasons: &mut Vec<Reason>) {
    let mut at = 1;
    while at < reasons.len() {
        if reasons[..at].contains(&reasons[at]) {
            reasons.remove(at);
        } else {
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    const CPU: ResourceId = ResourceId(0);
    const GPU: ResourceId = ResourceId(1);
    const MISSING: [Reason; 2] = [Reason::ResourceUnavailable(CPU), Reason::ResourceUnavailable(GPU)];

    fn attempt(flavor: u32, mode: Mode, reasons: &[Reason]) -> Attempt {
        let reasons = reasons.to_vec();
        let flavor = FlavorId(flavor);
        Attempt { flavor, mode, level: 0, possibility: None, reasons, no_fit_reason: NoFitReason::None }
    }

    fn group(flavors: &[u32]) -> ResourceGroup {
        ResourceGroup { flavors: flavors.iter().map(|id| FlavorId(*id)).collect(), ..ResourceGroup::default() }
    }

    #[test]
    fn a_reason_is_kept_once_where_it_came_first() {
        let [cpu, gpu] = MISSING;
        let mut attempts = AttemptList::new();
        let scanned = smallvec![attempt(0, Mode::NoFit, &[gpu.clone(), cpu.clone(), gpu.clone()])];
        merge(&mut attempts, scanned, CPU, &group(&[0]), true);
        assert_eq!(attempts[0].reasons, [gpu, cpu]);
    }

    #[test]
    fn a_flavor_that_two_groups_have_tried_is_as_bad_as_the_worse_of_the_two() {
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
            ..attempt(0, Mode::Preempt, &[cpu.clone(), gpu.clone()])
        };
        merge(&mut attempts, smallvec![first], CPU, &group(&[0]), true);
        merge(&mut attempts, smallvec![second, attempt(1, Mode::Fit, &[])], GPU, &group(&[0, 1]), true);
        let worse = Attempt {
            level: 2,
            possibility: Some(Possibility::Preempt),
            no_fit_reason: NoFitReason::WaitingForQuota,
            ..attempt(0, Mode::Preempt, &[cpu, gpu])
        };
        assert_eq!(attempts.to_vec(), [worse, attempt(1, Mode::Fit, &[])]);
    }

    #[test]
    fn a_flavor_that_the_next_group_has_and_did_not_try_does_not_fit() {
        for (observability, reason) in [(true, NoFitReason::NoMatchingFlavor), (false, NoFitReason::None)] {
            let mut attempts = AttemptList::new();
            merge(&mut attempts, smallvec![attempt(0, Mode::Fit, &[])], CPU, &group(&[0]), observability);
            merge(&mut attempts, smallvec![attempt(1, Mode::Fit, &[])], GPU, &group(&[0, 1]), observability);
            let lacking = Reason::ResourceNotProvided(FlavorId(0), GPU);
            let lacking = Attempt { no_fit_reason: reason, ..attempt(0, Mode::NoFit, &[lacking]) };
            assert_eq!(attempts.to_vec(), [lacking, attempt(1, Mode::Fit, &[])]);
            // Nothing was tried for these: nothing is said of them.
            merge(&mut attempts, AttemptList::new(), GPU, &group(&[0, 1]), observability);
            assert_eq!(attempts[1], attempt(1, Mode::Fit, &[]));
        }
    }
}
