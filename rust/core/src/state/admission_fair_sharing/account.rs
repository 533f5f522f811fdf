//! The usage history of a LocalQueue.

use std::collections::BTreeMap;

use super::arithmetic::{self, decayed};
use crate::base::changes::Changes;
use crate::base::ids::WorkloadId;
use crate::objects::{ResourceList, Time};
use crate::snapshot::{Damage, Reader, Stored, Writer};

/// The account of a LocalQueue (rules/09 §1.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The decayed history.
    pub consumed: ResourceList,
    /// When the history last decayed.
    pub last_update: Time,
    /// Is the history from the LocalQueue's status included?
    pub status_accounted: bool,
    pub(super) penalties: BTreeMap<WorkloadId, ResourceList>,
    /// Penalties that no workload takes back: before they were kept by workload (change PenaltiesAreKeptByWorkload).
    pub(super) orphaned: ResourceList,
}

impl Account {
    /// The sum of the entry penalties that are not yet in the history.
    #[must_use]
    pub fn penalty(&self) -> ResourceList {
        let mut total = self.orphaned.clone();
        for penalty in self.penalties.values() {
            arithmetic::add(&mut total, penalty);
        }
        total
    }

    /// Does any workload still have an entry penalty?
    #[must_use]
    pub fn has_penalty(&self) -> bool {
        let orphaned = self.orphaned.values();
        self.penalties.values().flat_map(ResourceList::values).chain(orphaned).any(|quantity| !quantity.is_zero())
    }

    /// Keeps a workload's penalty as one that nobody takes back.
    pub(super) fn orphan(&mut self, id: WorkloadId) {
        if let Some(penalty) = self.penalties.remove(&id) {
            arithmetic::add(&mut self.orphaned, &penalty);
        }
    }

    /// Lets no sum of penalties be negative.
    pub(super) fn raise_to_zero(&mut self) {
        let mut missing = self.penalty();
        missing.retain(|_, quantity| quantity.signum() < 0);
        arithmetic::subtract(&mut self.orphaned, &missing);
    }

    /// Decays the history until `now`, with `admitted` in use since. Time never goes back.
    pub(super) fn decay(&mut self, admitted: &ResourceList, half_life_ns: i64, now: Time, changes: Changes) {
        self.consumed = decayed(&self.consumed, admitted, now.since(self.last_update), half_life_ns, changes);
        self.last_update = self.last_update.max(now);
    }
}

impl Stored for Account {
    fn write_to(&self, out: &mut Writer<'_>) {
        let Self { consumed, last_update, status_accounted, penalties, orphaned } = self;
        consumed.write_to(out);
        last_update.write_to(out);
        status_accounted.write_to(out);
        out.count(penalties.len());
        for (id, penalty) in penalties {
            id.0.write_to(out);
            penalty.write_to(out);
        }
        orphaned.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let (consumed, last_update) = (Stored::read_from(from)?, Stored::read_from(from)?);
        let status_accounted = Stored::read_from(from)?;
        let penalties = BTreeMap::<u32, ResourceList>::read_from(from)?;
        let penalties = penalties.into_iter().map(|(id, penalty)| (WorkloadId(id), penalty)).collect();
        let orphaned = Stored::read_from(from)?;
        Ok(Self { consumed, last_update, status_accounted, penalties, orphaned })
    }
}
