//! External events: objects are created, updated and deleted.

use super::Simulation;
use crate::base::ids::WorkloadId;
use crate::base::shared::Shared;
use crate::engine::Engine;
use crate::objects::{ClusterQueue, Cohort, Kind, LocalQueue, MetaDetails, Object, Workload, WorkloadMeta};
use crate::simulate::job_plan::JobPlan;
use crate::simulate::plan::Change;
use crate::simulate::record::Step;
use crate::status::reasons::SUCCEEDED;

impl Simulation {
    /// Applies an event. `number` is that of the workload that it creates, if any.
    pub(super) fn change(&mut self, engine: &mut Engine, change: Change, number: u32) {
        match change {
            Change::Create { object, job } => match *object {
                Object::Workload(workload) => self.create(engine, *workload, job, number),
                object => self.put(engine, object),
            },
            Change::Submit { columns, row, run_ns, ends_failed } => {
                let job = JobPlan { run_ns, ends_failed, ..JobPlan::default() };
                self.create(engine, columns.workload(row), job, number);
            }
            Change::Copy { copies, row } => {
                let (workload, job) = copies.row(row);
                self.create(engine, workload, job, number);
            }
            Change::Update(object) => self.update(engine, *object),
            Change::Watch => {}
            Change::Finish(key) => {
                if let Some(id) = engine.state.workloads.find(key.namespace(), key.name()) {
                    self.finish(engine, id, SUCCEEDED, "done");
                }
            }
            Change::Delete(key) => {
                if let Some(id) = engine.state.workloads.find(key.namespace(), key.name()) {
                    self.delete(engine, id);
                }
            }
            Change::Remove { kind: Kind::Workload, namespace, name } => {
                if let Some(id) = engine.state.workloads.find(&namespace, &name) {
                    self.delete(engine, id);
                }
            }
            Change::Remove { kind, namespace, name } => {
                engine.delete(kind, &namespace, &name, self.clock);
            }
        }
    }

    /// Deletes a workload and its job.
    pub fn delete(&mut self, engine: &mut Engine, id: WorkloadId) {
        let key = engine.state.workloads.get(id).key().clone();
        self.note(engine, Step::Deleted, id);
        self.numbers.remove(&id);
        self.evictions.remove(&id.0);
        self.watch.forget(id);
        self.over.retain(|it| *it != id);
        self.jobs.remove(id, &key);
        engine.state.now = self.clock;
        engine.state.delete_workload(key.namespace(), key.name());
    }

    fn create(&mut self, engine: &mut Engine, workload: Workload, job: JobPlan, number: u32) {
        let id = engine.state.apply_workload(workload);
        if self.options.keeps_log {
            self.numbers.entry(id).or_insert(number);
        }
        self.created(engine, id, job);
        self.note_arrival(engine, id, number);
    }

    /// Sets the job of a workload that has just appeared.
    pub fn created(&mut self, engine: &Engine, id: WorkloadId, job: JobPlan) {
        let is_waited_for = engine.state.config.wait_for_pods_ready.is_some();
        self.jobs.add(id, JobPlan { pods: job.pods.filter(|_| is_waited_for), ..job });
        self.note(engine, Step::Created, id);
    }

    fn update(&mut self, engine: &mut Engine, object: Object) {
        match (engine.stored(&object), object) {
            (Some(Object::Workload(old)), Object::Workload(new)) => {
                let new = updated(&old, *new);
                if new != *old {
                    engine.state.apply_workload(new);
                }
            }
            // It is gone.
            (None, Object::Workload(_) | Object::Node(_) | Object::Pod(_) | Object::Topology(_)) => {}
            // An update without changes is not reported to watchers.
            (Some(old), new) if same_spec(&old, &new) => {}
            (_, object) => self.put(engine, object),
        }
    }

    fn put(&mut self, engine: &mut Engine, object: Object) {
        engine.state.apply(object);
        self.begin_samples(engine);
    }
}

/// A workload with the spec, labels and annotations of another version.
fn updated(old: &Workload, new: Workload) -> Workload {
    let mut status = old.status.clone();
    if !new.status.rare.reclaimable_pods.is_empty() {
        status.rare.reclaimable_pods.clone_from(&new.status.rare.reclaimable_pods);
    }
    let MetaDetails { labels, annotations, .. } = MetaDetails::clone(&new.meta.details);
    let details = Shared::of(MetaDetails { labels, annotations, ..MetaDetails::clone(&old.meta.details) });
    let spec_of = |w: &Workload| Workload { meta: WorkloadMeta::default(), status: Shared::default(), ..w.clone() };
    let changed = spec_of(old) != spec_of(&new);
    let generation = old.meta.generation + i64::from(changed);
    Workload { meta: WorkloadMeta { generation, details, ..old.meta.clone() }, status, ..new }
}

/// Are two versions of an object equal, except for metadata?
fn same_spec(old: &Object, new: &Object) -> bool {
    match (old, new) {
        (Object::ClusterQueue(a), Object::ClusterQueue(b)) => ClusterQueue { meta: b.meta.clone(), ..a.clone() } == *b,
        (Object::LocalQueue(a), Object::LocalQueue(b)) => LocalQueue { meta: b.meta.clone(), ..a.clone() } == *b,
        (Object::Cohort(a), Object::Cohort(b)) => Cohort { meta: b.meta.clone(), ..a.clone() } == *b,
        _ => old == new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::ReclaimablePod;
    use crate::testing::workload;

    #[test]
    fn an_update_keeps_the_status_except_for_reclaimable_pods() {
        let with = |counts: &[i32]| {
            let mut workload = workload("w", "1");
            let pod = |&count: &i32| ReclaimablePod { name: "main".to_owned(), count };
            workload.status.rare.reclaimable_pods = counts.iter().map(pod).collect();
            workload
        };
        for (old, new, expected) in [(&[][..], &[1][..], 1), (&[1], &[], 1), (&[1], &[2], 2)] {
            assert_eq!(updated(&with(old), with(new)).status.rare.reclaimable_pods[0].count, expected);
        }
    }
}
