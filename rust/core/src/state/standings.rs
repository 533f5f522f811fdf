//! Where all workloads stand, as one number: whoever looks for circles of evictions compares states by it.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::base::ids::WorkloadId;
use crate::base::key::Key;
use crate::objects::conditions;
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
        for assigned in status.admission.iter().flat_map(|it| it.pod_set_assignments.iter()) {
            assigned.name.hash(hasher);
            for (resource, flavor) in assigned.flavors.iter() {
                (resource, flavor).hash(hasher);
            }
        }
    }
}
