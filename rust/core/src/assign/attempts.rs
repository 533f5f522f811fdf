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
    if attempts.is_empty() && (1..scanned.len()).all(|i| scanned[..i].iter().all(|a| a.flavor != scanned[i].flavor)) {
        *attempts = scanned;
        attempts.iter_mut().for_each(|attempt| keep_first(&mut attempt.reasons));
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
                keep_first(&mut known.reasons);
            }
            None => {
                keep_first(&mut attempt.reasons);
                attempts.push(attempt);
            }
        }
    }
    for attempt in &mut attempts[..n_before] {
        if group.flavors.contains(&attempt.flavor) && !present.contains(&attempt.flavor) {
            attempt.mode = Mode::NoFit;
            attempt.reasons.push(Reason::ResourceNotProvided(attempt.flavor, resource));
            keep_first(&mut attempt.reasons);
            if observability {
                attempt.no_fit_reason = NoFitReason::NoMatchingFlavor;
            }
        }
    }
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
