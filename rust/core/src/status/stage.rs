//! The stage of a workload, from its spec and conditions.

use crate::objects::Workload;
use crate::objects::conditions::{self, find_false, is_true};
use crate::status::reasons;

/// The stage of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// No reservation.
    Pending,
    /// Quota is reserved.
    QuotaReserved,
    /// All checks are ready, too.
    Admitted,
    Finished,
}

impl Stage {
    /// The stage of a workload.
    pub fn of(workload: &Workload) -> Self {
        if is_finished(workload) {
            Stage::Finished
        } else if is_admitted(workload) {
            Stage::Admitted
        } else if has_quota_reservation(workload) {
            Stage::QuotaReserved
        } else {
            Stage::Pending
        }
    }

    /// Quota is reserved, with or without checks to wait for.
    pub fn holds_quota(self) -> bool {
        matches!(self, Stage::QuotaReserved | Stage::Admitted)
    }
}

/// `spec.active`, true when absent.
#[must_use]
pub fn is_active(workload: &Workload) -> bool {
    workload.active.unwrap_or(true)
}

/// Does it hold quota, by its condition?
#[must_use]
pub(crate) fn has_quota_reservation(workload: &Workload) -> bool {
    is_true(&workload.status.conditions, conditions::QUOTA_RESERVED)
}

/// Is it admitted, by its condition?
#[must_use]
pub fn is_admitted(workload: &Workload) -> bool {
    is_true(&workload.status.conditions, conditions::ADMITTED)
}

/// Is it evicted, by its condition?
#[must_use]
pub fn is_evicted(workload: &Workload) -> bool {
    is_true(&workload.status.conditions, conditions::EVICTED)
}

/// Is it finished, by its condition?
#[must_use]
pub fn is_finished(workload: &Workload) -> bool {
    is_true(&workload.status.conditions, conditions::FINISHED)
}

/// Does its usage count: is it reserved, not finished, active?
#[must_use]
pub fn has_active_quota_reservation(workload: &Workload) -> bool {
    has_quota_reservation(workload) && !is_finished(workload) && is_active(workload)
}

/// Was its quota released on purpose, without requeueing (QuotaReserved False, `OnHold`)?
#[must_use]
pub(crate) fn is_on_hold(workload: &Workload) -> bool {
    find_false(&workload.status.conditions, conditions::QUOTA_RESERVED).is_some_and(|c| c.reason == reasons::ON_HOLD)
}
