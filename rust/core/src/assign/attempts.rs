//! The record of which flavors were tried and what came of it (rules/03 §7).

use super::modes::{Mode, Possibility};
use super::reasons::{NoFitReason, Reason};
use super::{FlavorId, ResourceGroup, ResourceId};
use crate::names::Names;

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
#[derive(Clone, Debug, Default)]
pub(super) struct Attempts(Vec<Attempt>);

impl Attempts {
    /// Adds what the scan of one resource group tried.
    pub fn merge(&mut self, scanned: Vec<Attempt>, resource: ResourceId, group: &ResourceGroup, observability: bool) {
        if scanned.is_empty() {
            return;
        }
        let n_before = self.0.len();
        let mut present = Vec::new();
        for mut attempt in scanned {
            if n_before > 0 {
                present.push(attempt.flavor);
            }
            match self.0.iter_mut().find(|known| known.flavor == attempt.flavor) {
                Some(known) => {
                    known.mode = known.mode.min(attempt.mode);
                    known.level = known.level.max(attempt.level);
                    known.possibility = match (known.possibility, attempt.possibility) {
                        (Some(a), Some(b)) => Some(a.min(b)),
                        (a, b) => a.or(b),
                    };
                    known.no_fit_reason = known.no_fit_reason.max(attempt.no_fit_reason);
                    for reason in attempt.reasons {
                        add_once(&mut known.reasons, reason);
                    }
                }
                None => {
                    if attempt.reasons.len() > 1 {
                        for reason in std::mem::take(&mut attempt.reasons) {
                            add_once(&mut attempt.reasons, reason);
                        }
                    }
                    self.0.push(attempt);
                }
            }
        }
        for attempt in &mut self.0[..n_before] {
            if group.flavors.contains(&attempt.flavor) && !present.contains(&attempt.flavor) {
                attempt.mode = Mode::NoFit;
                add_once(&mut attempt.reasons, Reason::ResourceNotProvided(attempt.flavor, resource));
                if observability {
                    attempt.no_fit_reason = NoFitReason::NoMatchingFlavor;
                }
            }
        }
    }

    /// The attempts in the order of the flavors' names.
    pub fn finish(self, names: &Names) -> Vec<Attempt> {
        let mut attempts = self.0;
        attempts.sort_by(|a, b| names.flavors[a.flavor].cmp(&names.flavors[b.flavor]));
        attempts
    }
}

fn add_once(reasons: &mut Vec<Reason>, reason: Reason) {
    if !reasons.contains(&reason) {
        reasons.push(reason);
    }
}
