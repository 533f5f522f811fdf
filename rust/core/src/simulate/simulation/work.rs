//! Records the work of jobs, and what was present at the start of the run.

use std::sync::Arc;

use super::Simulation;
use crate::base::ids::WorkloadId;
use crate::engine::Engine;
use crate::objects::Workload;
use crate::objects::conditions::{ADMITTED, EVICTED, FINISHED, find_true};
use crate::objects::variants::is_variant;
use crate::simulate::work_log::Present;
use crate::status::reasons::SUCCEEDED;
use crate::status::stage::{has_quota_reservation, is_finished};

impl Simulation {
    /// Records that a run of a job, or a part of it, is over.
    pub(super) fn note_work(&mut self, engine: &Engine, id: WorkloadId, lost_ns: i64, idle_ns: i64) {
        if !self.options.keeps_log {
            return;
        }
        let number = self.number(engine, id);
        let pods = started_pods(&engine.state.workloads.get(id).workload);
        Arc::make_mut(&mut self.log).work.push(self.clock, number, pods, lost_ns, idle_ns);
    }

    /// Records how a workload ended, unless its job has succeeded.
    pub(super) fn note_ending(&mut self, engine: &Engine, id: WorkloadId) {
        if !self.options.keeps_log {
            return;
        }
        let is_known = self.jobs.note_ending(id);
        let conditions = &engine.state.workloads.get(id).workload.status.conditions;
        let reason = find_true(conditions, FINISHED).map(|finished| &finished.reason);
        let number = self.numbers.get(&id).copied().filter(|_| !is_known);
        if let (Some(reason), Some(number)) = (reason.filter(|reason| ***reason != *SUCCEEDED), number) {
            Arc::make_mut(&mut self.log).work.push_ending(number, reason);
        }
    }

    /// Records the workloads present at the start of the run.
    pub(super) fn note_present(&mut self, engine: &Engine) {
        for (id, record) in engine.state.workloads.iter() {
            let workload = &record.workload;
            if !is_finished(workload) && !is_variant(workload) {
                let number = self.number(engine, id);
                self.note_home(engine, id, number);
                self.pass_over_evictions(id, workload);
                self.push_present(workload, number);
            }
        }
    }

    /// Records a workload that appears at the start of the run: it may have existed before.
    pub(super) fn note_arrival(&mut self, engine: &Engine, id: WorkloadId, number: u32) {
        if !self.options.keeps_log {
            return;
        }
        let workload = &engine.state.workloads.get(id).workload;
        self.pass_over_evictions(id, workload);
        let is_older = workload.meta.created < self.start || has_quota_reservation(workload);
        if self.clock == self.start && is_older {
            self.push_present(workload, number);
        }
    }

    fn push_present(&mut self, workload: &Workload, number: u32) {
        let conditions = &workload.status.conditions;
        let present = Present {
            workload: number,
            created: workload.meta.created.min(self.start),
            admitted: find_true(conditions, ADMITTED).map(|it| it.last_transition.min(self.start)),
            was_evicted: conditions.iter().any(|it| it.kind == EVICTED),
        };
        Arc::make_mut(&mut self.log).work.present.push(present);
    }
}

/// How many pods of a workload may start if it has quota, else how many it has.
fn started_pods(workload: &Workload) -> i64 {
    let asked = |name: &str| workload.pod_sets.iter().find(|it| it.name == *name).map_or(0, |it| it.count);
    match &workload.status.admission {
        Some(admission) => {
            let assigned = admission.pod_set_assignments.iter();
            assigned.map(|it| i64::from(it.count.unwrap_or_else(|| asked(&it.name)))).sum()
        }
        None => workload.pod_sets.iter().map(|it| i64::from(it.count)).sum(),
    }
}
