//! What happens from outside: objects come, change and go.

use super::{Change, JobPlan, Simulation, Step};
use crate::base::ids::WorkloadId;
use crate::base::key::Key;
use crate::base::shared::Shared;
use crate::objects::{ClusterQueue, Cohort, LocalQueue, MetaDetails, Object, Workload, WorkloadMeta};
use crate::status::stage::is_finished;

impl<F: FnMut() -> bool> Simulation<'_, F> {
    /// `number` is that of the workload that is created, if one is.
    pub(super) fn change(&mut self, change: Change, number: u32) {
        match change {
            Change::Create { object, job } => match *object {
                Object::Workload(workload) => self.create(*workload, job, number),
                object => self.put(object),
            },
            Change::Submit { columns, row, run_ns } => {
                self.create(columns.workload(row), JobPlan { run_ns, pods: None }, number);
            }
            Change::Update(object) => self.update(*object),
            Change::Finish(key) => {
                if let Some(id) = self.find(&key).filter(|id| !self.is_finished(*id)) {
                    self.finish(id);
                }
            }
            Change::Delete(key) => {
                if let Some(id) = self.find(&key) {
                    self.note(Step::Deleted, id);
                    self.numbers.remove(&id);
                    self.jobs.remove(id, &key);
                    self.engine.state.delete_workload(key.namespace(), key.name());
                }
            }
        }
    }

    fn find(&self, key: &Key) -> Option<WorkloadId> {
        self.engine.state.workloads.find(key.namespace(), key.name())
    }

    fn is_finished(&self, id: WorkloadId) -> bool {
        is_finished(&self.engine.state.workloads.get(id).workload)
    }

    fn create(&mut self, workload: Workload, job: JobPlan, number: u32) {
        let id = self.engine.state.apply_workload(workload);
        let is_waited_for = self.engine.state.config.wait_for_pods_ready.is_some();
        self.jobs.add(id, JobPlan { pods: job.pods.filter(|_| is_waited_for), ..job });
        self.numbers.entry(id).or_insert(number);
        self.note(Step::Created, id);
    }

    fn update(&mut self, object: Object) {
        match (self.engine.stored(&object), object) {
            (Some(Object::Workload(old)), Object::Workload(new)) => {
                let new = updated(&old, *new);
                if new != *old {
                    self.engine.state.apply_workload(new);
                }
            }
            // It is gone.
            (None, Object::Workload(_)) => {}
            // Whoever watches is not told of an update that changes nothing.
            (Some(old), new) if same_spec(&old, &new) => {}
            (_, object) => self.put(object),
        }
    }

    fn put(&mut self, object: Object) {
        self.engine.state.apply(object);
        self.begin_samples();
    }
}

/// A workload with the spec, labels and annotations of another version.
fn updated(old: &Workload, new: Workload) -> Workload {
    let mut status = old.status.clone();
    if !new.status.reclaimable_pods.is_empty() {
        status.reclaimable_pods.clone_from(&new.status.reclaimable_pods);
    }
    let MetaDetails { labels, annotations, .. } = MetaDetails::clone(&new.meta.details);
    let details = Shared::of(MetaDetails { labels, annotations, ..MetaDetails::clone(&old.meta.details) });
    let spec_of = |w: &Workload| Workload { meta: WorkloadMeta::default(), status: Shared::default(), ..w.clone() };
    let changed = spec_of(old) != spec_of(&new);
    let generation = old.meta.generation + i64::from(changed);
    Workload { meta: WorkloadMeta { generation, details, ..old.meta.clone() }, status, ..new }
}

/// Do two versions of an object say the same, metadata aside?
fn same_spec(old: &Object, new: &Object) -> bool {
    match (old, new) {
        (Object::ClusterQueue(a), Object::ClusterQueue(b)) => ClusterQueue { meta: b.meta.clone(), ..a.clone() } == *b,
        (Object::LocalQueue(a), Object::LocalQueue(b)) => LocalQueue { meta: b.meta.clone(), ..a.clone() } == *b,
        (Object::Cohort(a), Object::Cohort(b)) => Cohort { meta: b.meta.clone(), ..a.clone() } == *b,
        _ => old == new,
    }
}
