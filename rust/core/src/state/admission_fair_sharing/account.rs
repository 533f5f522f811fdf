//! What a LocalQueue has used.

use std::collections::BTreeMap;

use super::arithmetic::{self, decayed};
use crate::base::ids::WorkloadId;
use crate::objects::{ResourceList, Time};

/// The account of a LocalQueue (rules/09 §1.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The decayed history.
    pub consumed: ResourceList,
    /// Since when the history has not decayed.
    pub last_update: Time,
    /// What the LocalQueue's status said before is in the history.
    pub status_accounted: bool,
    pub(super) penalties: BTreeMap<WorkloadId, ResourceList>,
}

impl Account {
    /// The entry penalties that are not in the history yet, together.
    #[must_use]
    pub fn penalty(&self) -> ResourceList {
        let mut total = ResourceList::new();
        for penalty in self.penalties.values() {
            arithmetic::add(&mut total, penalty);
        }
        total
    }

    /// Does any workload still have a penalty to pay?
    #[must_use]
    pub fn has_penalty(&self) -> bool {
        self.penalties.values().flat_map(ResourceList::values).any(|quantity| !quantity.is_zero())
    }

    /// Lets the history decay until `now`, in which `admitted` was in use. Time never goes back.
    pub(super) fn decay(&mut self, admitted: &ResourceList, half_life_ns: i64, now: Time) {
        self.consumed = decayed(&self.consumed, admitted, now.since(self.last_update), half_life_ns);
        self.last_update = self.last_update.max(now);
    }
}
