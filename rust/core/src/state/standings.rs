//! Where all workloads stand, as one number: whoever looks for circles of evictions compares states by it.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::base::ids::WorkloadId;
use crate::base::key::Key;
use crate::objects::{Time, conditions};
use crate::state::State;
use crate::status::stage::Stage;
use crate::workloads::Record;

impl State {
    /// A number that two states of one engine share if each workload stands where it stood: its stage, its place in the
    /// queue, its flavors, and when it was evicted, because that may change its turn.
    #[must_use]
    pub fn standings(&self) -> u64 {
        // Its keys are constants, so that the same states give the same number in each run.
        let mut hasher = DefaultHasher::new();
        for (id, record) in self.workloads.iter() {
            self.hash_standing(id, record, &mut hasher);
        }
        hasher.finish()
    }

    /// The same for states at different times: in place of times, the order in which workloads came and got their quota,
    /// and for how long experiments still make somebody wait.
    #[must_use]
    pub fn standings_over_time(&self) -> u64 {
        let (waits, config) = (&self.pending.experiments, self.config.experiments);
        let mut times: Vec<Time> = self.workloads.iter().flat_map(|(_, it)| [it.row.time, it.row.reserved]).collect();
        times.sort_unstable();
        times.dedup();
        let rank = |time: Time| times.binary_search(&time).ok();
        let mut hasher = DefaultHasher::new();
        for (id, record) in self.workloads.iter() {
            let row = &record.row;
            let place = row.queued_in.map(|queue| self.queues[queue].pending.is_active(&self.pending.places, id));
            (id, row.stage as u8, place, row.is_evicted, row.is_held, rank(row.time), rank(row.reserved))
                .hash(&mut hasher);
            hash_flavors(record, &mut hasher);
            waits.turn_left(id, config, self.now).for_each(|left| left.hash(&mut hasher));
        }
        waits.backoffs_left(self.now).for_each(|left| left.hash(&mut hasher));
        hasher.finish()
    }

    /// When the next wait of an experiment ends, after `now`.
    #[must_use]
    pub fn next_experiment(&self, now: Time) -> Option<Time> {
        self.pending.experiments.next_after(now)
    }

    /// The workloads that were evicted and still hold their quota, by namespace and name.
    #[must_use]
    pub fn evicted_with_quota(&self) -> Vec<Key> {
        let holds = |record: &Record| {
            Stage::of(&record.workload).holds_quota()
                && conditions::is_true(&record.workload.status.conditions, conditions::EVICTED)
        };
        let mut found: Vec<_> =
            self.workloads.iter().filter(|(_, it)| holds(it)).map(|(_, it)| it.key().clone()).collect();
        found.sort();
        found
    }

    fn hash_standing(&self, id: WorkloadId, record: &Record, hasher: &mut DefaultHasher) {
        let status = &record.workload.status;
        let place = record.row.queued_in.map(|queue| self.queues[queue].pending.is_active(&self.pending.places, id));
        let evicted = conditions::find_true(&status.conditions, conditions::EVICTED).map(|it| it.last_transition.0);
        (id, Stage::of(&record.workload) as u8, place, evicted).hash(hasher);
        hash_flavors(record, hasher);
    }
}

fn hash_flavors(record: &Record, hasher: &mut DefaultHasher) {
    for assigned in record.workload.status.admission.iter().flat_map(|it| it.pod_set_assignments.iter()) {
        assigned.name.hash(hasher);
        for (resource, flavor) in assigned.flavors.iter() {
            (resource, flavor).hash(hasher);
        }
    }
}
