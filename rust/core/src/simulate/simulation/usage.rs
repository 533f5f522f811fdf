//! Records what workloads charge and release.

use std::sync::Arc;

use super::Simulation;
use crate::base::ids::WorkloadId;
use crate::engine::Engine;
use crate::simulate::record::Log;
use crate::state::charges::ChargeChange;

impl Simulation {
    /// Records the changes since the last call, at the time of the run.
    pub(super) fn note_usage(&mut self, engine: &mut Engine) {
        if !self.options.keeps_log {
            if !std::mem::replace(&mut self.follows_usage, true) {
                self.note_first_losses(&mut engine.state);
            }
            return;
        }
        if !self.follows_usage {
            self.follows_usage = true;
            engine.state.feeds.charges.follow();
            // What another run on this engine has left behind is part of the initial charges.
            engine.state.feeds.charges.take();
            self.note_present(engine);
            self.note_first_usage(engine);
            self.follow_quotas(engine);
            self.note_all_quotas(engine);
            self.note_first_losses(&mut engine.state);
        }
        for change in engine.state.feeds.charges.take() {
            self.note_charge(engine, &change);
        }
        self.departing.clear();
        self.note_quotas(engine);
    }

    /// Records the charges from before the run.
    fn note_first_usage(&mut self, engine: &Engine) {
        for (workload, record) in engine.state.workloads.iter() {
            if let Some(charge) = &record.charge {
                let usage = charge.usage.clone();
                self.note_charge(engine, &ChargeChange { workload, queue: charge.queue, usage, adds: true });
            }
        }
    }

    fn note_charge(&mut self, engine: &Engine, change: &ChargeChange) {
        let gone = self.departing.iter().find(|(id, _)| *id == change.workload).map(|(_, number)| *number);
        let is_there = engine.state.workloads.find_by_id(change.workload).is_some();
        let number = match gone.or_else(|| self.numbers.get(&change.workload).copied()) {
            Some(number) => number,
            None if is_there => self.number(engine, change.workload),
            // It came and went between two steps, so its name is unknown.
            None => self.new_number(),
        };
        Arc::make_mut(&mut self.log).usage.push(&engine.state, self.clock, number, change);
    }

    /// The number of a workload in the table, which has appeared.
    pub(super) fn number(&mut self, engine: &Engine, id: WorkloadId) -> u32 {
        let number = match self.numbers.get(&id) {
            Some(number) => *number,
            None => {
                let number = self.new_number();
                self.numbers.insert(id, number);
                number
            }
        };
        let Log { workloads, named, labels, .. } = Arc::make_mut(&mut self.log);
        let name = &mut workloads[number as usize];
        if name.is_none() {
            let record = engine.state.workloads.get(id);
            *name = Some(record.key().clone());
            named.push(number);
            let class = record.workload.priority_class.as_ref();
            labels.push_class(class.map_or("", |class| &class.name));
        }
        number
    }

    fn new_number(&mut self) -> u32 {
        let Log { workloads, .. } = Arc::make_mut(&mut self.log);
        workloads.push(None);
        u32::try_from(workloads.len() - 1).expect("fewer than 2^32 workloads")
    }

    pub(super) fn note_home(&mut self, engine: &Engine, id: WorkloadId, number: u32) {
        let local_queue = engine.state.workloads.get(id).row.local_queue;
        let queue = engine.state.local_queues[local_queue].queue;
        Arc::make_mut(&mut self.log).usage.found_home(&engine.state, number, queue);
    }
}
