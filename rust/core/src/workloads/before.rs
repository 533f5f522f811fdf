//! What a workload was before something changed it: to judge the change by, or to take it back.

use std::sync::Arc;

use crate::assign::Resume;
use crate::base::shared::Shared;
use crate::objects::conditions::{QUOTA_RESERVED, is_true};
use crate::objects::{Workload, WorkloadStatus};
use crate::pods::totals::Totals;
use crate::workloads::row::WorkloadRow;
use crate::workloads::{Record, Spec};

/// What a change of a workload is judged by (rules/05 §2.1).
#[derive(Clone, Debug)]
pub struct Before {
    /// Where it stood.
    pub row: WorkloadRow,
    /// Its status.
    pub status: Shared<WorkloadStatus>,
    /// Its totals.
    pub totals: Arc<[Totals]>,
    /// The object with its pod sets, if more than the status may have changed.
    pub object: Option<(Workload, Arc<Spec>)>,
}

impl Record {
    /// What it is before its status alone changes.
    pub(crate) fn before_status(&self) -> Before {
        let totals = Arc::clone(&self.totals);
        Before { row: self.row, status: self.workload.status.clone(), totals, object: None }
    }

    /// What it is before anything of it may change.
    pub fn before(&self) -> Before {
        Before { object: Some((self.workload.clone(), Arc::clone(&self.spec))), ..self.before_status() }
    }
}

/// A workload before a cycle wrote a reservation or an eviction, which may still be refused.
#[derive(Clone, Debug)]
pub(crate) struct Unconfirmed {
    /// Its status.
    pub status: Shared<WorkloadStatus>,
    /// Its totals.
    pub totals: Arc<[Totals]>,
    /// Where its scan of flavors had stopped.
    pub resume: Option<Box<Resume>>,
}

impl Unconfirmed {
    /// Did it hold a reservation? Then it is an eviction, or a place on nodes, that may be refused.
    pub fn had_reservation(&self) -> bool {
        is_true(&self.status.conditions, QUOTA_RESERVED)
    }
}
