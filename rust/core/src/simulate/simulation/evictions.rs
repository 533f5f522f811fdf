//! Records why and where workloads are evicted, as Kueue counts it.

use std::sync::Arc;

use super::Simulation;
use crate::base::ids::{Id, WorkloadId};
use crate::engine::Engine;
use crate::objects::{EvictionCount, Workload};
use crate::schedule::decision::Decision;
use crate::simulate::record::Log;
use crate::simulate::usage::NONE;
use crate::status::reasons;

impl Simulation {
    /// Evictions before the run, or before the workload joined it, are not part of the run.
    pub(super) fn pass_over_evictions(&mut self, id: WorkloadId, workload: &Workload) {
        let evictions = &workload.status.rare.evictions;
        if self.options.keeps_log && !evictions.is_empty() {
            self.evictions.insert(id.0, evictions.iter().map(|it| it.count).collect());
        }
    }

    /// A cycle that has waited may have written an older copy of its victims, without their evictions since.
    pub(super) fn expect_evictions(&mut self, engine: &Engine, decision: &Decision) {
        for preempted in decision.preemptions.iter().filter(|_| self.options.keeps_log) {
            let status = &engine.state.workloads.get(preempted.workload).workload.status;
            let is_new = |it: &EvictionCount| matches!(&*it.reason, reasons::PREEMPTED | reasons::FLAVOR_MIGRATION);
            let counts = status.rare.evictions.iter().map(|it| it.count - i32::from(is_new(it))).collect();
            self.evictions.insert(preempted.workload.0, counts);
        }
    }

    /// Records the evictions of a workload since the last call.
    pub(super) fn note_evictions(&mut self, engine: &Engine, id: WorkloadId) {
        let state = &engine.state;
        let status = &state.workloads.get(id).workload.status;
        if !self.options.keeps_log || status.rare.evictions.is_empty() {
            return;
        }
        let number = self.number(engine, id);
        let queue = status.admission.as_ref().and_then(|it| state.names.queues.find(&*it.cluster_queue));
        let Log { usage, labels, .. } = Arc::make_mut(&mut self.log);
        let queue = queue.map_or(NONE, |queue| usage.queue(state, queue.index()));
        let noted = self.evictions.entry(id.0).or_default();
        noted.resize(noted.len().max(status.rare.evictions.len()), 0);
        for (noted, EvictionCount { reason, underlying_cause, count }) in noted.iter_mut().zip(&status.rare.evictions) {
            for _ in *noted..*count {
                labels.push_eviction(number, queue, (reason, underlying_cause));
            }
            *noted = *count;
        }
    }
}
