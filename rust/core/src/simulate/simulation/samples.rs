//! Samples of LocalQueue usage, at the times at which their controller would take them (rules/09 §1.4).

use std::collections::BTreeMap;

use super::Simulation;
use crate::base::ids::LocalQueueId;
use crate::engine::Engine;
use crate::objects::Time;
use crate::snapshot::stored;

/// When the next sample of each LocalQueue is due; those with nothing to sample are missing.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    due: BTreeMap<LocalQueueId, Time>,
}

stored!(struct Samples { due });

impl Samples {
    /// When the next sample is due. It moves the clock, but does not keep a run alive.
    pub(super) fn next_time(&self) -> Option<Time> {
        self.due.values().min().copied()
    }
}

impl Simulation {
    /// Starts sampling LocalQueues that are new, or whose ClusterQueue has just become active.
    pub(super) fn begin_samples(&mut self, engine: &mut Engine) {
        if engine.state.admission_fair_sharing().is_some() {
            for id in engine.state.local_queues.ids() {
                if !self.samples.due.contains_key(&id) {
                    self.sample(engine, id);
                }
            }
        }
    }

    /// Takes the samples that are due at exactly this time.
    pub(super) fn take_samples(&mut self, engine: &mut Engine, time: Time) {
        let due = self.samples.due.iter().filter(|(_, at)| **at == time);
        for id in due.map(|(&id, _)| id).collect::<Vec<_>>() {
            self.sample(engine, id);
        }
    }

    fn sample(&mut self, engine: &mut Engine, id: LocalQueueId) {
        match engine.state.sample_local_queue(id, self.clock) {
            Some(next) => self.samples.due.insert(id, next),
            None => self.samples.due.remove(&id),
        };
    }
}
