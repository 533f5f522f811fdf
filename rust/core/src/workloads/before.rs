//! The state of a workload before a change, to evaluate the change or undo it.

use std::sync::Arc;

use crate::assign::Resume;
use crate::base::shared::Shared;
use crate::objects::conditions::{QUOTA_RESERVED, is_true};
use crate::objects::{Workload, WorkloadStatus};
use crate::pods::totals::Totals;
use crate::workloads::row::WorkloadRow;
use crate::workloads::{Record, Spec};

/// The state before a change, for evaluating it (rules/05 §2.1).
#[derive(Clone, Debug)]
pub struct Before {
    pub row: WorkloadRow,
    pub status: Shared<WorkloadStatus>,
    pub totals: Arc<[Totals]>,
    /// The object with its pod sets, if more than the status may have changed.
    pub object: Option<(Workload, Arc<Spec>)>,
}

impl Record {
    /// The state before a change of the status alone.
    pub(crate) fn before_status(&self) -> Before {
        let totals = Arc::clone(&self.totals);
        Before { row: self.row, status: self.workload.status.clone(), totals, object: None }
    }

    /// The state before any change.
    pub fn before(&self) -> Before {
        Before { object: Some((self.workload.clone(), Arc::clone(&self.spec))), ..self.before_status() }
    }
}

/// A workload before a cycle wrote a reservation or an eviction, which may still be rejected.
#[derive(Clone, Debug)]
pub(crate) struct Unconfirmed {
    pub status: Shared<WorkloadStatus>,
    pub totals: Arc<[Totals]>,
    /// Where its flavor scan had stopped.
    pub resume: Option<Box<Resume>>,
}

impl Unconfirmed {
    /// Did it hold a reservation? Then the write in question is an eviction or a placement.
    pub fn had_reservation(&self) -> bool {
        is_true(&self.status.conditions, QUOTA_RESERVED)
    }
}
